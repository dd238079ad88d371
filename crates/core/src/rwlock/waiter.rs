//! The state of a thread that waits for a reader-writer lock, and how others call it.

use super::state::{RwLockMode, RwLockState};
use crate::atomic::{Atomic32, Ordering};
use crate::give_up::Reasons;
use crate::platform::{LockError, Nanos, OnCpu, Platform, WaitBounds, WaitOutcome};
use crate::policy::Policy;
use crate::slot::{MAX_SLOTS, Slot};

/// Calls `next`: tells it to look at the lock that it waits for, and wakes it. If that thread has
/// begun to wait for something else, or the slot has passed to another one, the call is a
/// spurious wake-up.
pub(crate) fn call<P: Platform>(next: Slot) {
    let sequence = &P::participant(next).wake_sequence;
    let address = P::address32(sequence);
    // ord: BELL-1 release, pairs with RW-3: the thread that sees the new
    // number sees the lock word as the caller left it.
    sequence.fetch_add(1, Ordering::Release);
    P::wake(address, 1);
}

/// A thread that waits, past the fast path.
pub(crate) struct RwLockWaiter<'a, P: Platform> {
    pub(crate) me: Slot,
    pub(crate) mode: RwLockMode,
    pub(crate) how: &'a WaitBounds<'a, P>,
    reasons: Reasons<'a, P>,
    began: Nanos,
    /// The number of threads that slept when this one last went to sleep.
    crowd: u32,
}

impl<'a, P: Platform> RwLockWaiter<'a, P> {
    pub(crate) fn new(me: Slot, mode: RwLockMode, how: &'a WaitBounds<'a, P>) -> Self {
        Self { me, mode, how, reasons: Reasons::new(how), began: P::now(), crowd: 1 }
    }

    /// Returns when the wait passes the bound.
    pub(crate) fn insist<Y: Policy>(&self) -> Nanos {
        self.began.after(Y::BOUND + u64::from(self.crowd) * Y::SHARE)
    }

    pub(crate) fn given_up(&self, seen: RwLockState) -> Option<LockError> {
        self.reasons.given_up().or_else(|| self.hopeless(seen))
    }

    /// Returns why waiting would never end, if so: the writer does not exist in this process, or
    /// is the caller, perhaps in a signal handler that interrupted its own wait as *next*; or a
    /// reader finds the lock full of readers.
    fn hopeless(&self, seen: RwLockState) -> Option<LockError> {
        if self.mode == RwLockMode::Read && seen.readers() == MAX_SLOTS {
            return Some(LockError::TooManyReaders);
        }
        let writer = seen.writer()?;
        if writer == self.me {
            Some(LockError::Recursive)
        } else if P::participant(writer).lost() {
            Some(LockError::OwnerLost)
        } else {
            None
        }
    }

    /// Sleeps by `wait`, until its deadline or `insist` at the latest.
    pub(crate) fn sleep(
        &mut self,
        insist: Option<Nanos>,
        wait: impl FnOnce(&WaitBounds<'_, P>) -> WaitOutcome,
    ) {
        let deadline = self.how.deadline.into_iter().chain(insist).min();
        self.crowd = P::begin_sleep();
        let outcome = wait(&WaitBounds { deadline, ..*self.how });
        P::end_sleep();
        self.reasons.heard(outcome);
    }
}

/// A short wait for the lock without sleeping.
pub(crate) struct ShortSpin {
    /// Nanoseconds to spin; 0 once they are over.
    length: u64,
    until: Option<Nanos>,
    turns: u32,
}

impl ShortSpin {
    pub(crate) fn start<P: Platform>(length: u64) -> Self {
        ShortSpin { length: if P::processors() > 1 { length } else { 0 }, until: None, turns: 0 }
    }

    /// Pauses once. Returns false when it is time to sleep.
    pub(crate) fn again<P: Platform, Y: Policy>(&mut self, writer: Option<Slot>) -> bool {
        if self.length == 0 {
            return false;
        }
        P::relax();
        self.turns += 1;
        if self.turns.is_multiple_of(Y::TURNS) {
            let now = P::now();
            let until = *self.until.get_or_insert(now.after(self.length));
            if now >= until || writer.is_some_and(|writer| P::on_cpu(writer) == OnCpu::No) {
                self.length = 0;
            }
        }
        self.length > 0
    }
}
