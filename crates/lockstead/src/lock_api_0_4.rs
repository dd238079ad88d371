//! The locks of [`lockstead::lock_api`](crate::lock_api) behind the traits of
//! `lock_api` 0.4, for crates that have not moved to 0.5.

mod fifo;
mod recursive;
mod upgradable;

use crate::lock_api::{RawMutex, RawRwLock};
use crate::time;
use lockstead_core::Policy;
use std::time::{Duration, Instant};

#[cfg(not(feature = "send_guard"))]
use ::lock_api_0_4::GuardNoSend as GuardMarker;
#[cfg(feature = "send_guard")]
use ::lock_api_0_4::GuardSend as GuardMarker;

/// `lock_api` 0.4's mutex over lockstead's.
pub type Mutex<T> = ::lock_api_0_4::Mutex<RawMutex, T>;
/// The guard of a [`Mutex`].
pub type MutexGuard<'a, T> = ::lock_api_0_4::MutexGuard<'a, RawMutex, T>;
/// A guard narrowed to a part of the data of a [`Mutex`].
pub type MappedMutexGuard<'a, T> = ::lock_api_0_4::MappedMutexGuard<'a, RawMutex, T>;

/// `lock_api` 0.4's reader-writer lock over lockstead's.
pub type RwLock<T> = ::lock_api_0_4::RwLock<RawRwLock, T>;
/// A reader's guard of a [`RwLock`].
pub type RwLockReadGuard<'a, T> = ::lock_api_0_4::RwLockReadGuard<'a, RawRwLock, T>;
/// The writer's guard of a [`RwLock`].
pub type RwLockWriteGuard<'a, T> = ::lock_api_0_4::RwLockWriteGuard<'a, RawRwLock, T>;

// SAFETY: the core's mutex is exclusive, as of the traits of version 0.5.
unsafe impl<Y: Policy> ::lock_api_0_4::RawMutex for RawMutex<Y> {
    const INIT: Self = Self::free();
    type GuardMarker = GuardMarker;

    #[inline]
    #[track_caller]
    fn lock(&self) {
        self.acquire();
    }

    #[inline]
    #[track_caller]
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

// SAFETY: a wait of the core that timed out has acquired nothing.
unsafe impl<Y: Policy> ::lock_api_0_4::RawMutexTimed for RawMutex<Y> {
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

// SAFETY: the core's lock keeps the writer apart from everybody, as of the traits of version 0.5.
unsafe impl ::lock_api_0_4::RawRwLock for RawRwLock {
    const INIT: Self = Self::free();
    type GuardMarker = GuardMarker;

    #[inline]
    #[track_caller]
    fn lock_shared(&self) {
        self.acquire_shared();
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared(&self) -> bool {
        self.try_acquire_shared()
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        // SAFETY: LOCK-API-STATE: `lock_api` unlocks for a guard that reads.
        unsafe { self.release_shared() }
    }

    #[inline]
    #[track_caller]
    fn lock_exclusive(&self) {
        self.acquire_exclusive();
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive(&self) -> bool {
        self.try_acquire_exclusive()
    }

    #[inline]
    unsafe fn unlock_exclusive(&self) {
        // SAFETY: LOCK-API-STATE: `lock_api` unlocks for the guard that writes, on its thread.
        unsafe { self.release_exclusive() }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.is_held()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.is_written()
    }
}

// SAFETY: the core's `downgrade` lets no writer come between the two holds.
unsafe impl ::lock_api_0_4::RawRwLockDowngrade for RawRwLock {
    unsafe fn downgrade(&self) {
        // SAFETY: LOCK-API-STATE: `lock_api` downgrades the guard that writes, on its thread.
        unsafe { self.turn_shared() }
    }
}

// SAFETY: a wait of the core that timed out has acquired nothing.
unsafe impl ::lock_api_0_4::RawRwLockTimed for RawRwLock {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    #[track_caller]
    fn try_lock_shared_for(&self, timeout: Duration) -> bool {
        self.acquire_shared_by(|| time::within(timeout))
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared_until(&self, deadline: Instant) -> bool {
        self.acquire_shared_by(|| time::until(deadline))
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive_for(&self, timeout: Duration) -> bool {
        self.acquire_exclusive_by(|| time::within(timeout))
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive_until(&self, deadline: Instant) -> bool {
        self.acquire_exclusive_by(|| time::until(deadline))
    }
}
