//! The lock word of real-time mutexes: a futex with priority inheritance, whose low half
//! the kernel changes too, and beside it a generation that the kernel does not know of.
//!
//! # Role
//! Behind `lockstead::rt`. Uncontended, the kernel is not asked: one
//! compare-exchange acquires, one releases. All else is the kernel's: it queues the
//! waiters by priority, lends the owner the priority of the first of them, along
//! chains of locks too, and hands the lock to that one.
//!
//! # State
//! One 64-bit word; all zeros is a free lock.
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0–29 | owner | the kernel's number of the owner's thread, 0: free |
//! | 30 | `DIED` | the kernel has handed the lock over for an owner that has ended |
//! | 31 | waiters | threads may wait: the kernel has to be asked to release |
//! | 32–62 | generation | how many forks lie between the first process and the latest owner's |
//! | 63 | `LOST` | an owner has ended while it held the lock |
//!
//! The low half is laid down by the kernel and changed by it too. The high half is
//! ours alone.
//!
//! # Protocol
//! Acquisition: free in the caller's generation becomes owned in it, by one exchange.
//! Free in another generation: the same in the slow path. Owned in the caller's
//! generation: `FUTEX_LOCK_PI2` (`FUTEX_LOCK_PI` without a deadline, and where there
//! is no other). Release: the reverse exchange; with waiters, `FUTEX_UNLOCK_PI`.
//!
//! # Invariants
//! - **PI-GENERATION** The generation changes by an exchange of the whole word only, while the
//!   lock is free or by an owner that carried it over a fork; to the current one.
//! - **PI-OWN-GENERATION** The kernel is asked only about words of the current generation. Thread
//!   numbers of another one name threads of another process, and the kernel would
//!   have the caller wait for those.
//! - **PI-LOST-STAYS** `LOST` is never cleared. A thread to which the kernel gives a lock
//!   with `LOST` or `DIED` sets `LOST` and passes the lock on at once: with `LOST` the fast
//!   path fails.
//!
//! # Progress
//! The kernel bounds the waits by the priorities, and reports cycles. A wait that can
//! end by itself goes on in a cycle: it looks every `LOOK_PERIOD` until it ends. So does every
//! wait where the kernel, or a filter, refuses the calls: exclusion without
//! inheritance ([`inherits`]).
//!
//! # Lifetime
//! Both releases touch the word for the last time with what releases it: the kernel
//! writes the next owner's number before it wakes that one.
//!
//! # Limits
//! - A thread that ends while it holds a lock for which nobody waits is found out by
//!   whoever asks next; unless a new thread has its number by then, of this process or
//!   another, which is taken for the owner.
//! - Where there is no `FUTEX_LOCK_PI2` (before Linux 5.14) a wait with a deadline goes by
//!   the wall clock, a second at a time; a clock that is set back meanwhile delays its end
//!   by as much.
//! - A child made by the bare system call or `_Fork`, which run no handlers, acts
//!   under its parent's number.
//! - The kernel resumes the wait after each signal handler, whatever its flags. A wait that
//!   handlers are to end is cut into slices (`signals`), as one that a word is to end.
//!
//! # Source
//! Sha, Rajkumar, Lehoczky: Priority inheritance protocols (1990). The futex by Molnar
//! and Gleixner (2006), its interface from `futex(2)`.

mod calls;
pub(crate) mod identity;
mod signals;
mod word;

use crate::atomics::U64;
use crate::futex::now;
use crate::linux::Linux;
use crate::membership;
use crate::sys::{self, KeepErrno};
use calls::PiAnswer;
use lockstead_core::{Nanos, Ordering, WaitBounds};
use signals::HeldOff;
use word::{DIED, GENERATION, LOST, LOW, OWNER};

pub use calls::refuse_lock_pi2;
pub(crate) use calls::{lock_pi2_refused, probe, probe_lock_pi2};

/// The longest wait between two looks at a cancellation word, or at what signals have
/// come, in nanoseconds: the kernel watches one word only.
const POLL: u64 = 5_000_000;
/// The time between two looks at a lock that the kernel does not watch for us.
const LOOK_PERIOD: u64 = 1_000_000;

/// Returns the word of a lock that the calling thread holds.
fn me() -> u64 {
    match identity::mine() {
        0 => join(),
        mine => mine,
    }
}

/// Makes the thread known; a signal handler that joins in the middle of this writes the same words.
#[cold]
fn join() -> u64 {
    let _errno = KeepErrno::new();
    membership::prepare();
    identity::renew()
}

/// The reason why a lock was not acquired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PiError {
    /// The deadline of the wait has passed.
    TimedOut,
    /// The cancellation word was set.
    Cancelled,
    /// The calling thread holds the lock already.
    Recursive,
    /// The owner waits, over one or more further locks, for the calling thread.
    Deadlock,
    /// The owner has ended, or was left behind by `fork`.
    OwnerLost,
    /// A signal handler was due.
    Interrupted,
}

/// The thread that holds a lock, as the lock's word names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct PiOwner(u64);

impl PiOwner {
    /// Returns the kernel's number of the thread, in the process that it was in when it
    /// acquired the lock.
    #[must_use]
    pub fn tid(self) -> u32 {
        (self.0 & OWNER) as u32
    }

    /// Tells whether it is the calling thread.
    #[must_use]
    pub fn is_current(self) -> bool {
        identity::is_mine(self.0)
    }

    /// Tells whether the thread has ended, or `fork` left it behind: it will never release.
    #[must_use]
    pub fn is_lost(self) -> bool {
        !self.is_current()
            && (self.0 & GENERATION != me() & GENERATION || sys::thread_is_gone(self.tid()))
    }
}

/// The lock word of a real-time mutex; the module's documentation has its fields.
#[repr(transparent)]
pub struct PiWord {
    word: U64,
}

impl PiWord {
    /// Makes a free lock.
    #[must_use]
    pub const fn new() -> Self {
        PiWord { word: U64::new(0) }
    }

    /// Makes a lock that starts with this word. For tests of states that the kernel alone
    /// brings about.
    #[doc(hidden)]
    #[must_use]
    pub const fn with_word(word: u64) -> Self {
        PiWord { word: U64::new(word) }
    }

    /// Returns the word at some moment during the call, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn peek(&self) -> u64 {
        self.word.get().load(Ordering::Relaxed)
    }

    /// Acquires a free lock, unless that takes the slow path. Returns whether it did.
    #[inline(always)]
    pub fn lock_fast(&self) -> bool {
        let (free, me) = identity::fast();
        // ord: PI-1 acquire, pairs with PI-2.
        self.word.get().compare_exchange(free, me, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Acquires the lock, after [`lock_fast`](Self::lock_fast) has failed. With a cancellation
    /// word, or if handlers end the wait, that is up to 5 ms late, and every 5 ms the wait begins
    /// anew.
    ///
    /// # Errors
    /// The reasons in `how`; [`PiError::Recursive`], [`PiError::OwnerLost`]; and, if
    /// nothing but the lock can end the wait, [`PiError::Deadlock`].
    #[cold]
    #[inline(never)]
    pub fn lock_slow(&self, how: &WaitBounds<'_, Linux>) -> Result<(), PiError> {
        let me = me();
        let mut signals = None;
        loop {
            let seen = self.peek();
            if seen & LOST != 0 {
                return Err(PiError::OwnerLost);
            }
            if seen & LOW == 0 {
                if self.exchange(seen, me) {
                    return Ok(());
                }
                continue;
            }
            if identity::is_mine(seen) {
                return Err(PiError::Recursive);
            }
            // The kernel must not be asked (PI-OWN-GENERATION).
            if (seen ^ me) & GENERATION != 0 {
                return Err(PiError::OwnerLost);
            }
            let endless = how.deadline.is_none() && how.cancel.is_none();
            if how.interruptible && signals.get_or_insert_with(HeldOff::new).handler_is_due() {
                return Err(PiError::Interrupted);
            }
            match calls::lock(self.word.low_half(), slice(how)?) {
                PiAnswer::Granted => return self.granted(),
                PiAnswer::TimedOut => {}
                PiAnswer::OwnerGone => {
                    // If it fails, the lock is in other hands: looked at again.
                    let _ = self.exchange(seen, seen | LOST);
                }
                PiAnswer::Deadlock if endless => return Err(PiError::Deadlock),
                PiAnswer::Deadlock | PiAnswer::Again => calls::sleep_until(next_look(how)),
                PiAnswer::Refused => {
                    if sys::thread_is_gone((seen & OWNER) as u32) {
                        let _ = self.exchange(seen, seen | LOST);
                    } else {
                        calls::sleep_until(next_look(how));
                    }
                }
            }
        }
    }

    /// Acquires the lock if that needs no waiting, after [`lock_fast`](Self::lock_fast) has
    /// failed.
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn try_lock_slow(&self) -> bool {
        let me = me();
        loop {
            let seen = self.peek();
            if seen & LOST != 0 {
                return false;
            }
            if seen & LOW == 0 {
                if self.exchange(seen, me) {
                    return true;
                }
                continue;
            }
            // The word names no owner, and yet the lock is not free: the kernel knows what is
            // left of it.
            return seen & OWNER == 0
                && (seen ^ me) & GENERATION == 0
                && matches!(calls::try_lock(self.word.low_half()), PiAnswer::Granted)
                && self.granted().is_ok();
        }
    }

    /// Ends an acquisition by which the kernel has made the caller the owner.
    fn granted(&self) -> Result<(), PiError> {
        // ord: PI-3 acquire, pairs with PI-2 (and see there of the kernel).
        if self.word.get().load(Ordering::Acquire) & (DIED | LOST) == 0 {
            return Ok(());
        }
        // ord: PI-4 (relaxed): LOST publishes nothing; it is on the word itself that
        // everybody decides.
        self.word.get().fetch_or(LOST, Ordering::Relaxed);
        self.unlock_slow();
        Err(PiError::OwnerLost)
    }

    /// Releases the lock, and has the kernel pass it on if threads wait.
    ///
    /// # Safety
    /// The calling thread holds the lock.
    #[inline(always)]
    pub unsafe fn unlock(&self) {
        let (free, me) = identity::fast();
        // ord: PI-2 release, pairs with PI-1 and PI-3 of the next acquisition.
        let done = self.word.get().compare_exchange(me, free, Ordering::Release, Ordering::Relaxed);
        // Nothing of the lock is touched from here on.
        if done.is_err() {
            self.unlock_slow();
        }
    }

    #[cold]
    #[inline(never)]
    fn unlock_slow(&self) {
        let me = me();
        loop {
            let seen = self.peek();
            // The owner carried the lock over a fork: its waiters are in another process.
            let carried = (seen ^ me) & GENERATION != 0;
            if carried || (seen ^ me) & LOW == 0 {
                if self.exchange(seen, me & GENERATION | seen & LOST) {
                    return;
                }
            } else if calls::unlock(self.word.low_half()) {
                return;
            }
        }
    }

    /// Makes a change off the fast paths. Returns whether the word still was `seen`.
    fn exchange(&self, seen: u64, new: u64) -> bool {
        // ord: PI-1 acquire, PI-2 release: of whichever this is.
        self.word.get().compare_exchange(seen, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Tells whether anybody holds the lock, at some moment during the call.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.owner().is_some()
    }

    /// Tells whether the calling thread holds the lock.
    #[must_use]
    pub fn is_mine(&self) -> bool {
        identity::is_mine(self.peek())
    }

    /// Tells whether an owner has ended while it held the lock, and somebody has found that
    /// out: nobody acquires it any more.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.peek() & LOST != 0
    }

    /// Returns the thread that holds the lock, at some moment during the call.
    #[must_use]
    pub fn owner(&self) -> Option<PiOwner> {
        let seen = self.peek();
        (seen & OWNER != 0).then_some(PiOwner(seen & (OWNER | GENERATION)))
    }
}

impl Default for PiWord {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns until when the kernel may keep the caller this time; the error if the wait is
/// over.
fn slice(how: &WaitBounds<'_, Linux>) -> Result<Option<Nanos>, PiError> {
    if how.cancelled() {
        return Err(PiError::Cancelled);
    }
    if how.deadline.is_some_and(|deadline| deadline <= now()) {
        return Err(PiError::TimedOut);
    }
    let look = (how.cancel.is_some() || how.interruptible).then(|| now().after(POLL));
    Ok(match (how.deadline, look) {
        (Some(deadline), Some(look)) => Some(deadline.min(look)),
        (deadline, look) => deadline.or(look),
    })
}

/// Returns when a lock that the kernel does not watch is looked at next.
fn next_look(how: &WaitBounds<'_, Linux>) -> Nanos {
    let next = now().after(LOOK_PERIOD);
    how.deadline.map_or(next, |deadline| deadline.min(next))
}

/// Tells whether waiting for these locks lends priorities here: not where the kernel was
/// built without it, or a filter refuses the calls to the calling thread. The locks
/// exclude even so, and look for their release every millisecond.
#[must_use]
pub fn inherits() -> bool {
    probe().is_ok()
}

impl core::fmt::Debug for PiWord {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "PiWord({:#x})", self.peek())
    }
}
