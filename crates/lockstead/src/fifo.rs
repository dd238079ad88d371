//! The mutex that keeps its waiters in a line, without data.

use crate::lock_api::sent;
use crate::refusal::{RefusedLock, refuse};
use lockstead_core::{LockError, WaitBounds};
use lockstead_linux::Linux;

/// The raw FIFO mutex of the `lock_api` back end: granted in the order of asking. 24 bytes.
///
/// Recursive locking and an owner lost in `fork` panic; see
/// [`lockstead::Mutex`](crate::Mutex).
#[derive(Debug)]
pub struct RawFifoMutex {
    raw: lockstead_core::RawFifoMutex<Linux>,
}

impl RawFifoMutex {
    pub(crate) const fn free() -> Self {
        RawFifoMutex { raw: lockstead_core::RawFifoMutex::new() }
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
            Err(error) if sent::waits_all_the_same(error, deadline) => {
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
                kind: "FIFO mutex",
                name: None,
                guards: core::any::type_name::<Self>(),
                address: self.raw.id().0,
                acquired_at: None,
            },
        )
    }
}
