//! What comes to each lock of a process that has figures of its own, and what to the others.
//!
//! # What never goes back
//! What is new at a look goes to the lock if it is among the worst then, and to the others if it is not.
//! So a lock that comes among the worst later counts from there, one that is no longer among them keeps
//! what it had until it is again, and no counter goes back. All that was given together is what the
//! process came to.

use lockstead_inspect::report::sums::{LockId, LockSums, ProcessSums};
use std::collections::HashMap;

/// A lock, or the others, as they are shown.
#[derive(Clone, Debug, Default)]
pub(super) struct SeriesLock {
    /// What tells it from others of the process.
    pub(super) id: LockId,
    /// What it is called.
    pub(super) name: String,
    /// What kind of lock it is.
    pub(super) kind: String,
    /// What has come to it.
    pub(super) sums: LockSums,
    /// The threads that wait for it now.
    pub(super) waiting: u64,
    /// The longest wait, in nanoseconds.
    pub(super) longest_ns: u64,
}

/// The figures of the locks of one process.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// The locks that are shown, the worst first.
    pub(super) worst: Vec<SeriesLock>,
    /// The sum of what has come to no lock.
    pub(super) others: SeriesLock,
    /// What has come to locks that live and were shown earlier.
    hidden: HashMap<LockId, LockSums>,
    /// The sums of each lock that lives, and of all, up to the last look.
    each: HashMap<LockId, LockSums>,
    all: LockSums,
}

impl Counters {
    /// Takes in a look.
    pub(super) fn take_in(&mut self, mut found: ProcessSums) {
        let shown = self.worst.drain(..).map(|lock| (lock.id, lock.sums));
        let mut given: HashMap<LockId, LockSums> = shown.chain(self.hidden.drain()).collect();
        // A wait that was given up may leave a sum smaller than it was while that lasted.
        for (id, sums) in &mut found.each {
            if let Some(before) = self.each.get(id) {
                *sums = joined(sums, before, u64::max);
            }
        }
        let all = joined(&found.all, &self.all, u64::max);
        let mut rest = gained(&all, &self.all);
        let mut waiting = found.waiting;
        for lock in found.worst {
            waiting = waiting.saturating_sub(lock.waiting);
            let before = self.each.get(&lock.id).copied().unwrap_or_default();
            let new = gained(&lock.sums, &before);
            rest = gained(&rest, &new);
            let sums = given.remove(&lock.id).unwrap_or_default();
            self.worst.push(SeriesLock {
                id: lock.id,
                name: lock.name,
                kind: lock.kind,
                sums: joined(&sums, &new, u64::saturating_add),
                waiting: lock.waiting,
                longest_ns: lock.longest_ns,
            });
        }
        given.retain(|id, _| found.each.contains_key(id));
        self.hidden = given;
        self.others.sums = joined(&self.others.sums, &rest, u64::saturating_add);
        self.others.waiting = waiting;
        (self.each, self.all) = (found.each, all);
    }
}

/// Returns how much more a sum is than another one.
fn gained(now: &LockSums, before: &LockSums) -> LockSums {
    joined(now, before, u64::saturating_sub)
}

fn joined(one: &LockSums, other: &LockSums, by: fn(u64, u64) -> u64) -> LockSums {
    LockSums {
        acquisitions: by(one.acquisitions, other.acquisitions),
        contended: by(one.contended, other.contended),
        waited_ns: by(one.waited_ns, other.waited_ns),
        held_ns: by(one.held_ns, other.held_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstead_inspect::report::sums::SummedLock;

    fn sums(number: u64) -> LockSums {
        LockSums { acquisitions: number, contended: 0, waited_ns: number * 10, held_ns: 0 }
    }

    /// Takes in a look at locks with these sums, of which those in `worst` are the worst, and at
    /// locks that are gone; returns what is shown of the worst, and of the others.
    fn look(
        counters: &mut Counters,
        locks: &[(LockId, u64)],
        worst: &[LockId],
        gone: u64,
    ) -> (Vec<u64>, u64) {
        let each: HashMap<_, _> = locks.iter().map(|&(id, number)| (id, sums(number))).collect();
        let all = locks.iter().map(|lock| lock.1).sum::<u64>() + gone;
        let worst = worst.iter().map(|id| SummedLock {
            id: *id,
            name: "lock".into(),
            kind: "mutex".into(),
            sums: each[id],
            waiting: 0,
            longest_ns: 0,
        });
        let worst = worst.collect();
        let found = ProcessSums { worst, all: sums(all), each, ..ProcessSums::default() };
        counters.take_in(found);
        let shown: Vec<u64> = counters.worst.iter().map(|lock| lock.sums.acquisitions).collect();
        let times = counters.worst.iter().map(|lock| lock.sums.waited_ns / 10);
        assert!(times.eq(shown.iter().copied()));
        (shown, counters.others.sums.acquisitions)
    }

    #[test]
    fn what_is_new_goes_to_the_lock_that_is_shown_and_nothing_goes_back() {
        let mut counters = Counters::default();
        let (a, b, a_again) = ((1, 1), (2, 1), (1, 3));
        assert_eq!(look(&mut counters, &[(a, 100), (b, 50)], &[a], 0), (vec![100], 50));
        assert_eq!(look(&mut counters, &[(a, 110), (b, 55)], &[a], 0), (vec![110], 55));
        // `b` counts from here; what it had is that of the others, and stays there.
        assert_eq!(look(&mut counters, &[(a, 120), (b, 300)], &[b], 0), (vec![245], 65));
        assert_eq!(look(&mut counters, &[(a, 130), (b, 301)], &[b], 0), (vec![246], 75));
        // `a` goes on where it was.
        assert_eq!(look(&mut counters, &[(a, 500), (b, 302)], &[a], 0), (vec![480], 76));
        // It is destroyed: its record is that of another one, with an id of its own.
        let shown = look(&mut counters, &[(a_again, 7), (b, 302)], &[a_again], 501);
        assert_eq!(shown, (vec![7], 77));
        assert_eq!(look(&mut counters, &[(b, 302)], &[b], 508), (vec![246], 77));
        // A sum that was smaller for a while counts nothing twice.
        assert_eq!(look(&mut counters, &[(b, 299)], &[b], 508), (vec![246], 77));
        assert_eq!(look(&mut counters, &[(b, 303)], &[b], 508), (vec![247], 77));
    }
}
