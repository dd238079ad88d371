//! The condition variable between processes.
//!
//! # State
//! The number of notifications so far. Zero is a condition variable on which nobody waits.
//!
//! # Protocol
//! ```text
//!   waiter                                      notifier
//!   names the doorbell
//!   reads doorbell, then count
//!   releases the mutex
//!   sleeps on count and doorbell  ◀──────────── adds 1 to the count and wakes, in one step
//!   takes the mutex back
//!   (caller) releases the mutex
//!   names the doorbell no more
//! ```
//! A waiter names the doorbell from before its look until it has released the mutex again
//! (DEATH-NAMED-WORD). Should it end with the notification that it has had, the machine wakes one
//! that wakes everybody, and all look whether what they wait for has come. A notification counts
//! and wakes in one step, so that nobody can end in between.

use super::awaited::{RobustUse, RobustWait};
use super::machine::{Addend, RobustMachine, WatchedWord, Woken};
use super::mutex::RawSharedMutex;
use super::outcome::{Got, RobustError};
use super::party::Party;
use super::wait::Goal;
use crate::atomic::{Atomic32, Ordering};
use crate::platform::WaitBounds;
use core::ptr::NonNull;

/// A condition variable in memory that processes share.
#[repr(C, align(8))]
pub struct RawSharedCondvar<P: RobustMachine> {
    count: P::U32,
    spare: P::U32,
}

/// How a wait for a condition ended, with the mutex taken back.
#[derive(Debug)]
#[must_use]
pub struct ConditionWaited<P: RobustMachine> {
    /// How the caller took the mutex back; the only possible error is
    /// [`RobustError::NotRecoverable`].
    pub mutex: Result<Got, RobustError>,
    /// Why the caller gave the wait up, if it did.
    pub ended: Option<RobustError>,
    /// The word that the caller names again, by [`RobustMachine::at_death_wake`], when it has
    /// released the mutex.
    pub named: Option<NonNull<P::U32>>,
}

impl<P: RobustMachine> RawSharedCondvar<P> {
    /// Builds a condition variable on which nobody waits, which is all zeroes.
    #[must_use]
    pub const fn new() -> Self {
        RawSharedCondvar { count: P::U32::ZERO, spare: P::U32::ZERO }
    }

    /// Releases the mutex, which the caller holds, waits for a notification, and takes the mutex
    /// back. May return without a notification.
    ///
    /// # Errors
    /// [`RobustError::NotRecoverable`], and the call did nothing, if the caller does not hold the
    /// mutex; [`RobustError::Copied`].
    pub fn wait(
        &self,
        party: &Party<'_, P>,
        mutex: &RawSharedMutex<P>,
        how: &WaitBounds<'_, P>,
    ) -> Result<ConditionWaited<P>, RobustError> {
        let wants = RobustUse::Notification { mutex: core::ptr::from_ref(mutex).addr() };
        let wait = RobustWait::new(self, wants, how);
        let is_told = P::shared_wait_begins(&wait);
        let waited = self.wait_untold(party, mutex, how);
        if is_told {
            let error = match &waited {
                Ok(waited) => waited.ended,
                Err(error) => Some(*error),
            };
            P::shared_wait_ends(&wait, error);
        }
        waited
    }

    fn wait_untold(
        &self,
        party: &Party<'_, P>,
        mutex: &RawSharedMutex<P>,
        how: &WaitBounds<'_, P>,
    ) -> Result<ConditionWaited<P>, RobustError> {
        let start = P::here();
        let named = if fault!(shared_condition_names_nothing) {
            P::at_death_wake(None)
        } else {
            party.domain.name_doorbell()
        };
        let doorbell = party.domain.doorbell_value();
        let count = self.count.load(Ordering::Relaxed);
        if !mutex.unlock(party) {
            P::at_death_wake(named);
            return Err(RobustError::NotRecoverable);
        }
        let late = fault!(shared_condition_counts_after_the_release);
        let count = if late { self.count.load(Ordering::Relaxed) } else { count };
        let watches = [
            WatchedWord::Word(&self.count, count),
            WatchedWord::Word(party.domain.doorbell, doorbell),
            // A waiter that was notified in between and died has woken nobody at the doorbell.
            WatchedWord::Seen(&self.count, count),
        ];
        // The waiter watches nobody in particular, so if it sleeps long it looks again.
        let compared =
            watches.len() - usize::from(fault!(shared_condition_compares_the_count_first));
        let ended = match party.sleep(&watches[..compared], how, &[]) {
            Woken::At(index) => {
                if !fault!(shared_condition_wakes_nobody) {
                    party.domain.after_wake(index, doorbell);
                }
                None
            }
            Woken::Changed if how.cancelled() => Some(RobustError::Cancelled),
            Woken::Changed | Woken::Unsure => None,
            Woken::TimedOut => Some(RobustError::TimedOut),
            Woken::Interrupted => how.interruptible.then_some(RobustError::Interrupted),
            Woken::Cancelled => Some(RobustError::Cancelled),
            Woken::Copied => return Err(RobustError::Copied),
        };
        if fault!(shared_condition_names_nothing_once_woken) {
            P::at_death_wake(None);
        }
        P::turn(start, ended.map_or(0, |ended| 1 + ended as u64));
        let here = P::here();
        let mutex = if mutex.take(party.me) {
            Ok(Got::Clean)
        } else {
            mutex.seek(party, &WaitBounds::FOREVER, here).until(Goal::Own(0))
        };
        if mutex == Err(RobustError::Copied) {
            return Err(RobustError::Copied);
        }
        Ok(ConditionWaited { mutex, ended, named })
    }

    /// Wakes one of the waiters.
    pub fn notify_one(&self) {
        let count = if fault!(shared_condition_notifies_nobody) { 0 } else { 1 };
        P::add_and_wake(&self.count, Addend::One, count);
    }

    /// Wakes all of the waiters.
    pub fn notify_all(&self) {
        P::add_and_wake(&self.count, Addend::One, u32::MAX);
    }
}

impl<P: RobustMachine> Default for RawSharedCondvar<P> {
    fn default() -> Self {
        Self::new()
    }
}
