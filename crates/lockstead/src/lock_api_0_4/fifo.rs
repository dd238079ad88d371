//! The fair mutex, and the fair unlocks of the others.

use super::GuardMarker;
use crate::fifo::RawFifoMutex;
use crate::lock_api::{RawMutex, RawRwLock};
use crate::time;
use std::time::{Duration, Instant};

// SAFETY: the core's fair mutex is exclusive, acquires and releases. A lock operation that unwinds
// has acquired nothing.
unsafe impl ::lock_api_0_4::RawMutex for RawFifoMutex {
    const INIT: Self = Self::free();
    type GuardMarker = GuardMarker;

    #[inline]
    #[track_caller]
    fn lock(&self) {
        self.acquire();
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.try_acquire()
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: LOCK-API-STATE: `lock_api` unlocks for a guard, on the thread that took it.
        unsafe { self.release() }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.is_held()
    }
}

// SAFETY: every release of this mutex grants it to the first who waits.
unsafe impl ::lock_api_0_4::RawMutexFair for RawFifoMutex {
    #[inline]
    unsafe fn unlock_fair(&self) {
        // SAFETY: LOCK-API-STATE: `lock_api` unlocks for a guard, on the thread that took it.
        unsafe { self.release() }
    }
}

// SAFETY: a wait of the core that timed out has acquired nothing.
unsafe impl ::lock_api_0_4::RawMutexTimed for RawFifoMutex {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    #[track_caller]
    fn try_lock_for(&self, timeout: Duration) -> bool {
        self.acquire_by(|| time::within(timeout))
    }

    #[inline]
    #[track_caller]
    fn try_lock_until(&self, deadline: Instant) -> bool {
        self.acquire_by(|| time::until(deadline))
    }
}

// SAFETY: releases, and `bump` returns with the mutex held.
unsafe impl ::lock_api_0_4::RawMutexFair for RawMutex {
    #[inline]
    unsafe fn unlock_fair(&self) {
        // SAFETY: LOCK-API-STATE: `lock_api` unlocks for a guard, on the thread that took it.
        unsafe { self.release() }
    }

    #[inline]
    #[track_caller]
    unsafe fn bump(&self) {
        // SAFETY: LOCK-API-STATE: `lock_api` bumps a guard, on the thread that took it.
        unsafe { self.step_aside() }
    }
}

// SAFETY: a fair release is the ordinary one, which ends the hold.
unsafe impl ::lock_api_0_4::RawRwLockFair for RawRwLock {
    #[inline]
    unsafe fn unlock_shared_fair(&self) {
        // SAFETY: LOCK-API-STATE: `lock_api` unlocks for a guard that reads.
        unsafe { self.release_shared() }
    }

    #[inline]
    unsafe fn unlock_exclusive_fair(&self) {
        // SAFETY: LOCK-API-STATE: `lock_api` unlocks for the guard that writes, on its thread.
        unsafe { self.release_exclusive() }
    }
}
