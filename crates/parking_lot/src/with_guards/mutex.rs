//! The mutexes: the plain one, the fair one and the reentrant one.

use crate::telling::{self, Request, bumps, releases, tried};
use lockstead_told::home::Home;
use lockstead_told::{ToldLock, way};
use real::lock_api::{self, RawMutex as _};
use std::time::{Duration, Instant};

/// Defines a raw mutex that has the real one of the same name inside and tells of it.
macro_rules! raw_mutex {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[repr(C)]
        pub struct $name(Home, real::$name);

        impl $name {
            pub(super) fn told(&self) -> ToldLock {
                telling::mutex(&self.0)
            }
        }

        // SAFETY: LOT-INSIDE: the real lock keeps what the trait asks for.
        unsafe impl lock_api::RawMutex for $name {
            #[allow(clippy::declare_interior_mutable_const)]
            const INIT: Self = $name(Home::new(), real::$name::INIT);

            type Guard = <real::$name as lock_api::RawMutex>::Guard;

            #[inline]
            fn lock(&self) -> Self::Guard {
                let wait = || Some(self.1.lock());
                let guard = Request::alone(|| self.told(), None).acquire(|| self.1.try_lock(), wait);
                guard.expect("a wait without a deadline ends with the lock")
            }

            #[inline]
            fn try_lock(&self) -> Option<Self::Guard> {
                tried(self.1.try_lock(), || self.told(), way::ALONE)
            }

            #[inline]
            unsafe fn unlock(&self, guard: Self::Guard) {
                releases(|| self.told());
                // SAFETY: LOT-INSIDE: the caller holds the real mutex.
                unsafe { self.1.unlock(guard) };
            }

            #[inline]
            fn is_locked(&self) -> bool {
                self.1.is_locked()
            }
        }

        // SAFETY: LOT-INSIDE: the real lock keeps what the trait asks for.
        unsafe impl lock_api::RawMutexFair for $name {
            #[inline]
            unsafe fn unlock_fair(&self, guard: Self::Guard) {
                releases(|| self.told());
                // SAFETY: LOT-INSIDE: the caller holds the real mutex.
                unsafe { self.1.unlock_fair(guard) };
            }

            #[inline]
            unsafe fn bump(&self, guard: &mut Self::Guard) {
                // SAFETY: LOT-INSIDE: the caller holds the real mutex.
                bumps(|| self.told(), way::ALONE, || unsafe { self.1.bump(guard) });
            }
        }

        // SAFETY: LOT-INSIDE: the real lock keeps what the trait asks for.
        unsafe impl lock_api::RawMutexTimed for $name {
            type Duration = Duration;
            type Instant = Instant;

            #[inline]
            fn try_lock_for(&self, timeout: Duration) -> Option<Self::Guard> {
                Request::alone(|| self.told(), telling::after(timeout))
                    .acquire(|| self.1.try_lock(), || self.1.try_lock_for(timeout))
            }

            #[inline]
            fn try_lock_until(&self, timeout: Instant) -> Option<Self::Guard> {
                Request::alone(|| self.told(), Some(timeout))
                    .acquire(|| self.1.try_lock(), || self.1.try_lock_until(timeout))
            }
        }
    };
}

raw_mutex! {
    /// The raw mutex, which tells of its acquisitions and releases.
    RawMutex
}

raw_mutex! {
    /// The raw mutex that is handed to who has waited longest, which tells of its acquisitions and
    /// releases.
    RawFairMutex
}

impl RawMutex {
    /// Returns the mutex inside.
    pub(super) fn real(&self) -> &real::RawMutex {
        &self.1
    }
}

/// A mutex that tells of its acquisitions and releases.
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;

/// The guard of a [`Mutex`].
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;

/// The guard of a part of what a [`Mutex`] protects.
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;

/// A mutex that is handed to who has waited longest, and tells of its acquisitions and releases.
pub type FairMutex<T> = lock_api::Mutex<RawFairMutex, T>;

/// The guard of a [`FairMutex`].
pub type FairMutexGuard<'a, T> = lock_api::MutexGuard<'a, RawFairMutex, T>;

/// The guard of a part of what a [`FairMutex`] protects.
pub type MappedFairMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawFairMutex, T>;

/// A mutex that its owner may acquire again, which is told of the first time.
pub type ReentrantMutex<T> = lock_api::ReentrantMutex<RawMutex, real::RawThreadId, T>;

/// The guard of a [`ReentrantMutex`].
pub type ReentrantMutexGuard<'a, T> =
    lock_api::ReentrantMutexGuard<'a, RawMutex, real::RawThreadId, T>;

/// The guard of a part of what a [`ReentrantMutex`] protects.
pub type MappedReentrantMutexGuard<'a, T> =
    lock_api::MappedReentrantMutexGuard<'a, RawMutex, real::RawThreadId, T>;
