//! The condition variable that takes guards and gives them back.

use crate::WaitTimeoutResult;
use crate::poison::{LockResult, MutexGuard, PoisonError};
use std::time::Duration;

/// A [`crate::Condvar`] with the signatures of [`std::sync::Condvar`]. 8 bytes.
///
/// ```
/// use lockstead::sync::{Condvar, Mutex};
/// use std::time::Duration;
///
/// let (mutex, never) = (Mutex::new(1), Condvar::new());
/// let (guard, result) =
///     never.wait_timeout(mutex.lock().unwrap(), Duration::from_millis(1)).unwrap();
/// assert!(result.timed_out() && *guard == 1);
/// ```
#[derive(Default, Debug)]
pub struct Condvar {
    condvar: crate::Condvar,
}

impl Condvar {
    /// Creates a condition variable that nobody waits for.
    #[must_use]
    pub const fn new() -> Self {
        Condvar { condvar: crate::Condvar::new() }
    }

    /// Waits for a notification. May return without one.
    ///
    /// # Errors
    /// [`PoisonError`] with the guard if another holder has panicked.
    #[track_caller]
    pub fn wait<'a, T: ?Sized>(
        &self,
        mut guard: MutexGuard<'a, T>,
    ) -> LockResult<MutexGuard<'a, T>> {
        self.condvar.wait(guard.inner_mut());
        judge(guard, |guard| guard)
    }

    /// Waits as long as `condition` is true of the data.
    ///
    /// # Errors
    /// [`PoisonError`] with the guard if another holder has panicked.
    #[track_caller]
    pub fn wait_while<'a, T: ?Sized, F: FnMut(&mut T) -> bool>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: F,
    ) -> LockResult<MutexGuard<'a, T>> {
        while condition(&mut guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// Waits for a notification, at most `timeout`. May return without one.
    ///
    /// # Errors
    /// [`PoisonError`] with the guard and the result if another holder has panicked.
    #[track_caller]
    pub fn wait_timeout<'a, T: ?Sized>(
        &self,
        mut guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let late = self.condvar.wait_timeout(guard.inner_mut(), timeout).is_err();
        judge(guard, |guard| (guard, WaitTimeoutResult::new(late)))
    }

    /// Waits as long as `condition` is true of the data, at most `timeout` in all.
    ///
    /// # Errors
    /// [`PoisonError`] with the guard and the result if another holder has panicked.
    #[track_caller]
    pub fn wait_timeout_while<'a, T: ?Sized, F: FnMut(&mut T) -> bool>(
        &self,
        mut guard: MutexGuard<'a, T>,
        timeout: Duration,
        condition: F,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let ended = self.condvar.wait_timeout_while(guard.inner_mut(), timeout, condition);
        judge(guard, |guard| (guard, WaitTimeoutResult::new(ended.is_err())))
    }

    /// Wakes one of the threads that wait, if any do.
    pub fn notify_one(&self) {
        self.condvar.notify_one();
    }

    /// Wakes all threads that wait.
    pub fn notify_all(&self) {
        self.condvar.notify_all();
    }
}

/// Gives what `with` makes of the guard, as poisoned if its mutex is.
fn judge<'a, T: ?Sized, R>(
    guard: MutexGuard<'a, T>,
    with: impl FnOnce(MutexGuard<'a, T>) -> R,
) -> LockResult<R> {
    let poisoned = guard.is_poisoned();
    let result = with(guard);
    if poisoned { Err(PoisonError::new(result)) } else { Ok(result) }
}
