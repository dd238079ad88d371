//! Which waits are worth a word because they last.
//!
//! # Role
//! Pure data. Waits for locks only: one on a condition variable, a semaphore, a
//! barrier or a thread may be how a program idles. Where semaphores serve other
//! runtimes as locks, theirs count as well.
//!
//! # How often
//! A wait is due when it has lasted for the limit, and again each time when it
//! has lasted twice as long as when it was last due.

use super::observe::LastingWaiter;
use lockstead_ledger::publish::{Episode, WaitKind};
use std::collections::HashMap;

/// Decides when a wait is due.
#[derive(Debug)]
pub struct WaitPatience {
    limit: u64,
    counts: fn(&LastingWaiter) -> bool,
    next: HashMap<(u32, Episode), u64>,
}

impl WaitPatience {
    /// Prepares reports of waits of at least `limit` nanoseconds.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        WaitPatience { limit, counts: is_for_lock, next: HashMap::new() }
    }

    /// Prepares looks at waits of at least `limit` nanoseconds that have no end of their own, for
    /// mutexes and for semaphores, which other runtimes make their locks of.
    #[must_use]
    pub fn of_runtimes(limit: u64) -> Self {
        WaitPatience { limit, counts: is_of_runtime, next: HashMap::new() }
    }

    /// Returns those of the waiters that are due at `now`, in nanoseconds of the ledger's clock.
    pub fn due<'w>(
        &mut self,
        waiters: impl Iterator<Item = &'w LastingWaiter>,
        now: u64,
    ) -> Vec<&'w LastingWaiter> {
        let mut due = Vec::new();
        let mut next = HashMap::new();
        for waiter in waiters {
            let lasted = now.saturating_sub(waiter.waiting.since);
            if lasted < self.limit || !(self.counts)(waiter) {
                continue;
            }
            let place = (waiter.thread, waiter.episode);
            let mut at = self.next.get(&place).copied().unwrap_or(self.limit);
            if lasted >= at {
                due.push(waiter);
                at = lasted.saturating_mul(2);
            }
            next.insert(place, at);
        }
        // Waits that are over are forgotten.
        self.next = next;
        due
    }
}

/// Tells whether it waits for a lock, which somebody should release.
fn is_for_lock(waiter: &LastingWaiter) -> bool {
    matches!(
        waiter.waiting.how.kind(),
        WaitKind::MUTEX | WaitKind::WRITE | WaitKind::READ | WaitKind::SPIN
    )
}

/// Tells whether it may be for a lock of another runtime, and does not end by itself.
fn is_of_runtime(waiter: &LastingWaiter) -> bool {
    let how = waiter.waiting.how;
    [WaitKind::MUTEX, WaitKind::SEMAPHORE].contains(&how.kind()) && !how.is_timed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waits::detect::tests::waiter;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_wait_is_due_at_its_limit_and_then_at_doubling_times() {
        let one = waiter(1, WaitKind::MUTEX, 0x10, &[]);
        let mut patience = WaitPatience::new(5 * SECOND);
        let due: Vec<u64> = (1..100)
            .filter(|second| !patience.due([&one].into_iter(), second * SECOND).is_empty())
            .collect();
        assert_eq!(due, [5, 10, 20, 40, 80]);
    }

    #[test]
    fn a_new_wait_of_the_same_thread_begins_anew() {
        let mut one = waiter(1, WaitKind::WRITE, 0x10, &[]);
        let mut patience = WaitPatience::new(SECOND);
        assert_eq!(patience.due([&one].into_iter(), SECOND).len(), 1);
        assert_eq!(patience.due([&one].into_iter(), SECOND).len(), 0);
        one.episode = Episode(3);
        one.waiting.since = SECOND;
        assert_eq!(patience.due([&one].into_iter(), SECOND * 2).len(), 1);
        assert_eq!(patience.next.len(), 1, "the old wait is forgotten");
    }

    #[test]
    fn idling_is_not_blocking() {
        let mut patience = WaitPatience::new(SECOND);
        for how in [WaitKind::CONDITION, WaitKind::SEMAPHORE, WaitKind::BARRIER, WaitKind::JOIN] {
            let idle = waiter(1, how, 0x10, &[]);
            assert!(patience.due([&idle].into_iter(), 100 * SECOND).is_empty(), "{how:?}");
        }
        let mut patience = WaitPatience::of_runtimes(SECOND);
        let due = [WaitKind::SEMAPHORE, WaitKind::SEMAPHORE.timed(), WaitKind::CONDITION]
            .map(|how| patience.due([&waiter(1, how, 0x10, &[])].into_iter(), SECOND).len());
        assert_eq!(due, [1, 0, 0]);
        let mut patience = WaitPatience::new(SECOND);
        let read = waiter(1, WaitKind::READ.timed(), 0x10, &[]);
        assert_eq!(patience.due([&read].into_iter(), 100 * SECOND), [&read]);
    }
}
