//! Threads by the function that they began with, and what each kind of them did with a lock.

use super::kinds::{LockRole, ThreadKind, ThreadTimes};
use super::model::ThreadReport;
use super::names::{FIRST, Names};
use lockstead_ledger::Ledger;
use lockstead_ledger::roles::{OTHERS, start_of};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;

/// Beginnings and ends of threads, each with its time: one more, or one less.
type LifeChanges = Vec<(u64, i64)>;

/// The kinds of threads of a process, while they are added up.
#[derive(Default)]
pub(super) struct Kinds {
    kinds: HashMap<Option<String>, (ThreadKind, LifeChanges)>,
}

impl Kinds {
    /// Adds a thread that began at `start`; `times` is what the command saw of it.
    pub(super) fn add(&mut self, thread: &ThreadReport, start: u64, times: Option<&ThreadTimes>) {
        let (kind, changes) = self.kinds.entry(thread.start.clone()).or_default();
        kind.start.clone_from(&thread.start);
        kind.threads += 1;
        kind.lived_ns = kind.lived_ns.saturating_add(thread.lived_ns);
        kind.waited_ns = kind.waited_ns.saturating_add(thread.waited_ns);
        kind.idled_ns = kind.idled_ns.saturating_add(thread.idled_ns);
        kind.acquisitions = kind.acquisitions.saturating_add(thread.acquisitions);
        if let Some(times) = times {
            *kind.ran_ns.get_or_insert(0) += times.ran_ns;
            *kind.queued_ns.get_or_insert(0) += times.queued_ns;
        }
        changes.push((start, 1));
        changes.push((start.saturating_add(thread.lived_ns), -1));
    }

    /// Returns them, those that ran most first.
    pub(super) fn finish(self) -> Vec<ThreadKind> {
        let mut all: Vec<ThreadKind> = self
            .kinds
            .into_values()
            .map(|(kind, changes)| ThreadKind { peak: peak(changes), ..kind })
            .collect();
        all.sort_by_key(|kind| (Reverse(kind.ran_ns), Reverse(kind.lived_ns), kind.start.clone()));
        all
    }
}

/// Returns what each kind of threads did with the locks of these records.
pub(super) fn of(ledger: &Ledger<'_>, names: &mut dyn Names, members: &[u32]) -> Vec<LockRole> {
    let mut kinds: HashMap<Option<String>, LockRole> = HashMap::new();
    let locks = members.iter().filter_map(|&index| ledger.lock(index));
    for statistics in locks.filter_map(|lock| ledger.existing_extension(lock)) {
        for counts in statistics.roles.all() {
            let start = match counts.kind.load(Relaxed) {
                OTHERS => None,
                kind if start_of(kind) == 0 => Some(FIRST.into()),
                kind => names.function(start_of(kind)),
            };
            let role = kinds.entry(start.clone()).or_default();
            role.start = start;
            for (sum, word) in [
                (&mut role.holds, &counts.holds),
                (&mut role.held_ns, &counts.held),
                (&mut role.shared_holds, &counts.shared_holds),
                (&mut role.shared_ns, &counts.shared),
                (&mut role.waits, &counts.waits),
                (&mut role.waited_ns, &counts.waited),
                (&mut role.gives, &counts.gives),
            ] {
                *sum = sum.saturating_add(word.load(Relaxed));
            }
        }
    }
    let mut all: Vec<LockRole> = kinds.into_values().collect();
    all.sort_by_key(|role| {
        let time = role.held_ns.saturating_add(role.shared_ns).saturating_add(role.waited_ns);
        (Reverse(time), role.start.clone())
    });
    all
}

/// Returns the most that lived at the same time; a thread that ends when another begins did not
/// live with it.
pub(super) fn peak(mut changes: Vec<(u64, i64)>) -> u64 {
    changes.sort_unstable();
    let (mut now, mut peak) = (0, 0);
    for (_, change) in changes {
        now += change;
        peak = peak.max(now);
    }
    peak.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_counts_those_who_lived_together() {
        assert_eq!(peak(vec![]), 0);
        assert_eq!(peak(vec![(0, 1), (10, -1), (10, 1), (20, -1)]), 1);
        assert_eq!(peak(vec![(0, 1), (30, -1), (10, 1), (20, -1), (5, 1), (15, -1)]), 3);
    }
}
