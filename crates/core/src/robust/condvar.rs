//! The condition variable for shared locks.
//!
//! # State
//! How often it was notified. Zero is a condition variable on which nobody waits.
//!
//! # Protocol
//! A waiter names the doorbell, looks at doorbell and count, releases the mutex, and
//! sleeps on both. It takes the mutex back, and names the doorbell until it has released
//! that again: should it end with the notification that it has had, the machine wakes
//! somebody who rings, and all others look whether what they wait for has come.
//! A notification counts and wakes in one step, so that nobody can end in between.

use super::machine::{Addend, Robust, Watch, Woken};
use super::mutex::SharedMutex;
use super::outcome::{Got, SharedError};
use super::party::Party;
use super::wait::Goal;
use crate::platform::{Atomic32, Ordering, Wait};
use core::ptr::NonNull;

/// A condition variable for memory that processes share.
#[repr(C, align(8))]
pub struct SharedCondvar<P: Robust> {
    count: P::U32,
    spare: P::U32,
}

/// How a wait for a condition ended, with the mutex taken back.
#[derive(Debug)]
#[must_use]
pub struct Waited<P: Robust> {
    /// How the mutex was taken back; only [`SharedError::NotRecoverable`] is possible
    /// where it was not.
    pub mutex: Result<Got, SharedError>,
    /// Why the wait was given up, if it was.
    pub ended: Option<SharedError>,
    /// To be named again, by [`Robust::at_death_wake`], when the mutex has been
    /// released.
    pub named: Option<NonNull<P::U32>>,
}

impl<P: Robust> SharedCondvar<P> {
    /// One on which nobody waits. So are zeroes.
    #[must_use]
    pub const fn new() -> Self {
        SharedCondvar { count: P::U32::ZERO, spare: P::U32::ZERO }
    }

    /// Releases the mutex, which the caller has, waits to be notified, and takes it
    /// back. May return without that.
    ///
    /// # Errors
    /// [`SharedError::NotRecoverable`], and nothing was done, if the caller does not
    /// have the mutex; [`SharedError::Copied`].
    pub fn wait(
        &self,
        party: &Party<'_, P>,
        mutex: &SharedMutex<P>,
        how: &Wait<'_, P>,
    ) -> Result<Waited<P>, SharedError> {
        let start = P::here();
        let named = party.domain.name_doorbell();
        let bell = party.domain.bell();
        let count = self.count.load(Ordering::Relaxed);
        if !mutex.unlock(party) {
            P::at_death_wake(named);
            return Err(SharedError::NotRecoverable);
        }
        let watches = [
            Watch::Word(&self.count, count),
            Watch::Word(party.domain.doorbell, bell),
            // Whoever was notified in between and died has woken nobody at the doorbell.
            Watch::Seen(&self.count, count),
        ];
        // Nobody in particular is watched, so that one that sleeps long looks again.
        let ended = match party.sleep(&watches, how, &[]) {
            Woken::At(index) => {
                party.domain.after_wake(index, bell);
                None
            }
            Woken::Changed if how.cancelled() => Some(SharedError::Cancelled),
            Woken::Changed | Woken::Unsure => None,
            Woken::TimedOut => Some(SharedError::TimedOut),
            Woken::Interrupted => how.interruptible.then_some(SharedError::Interrupted),
            Woken::Cancelled => Some(SharedError::Cancelled),
            Woken::Copied => return Err(SharedError::Copied),
        };
        P::turn(start, ended.map_or(0, |ended| 1 + ended as u64));
        let here = P::here();
        let mutex = if mutex.take(party.me) {
            Ok(Got::Clean)
        } else {
            mutex.seek(party, &Wait::FOREVER, here).until(Goal::Own(0))
        };
        Ok(Waited { mutex, ended, named })
    }

    /// Wakes one that waits.
    pub fn notify_one(&self) {
        P::add_and_wake(&self.count, Addend::One, 1);
    }

    /// Wakes all that wait.
    pub fn notify_all(&self) {
        P::add_and_wake(&self.count, Addend::One, u32::MAX);
    }
}

impl<P: Robust> Default for SharedCondvar<P> {
    fn default() -> Self {
        Self::new()
    }
}
