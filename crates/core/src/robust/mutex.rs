//! The mutex that survives its owner.
//!
//! # State
//! Eight bytes. `word` as in [`word`](super::word); `reserved_for` is the waiter that the
//! lock is reserved for when it comes free, and the place where waiters sleep. Zeroes are a free mutex.
//!
//! # Protocol
//! Taking: the word from 0 to me. Releasing: from me to 0; or a look whether it is me,
//! and me less, where that is faster ([`Robust::subtracts`]). Neither touches anything
//! else. If taking fails, `wait`; if the word is more than me, [`SharedMutex::unlock`]'s
//! second half. A flag set between the look and the subtraction stays, beside no owner:
//! a lock that is free for all, or for its hand-off waiter, and whose next owner has the flag.
//!
//! # Source
//! Robust futexes are Ingo Molnar's and Ulrich Drepper's (2006); watching one
//! life word of each participant, instead of a list of its locks, is this project's.

use super::machine::Robust;
use super::outcome::{Got, SharedError};
use super::party::Party;
use super::wait::{Goal, Seek};
use super::word::{INCONSISTENT, Identity, NOT_RECOVERABLE, OWNER, RESERVED, UNTOUCHED, WAITERS};
use crate::platform::{Atomic32, Ordering, Wait};

/// A mutex for memory that processes share.
#[repr(C, align(8))]
pub struct SharedMutex<P: Robust> {
    pub(super) word: P::U32,
    reserved_for: P::U32,
}

impl<P: Robust> SharedMutex<P> {
    /// A free mutex. So are zeroes.
    #[must_use]
    pub const fn new() -> Self {
        SharedMutex { word: P::U32::ZERO, reserved_for: P::U32::ZERO }
    }

    /// Takes it if nobody has it, nobody waits, and nobody died: the fast path of all
    /// forms of [`lock`](Self::lock).
    #[inline(always)]
    #[must_use]
    pub fn take(&self, me: Identity) -> bool {
        self.take_as(me.bits())
    }

    #[inline(always)]
    pub(super) fn take_as(&self, owner: u32) -> bool {
        // ord: SHR-1 (acquire): the critical sections before.
        let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
        self.word.compare_exchange(0, owner, success, failure).is_ok()
    }

    /// Takes it.
    ///
    /// # Errors
    /// As `how` allows, and [`SharedError::Recursive`],
    /// [`SharedError::NotRecoverable`].
    #[inline]
    pub fn lock(&self, party: &Party<'_, P>, how: &Wait<'_, P>) -> Result<Got, SharedError> {
        let here = P::here();
        if self.take(party.me) {
            return Ok(Got::Clean);
        }
        self.lock_slow(party, how, here)
    }

    #[cold]
    fn lock_slow(
        &self,
        party: &Party<'_, P>,
        how: &Wait<'_, P>,
        here: u64,
    ) -> Result<Got, SharedError> {
        self.seek(party, how, here).until(Goal::Own(0))
    }

    /// The slow path of an acquisition that began [`here`](Robust::here).
    pub(super) fn seek<'l, 'a, 'h>(
        &'l self,
        party: &'l Party<'a, P>,
        how: &'l Wait<'h, P>,
        here: u64,
    ) -> Seek<'l, 'a, 'h, P> {
        Seek::new((&self.word, &self.reserved_for), party, how, here)
    }

    /// Takes it if that needs no wait.
    ///
    /// # Errors
    /// [`SharedError::TimedOut`] if somebody has it; as [`lock`](Self::lock).
    #[inline]
    pub fn try_lock(&self, party: &Party<'_, P>) -> Result<Got, SharedError> {
        if self.take(party.me) {
            return Ok(Got::Clean);
        }
        self.seek(party, &Wait::FOREVER, P::here()).once(Goal::Own(0))
    }

    /// Releases it if this participant has it, nobody waits, and nobody died: the fast
    /// path of [`unlock`](Self::unlock), for a caller that knows itself but not yet its
    /// segment.
    #[inline(always)]
    #[must_use]
    pub fn give(&self, me: Identity) -> bool {
        if !P::subtracts() {
            // ord: SHR-2 (release): the critical section.
            let (success, failure) = (Ordering::Release, Ordering::Relaxed);
            return self.word.compare_exchange(me.bits(), 0, success, failure).is_ok();
        }
        if self.word.load(Ordering::Relaxed) != me.bits() {
            return false;
        }
        // ord: SHR-2 (release): the critical section.
        if self.word.fetch_sub(me.bits(), Ordering::Release) != me.bits() {
            self.given_late();
        }
        true
    }

    /// After a release that another participant was faster than, with a flag: wakes as
    /// for both flags, by address alone. Which of them it was is not known, for a
    /// subtraction is fastest where nobody asks for the value before.
    #[cold]
    fn given_late(&self) {
        // As in the second half of `unlock`.
        if P::wake_shared(&raw const self.word, 1) == 0 {
            P::wake_shared(&raw const self.reserved_for, 1);
        }
    }

    /// Releases it; if [`Got::OwnerDied`] was not followed by
    /// [`mark_consistent`](Self::mark_consistent), for good. False if the caller does
    /// not hold it, and nothing is done.
    ///
    /// After the release nothing of the mutex is read or written.
    #[inline]
    pub fn unlock(&self, party: &Party<'_, P>) -> bool {
        self.give(party.me) || self.unlock_slow(party)
    }

    #[cold]
    pub(super) fn unlock_slow(&self, party: &Party<'_, P>) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word & OWNER != party.me.bits() || word == NOT_RECOVERABLE {
                return false;
            }
            let lost = word & INCONSISTENT != 0 && word & UNTOUCHED == 0;
            let next = if lost {
                NOT_RECOVERABLE
            } else if word & RESERVED != 0 {
                word & (RESERVED | WAITERS | INCONSISTENT)
            } else {
                word & INCONSISTENT
            };
            // ord: SHR-2 (release): the critical section.
            let (success, failure) = (Ordering::Release, Ordering::Relaxed);
            match self.word.compare_exchange(word, next, success, failure) {
                Err(found) => word = found,
                Ok(_) => {
                    // From here on by address alone. Who ends before this is done
                    // wakes one of those that watch its life.
                    if lost && word & RESERVED != 0 {
                        // The hand-off waiter does not sleep where the others do.
                        P::wake_shared(&raw const self.word, 1);
                    }
                    let reserved = !lost && word & RESERVED != 0;
                    if reserved && P::wake_shared(&raw const self.word, 1) != 0 {
                        // The hand-off waiter passes on.
                    } else if word & (WAITERS | RESERVED) != 0 {
                        P::wake_shared(
                            &raw const self.reserved_for,
                            if lost { u32::MAX } else { 1 },
                        );
                    }
                    return true;
                }
            }
        }
    }

    /// The caller, who holds it, declares what it protects consistent after
    /// [`Got::OwnerDied`]. False if it does not hold it.
    pub fn mark_consistent(&self, party: &Party<'_, P>) -> bool {
        let holds = self.is_held_by(party.me);
        if holds {
            self.word.fetch_and(!INCONSISTENT, Ordering::Relaxed);
        }
        holds
    }

    /// Whether this participant holds it.
    #[must_use]
    pub fn is_held_by(&self, who: Identity) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        word & OWNER == who.bits() && word != NOT_RECOVERABLE
    }

    /// The word, for reports.
    #[must_use]
    pub fn peek(&self) -> u32 {
        self.word.load(Ordering::Relaxed)
    }
}

impl<P: Robust> Default for SharedMutex<P> {
    fn default() -> Self {
        Self::new()
    }
}
