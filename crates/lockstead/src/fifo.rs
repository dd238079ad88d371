//! The locks that keep their waiters in a line, without data: for
//! [`lock_api`](crate::lock_api) and [`parking_lot`](crate::parking_lot).

use crate::lock_api::sent;
use crate::refusal::{AbortOnUnwind, RefusedLock, refuse};
use core::panic::Location;
use lockstead_core::{LockError, RawExactCondvar, WaitBounds};
use lockstead_linux::Linux;

/// The raw fair mutex of the `lock_api` back end: granted in the order of asking. 24 bytes.
///
/// Recursive locking and an owner lost in `fork` panic; see
/// [`lockstead::Mutex`](crate::Mutex).
#[derive(Debug)]
pub struct RawFairMutex {
    raw: lockstead_core::RawFairMutex<Linux>,
}

impl RawFairMutex {
    pub(crate) const fn free() -> Self {
        RawFairMutex { raw: lockstead_core::RawFairMutex::new() }
    }

    #[inline]
    #[track_caller]
    pub(crate) fn acquire(&self) {
        self.acquire_by(|| WaitBounds::FOREVER);
    }

    /// Acquires the mutex; returns false if the deadline passed.
    #[inline]
    #[track_caller]
    pub(crate) fn acquire_by(&self, how: impl FnOnce() -> WaitBounds<'static, Linux>) -> bool {
        let mut deadline = None;
        let how = || {
            let how = how();
            deadline = how.deadline;
            how
        };
        match self.raw.lock_lazily(how) {
            Ok(()) => true,
            Err(LockError::TimedOut) => false,
            Err(error) if sent::may_be_elsewhere(error) => {
                sent::take_in_time(deadline, || self.try_acquire())
            }
            Err(error) => self.refuse(error),
        }
    }

    #[inline]
    pub(crate) fn try_acquire(&self) -> bool {
        self.raw.try_lock()
    }

    /// Releases the mutex of the calling thread.
    ///
    /// # Safety
    /// LOCK-API-STATE: the calling thread holds the mutex.
    #[inline]
    pub(crate) unsafe fn release(&self) {
        // SAFETY: LOCK-API-STATE: the calling thread holds the mutex; the caller keeps it.
        unsafe { self.raw.unlock() }
    }

    pub(crate) fn is_held(&self) -> bool {
        self.raw.is_locked()
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn refuse(&self, error: LockError) -> ! {
        refuse(
            error,
            &RefusedLock {
                kind: "fair mutex",
                name: None,
                guards: core::any::type_name::<Self>(),
                address: self.raw.id().0,
                acquired_at: None,
            },
        )
    }
}

/// A condition variable that wakes exactly whom it notifies.
#[cfg(feature = "parking_lot")]
pub(crate) struct ExactCondvar {
    raw: RawExactCondvar<Linux>,
}

#[cfg(feature = "parking_lot")]
impl ExactCondvar {
    pub(crate) const fn new() -> Self {
        ExactCondvar { raw: RawExactCondvar::new() }
    }

    /// Releases `mutex`, waits, and takes `mutex` again. Returns false if the deadline ended the wait.
    ///
    /// # Safety
    /// The calling thread holds `mutex`.
    #[track_caller]
    pub(crate) unsafe fn wait(
        &self,
        mutex: &crate::lock_api::RawMutex,
        how: &WaitBounds<'_, Linux>,
    ) -> bool {
        // SAFETY: the caller holds the mutex.
        let ended = self.raw.wait(|| unsafe { mutex.release() }, how);
        // The caller's guard would release a mutex that is not held.
        let bomb = AbortOnUnwind;
        let notified = match ended {
            Ok(()) => true,
            Err(LockError::TimedOut) => false,
            Err(error) => self.refuse(error),
        };
        mutex.acquire();
        core::mem::forget(bomb);
        notified
    }

    #[track_caller]
    pub(crate) fn notify_one(&self) -> bool {
        self.raw.notify_one().unwrap_or_else(|error| self.refuse(error))
    }

    #[track_caller]
    pub(crate) fn notify_all(&self) -> usize {
        self.raw.notify_all().unwrap_or_else(|error| self.refuse(error))
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn refuse(&self, error: LockError) -> ! {
        let address = core::ptr::from_ref(self).addr();
        let here = Location::caller();
        match error {
            LockError::OwnerLost => panic!(
                "lost waiter: the condition variable at {address:#x}, used at {here}, was in use by \
                 a thread that fork left behind in the parent process"
            ),
            _ => panic!(
                "the condition variable at {address:#x} was used at {here} in a signal handler that \
                 interrupted its own thread in a call of it: notify outside of handlers"
            ),
        }
    }
}
