//! The reader-writer lock.

use crate::telling::{
    self, Request, bumps, bumps_right, releases, releases_right, tried, tried_right, upgrades,
};
use lockstead_told::home::Home;
use lockstead_told::{ToldLock, way};
use real_0_12::lock_api::{self, RawRwLock as _, RawRwLockRecursive as _, RawRwLockUpgrade as _};
use std::time::{Duration, Instant};

/// The raw lock, which tells of its acquisitions and releases.
#[repr(C)]
pub struct RawRwLock(Home, real_0_12::RawRwLock);

impl RawRwLock {
    fn told(&self) -> ToldLock {
        telling::rwlock(&self.0, false)
    }
}

// SAFETY: LOT-INSIDE: the real lock keeps what the trait asks for.
unsafe impl lock_api::RawRwLock for RawRwLock {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = RawRwLock(Home::new(), real_0_12::RawRwLock::INIT);

    type GuardMarker = <real_0_12::RawRwLock as lock_api::RawRwLock>::GuardMarker;

    #[inline]
    fn lock_shared(&self) {
        let wait = || {
            self.1.lock_shared();
            true
        };
        let attempt = || self.1.try_lock_shared();
        Request::read(|| self.told(), None).acquire(attempt, wait);
    }

    #[inline]
    fn try_lock_shared(&self) -> bool {
        tried(self.1.try_lock_shared(), || self.told(), way::READ)
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        releases(|| self.told());
        // SAFETY: LOT-INSIDE: the caller reads under the real lock.
        unsafe { self.1.unlock_shared() };
    }

    #[inline]
    fn lock_exclusive(&self) {
        let wait = || {
            self.1.lock_exclusive();
            true
        };
        let attempt = || self.1.try_lock_exclusive();
        Request::write(|| self.told(), None).acquire(attempt, wait);
    }

    #[inline]
    fn try_lock_exclusive(&self) -> bool {
        tried(self.1.try_lock_exclusive(), || self.told(), way::ALONE)
    }

    #[inline]
    unsafe fn unlock_exclusive(&self) {
        releases(|| self.told());
        // SAFETY: LOT-INSIDE: the caller writes under the real lock.
        unsafe { self.1.unlock_exclusive() };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.1.is_locked()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.1.is_locked_exclusive()
    }
}

// SAFETY: LOT-INSIDE: the real lock keeps what the trait asks for.
unsafe impl lock_api::RawRwLockFair for RawRwLock {
    #[inline]
    unsafe fn unlock_shared_fair(&self) {
        releases(|| self.told());
        // SAFETY: LOT-INSIDE: the caller reads under the real lock.
        unsafe { self.1.unlock_shared_fair() };
    }

    #[inline]
    unsafe fn unlock_exclusive_fair(&self) {
        releases(|| self.told());
        // SAFETY: LOT-INSIDE: the caller writes under the real lock.
        unsafe { self.1.unlock_exclusive_fair() };
    }

    #[inline]
    unsafe fn bump_shared(&self) {
        // SAFETY: LOT-INSIDE: the caller reads under the real lock.
        bumps(|| self.told(), way::READ, || unsafe { self.1.bump_shared() });
    }

    #[inline]
    unsafe fn bump_exclusive(&self) {
        // SAFETY: LOT-INSIDE: the caller writes under the real lock.
        bumps(|| self.told(), way::ALONE, || unsafe { self.1.bump_exclusive() });
    }
}

// SAFETY: LOT-INSIDE: the real lock keeps what the trait asks for.
unsafe impl lock_api::RawRwLockDowngrade for RawRwLock {
    #[inline]
    unsafe fn downgrade(&self) {
        releases(|| self.told());
        // SAFETY: LOT-INSIDE: the caller writes under the real lock.
        unsafe { self.1.downgrade() };
        tried(true, || self.told(), way::READ);
    }
}

// SAFETY: LOT-INSIDE: the real lock keeps what the trait asks for.
unsafe impl lock_api::RawRwLockTimed for RawRwLock {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    fn try_lock_shared_for(&self, timeout: Duration) -> bool {
        Request::read(|| self.told(), telling::after(timeout))
            .acquire(|| self.1.try_lock_shared(), || self.1.try_lock_shared_for(timeout))
    }

    #[inline]
    fn try_lock_shared_until(&self, timeout: Instant) -> bool {
        Request::read(|| self.told(), Some(timeout))
            .acquire(|| self.1.try_lock_shared(), || self.1.try_lock_shared_until(timeout))
    }

    #[inline]
    fn try_lock_exclusive_for(&self, timeout: Duration) -> bool {
        Request::write(|| self.told(), telling::after(timeout))
            .acquire(|| self.1.try_lock_exclusive(), || self.1.try_lock_exclusive_for(timeout))
    }

    #[inline]
    fn try_lock_exclusive_until(&self, timeout: Instant) -> bool {
        Request::write(|| self.told(), Some(timeout))
            .acquire(|| self.1.try_lock_exclusive(), || self.1.try_lock_exclusive_until(timeout))
    }
}

// SAFETY: LOT-INSIDE: the real lock keeps what the trait asks for.
unsafe impl lock_api::RawRwLockRecursive for RawRwLock {
    #[inline]
    fn lock_shared_recursive(&self) {
        let wait = || {
            self.1.lock_shared_recursive();
            true
        };
        let attempt = || self.1.try_lock_shared_recursive();
        Request::read_recursive(|| self.told(), None).acquire(attempt, wait);
    }

    #[inline]
    fn try_lock_shared_recursive(&self) -> bool {
        tried(self.1.try_lock_shared_recursive(), || self.told(), way::READ)
    }
}

// SAFETY: LOT-INSIDE: the real lock keeps what the trait asks for.
unsafe impl lock_api::RawRwLockRecursiveTimed for RawRwLock {
    #[inline]
    fn try_lock_shared_recursive_for(&self, timeout: Duration) -> bool {
        Request::read_recursive(|| self.told(), telling::after(timeout)).acquire(
            || self.1.try_lock_shared_recursive(),
            || self.1.try_lock_shared_recursive_for(timeout),
        )
    }

    #[inline]
    fn try_lock_shared_recursive_until(&self, timeout: Instant) -> bool {
        Request::read_recursive(|| self.told(), Some(timeout)).acquire(
            || self.1.try_lock_shared_recursive(),
            || self.1.try_lock_shared_recursive_until(timeout),
        )
    }
}

// SAFETY: LOT-INSIDE: the real lock keeps what the trait asks for.
unsafe impl lock_api::RawRwLockUpgrade for RawRwLock {
    #[inline]
    fn lock_upgradable(&self) {
        let wait = || {
            self.1.lock_upgradable();
            true
        };
        let attempt = || self.1.try_lock_upgradable();
        Request::alone(|| self.told(), None).acquire_right(attempt, wait);
    }

    #[inline]
    fn try_lock_upgradable(&self) -> bool {
        tried_right(self.1.try_lock_upgradable(), || self.told())
    }

    #[inline]
    unsafe fn unlock_upgradable(&self) {
        releases_right(|| self.told());
        // SAFETY: LOT-INSIDE: the caller reads upgradably under the real lock.
        unsafe { self.1.unlock_upgradable() };
    }

    #[inline]
    unsafe fn upgrade(&self) {
        let wait = || {
            // SAFETY: LOT-INSIDE: the caller reads upgradably under the real lock.
            unsafe { self.1.upgrade() };
            true
        };
        // SAFETY: LOT-INSIDE: the caller reads upgradably under the real lock.
        unsafe { self.upgrade_by(None, wait) };
    }

    #[inline]
    unsafe fn try_upgrade(&self) -> bool {
        // SAFETY: LOT-INSIDE: the caller reads upgradably under the real lock.
        let done = unsafe { self.1.try_upgrade() };
        if done {
            releases_right(|| self.told());
        }
        tried(done, || self.told(), way::ALONE)
    }
}

impl RawRwLock {
    /// Makes a writer of an upgradable reader by `wait`, until the deadline, and tells of it.
    ///
    /// # Safety
    /// The caller reads upgradably.
    #[inline]
    unsafe fn upgrade_by(&self, deadline: Option<Instant>, wait: impl FnOnce() -> bool) -> bool {
        // SAFETY: LOT-INSIDE: the caller reads upgradably under the real lock.
        upgrades(|| self.told(), deadline, || unsafe { self.1.try_upgrade() }, wait)
    }
}

// SAFETY: LOT-INSIDE: the real lock keeps what the trait asks for.
unsafe impl lock_api::RawRwLockUpgradeFair for RawRwLock {
    #[inline]
    unsafe fn unlock_upgradable_fair(&self) {
        releases_right(|| self.told());
        // SAFETY: LOT-INSIDE: the caller reads upgradably under the real lock.
        unsafe { self.1.unlock_upgradable_fair() };
    }

    #[inline]
    unsafe fn bump_upgradable(&self) {
        // SAFETY: LOT-INSIDE: the caller reads upgradably under the real lock.
        bumps_right(|| self.told(), || unsafe { self.1.bump_upgradable() });
    }
}

// SAFETY: LOT-INSIDE: the real lock keeps what the trait asks for.
unsafe impl lock_api::RawRwLockUpgradeDowngrade for RawRwLock {
    #[inline]
    unsafe fn downgrade_upgradable(&self) {
        releases_right(|| self.told());
        // SAFETY: LOT-INSIDE: the caller reads upgradably under the real lock.
        unsafe { self.1.downgrade_upgradable() };
        tried(true, || self.told(), way::READ);
    }

    #[inline]
    unsafe fn downgrade_to_upgradable(&self) {
        releases(|| self.told());
        // SAFETY: LOT-INSIDE: the caller writes under the real lock.
        unsafe { self.1.downgrade_to_upgradable() };
        tried_right(true, || self.told());
    }
}

// SAFETY: LOT-INSIDE: the real lock keeps what the trait asks for.
unsafe impl lock_api::RawRwLockUpgradeTimed for RawRwLock {
    #[inline]
    fn try_lock_upgradable_for(&self, timeout: Duration) -> bool {
        Request::alone(|| self.told(), telling::after(timeout)).acquire_right(
            || self.1.try_lock_upgradable(),
            || self.1.try_lock_upgradable_for(timeout),
        )
    }

    #[inline]
    fn try_lock_upgradable_until(&self, timeout: Instant) -> bool {
        Request::alone(|| self.told(), Some(timeout)).acquire_right(
            || self.1.try_lock_upgradable(),
            || self.1.try_lock_upgradable_until(timeout),
        )
    }

    #[inline]
    unsafe fn try_upgrade_for(&self, timeout: Duration) -> bool {
        let wait = || {
            // SAFETY: LOT-INSIDE: the caller reads upgradably under the real lock.
            unsafe { self.1.try_upgrade_for(timeout) }
        };
        // SAFETY: LOT-INSIDE: the caller reads upgradably under the real lock.
        unsafe { self.upgrade_by(telling::after(timeout), wait) }
    }

    #[inline]
    unsafe fn try_upgrade_until(&self, timeout: Instant) -> bool {
        let wait = || {
            // SAFETY: LOT-INSIDE: the caller reads upgradably under the real lock.
            unsafe { self.1.try_upgrade_until(timeout) }
        };
        // SAFETY: LOT-INSIDE: the caller reads upgradably under the real lock.
        unsafe { self.upgrade_by(Some(timeout), wait) }
    }
}

/// A reader-writer lock that tells of its acquisitions and releases.
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;

/// The guard of a reader.
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;

/// The guard of a writer.
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;

/// The guard of a reader of a part of what a [`RwLock`] protects.
pub type MappedRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLock, T>;

/// The guard of a writer of a part of what a [`RwLock`] protects.
pub type MappedRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLock, T>;

/// The guard of a reader that may become a writer.
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;

/// Creates a free lock.
pub const fn const_rwlock<T>(value: T) -> RwLock<T> {
    RwLock::new(value)
}
