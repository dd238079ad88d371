//! The mutex between processes, which survives its owner.
//!
//! # State
//! Eight bytes, all zero in a free mutex:
//!
//! - `word`, as in [`word`](super::word);
//! - `reserved_for`, the hand-off waiter to which the lock goes next. Waiters sleep on it.
//!
//! # Protocol
//! ```text
//!            0 ──────────── lock ───────────▶ me
//!            ▲                                 │
//!            └──────────── unlock ─────────────┘
//! ```
//! Taking exchanges 0 for the caller's name; if that fails, `wait`. Releasing exchanges the name
//! for 0; or it looks whether the name stands there alone, and subtracts it, where that is
//! faster ([`RobustMachine::subtracts`]). Neither touches anything else. If the word holds more
//! than the name, [`RawSharedMutex::unlock`] goes on in its slow half. A flag that somebody sets
//! between look and subtraction stays, beside no owner: the lock is free for all, or for its
//! hand-off waiter, and its next owner has the flag.
//!
//! # Source
//! Robust futexes are Ingo Molnar's and Ulrich Drepper's (2006). Watching one life word for each
//! participant, instead of a list of its locks, is this project's.

use super::awaited::{RobustUse, RobustWait};
use super::machine::{RobustMachine, telling};
use super::outcome::{Got, RobustError};
use super::party::Party;
use super::wait::{Goal, Seek};
use super::word::{INCONSISTENT, Identity, NOT_RECOVERABLE, OWNER, RESERVED, UNTOUCHED, WAITERS};
use crate::atomic::{Atomic32, Ordering};
use crate::platform::WaitBounds;

/// A mutex in memory that processes share.
#[repr(C, align(8))]
pub struct RawSharedMutex<P: RobustMachine> {
    pub(super) word: P::U32,
    reserved_for: P::U32,
}

impl<P: RobustMachine> RawSharedMutex<P> {
    /// Builds a free mutex, which is all zeroes.
    #[must_use]
    pub const fn new() -> Self {
        RawSharedMutex { word: P::U32::ZERO, reserved_for: P::U32::ZERO }
    }

    /// Takes the mutex if nobody owns it, nobody waits, and nobody died; tells whether it did.
    /// The fast path of all forms of [`lock`](Self::lock).
    #[inline(always)]
    #[must_use]
    pub fn take(&self, me: Identity) -> bool {
        self.take_as(me.bits())
    }

    #[inline(always)]
    pub(super) fn take_as(&self, owner: u32) -> bool {
        // ord: SHR-1 (acq_rel): acquire: the critical sections before; release: that the caller
        // has its slot, before its name.
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        self.word.compare_exchange(0, owner, success, failure).is_ok()
    }

    /// Takes the mutex; waits while somebody else owns it.
    ///
    /// # Errors
    /// As `how` allows, and [`RobustError::Recursive`],
    /// [`RobustError::NotRecoverable`].
    #[inline]
    pub fn lock(&self, party: &Party<'_, P>, how: &WaitBounds<'_, P>) -> Result<Got, RobustError> {
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
        how: &WaitBounds<'_, P>,
        here: u64,
    ) -> Result<Got, RobustError> {
        let wait = RobustWait::new(self, RobustUse::Mutex, how);
        telling::<P, _>(&wait, || self.seek(party, how, here).until(Goal::Own(0)))
    }

    /// Prepares the slow path of an acquisition that began [`here`](RobustMachine::here).
    pub(super) fn seek<'l, 'a, 'h>(
        &'l self,
        party: &'l Party<'a, P>,
        how: &'l WaitBounds<'h, P>,
        here: u64,
    ) -> Seek<'l, 'a, 'h, P> {
        Seek::new((&self.word, &self.reserved_for), party, how, here)
    }

    /// Takes the mutex if that needs no wait.
    ///
    /// # Errors
    /// [`RobustError::TimedOut`] if somebody owns it; else as [`lock`](Self::lock).
    #[inline]
    pub fn try_lock(&self, party: &Party<'_, P>) -> Result<Got, RobustError> {
        if self.take(party.me) {
            return Ok(Got::Clean);
        }
        self.seek(party, &WaitBounds::FOREVER, P::here()).once(Goal::Own(0))
    }

    /// Releases the mutex if this participant owns it, nobody waits, and nobody died; tells
    /// whether it did. The fast path of [`unlock`](Self::unlock), for a caller that knows its own
    /// name but not yet its segment.
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
        if self.word.fetch_sub(me.bits(), Ordering::Release) != me.bits()
            && !fault!(shared_late_release_wakes_nobody)
        {
            self.given_late();
        }
        true
    }

    /// Wakes, by address alone, after a subtraction before which somebody else set a flag. It
    /// wakes as for both flags, because a subtraction is fastest where nobody asks for the value
    /// before it.
    #[cold]
    fn given_late(&self) {
        // As in the second half of `unlock`.
        if fault!(shared_late_release_overlooks_the_handoff)
            || P::wake_shared(&raw const self.word, 1) == 0
        {
            P::wake_shared(&raw const self.reserved_for, 1);
        }
    }

    /// Releases the mutex. After [`Got::OwnerDied`] without
    /// [`mark_consistent`](Self::mark_consistent) nobody can take it any more. Returns false, and
    /// does nothing, if the caller does not hold it.
    ///
    /// After the release the call neither reads nor writes the mutex.
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
                    // From here on by address alone. If the caller ends before this is
                    // done, the machine wakes one that watches its life (DEATH-MARK).
                    if lost && word & RESERVED != 0 && !fault!(shared_loser_overlooks_the_handoff) {
                        // The hand-off waiter does not sleep where the others do.
                        P::wake_shared(&raw const self.word, 1);
                    }
                    let reserved = !lost && word & RESERVED != 0;
                    if reserved
                        && (fault!(shared_release_overlooks_the_handoff)
                            || P::wake_shared(&raw const self.word, 1) != 0)
                    {
                        // The hand-off waiter passes on.
                    } else if word & (WAITERS | RESERVED) != 0
                        && !fault!(shared_release_overlooks_waiters)
                    {
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

    /// Releases the mutex as one that has not touched what it protects: after [`Got::OwnerDied`],
    /// without [`mark_consistent`](Self::mark_consistent), the next owner is told of the death in the
    /// caller's stead. Returns false, and does nothing, if the caller does not hold it.
    pub fn unlock_untouched(&self, party: &Party<'_, P>) -> bool {
        if !self.is_held_by(party.me) {
            return false;
        }
        // An owner that ends between the two is `UNTOUCHED`, and its successor is told of what the
        // word says of earlier ones.
        if !fault!(shared_untouched_release_passes_for_a_careless_one) {
            self.word.fetch_or(UNTOUCHED, Ordering::Relaxed);
        }
        self.unlock_slow(party)
    }

    /// Declares consistent what the mutex protects, after [`Got::OwnerDied`]. Returns false if the
    /// caller does not hold the mutex.
    pub fn mark_consistent(&self, party: &Party<'_, P>) -> bool {
        let holds = self.is_held_by(party.me);
        if holds {
            self.word.fetch_and(!INCONSISTENT, Ordering::Relaxed);
        }
        holds
    }

    /// Tells whether this participant holds the mutex.
    #[must_use]
    pub fn is_held_by(&self, who: Identity) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        word & OWNER == who.bits() && word != NOT_RECOVERABLE
    }

    /// Reads the word, for reports.
    #[must_use]
    pub fn peek(&self) -> u32 {
        self.word.load(Ordering::Relaxed)
    }

    /// Reads the other word, which names the hand-off waiter, for reports.
    #[must_use]
    pub fn peek_next(&self) -> u32 {
        self.reserved_for.load(Ordering::Relaxed)
    }
}

impl<P: RobustMachine> Default for RawSharedMutex<P> {
    fn default() -> Self {
        Self::new()
    }
}
