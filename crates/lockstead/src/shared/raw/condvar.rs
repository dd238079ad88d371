//! The condition variable.

use super::super::condvar::wait_on;
use super::super::error::SharedError;
use super::{RawMutex, RawOutcome};
use lockstead_core::WaitBounds;
use lockstead_core::robust::RawSharedCondvar;
use lockstead_linux::Linux;

/// [`SharedCondvar`](super::super::SharedCondvar) for a [`RawMutex`]: 8 bytes.
#[repr(transparent)]
pub struct RawCondvar(RawSharedCondvar<Linux>);

const _: () = assert!(size_of::<RawCondvar>() == 8 && align_of::<RawCondvar>() == 8);

/// The end of a wait for a condition.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct RawWaited {
    /// The outcome of taking the mutex back.
    pub mutex: RawOutcome,
    /// The reason for which the caller gave up; `None`: it was notified, or woken for no reason.
    pub ended: Option<SharedError>,
}

impl Default for RawCondvar {
    fn default() -> Self {
        RawCondvar(RawSharedCondvar::new())
    }
}

impl RawCondvar {
    /// Releases the mutex, waits as `how` says to be notified, and takes it back.
    ///
    /// # Errors
    /// As [`SharedCondvar::wait`](super::super::SharedCondvar::wait): the caller does not
    /// have the mutex then.
    pub fn wait(
        &self,
        mutex: &RawMutex,
        how: &WaitBounds<'_, Linux>,
    ) -> Result<RawWaited, SharedError> {
        let (end, error, ended) = wait_on(&self.0, &mutex.0, how)?;
        Ok(RawWaited { mutex: RawOutcome::of(end, error)?, ended })
    }

    /// Wakes one that waits.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all that wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

impl core::fmt::Debug for RawCondvar {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RawCondvar").finish_non_exhaustive()
    }
}
