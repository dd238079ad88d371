//! The reader-writer lock with upgradable reads.

use super::GuardMarker;
use crate::lock_api::RawUpgradableRwLock;
use crate::time;
use std::time::{Duration, Instant};

// SAFETY: the core's lock keeps the writer apart from everybody.
unsafe impl ::lock_api_0_4::RawRwLock for RawUpgradableRwLock {
    const INIT: Self = Self::free();
    type GuardMarker = GuardMarker;

    #[inline]
    #[track_caller]
    fn lock_shared(&self) {
        self.shared().acquire_shared();
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared(&self) -> bool {
        self.shared().try_acquire_shared()
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        // SAFETY: LOCK-API-STATE: `lock_api` unlocks for a guard that reads.
        unsafe { self.shared().release_shared() }
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
        self.shared().is_held()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.shared().is_written()
    }
}

// SAFETY: a fair release is the ordinary one, which ends the hold.
unsafe impl ::lock_api_0_4::RawRwLockFair for RawUpgradableRwLock {
    #[inline]
    unsafe fn unlock_shared_fair(&self) {
        // SAFETY: LOCK-API-STATE: `lock_api` unlocks for a guard that reads.
        unsafe { self.shared().release_shared() }
    }

    #[inline]
    unsafe fn unlock_exclusive_fair(&self) {
        // SAFETY: LOCK-API-STATE: `lock_api` unlocks for the guard that writes, on its thread.
        unsafe { self.release_exclusive() }
    }
}

// SAFETY: the core's `downgrade` lets no writer come between the two holds.
unsafe impl ::lock_api_0_4::RawRwLockDowngrade for RawUpgradableRwLock {
    #[inline]
    unsafe fn downgrade(&self) {
        // SAFETY: LOCK-API-STATE: `lock_api` downgrades the guard that writes, on its thread.
        unsafe { self.turn_shared() }
    }
}

// SAFETY: a wait of the core that timed out has acquired nothing.
unsafe impl ::lock_api_0_4::RawRwLockTimed for RawUpgradableRwLock {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    #[track_caller]
    fn try_lock_shared_for(&self, timeout: Duration) -> bool {
        self.shared().acquire_shared_by(|| time::within(timeout))
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared_until(&self, deadline: Instant) -> bool {
        self.shared().acquire_shared_by(|| time::until(deadline))
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

// SAFETY: the right excludes writers and other upgradable readers (UPGRADE-RIGHT), and stays through
// an upgrade.
unsafe impl ::lock_api_0_4::RawRwLockUpgrade for RawUpgradableRwLock {
    #[inline]
    #[track_caller]
    fn lock_upgradable(&self) {
        self.acquire_upgradable();
    }

    #[inline]
    #[track_caller]
    fn try_lock_upgradable(&self) -> bool {
        self.try_acquire_upgradable()
    }

    #[inline]
    unsafe fn unlock_upgradable(&self) {
        // SAFETY: LOCK-API-STATE: `lock_api` unlocks for the upgradable guard, on its thread.
        unsafe { self.release_upgradable() }
    }

    #[inline]
    #[track_caller]
    unsafe fn upgrade(&self) {
        // SAFETY: LOCK-API-STATE: `lock_api` upgrades the upgradable guard, on its thread.
        unsafe { self.turn_exclusive() }
    }

    #[inline]
    #[track_caller]
    unsafe fn try_upgrade(&self) -> bool {
        // SAFETY: LOCK-API-STATE: `lock_api` upgrades the upgradable guard, on its thread.
        unsafe { self.try_turn_exclusive() }
    }
}

// SAFETY: a fair release is the ordinary one, which ends the hold.
unsafe impl ::lock_api_0_4::RawRwLockUpgradeFair for RawUpgradableRwLock {
    #[inline]
    unsafe fn unlock_upgradable_fair(&self) {
        // SAFETY: LOCK-API-STATE: `lock_api` unlocks for the upgradable guard, on its thread.
        unsafe { self.release_upgradable() }
    }
}

// SAFETY: the right stays, or is given up last, and the hold of the core's lock goes on.
unsafe impl ::lock_api_0_4::RawRwLockUpgradeDowngrade for RawUpgradableRwLock {
    #[inline]
    unsafe fn downgrade_upgradable(&self) {
        // SAFETY: LOCK-API-STATE: `lock_api` downgrades the upgradable guard, on its thread.
        unsafe { self.give_right_up() }
    }

    #[inline]
    unsafe fn downgrade_to_upgradable(&self) {
        // SAFETY: LOCK-API-STATE: `lock_api` downgrades the guard that writes, on its thread.
        unsafe { self.turn_upgradable() }
    }
}

// SAFETY: a wait of the core that timed out has acquired nothing, and an upgrade that timed out reads.
unsafe impl ::lock_api_0_4::RawRwLockUpgradeTimed for RawUpgradableRwLock {
    #[inline]
    #[track_caller]
    fn try_lock_upgradable_for(&self, timeout: Duration) -> bool {
        self.acquire_upgradable_by(|| time::within(timeout))
    }

    #[inline]
    #[track_caller]
    fn try_lock_upgradable_until(&self, deadline: Instant) -> bool {
        self.acquire_upgradable_by(|| time::until(deadline))
    }

    #[inline]
    #[track_caller]
    unsafe fn try_upgrade_for(&self, timeout: Duration) -> bool {
        // SAFETY: LOCK-API-STATE: `lock_api` upgrades the upgradable guard, on its thread.
        unsafe { self.turn_exclusive_by(|| time::within(timeout)) }
    }

    #[inline]
    #[track_caller]
    unsafe fn try_upgrade_until(&self, deadline: Instant) -> bool {
        // SAFETY: LOCK-API-STATE: `lock_api` upgrades the upgradable guard, on its thread.
        unsafe { self.turn_exclusive_by(|| time::until(deadline)) }
    }
}
