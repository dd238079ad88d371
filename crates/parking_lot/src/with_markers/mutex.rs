//! The mutexes: the plain one, the fair one and the reentrant one.

use crate::telling::{self, Request, bumps, releases, tried};
use lockstead_told::home::Home;
use lockstead_told::{ToldLock, way};
use real_0_12::lock_api::{self, RawMutex as _};
use std::time::{Duration, Instant};

/// Defines a raw mutex that has a real one inside, of the type `$real` over the raw one of the same
/// name, and tells of it.
macro_rules! raw_mutex {
    ($(#[$doc:meta])* $name:ident = $real:ident) => {
        $(#[$doc])*
        #[repr(C)]
        pub struct $name(Home, real_0_12::$real<()>);

        impl $name {
            pub(super) fn told(&self) -> ToldLock {
                telling::mutex(&self.0)
            }

            fn raw(&self) -> &real_0_12::$name {
                // SAFETY: LOT-INSIDE: who calls our raw mutex keeps the rules of the real one.
                unsafe { self.1.raw() }
            }
        }

        // SAFETY: LOT-INSIDE: the real lock keeps what the trait asks for.
        unsafe impl lock_api::RawMutex for $name {
            #[allow(clippy::declare_interior_mutable_const)]
            const INIT: Self = $name(Home::new(), real_0_12::$real::new(()));

            type GuardMarker = <real_0_12::$name as lock_api::RawMutex>::GuardMarker;

            #[inline]
            fn lock(&self) {
                let wait = || {
                    self.raw().lock();
                    true
                };
                let attempt = || self.raw().try_lock();
                Request::alone(|| self.told(), None).acquire(attempt, wait);
            }

            #[inline]
            fn try_lock(&self) -> bool {
                tried(self.raw().try_lock(), || self.told(), way::ALONE)
            }

            #[inline]
            unsafe fn unlock(&self) {
                releases(|| self.told());
                // SAFETY: LOT-INSIDE: the caller holds the real mutex.
                unsafe { self.raw().unlock() };
            }

            #[inline]
            fn is_locked(&self) -> bool {
                self.raw().is_locked()
            }
        }

        // SAFETY: LOT-INSIDE: the real lock keeps what the trait asks for.
        unsafe impl lock_api::RawMutexFair for $name {
            #[inline]
            unsafe fn unlock_fair(&self) {
                releases(|| self.told());
                // SAFETY: LOT-INSIDE: the caller holds the real mutex.
                unsafe { self.raw().unlock_fair() };
            }

            #[inline]
            unsafe fn bump(&self) {
                // SAFETY: LOT-INSIDE: the caller holds the real mutex.
                bumps(|| self.told(), way::ALONE, || unsafe { self.raw().bump() });
            }
        }

        // SAFETY: LOT-INSIDE: the real lock keeps what the trait asks for.
        unsafe impl lock_api::RawMutexTimed for $name {
            type Duration = Duration;
            type Instant = Instant;

            #[inline]
            fn try_lock_for(&self, timeout: Duration) -> bool {
                let attempt = || self.raw().try_lock();
                let wait = || self.raw().try_lock_for(timeout);
                let request = Request::alone(|| self.told(), telling::after(timeout));
                request.acquire(attempt, wait)
            }

            #[inline]
            fn try_lock_until(&self, timeout: Instant) -> bool {
                let attempt = || self.raw().try_lock();
                let wait = || self.raw().try_lock_until(timeout);
                let request = Request::alone(|| self.told(), Some(timeout));
                request.acquire(attempt, wait)
            }
        }
    };
}

raw_mutex! {
    /// The raw mutex, which tells of its acquisitions and releases.
    RawMutex = Mutex
}

raw_mutex! {
    /// The raw mutex that is handed to who has waited longest, which tells of its acquisitions and
    /// releases.
    RawFairMutex = FairMutex
}

impl RawMutex {
    /// Returns the mutex inside.
    pub(super) fn real(&self) -> &real_0_12::Mutex<()> {
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
pub type ReentrantMutex<T> = lock_api::ReentrantMutex<RawMutex, real_0_12::RawThreadId, T>;

/// The guard of a [`ReentrantMutex`].
pub type ReentrantMutexGuard<'a, T> =
    lock_api::ReentrantMutexGuard<'a, RawMutex, real_0_12::RawThreadId, T>;

/// The guard of a part of what a [`ReentrantMutex`] protects.
pub type MappedReentrantMutexGuard<'a, T> =
    lock_api::MappedReentrantMutexGuard<'a, RawMutex, real_0_12::RawThreadId, T>;

/// Creates a free mutex.
pub const fn const_mutex<T>(value: T) -> Mutex<T> {
    Mutex::new(value)
}

/// Creates a free fair mutex.
pub const fn const_fair_mutex<T>(value: T) -> FairMutex<T> {
    FairMutex::new(value)
}

/// Creates a free reentrant mutex.
pub const fn const_reentrant_mutex<T>(value: T) -> ReentrantMutex<T> {
    let raw = <RawMutex as lock_api::RawMutex>::INIT;
    ReentrantMutex::from_raw(raw, real_0_12::RawThreadId, value)
}
