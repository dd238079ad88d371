//! The condition variable, for guards of our [`Mutex`](super::Mutex).

use super::mutex::MutexGuard;
use crate::telling;
use lockstead_told::home::Home;
use std::fmt;
use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};

/// A condition variable that tells of its waits.
#[repr(C)]
pub struct Condvar(Home, real_0_12::Condvar);

/// Whether a wait has ended because its time was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Tells whether the time was over.
    #[inline]
    #[must_use]
    pub fn timed_out(self) -> bool {
        self.0
    }
}

impl Condvar {
    /// Creates a condition variable on which nobody waits.
    #[inline]
    #[must_use]
    pub const fn new() -> Condvar {
        Condvar(Home::new(), real_0_12::Condvar::new())
    }

    /// Wakes one of the waiters; tells whether there was one.
    #[inline]
    pub fn notify_one(&self) -> bool {
        self.1.notify_one()
    }

    /// Wakes all of the waiters, and returns how many they were.
    #[inline]
    pub fn notify_all(&self) -> usize {
        self.1.notify_all()
    }

    /// Waits by `wait`, with a guard of the mutex inside.
    fn waits<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        deadline: Option<Instant>,
        wait: impl FnOnce(&mut real_0_12::MutexGuard<'_, ()>) -> bool,
    ) -> WaitTimeoutResult {
        // SAFETY: nobody acquires or releases the mutex by this reference.
        let mutex = unsafe { MutexGuard::mutex(guard).raw() };
        // SAFETY: LOT-INSIDE: the guard's owner holds the real mutex. The second guard is never
        // dropped, so that it releases nothing.
        let mut inner = ManuallyDrop::new(unsafe { mutex.real().make_guard_unchecked() });
        WaitTimeoutResult(telling::waits_on(&self.0, mutex.told(), deadline, || wait(&mut inner)))
    }

    /// Gives the mutex back, waits for a notification, and takes the mutex again.
    ///
    /// # Panics
    /// If another thread waits with another mutex.
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        self.waits(guard, None, |guard| {
            self.1.wait(guard);
            false
        });
    }

    /// Waits for a notification until `timeout`.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    pub fn wait_until<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        timeout: Instant,
    ) -> WaitTimeoutResult {
        self.waits(guard, Some(timeout), |guard| self.1.wait_until(guard, timeout).timed_out())
    }

    /// Waits for a notification for so long.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    pub fn wait_for<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        let deadline = telling::after(timeout);
        self.waits(guard, deadline, |guard| self.1.wait_for(guard, timeout).timed_out())
    }

    /// Waits as long as `condition` says.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    pub fn wait_while<T, F>(&self, guard: &mut MutexGuard<'_, T>, mut condition: F)
    where
        T: ?Sized,
        F: FnMut(&mut T) -> bool,
    {
        while condition(&mut *guard) {
            self.wait(guard);
        }
    }

    /// Waits as long as `condition` says, and until `timeout` at most.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    pub fn wait_while_until<T, F>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        condition: F,
        timeout: Instant,
    ) -> WaitTimeoutResult
    where
        T: ?Sized,
        F: FnMut(&mut T) -> bool,
    {
        self.waits_while(guard, condition, Some(timeout))
    }

    /// Waits as long as `condition` says, and for so long at most.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    pub fn wait_while_for<T: ?Sized, F>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        condition: F,
        timeout: Duration,
    ) -> WaitTimeoutResult
    where
        F: FnMut(&mut T) -> bool,
    {
        self.waits_while(guard, condition, Instant::now().checked_add(timeout))
    }

    fn waits_while<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: impl FnMut(&mut T) -> bool,
        deadline: Option<Instant>,
    ) -> WaitTimeoutResult {
        let mut result = WaitTimeoutResult(false);
        while !result.timed_out() && condition(&mut *guard) {
            match deadline {
                Some(deadline) => result = self.wait_until(guard, deadline),
                None => self.wait(guard),
            }
        }
        result
    }
}

impl Default for Condvar {
    #[inline]
    fn default() -> Condvar {
        Condvar::new()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.1.fmt(f)
    }
}
