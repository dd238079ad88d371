//! The condition variable: it says whom it notified, and nobody returns who was not.

use super::{MutexGuard, RawMutex};
use crate::refusal::AbortOnUnwind;
use crate::{WaitTimeoutResult, time};
use core::fmt;
use core::panic::Location;
use lockstead_core::{LockError, RawExactCondvar, WaitBounds};
use lockstead_linux::Linux;
use std::time::{Duration, Instant};

/// Lets the holder of a [`Mutex`](super::Mutex) sleep until another thread says that the data has
/// changed. 16 bytes.
///
/// No wait ends without a notification or a deadline, and a notification wakes the thread that has
/// waited longest.
///
/// ```
/// use lockstead::parking_lot::{Condvar, Mutex};
///
/// let (ready, changed) = (Mutex::new(false), Condvar::new());
/// std::thread::scope(|s| {
///     s.spawn(|| {
///         *ready.lock() = true;
///         changed.notify_one();
///     });
///     let mut ready = ready.lock();
///     changed.wait_while(&mut ready, |ready| !*ready);
///     assert!(*ready);
/// });
/// ```
pub struct Condvar {
    raw: ExactCondvar,
}

impl Condvar {
    /// Creates a condition variable that nobody waits for.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Condvar { raw: ExactCondvar::new() }
    }

    /// Wakes the thread that has waited longest, and returns whether there was one.
    ///
    /// # Panics
    /// In a signal handler that has interrupted its own thread in a call of this condition variable.
    #[inline]
    #[track_caller]
    pub fn notify_one(&self) -> bool {
        self.raw.notify_one()
    }

    /// Wakes all threads that wait, and returns how many.
    ///
    /// # Panics
    /// As [`notify_one`](Self::notify_one).
    #[inline]
    #[track_caller]
    pub fn notify_all(&self) -> usize {
        self.raw.notify_all()
    }

    /// Waits for a notification.
    #[track_caller]
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        self.sleep(guard, &WaitBounds::FOREVER);
    }

    /// Waits for a notification, until `deadline` at most.
    #[track_caller]
    pub fn wait_until<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        deadline: Instant,
    ) -> WaitTimeoutResult {
        self.sleep(guard, &time::until(deadline))
    }

    /// Waits for a notification, at most `timeout`.
    ///
    /// ```
    /// use lockstead::parking_lot::{Condvar, Mutex};
    /// use std::time::Duration;
    ///
    /// let (mutex, never) = (Mutex::new(()), Condvar::new());
    /// assert!(never.wait_for(&mut mutex.lock(), Duration::from_millis(1)).timed_out());
    /// ```
    #[track_caller]
    pub fn wait_for<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        self.sleep(guard, &time::within(timeout))
    }

    /// Waits as long as `condition` is true of the data.
    #[track_caller]
    pub fn wait_while<T: ?Sized, F: FnMut(&mut T) -> bool>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        condition: F,
    ) {
        self.sleep_while(guard, condition, &WaitBounds::FOREVER);
    }

    /// Waits as long as `condition` is true of the data, until `deadline` at most.
    #[track_caller]
    pub fn wait_while_until<T: ?Sized, F: FnMut(&mut T) -> bool>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        condition: F,
        deadline: Instant,
    ) -> WaitTimeoutResult {
        self.sleep_while(guard, condition, &time::until(deadline))
    }

    /// Waits as long as `condition` is true of the data, at most `timeout` in all.
    #[track_caller]
    pub fn wait_while_for<T: ?Sized, F: FnMut(&mut T) -> bool>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        condition: F,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        self.sleep_while(guard, condition, &time::within(timeout))
    }

    #[track_caller]
    fn sleep<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        how: &WaitBounds<'_, Linux>,
    ) -> WaitTimeoutResult {
        // SAFETY: the guard holds the mutex, whose raw part is released and acquired again below;
        // the guard is borrowed exclusively, so nobody has the data meanwhile.
        let notified = unsafe { self.raw.wait(MutexGuard::mutex(guard).raw(), how) };
        WaitTimeoutResult::new(!notified)
    }

    #[track_caller]
    fn sleep_while<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: impl FnMut(&mut T) -> bool,
        how: &WaitBounds<'_, Linux>,
    ) -> WaitTimeoutResult {
        let mut result = WaitTimeoutResult::new(false);
        while !result.timed_out() && condition(guard) {
            result = self.sleep(guard, how);
        }
        result
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Condvar { .. }")
    }
}

/// A condition variable that wakes exactly whom it notifies.
struct ExactCondvar {
    raw: RawExactCondvar<Linux>,
}

impl ExactCondvar {
    const fn new() -> Self {
        ExactCondvar { raw: RawExactCondvar::new() }
    }

    /// Releases `mutex`, waits, and takes `mutex` again. Returns false if the deadline ended the wait.
    ///
    /// # Safety
    /// The calling thread holds `mutex`.
    #[track_caller]
    unsafe fn wait(&self, mutex: &RawMutex, how: &WaitBounds<'_, Linux>) -> bool {
        // SAFETY: LOCK-API-STATE: the calling thread holds the mutex; the caller keeps it.
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
    fn notify_one(&self) -> bool {
        self.raw.notify_one().unwrap_or_else(|error| self.refuse(error))
    }

    #[track_caller]
    fn notify_all(&self) -> usize {
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
