//! The condition variable, for guards of our [`Mutex`](super::Mutex).

use super::mutex::MutexGuard;
use super::telling::{end_of, locked};
use ::std::fmt;
use ::std::sync::{self, LockResult, PoisonError, WaitTimeoutResult};
use ::std::time::{Duration, Instant};
use lockstead_told::home::Home;
use lockstead_told::{ToldLock, ending, flag, kind, listener, way};

/// A [`std::sync::Condvar`](::std::sync::Condvar) that tells of its waits.
#[repr(C)]
pub struct Condvar {
    home: Home,
    inner: sync::Condvar,
}

impl Condvar {
    /// Creates a condition variable on which nobody waits.
    #[inline]
    pub const fn new() -> Condvar {
        Condvar { home: Home::new(), inner: sync::Condvar::new() }
    }

    /// Waits by `wait`, and tells of it; `timed_out` says of the result whether it has ended so.
    fn telling<R>(
        &self,
        mutex: usize,
        deadline: u64,
        wait: impl FnOnce() -> R,
        timed_out: impl FnOnce(&R) -> bool,
    ) -> R {
        let Some(listener) = listener() else { return wait() };
        let lock = ToldLock::new(self.home.settle(listener, None), kind::CONDITION, flag::FOLLOWED);
        let noted = listener.wait_begins(
            &lock,
            way::ALONE,
            (deadline, mutex),
            ::std::ptr::from_ref(&lock).addr(),
        );
        let result = wait();
        if noted {
            let ended = if timed_out(&result) { ending::TIMED_OUT } else { ending::GRANTED };
            listener.wait_ends(&lock, way::ALONE, ended);
        }
        result
    }

    /// Gives the mutex back, waits for a notification, and takes the mutex again.
    ///
    /// # Errors
    /// If the mutex is poisoned, with the guard.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let (inner, mutex) = guard.into_parts();
        let result = self.telling(mutex, 0, || self.inner.wait(inner), |_| false);
        locked(result, |inner| MutexGuard::of_parts(inner, mutex))
    }

    /// Waits as long as `condition` says.
    ///
    /// # Errors
    /// If the mutex is poisoned, with the guard.
    pub fn wait_while<'a, T, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: F,
    ) -> LockResult<MutexGuard<'a, T>>
    where
        F: FnMut(&mut T) -> bool,
    {
        while condition(&mut *guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// Waits so many milliseconds at most; tells whether that was too short.
    ///
    /// # Errors
    /// If the mutex is poisoned, with the guard.
    #[deprecated(note = "replaced by `std::sync::Condvar::wait_timeout`")]
    pub fn wait_timeout_ms<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        ms: u32,
    ) -> LockResult<(MutexGuard<'a, T>, bool)> {
        let result = self.wait_timeout(guard, Duration::from_millis(ms.into()));
        locked(result, |(guard, timed)| (guard, !timed.timed_out()))
    }

    /// Waits for a notification for `time` at most.
    ///
    /// # Errors
    /// If the mutex is poisoned, with the guard.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        time: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let (inner, mutex) = guard.into_parts();
        let wait = || self.inner.wait_timeout(inner, time);
        let timed_out = |result: &LockResult<(_, WaitTimeoutResult)>| match result {
            Ok((_, timed)) => timed.timed_out(),
            Err(poisoned) => poisoned.get_ref().1.timed_out(),
        };
        let deadline = if listener().is_some() { end_of(time) } else { 0 };
        let result = self.telling(mutex, deadline, wait, timed_out);
        locked(result, |(inner, timed)| (MutexGuard::of_parts(inner, mutex), timed))
    }

    /// Waits as long as `condition` says, and for `time` at most.
    ///
    /// # Errors
    /// If the mutex is poisoned, with the guard.
    pub fn wait_timeout_while<'a, T, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        time: Duration,
        mut condition: F,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)>
    where
        F: FnMut(&mut T) -> bool,
    {
        let start = Instant::now();
        loop {
            // A time that is over is waited for once: only the wait makes its result.
            let left = time.saturating_sub(start.elapsed());
            let is_over = left.is_zero();
            if !condition(&mut *guard) {
                return self.not_timed_out(guard);
            }
            let (again, timed) = self.wait_timeout(guard, left)?;
            guard = again;
            if is_over {
                return Ok((guard, timed));
            }
        }
    }

    /// Returns the guard with a result that says that no time has run out. Only a wait makes one:
    /// it is for a time that has begun, on a condition that is notified before.
    fn not_timed_out<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let own = (sync::Mutex::new(()), sync::Condvar::new());
        let held = own.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The condition is false from the start, so that this does not wait.
        let never = own.1.wait_timeout_while(held, Duration::MAX, |()| false);
        Ok((guard, never.unwrap_or_else(PoisonError::into_inner).1))
    }

    /// Wakes one of the waiters.
    #[inline]
    pub fn notify_one(&self) {
        self.inner.notify_one();
    }

    /// Wakes all of the waiters.
    #[inline]
    pub fn notify_all(&self) {
        self.inner.notify_all();
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Condvar::new()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
