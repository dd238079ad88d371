//! The condition variable.

use crate::error::{Cancelled, Interrupted, TimedOut};
use crate::refusal::AbortOnUnwind;
use crate::{CancelToken, Hooks, MutexGuard, time};
use core::fmt;
use core::panic::Location;
use lockstead_core::{LockError, RawCondvar, WaitBounds};
use lockstead_linux::Linux;
use std::time::{Duration, Instant};

/// Tells whether a wait ended by its time, and not by a notification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitTimeoutResult {
    timed_out: bool,
}

impl WaitTimeoutResult {
    pub(crate) const fn new(timed_out: bool) -> Self {
        WaitTimeoutResult { timed_out }
    }

    /// Tells whether the time was over before a notification came.
    #[inline]
    #[must_use]
    pub fn timed_out(&self) -> bool {
        self.timed_out
    }
}

/// Lets the holder of a [`Mutex`](crate::Mutex) sleep until another thread
/// says that the data has changed. 8 bytes.
///
/// Waiting releases the mutex behind the guard and takes it again before it
/// returns, also when the wait failed: the guard stays good, but what the data
/// looked like before must be looked at again. A wait may end for no reason, so
/// wait in a loop or with the `_while` forms.
///
/// One condition variable may be used with several mutexes at a time; a
/// notification then reaches the waiters of all of them.
///
/// # Source
/// Hoare's and Hansen's monitors, as Mesa has them: a notification is a hint.
///
/// # Example
/// ```
/// use lockstead::{Condvar, Mutex};
/// use std::collections::VecDeque;
///
/// static QUEUE: Mutex<VecDeque<u32>> = Mutex::new(VecDeque::new());
/// static FILLED: Condvar = Condvar::new();
///
/// std::thread::scope(|s| {
///     s.spawn(|| {
///         QUEUE.lock().push_back(7);
///         FILLED.notify_one();
///     });
///     let mut queue = QUEUE.lock();
///     FILLED.wait_while(&mut queue, |queue| queue.is_empty());
///     assert_eq!(queue.pop_front(), Some(7));
/// });
/// ```
pub struct Condvar {
    raw: RawCondvar<Linux>,
}

const _: () = assert!(size_of::<Condvar>() == 8);

impl Condvar {
    /// Creates a condition variable that nobody waits for.
    #[must_use]
    pub const fn new() -> Self {
        Condvar { raw: RawCondvar::new() }
    }

    /// Waits for a notification. May return without one.
    #[track_caller]
    pub fn wait<T: ?Sized, H: Hooks>(&self, guard: &mut MutexGuard<'_, T, H>) {
        let ended = self.sleep(guard, &WaitBounds::FOREVER);
        debug_assert_eq!(ended, Ok(()), "nothing else was asked for");
    }

    /// Waits as long as `condition` is true of the data.
    #[track_caller]
    pub fn wait_while<T: ?Sized, H: Hooks>(
        &self,
        guard: &mut MutexGuard<'_, T, H>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) {
        while condition(guard) {
            self.wait(guard);
        }
    }

    /// Waits for a notification, at most `timeout`. May return without one.
    ///
    /// # Errors
    /// [`TimedOut`], not before the time is over.
    #[track_caller]
    pub fn wait_timeout<T: ?Sized, H: Hooks>(
        &self,
        guard: &mut MutexGuard<'_, T, H>,
        timeout: Duration,
    ) -> Result<(), TimedOut> {
        self.sleep(guard, &time::within(timeout)).map_err(|_| TimedOut)
    }

    /// Waits for a notification, until `deadline` at most. May return without one.
    ///
    /// ```
    /// use lockstead::{Condvar, Mutex};
    /// use std::time::Instant;
    ///
    /// let (mutex, never) = (Mutex::new(()), Condvar::new());
    /// let mut guard = mutex.lock();
    /// while !never.wait_until(&mut guard, Instant::now()).timed_out() {}
    /// ```
    #[track_caller]
    pub fn wait_until<T: ?Sized, H: Hooks>(
        &self,
        guard: &mut MutexGuard<'_, T, H>,
        deadline: Instant,
    ) -> WaitTimeoutResult {
        WaitTimeoutResult::new(self.sleep(guard, &time::until(deadline)).is_err())
    }

    /// Does what [`wait_timeout`](Self::wait_timeout) does, and says it as
    /// [`wait_until`](Self::wait_until).
    #[track_caller]
    pub fn wait_for<T: ?Sized, H: Hooks>(
        &self,
        guard: &mut MutexGuard<'_, T, H>,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        WaitTimeoutResult::new(self.wait_timeout(guard, timeout).is_err())
    }

    /// Waits as long as `condition` is true of the data, at most `timeout` in all; see
    /// [`wait_timeout_while`](Self::wait_timeout_while).
    #[track_caller]
    pub fn wait_while_for<T: ?Sized, H: Hooks>(
        &self,
        guard: &mut MutexGuard<'_, T, H>,
        condition: impl FnMut(&mut T) -> bool,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        WaitTimeoutResult::new(self.wait_timeout_while(guard, timeout, condition).is_err())
    }

    /// Waits as long as `condition` is true of the data, until `deadline` at most.
    #[track_caller]
    pub fn wait_while_until<T: ?Sized, H: Hooks>(
        &self,
        guard: &mut MutexGuard<'_, T, H>,
        condition: impl FnMut(&mut T) -> bool,
        deadline: Instant,
    ) -> WaitTimeoutResult {
        self.wait_while_for(guard, condition, deadline.saturating_duration_since(Instant::now()))
    }

    /// Waits as long as `condition` is true of the data, at most `timeout` in
    /// all.
    ///
    /// # Errors
    /// [`TimedOut`] if the condition is still true after the time.
    ///
    /// ```
    /// use lockstead::{Condvar, Mutex, TimedOut};
    /// use std::time::Duration;
    ///
    /// let (ready, changed) = (Mutex::new(false), Condvar::new());
    /// let mut guard = ready.lock();
    /// let outcome =
    ///     changed.wait_timeout_while(&mut guard, Duration::from_millis(1), |ready| !*ready);
    /// assert_eq!(outcome, Err(TimedOut));
    /// ```
    #[track_caller]
    pub fn wait_timeout_while<T: ?Sized, H: Hooks>(
        &self,
        guard: &mut MutexGuard<'_, T, H>,
        timeout: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> Result<(), TimedOut> {
        let how = time::within(timeout);
        while condition(guard) {
            if self.sleep(guard, &how).is_err() {
                // Notified at the last moment counts.
                return if condition(guard) { Err(TimedOut) } else { Ok(()) };
            }
        }
        Ok(())
    }

    /// Waits for a notification, unless a signal handler runs on this thread
    /// while it sleeps. May return without either.
    ///
    /// # Errors
    /// [`Interrupted`]: a handler ran. The mutex is taken again uninterruptibly.
    #[track_caller]
    pub fn wait_interruptible<T: ?Sized, H: Hooks>(
        &self,
        guard: &mut MutexGuard<'_, T, H>,
    ) -> Result<(), Interrupted> {
        self.sleep(guard, &time::INTERRUPTIBLE).map_err(|_| Interrupted)
    }

    /// Waits for a notification, unless `token` is fired, before the call or
    /// while it waits. May return without either.
    ///
    /// # Errors
    /// [`Cancelled`]: the token was fired. The mutex is taken again all the
    /// same, however long that takes.
    #[track_caller]
    pub fn wait_killable<T: ?Sized, H: Hooks>(
        &self,
        guard: &mut MutexGuard<'_, T, H>,
        token: &CancelToken,
    ) -> Result<(), Cancelled> {
        self.sleep(guard, &token.wait()).map_err(|_| Cancelled)
    }

    /// Wakes one of the threads that wait, if any do. With or without the
    /// mutex held; what the waiters look at must be changed under it.
    ///
    /// Returns whether there was one to wake, as far as is known: a thread that has stopped waiting
    /// without a notification may be taken for one, once.
    pub fn notify_one(&self) -> bool {
        self.raw.notify_counting(false) > 0
    }

    /// Wakes all threads that wait. Returns how many, as far as is known; see
    /// [`notify_one`](Self::notify_one).
    pub fn notify_all(&self) -> usize {
        self.raw.notify_counting(true) as usize
    }

    /// Waits in all the ways there are, and returns with the mutex held.
    #[track_caller]
    fn sleep<T: ?Sized, H: Hooks>(
        &self,
        guard: &mut MutexGuard<'_, T, H>,
        how: &WaitBounds<'_, Linux>,
    ) -> Result<(), LockError> {
        // SAFETY: GUARD-HOLDS: this thread holds the mutex; and the guard is borrowed exclusively,
        // so it lends nobody the data meanwhile (GUARD-SOLE).
        let ended = unsafe { self.raw.wait(MutexGuard::raw(guard), how, Location::caller()) };
        if let Err(error @ (LockError::Recursive | LockError::OwnerLost)) = ended {
            // Only after a signal handler left the wait by fork or by a jump.
            // Unwinding would drop a guard of a mutex that is not held.
            let _bomb = AbortOnUnwind;
            MutexGuard::refuse(guard, error);
        }
        ended
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}
