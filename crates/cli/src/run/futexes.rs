//! When to look for deadlocks through locks of which the ledger has no owners.
//!
//! # Role
//! Of a lock that is a bare futex word the ledger has who waits for it, and so it is of one whose
//! word names a writer and only counts those who read. Who holds it is found by
//! evidence in the memory of the process, which takes some milliseconds, and more the first time;
//! so it is looked for only when a thread has slept for a while, and once for each such wait.
//!
//! # Cost
//! Nothing while no thread sleeps on a futex word for as long. Threads that sleep for events, for
//! work say, are known by the stacks of their waits once they were looked at, and do not count.
//! After a look there is none for many times as long as it took.

use super::processes::inside;
use lockstead_inspect::waits::observe::LastingWaiter;
use lockstead_ledger::publish::{Episode, WaitKind};
use std::collections::{BTreeSet, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How long a thread has slept, in nanoseconds, before it is looked for who could wake it.
const AGE: u64 = 250_000_000;
/// The times after which the same waits are looked at again, for a thread may have run meanwhile.
const AGAIN: [u64; 2] = [1_000_000_000, 5_000_000_000];
/// How many times as long as a look took there is none.
const REST: u64 = 40;

/// What the looks at a process have shown, for whoever decides on the next one.
#[derive(Debug, Default)]
pub(super) struct FutexLooks {
    /// The stacks of waits for events.
    events: Mutex<HashSet<u32>>,
    /// The time before which there is no look.
    rests_until: AtomicU64,
}

impl FutexLooks {
    /// Notes that a look took from `began` to `ended`, and the stacks of waits for events.
    pub(super) fn note(&self, began: u64, ended: u64, events: impl IntoIterator<Item = u32>) {
        let rest = ended.saturating_sub(began).saturating_mul(REST);
        self.rests_until.store(ended.saturating_add(rest), Relaxed);
        inside(&self.events).extend(events);
    }

    /// Tells whether a wait with this stack is known to be for an event.
    pub(super) fn is_event(&self, stack: u32) -> bool {
        inside(&self.events).contains(&stack)
    }
}

/// Decides when to look at one process.
#[derive(Debug, Default)]
pub(super) struct FutexWatch {
    /// The waits that were there at the last look.
    seen: BTreeSet<(u32, Episode)>,
    /// The time of the last look, and how often these waits were looked at.
    last: u64,
    looks: usize,
}

impl FutexWatch {
    /// Tells whether to look now. `waiters`: all threads that stay in one wait; `counts`: tells of a
    /// reader-writer lock whether its readers are in no ledger; `earlier`: whether a thread is in a wait
    /// that began before there was a ledger, which may be a part of a cycle with any other.
    pub(super) fn is_due<'w>(
        &mut self,
        looks: &FutexLooks,
        waiters: impl Iterator<Item = &'w LastingWaiter>,
        counts: impl Fn(u64) -> bool,
        earlier: impl FnOnce() -> bool,
        now: u64,
    ) -> bool {
        let mut waits = BTreeSet::new();
        let mut any = false;
        for waiter in waiters {
            let how = waiter.waiting.how;
            let is_old = now.saturating_sub(waiter.waiting.since) >= AGE;
            if !is_old || how.is_timed() {
                continue;
            }
            let is_futex = how.kind() == WaitKind::FUTEX;
            let is_lock = matches!(
                how.kind(),
                WaitKind::MUTEX | WaitKind::WRITE | WaitKind::READ | WaitKind::JOIN
            );
            if is_lock || is_futex && !looks.is_event(waiter.waiting.stack) {
                any |= is_futex || how.kind() == WaitKind::WRITE && counts(waiter.waiting.target);
                waits.insert((waiter.thread, waiter.episode));
            }
        }
        if waits.is_empty() || now < looks.rests_until.load(Relaxed) {
            return false;
        }
        let is_new = !waits.is_subset(&self.seen);
        let again = AGAIN.get(self.looks.wrapping_sub(1));
        let is_due = is_new || again.is_some_and(|&after| now.saturating_sub(self.last) >= after);
        let is_due = is_due && (any || earlier());
        if is_due {
            self.looks = if is_new { 1 } else { self.looks + 1 };
            (self.seen, self.last) = (waits, now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstead_ledger::publish::Waiting;

    fn waiter(thread: u32, how: WaitKind, since: u64) -> LastingWaiter {
        let waiting = Waiting { how, stack: thread, target: 64, since, deadline: 0, companion: 0 };
        LastingWaiter { thread, tid: thread, episode: Episode(1), waiting, held: Vec::new() }
    }

    #[test]
    fn each_wait_on_a_word_is_looked_at_when_it_is_old_and_a_few_times_more() {
        let (looks, mut watch) = (FutexLooks::default(), FutexWatch::default());
        let one = waiter(1, WaitKind::FUTEX, 0);
        let mut due = |waiters: &[&LastingWaiter], now| {
            watch.is_due(&looks, waiters.iter().copied(), |_| false, || false, now)
        };
        assert!(!due(&[&one], AGE - 1));
        assert!(due(&[&one], AGE));
        assert!(!due(&[&one], AGE + 1), "once");
        let other = waiter(2, WaitKind::MUTEX, 0);
        assert!(due(&[&one, &other], AGE + 2), "one more may close a cycle");
        assert!(!due(&[&one], AGE + 3));
        assert!(due(&[&one, &other], AGE + 2 + AGAIN[0]));
        assert!(due(&[&one, &other], AGE + 2 + AGAIN[0] + AGAIN[1]));
        assert!(!due(&[&one, &other], u64::MAX / 2), "that was enough");
    }

    #[test]
    fn who_waits_to_write_is_a_reason_where_readers_are_only_counted() {
        let (looks, waiting) = (FutexLooks::default(), waiter(1, WaitKind::WRITE, 0));
        let due = |counts: bool| {
            FutexWatch::default().is_due(&looks, [&waiting].into_iter(), |_| counts, || false, AGE)
        };
        assert!(due(true) && !due(false));
    }

    #[test]
    fn a_wait_from_before_makes_every_wait_for_a_lock_a_reason() {
        let looks = FutexLooks::default();
        let (lock, event) = (waiter(1, WaitKind::MUTEX, 0), waiter(2, WaitKind::CONDITION, 0));
        let due = |waiter: &LastingWaiter, earlier: bool| {
            FutexWatch::default().is_due(&looks, [waiter].into_iter(), |_| false, || earlier, AGE)
        };
        assert!(due(&lock, true) && !due(&lock, false) && !due(&event, true));
    }

    #[test]
    fn events_deadlines_and_what_the_ledger_knows_by_itself_are_no_reason_to_look() {
        let (looks, mut watch) = (FutexLooks::default(), FutexWatch::default());
        looks.note(0, 0, [1]);
        let waiters = [
            waiter(1, WaitKind::FUTEX, 0),
            waiter(2, WaitKind::FUTEX.timed(), 0),
            waiter(3, WaitKind::MUTEX, 0),
            waiter(4, WaitKind::CONDITION, 0),
        ];
        assert!(!watch.is_due(&looks, waiters.iter(), |_| true, || false, 10 * AGE));
        let one = waiter(5, WaitKind::FUTEX, 0);
        looks.note(9 * AGE, 10 * AGE, []);
        assert!(
            !watch.is_due(&looks, waiters.iter().chain([&one]), |_| true, || false, 10 * AGE),
            "it rests"
        );
        let all = waiters.iter().chain([&one]);
        assert!(watch.is_due(&looks, all, |_| true, || false, (10 + REST) * AGE));
    }
}
