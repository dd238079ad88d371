//! The FIFO mutex without data, and fair unlocks.

use super::RawMutex;
use crate::fifo::RawFifoMutex;
use crate::time;
use ::lock_api::GuardNoSend;
use std::time::{Duration, Instant};

// SAFETY: the core's FIFO mutex is exclusive, acquires and releases. An operation that unwinds has
// acquired nothing. A mutex that is moved or dropped while locked has no waiter, since those borrow it.
unsafe impl ::lock_api::RawMutex for RawFifoMutex {
    const INIT: Self = Self::free();
    type Guard = GuardNoSend;

    #[inline]
    #[track_caller]
    fn lock(&self) -> GuardNoSend {
        self.acquire();
        GuardNoSend::new()
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardNoSend> {
        self.try_acquire().then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock(&self, _guard: GuardNoSend) {
        // SAFETY: LOCK-API-STATE: `lock_api` unlocks for a guard, on the thread that took it.
        unsafe { self.release() }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.is_held()
    }
}

// SAFETY: every release of this mutex grants it to the first who waits.
unsafe impl ::lock_api::RawMutexFair for RawFifoMutex {
    #[inline]
    unsafe fn unlock_fair(&self, _guard: GuardNoSend) {
        // SAFETY: LOCK-API-STATE: `lock_api` unlocks for a guard, on the thread that took it.
        unsafe { self.release() }
    }
}

// SAFETY: a wait of the core that timed out has acquired nothing, and `time` rounds deadlines up only.
unsafe impl ::lock_api::RawMutexTimed for RawFifoMutex {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    #[track_caller]
    fn try_lock_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.acquire_by(|| time::within(timeout)).then(GuardNoSend::new)
    }

    #[inline]
    #[track_caller]
    fn try_lock_until(&self, deadline: Instant) -> Option<GuardNoSend> {
        self.acquire_by(|| time::until(deadline)).then(GuardNoSend::new)
    }
}

// SAFETY: releases, and `bump` returns with the mutex held.
unsafe impl ::lock_api::RawMutexFair for RawMutex {
    #[inline]
    unsafe fn unlock_fair(&self, _guard: GuardNoSend) {
        // SAFETY: LOCK-API-STATE: `lock_api` unlocks for a guard, on the thread that took it.
        unsafe { self.release() }
    }

    #[inline]
    #[track_caller]
    unsafe fn bump(&self, _guard: &mut GuardNoSend) {
        // SAFETY: LOCK-API-STATE: `lock_api` bumps a guard, on the thread that took it.
        unsafe { self.step_aside() }
    }
}
