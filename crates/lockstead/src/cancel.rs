//! A request to stop waiting that one thread sends to others.

use lockstead_core::{Atomic32, Ordering, Platform, WaitBounds};
use lockstead_linux::Linux;

/// A switch that ends the waits it was given to: the user-space counterpart of
/// the fatal signal behind the kernel's `mutex_lock_killable`.
///
/// Any number of threads may wait with one token, on any locks, at once or one
/// after another. Firing it is final: waits that would sleep end with
/// [`Cancelled`](crate::Cancelled) from then on, and a lock that is free is
/// still taken. Publishes nothing but itself: data that the cancelled threads
/// are to see needs its own synchronisation.
///
/// ```
/// use lockstead::{CancelToken, Cancelled, Mutex};
///
/// static STOP: CancelToken = CancelToken::new();
/// let mutex = Mutex::new(0);
/// let held = mutex.lock();
/// std::thread::scope(|s| {
///     let waiter = s.spawn(|| mutex.lock_killable(&STOP).map(|_| ()));
///     STOP.cancel();
///     assert_eq!(waiter.join().unwrap(), Err(Cancelled));
/// });
/// drop(held);
/// assert!(mutex.lock_killable(&STOP).is_ok()); // free: nothing to wait for
/// ```
pub struct CancelToken {
    fired: <Linux as Platform>::U32,
}

impl CancelToken {
    /// Creates a token that has not been fired.
    #[must_use]
    pub const fn new() -> Self {
        CancelToken { fired: <<Linux as Platform>::U32 as Atomic32>::ZERO }
    }

    /// Ends every wait that uses this token, now and later. May be called any
    /// number of times, from any thread, and from a signal handler.
    pub fn cancel(&self) {
        // ord: WAIT-2 (relaxed): publishes nothing. The wake-up below follows
        // it in program order, which is what a waiter about to sleep relies on.
        self.fired.store(1, Ordering::Relaxed);
        Linux::wake(Linux::address32(&self.fired), u32::MAX);
    }

    /// Tells whether [`cancel`](Self::cancel) has been called.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.fired.load(Ordering::Relaxed) != 0
    }

    /// Returns the wait that this token ends.
    pub(crate) fn wait(&self) -> WaitBounds<'_, Linux> {
        WaitBounds { cancel: Some(&self.fired), ..WaitBounds::FOREVER }
    }
}

impl Default for CancelToken {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("CancelToken").field("cancelled", &self.is_cancelled()).finish()
    }
}
