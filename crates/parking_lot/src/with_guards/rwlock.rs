//! The reader-writer locks: the one whose readers wait behind a writer that waits, and the one whose
//! readers pass.

use crate::telling::{
    self, Request, bumps, bumps_right, releases, releases_right, tried, tried_right, upgrades,
};
use lockstead_told::home::Home;
use lockstead_told::{ToldLock, way};
use real::lock_api::{self, RawRwLock as _, RawRwLockUpgrade as _};
use std::time::{Duration, Instant};

/// The raw lock, which tells of its acquisitions and releases; of a `RECURSIVE` one readers pass a
/// writer that waits.
#[repr(C)]
pub struct RawRwLock<const RECURSIVE: bool = false>(Home, real::RawRwLock<RECURSIVE>);

/// The raw lock whose readers pass a writer that waits.
pub type RawRwLockRecursive = RawRwLock<true>;

/// What a guard holds: the same for readers, upgradable readers and writers.
type Guard = <real::RawRwLock as lock_api::RawRwLock>::SharedGuard;

const ENDS: &str = "a wait without a deadline ends with the lock";

impl<const RECURSIVE: bool> RawRwLock<RECURSIVE> {
    fn told(&self) -> ToldLock {
        telling::rwlock(&self.0, RECURSIVE)
    }
}

// SAFETY: LOT-INSIDE: the real lock keeps what the trait asks for.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLock for RawRwLock<RECURSIVE> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = RawRwLock(Home::new(), real::RawRwLock::INIT);

    type SharedGuard = Guard;
    type ExclusiveGuard = Guard;

    #[inline]
    fn lock_shared(&self) -> Guard {
        let wait = || Some(self.1.lock_shared());
        let attempt = || self.1.try_lock_shared();
        Request::read(|| self.told(), None).acquire(attempt, wait).expect(ENDS)
    }

    #[inline]
    fn try_lock_shared(&self) -> Option<Guard> {
        tried(self.1.try_lock_shared(), || self.told(), way::READ)
    }

    #[inline]
    unsafe fn unlock_shared(&self, guard: Guard) {
        releases(|| self.told());
        // SAFETY: LOT-INSIDE: the caller reads under the real lock.
        unsafe { self.1.unlock_shared(guard) };
    }

    #[inline]
    fn lock_exclusive(&self) -> Guard {
        let wait = || Some(self.1.lock_exclusive());
        let attempt = || self.1.try_lock_exclusive();
        Request::write(|| self.told(), None).acquire(attempt, wait).expect(ENDS)
    }

    #[inline]
    fn try_lock_exclusive(&self) -> Option<Guard> {
        tried(self.1.try_lock_exclusive(), || self.told(), way::ALONE)
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, guard: Guard) {
        releases(|| self.told());
        // SAFETY: LOT-INSIDE: the caller writes under the real lock.
        unsafe { self.1.unlock_exclusive(guard) };
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
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockFair for RawRwLock<RECURSIVE> {
    #[inline]
    unsafe fn unlock_shared_fair(&self, guard: Guard) {
        releases(|| self.told());
        // SAFETY: LOT-INSIDE: the caller reads under the real lock.
        unsafe { self.1.unlock_shared_fair(guard) };
    }

    #[inline]
    unsafe fn unlock_exclusive_fair(&self, guard: Guard) {
        releases(|| self.told());
        // SAFETY: LOT-INSIDE: the caller writes under the real lock.
        unsafe { self.1.unlock_exclusive_fair(guard) };
    }

    #[inline]
    unsafe fn bump_shared(&self, guard: &mut Guard) {
        // SAFETY: LOT-INSIDE: the caller reads under the real lock.
        bumps(|| self.told(), way::READ, || unsafe { self.1.bump_shared(guard) });
    }

    #[inline]
    unsafe fn bump_exclusive(&self, guard: &mut Guard) {
        // SAFETY: LOT-INSIDE: the caller writes under the real lock.
        bumps(|| self.told(), way::ALONE, || unsafe { self.1.bump_exclusive(guard) });
    }
}

// SAFETY: LOT-INSIDE: the real lock keeps what the trait asks for.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockDowngrade for RawRwLock<RECURSIVE> {
    #[inline]
    unsafe fn downgrade(&self, guard: Guard) -> Guard {
        releases(|| self.told());
        // SAFETY: LOT-INSIDE: the caller writes under the real lock.
        let guard = unsafe { self.1.downgrade(guard) };
        tried(Some(guard), || self.told(), way::READ).expect(ENDS)
    }
}

// SAFETY: LOT-INSIDE: the real lock keeps what the trait asks for.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockTimed for RawRwLock<RECURSIVE> {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    fn try_lock_shared_for(&self, timeout: Duration) -> Option<Guard> {
        Request::read(|| self.told(), telling::after(timeout))
            .acquire(|| self.1.try_lock_shared(), || self.1.try_lock_shared_for(timeout))
    }

    #[inline]
    fn try_lock_shared_until(&self, timeout: Instant) -> Option<Guard> {
        Request::read(|| self.told(), Some(timeout))
            .acquire(|| self.1.try_lock_shared(), || self.1.try_lock_shared_until(timeout))
    }

    #[inline]
    fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<Guard> {
        Request::write(|| self.told(), telling::after(timeout))
            .acquire(|| self.1.try_lock_exclusive(), || self.1.try_lock_exclusive_for(timeout))
    }

    #[inline]
    fn try_lock_exclusive_until(&self, timeout: Instant) -> Option<Guard> {
        Request::write(|| self.told(), Some(timeout))
            .acquire(|| self.1.try_lock_exclusive(), || self.1.try_lock_exclusive_until(timeout))
    }
}

// SAFETY: LOT-INSIDE: the real lock keeps what the trait asks for.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockUpgrade for RawRwLock<RECURSIVE> {
    type UpgradableGuard = Guard;

    #[inline]
    fn lock_upgradable(&self) -> Guard {
        let wait = || Some(self.1.lock_upgradable());
        let attempt = || self.1.try_lock_upgradable();
        Request::alone(|| self.told(), None).acquire_right(attempt, wait).expect(ENDS)
    }

    #[inline]
    fn try_lock_upgradable(&self) -> Option<Guard> {
        tried_right(self.1.try_lock_upgradable(), || self.told())
    }

    #[inline]
    unsafe fn unlock_upgradable(&self, guard: Guard) {
        releases_right(|| self.told());
        // SAFETY: LOT-INSIDE: the caller reads upgradably under the real lock.
        unsafe { self.1.unlock_upgradable(guard) };
    }

    #[inline]
    unsafe fn upgrade(&self, guard: Guard) -> Guard {
        // SAFETY: LOT-INSIDE: the caller reads upgradably under the real lock.
        unsafe { self.upgrade_by(guard, None, |guard| Ok(self.1.upgrade(guard))) }.ok().expect(ENDS)
    }

    #[inline]
    unsafe fn try_upgrade(&self, guard: Guard) -> Result<Guard, Guard> {
        // SAFETY: LOT-INSIDE: the caller reads upgradably under the real lock.
        let result = unsafe { self.1.try_upgrade(guard) };
        if result.is_ok() {
            releases_right(|| self.told());
        }
        result.map(|guard| tried(Some(guard), || self.told(), way::ALONE).expect(ENDS))
    }
}

impl<const RECURSIVE: bool> RawRwLock<RECURSIVE> {
    /// Makes a writer of an upgradable reader by `wait`, until the deadline, and tells of it.
    ///
    /// # Safety
    /// The caller reads upgradably.
    #[inline]
    unsafe fn upgrade_by(
        &self,
        guard: Guard,
        deadline: Option<Instant>,
        wait: impl FnOnce(Guard) -> Result<Guard, Guard>,
    ) -> Result<Guard, Guard> {
        // What neither call has made a writer of is still the upgradable reader's.
        let own = std::cell::Cell::new(Some(guard));
        let taken = || own.take().expect("each call puts back what it has not used");
        let kept = |result: Result<Guard, Guard>| match result {
            Ok(writes) => Some(writes),
            Err(reads) => {
                own.set(Some(reads));
                None
            }
        };
        // SAFETY: LOT-INSIDE: the caller reads upgradably under the real lock.
        let attempt = || kept(unsafe { self.1.try_upgrade(taken()) });
        match upgrades(|| self.told(), deadline, attempt, || kept(wait(taken()))) {
            Some(writes) => Ok(writes),
            None => Err(taken()),
        }
    }
}

// SAFETY: LOT-INSIDE: the real lock keeps what the trait asks for.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockUpgradeFair for RawRwLock<RECURSIVE> {
    #[inline]
    unsafe fn unlock_upgradable_fair(&self, guard: Guard) {
        releases_right(|| self.told());
        // SAFETY: LOT-INSIDE: the caller reads upgradably under the real lock.
        unsafe { self.1.unlock_upgradable_fair(guard) };
    }

    #[inline]
    unsafe fn bump_upgradable(&self, guard: &mut Guard) {
        // SAFETY: LOT-INSIDE: the caller reads upgradably under the real lock.
        bumps_right(|| self.told(), || unsafe { self.1.bump_upgradable(guard) });
    }
}

// SAFETY: LOT-INSIDE: the real lock keeps what the trait asks for.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockUpgradeDowngrade for RawRwLock<RECURSIVE> {
    #[inline]
    unsafe fn downgrade_upgradable(&self, guard: Guard) -> Guard {
        releases_right(|| self.told());
        // SAFETY: LOT-INSIDE: the caller reads upgradably under the real lock.
        let guard = unsafe { self.1.downgrade_upgradable(guard) };
        tried(Some(guard), || self.told(), way::READ).expect(ENDS)
    }

    #[inline]
    unsafe fn downgrade_to_upgradable(&self, guard: Guard) -> Guard {
        releases(|| self.told());
        // SAFETY: LOT-INSIDE: the caller writes under the real lock.
        let guard = unsafe { self.1.downgrade_to_upgradable(guard) };
        tried_right(Some(guard), || self.told()).expect(ENDS)
    }
}

// SAFETY: LOT-INSIDE: the real lock keeps what the trait asks for.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockUpgradeTimed for RawRwLock<RECURSIVE> {
    #[inline]
    fn try_lock_upgradable_for(&self, timeout: Duration) -> Option<Guard> {
        Request::alone(|| self.told(), telling::after(timeout)).acquire_right(
            || self.1.try_lock_upgradable(),
            || self.1.try_lock_upgradable_for(timeout),
        )
    }

    #[inline]
    fn try_lock_upgradable_until(&self, timeout: Instant) -> Option<Guard> {
        Request::alone(|| self.told(), Some(timeout)).acquire_right(
            || self.1.try_lock_upgradable(),
            || self.1.try_lock_upgradable_until(timeout),
        )
    }

    #[inline]
    unsafe fn try_upgrade_for(&self, guard: Guard, timeout: Duration) -> Result<Guard, Guard> {
        let wait = |guard| {
            // SAFETY: LOT-INSIDE: the caller reads upgradably under the real lock.
            unsafe { self.1.try_upgrade_for(guard, timeout) }
        };
        // SAFETY: LOT-INSIDE: the caller reads upgradably under the real lock.
        unsafe { self.upgrade_by(guard, telling::after(timeout), wait) }
    }

    #[inline]
    unsafe fn try_upgrade_until(&self, guard: Guard, timeout: Instant) -> Result<Guard, Guard> {
        let wait = |guard| {
            // SAFETY: LOT-INSIDE: the caller reads upgradably under the real lock.
            unsafe { self.1.try_upgrade_until(guard, timeout) }
        };
        // SAFETY: LOT-INSIDE: the caller reads upgradably under the real lock.
        unsafe { self.upgrade_by(guard, Some(timeout), wait) }
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

/// A [`RwLock`] whose readers pass a writer that waits.
pub type RecursiveRwLock<T> = lock_api::RwLock<RawRwLockRecursive, T>;

/// The guard of a reader of a [`RecursiveRwLock`].
pub type RecursiveRwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLockRecursive, T>;

/// The guard of a writer of a [`RecursiveRwLock`].
pub type RecursiveRwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLockRecursive, T>;

/// The guard of a reader of a [`RecursiveRwLock`] that may become a writer.
pub type RecursiveRwLockUpgradableReadGuard<'a, T> =
    lock_api::RwLockUpgradableReadGuard<'a, RawRwLockRecursive, T>;

/// The guard of a reader of a part of what a [`RecursiveRwLock`] protects.
pub type MappedRecursiveRwLockReadGuard<'a, T> =
    lock_api::MappedRwLockReadGuard<'a, RawRwLockRecursive, T>;

/// The guard of a writer of a part of what a [`RecursiveRwLock`] protects.
pub type MappedRecursiveRwLockWriteGuard<'a, T> =
    lock_api::MappedRwLockWriteGuard<'a, RawRwLockRecursive, T>;
