//! The condition variable without data.

use super::RawMutex;
use crate::time;
use ::lock_api::GuardNoSend;
use core::panic::Location;
use lockstead_core::{LockError, WaitBounds};
use lockstead_linux::Linux;
use std::time::{Duration, Instant};

/// The raw condition variable of the `lock_api` back end: 8 bytes.
///
/// Waits may end for no reason, and a notification may count a thread that has stopped waiting
/// without one.
#[derive(Debug)]
pub struct RawCondvar {
    raw: lockstead_core::RawCondvar<Linux>,
}

impl RawCondvar {
    /// Returns with the mutex held; true if the deadline ended the wait.
    ///
    /// # Safety
    /// The calling thread holds `mutex`.
    #[track_caller]
    unsafe fn sleep(&self, mutex: &RawMutex, how: &WaitBounds<'_, Linux>) -> bool {
        // SAFETY: LOCK-API-STATE: the calling thread holds `mutex`; the caller keeps it.
        match unsafe { self.raw.wait(mutex.core(), how, Location::caller()) } {
            Ok(()) => false,
            Err(LockError::TimedOut) => true,
            Err(error) => mutex.abort(error),
        }
    }
}

// SAFETY: the sequence number of the core's condition variable makes unlocking and waiting one step
// for the notifiers. `sleep` returns with the mutex held, or ends the process. Waiting with several
// mutexes at a time is harmless.
unsafe impl ::lock_api::RawCondvar for RawCondvar {
    const INIT: Self = RawCondvar { raw: lockstead_core::RawCondvar::new() };
    type RawMutex = RawMutex;

    #[track_caller]
    unsafe fn wait(&self, mutex: &RawMutex, _guard: &mut GuardNoSend) {
        // SAFETY: LOCK-API-STATE: `lock_api` passes the guard of `mutex`, so the thread holds it.
        unsafe { self.sleep(mutex, &WaitBounds::FOREVER) };
    }

    fn notify_one(&self) -> bool {
        self.raw.notify_counting(false) > 0
    }

    fn notify_all(&self) -> usize {
        self.raw.notify_counting(true) as usize
    }
}

// SAFETY: `sleep` keeps what is said for `RawCondvar`; `time` rounds deadlines up only.
unsafe impl ::lock_api::RawCondvarTimed for RawCondvar {
    fn checked_duration_to_instant(timeout: &Duration) -> Option<Instant> {
        Instant::now().checked_add(*timeout)
    }

    #[track_caller]
    unsafe fn wait_until(
        &self,
        mutex: &RawMutex,
        _guard: &mut GuardNoSend,
        timeout: &Instant,
    ) -> bool {
        // SAFETY: LOCK-API-STATE: `lock_api` passes the guard of `mutex`, so the thread holds it.
        unsafe { self.sleep(mutex, &time::until(*timeout)) }
    }
}
