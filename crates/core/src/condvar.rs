//! The condition variable: eight bytes and no list. A notification that nobody
//! waits for is one load.
//!
//! # Role
//! Lets a thread that holds a mutex sleep until another says that what the
//! mutex guards has changed.
//!
//! # State
//! ```text
//!  63                            32 31                             0
//! ┌────────────────────────────────┬────────────────────────────────┐
//! │             waiting            │            sequence            │
//! └────────────────────────────────┴────────────────────────────────┘
//!                                     low half: what sleepers compare
//! ```
//! - *sequence* changes with every notification that may have a taker.
//! - *waiting* is how many notifications may have one: never too low, too high
//!   by one for each thread that stopped waiting without a notification of its
//!   own, until a notification takes it down again at the price of a wake-up
//!   that finds nobody.
//!
//! # Protocol
//! Waiter, holding the mutex: (1) add itself to `waiting` and note the sequence;
//! (2) release the mutex; (3) sleep unless the sequence has changed; (4) take
//! the mutex again, whatever ended the sleep.
//!
//! Notifier: with `waiting` zero, nothing. Otherwise take one (or all) off
//! `waiting` and advance the sequence, in one step; then wake one (or all) by
//! address.
//!
//! # Invariants
//! - **CONDVAR-COUNTED** waiting + wake-ups under way ≥ threads that sleep, or will sleep
//!   since they noted the present sequence. A notification takes one off the
//!   left side and makes a wake-up of it; it takes every thread that noted an
//!   older sequence and does not sleep yet off the right side.
//! - **CONDVAR-TOLD** A thread that is counted before a notification is told of it or
//!   another is: one that does not sleep yet finds the sequence changed, of
//!   those that sleep the longest asleep is woken.
//!
//! # Ordering
//! Everything is relaxed. What the waiter is told about is guarded by the
//! mutex, and so is the order of (1) before the notifier's look: a thread that changes
//! the condition under the mutex after the waiter looked at it took the mutex
//! after (2).
//!
//! # Progress
//! A notification may wake more threads than it should, and a sleep may end for
//! no reason: look at the condition again. Waiters are woken in the order of
//! their going to sleep as far as the kernel keeps it, which puts real-time
//! priorities first. A notifier that has let go of the mutex may then wake a
//! thread that began to wait only after the notification, in an older one's
//! place: one that looked at the condition later and found nothing to do.
//!
//! The sequence wraps. For that to lose a notification, a thread must be kept
//! between (1) and (3) while exactly a multiple of 2³² others begin to wait and
//! are notified: several minutes at the least, ending on the one number.
//!
//! # Lifetime
//! A notifier touches the condition variable for the last time when it changes
//! the word, a waiter when it goes to sleep. So a waiter may free it once its
//! wait has ended, if every notifier notifies under the mutex. A notifier may
//! not: a thread between (2) and (3) has been notified and still looks.
//!
//! # Source
//! A sequence number as futex after Drepper, "Futexes are tricky"; the count
//! that notifications, not waiters, take down is ours.

use crate::atomic::{Atomic64, Ordering};
use crate::awaited::telling;
use crate::hooks::{Hooks, Site};
use crate::mutex::RawMutex;
use crate::platform::{Awaited, AwaitedUse, LockError, Platform, WaitBounds, WaitOutcome};
use crate::policy::Policy;

const ONE_WAITING: u64 = 1 << 32;

/// A value of the word. Pure: nothing here touches memory.
#[derive(Clone, Copy)]
struct CondvarState(u64);

impl CondvarState {
    const fn waiting(self) -> u64 {
        self.0 / ONE_WAITING
    }

    const fn sequence(self) -> u32 {
        self.0 as u32
    }

    /// Returns the word with one more waiting. Stays at the largest number, which is more than
    /// threads can sleep.
    const fn joined(self) -> Self {
        CondvarState(if self.waiting() == u32::MAX as u64 { self.0 } else { self.0 + ONE_WAITING })
    }

    /// Returns the word with `waiting` as given and the next sequence.
    fn notified(self, waiting: u64) -> Self {
        let step = if fault!(condvar_sequence_stands_still) { 0 } else { 1 };
        CondvarState((waiting * ONE_WAITING) | self.sequence().wrapping_add(step) as u64)
    }
}

/// A condition variable without its mutex. See the module documentation.
#[repr(C)]
pub struct RawCondvar<P: Platform> {
    word: P::U64,
}

impl<P: Platform> RawCondvar<P> {
    /// Makes a condition variable that nobody waits for: all zeros.
    #[must_use]
    pub const fn new() -> Self {
        Self { word: P::U64::ZERO }
    }

    /// Releases `mutex`, sleeps until notified or as `how` says, and takes
    /// `mutex` again. May also return `Ok` for no reason.
    ///
    /// # Errors
    /// The reasons in `how`; the caller holds the mutex nevertheless. The
    /// exception is [`LockError::OwnerLost`], when the caller does not hold it:
    /// in the child, where a signal handler that interrupted the wait forked
    /// while another thread held the mutex.
    ///
    /// # Safety
    /// The calling thread holds `mutex`.
    pub unsafe fn wait<H: Hooks, Y: Policy>(
        &self,
        mutex: &RawMutex<P, H, Y>,
        how: &WaitBounds<'_, P>,
        site: Site,
    ) -> Result<(), LockError> {
        let early = (!fault!(condvar_joins_after_the_release)).then(|| self.join());
        // SAFETY: the caller of `wait` promises that this thread holds `mutex`.
        unsafe { mutex.unlock() };
        let noted = early.unwrap_or_else(|| self.join());
        let awaited = Awaited {
            address: core::ptr::from_ref(self).addr(),
            wants: AwaitedUse::Notification,
            name: None,
            deadline: how.deadline,
        };
        let sleep = || match P::wait_low(&self.word, noted.sequence(), how) {
            WaitOutcome::TimedOut => Err(LockError::TimedOut),
            WaitOutcome::Interrupted if how.interruptible => Err(LockError::Interrupted),
            WaitOutcome::Cancelled => Err(LockError::Cancelled),
            // A signal that the caller does not want to know of is a return for
            // no reason, as there may be others: it looks at its condition.
            WaitOutcome::Interrupted | WaitOutcome::Woken | WaitOutcome::Changed => Ok(()),
        };
        let ended = telling::<P, _>(&awaited, sleep);
        if ended.is_ok() || !fault!(condvar_forgets_the_mutex) {
            mutex.lock(site)?;
        }
        ended
    }

    /// Wakes one of the threads that wait, if any do.
    pub fn notify_one(&self) {
        self.notify_counting(false);
    }

    /// Wakes all threads that wait.
    pub fn notify_all(&self) {
        self.notify_counting(true);
    }

    /// Wakes one of the threads that wait, or all. Returns how much that took off *waiting*: no less
    /// than the threads that it tells.
    pub fn notify_counting(&self, all: bool) -> u64 {
        if all { self.notify(u32::MAX, |_| 0) } else { self.notify(1, |waiting| waiting - 1) }
    }

    fn join(&self) -> CondvarState {
        let mut seen = CondvarState(self.word.load(Ordering::Relaxed));
        loop {
            match self.exchange(seen, seen.joined()) {
                Ok(joined) => return joined,
                Err(found) => seen = found,
            }
        }
    }

    fn notify(&self, count: u32, left: impl Fn(u64) -> u64) -> u64 {
        let address = P::address_low(&self.word);
        let mut seen = CondvarState(self.word.load(Ordering::Relaxed));
        while seen.waiting() != 0 {
            let left = left(seen.waiting());
            match self.exchange(seen, seen.notified(left)) {
                Ok(_) => {
                    P::wake(address, count);
                    return seen.waiting() - left;
                }
                Err(found) => seen = found,
            }
        }
        0
    }

    /// Replaces `from` by `to`. Fails with the state that was found in its place.
    fn exchange(&self, from: CondvarState, to: CondvarState) -> Result<CondvarState, CondvarState> {
        // ord: COND-1 relaxed: the mutex orders what matters, see the module.
        match self.word.compare_exchange(from.0, to.0, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Ok(to),
            Err(found) => Err(CondvarState(found)),
        }
    }
}

impl<P: Platform> Default for RawCondvar<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> core::fmt::Debug for RawCondvar<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let seen = CondvarState(self.word.load(Ordering::Relaxed));
        write!(f, "RawCondvar{{waiting={} sequence={}}}", seen.waiting(), seen.sequence())
    }
}
