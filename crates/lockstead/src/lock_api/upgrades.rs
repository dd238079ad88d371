//! The traits of the reader-writer lock with upgradable reads.

use super::RawUpgradableRwLock;
use crate::time;
use ::lock_api::GuardNoSend;
use std::time::{Duration, Instant};

// SAFETY: the core's lock keeps the writer apart from everybody, acquires and releases. An
// operation that unwinds has acquired nothing. A lock that is moved or dropped while held has no
// waiter, since those borrow it.
unsafe impl ::lock_api::RawRwLock for RawUpgradableRwLock {
    const INIT: Self = Self::free();
    type SharedGuard = GuardNoSend;
    type ExclusiveGuard = GuardNoSend;

    #[inline]
    #[track_caller]
    fn lock_shared(&self) -> GuardNoSend {
        self.shared().acquire_shared();
        GuardNoSend::new()
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared(&self) -> Option<GuardNoSend> {
        self.shared().try_acquire_shared().then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock_shared(&self, _guard: GuardNoSend) {
        // SAFETY: LOCK-API-STATE, which `lock_api` keeps for a hold for reading.
        unsafe { self.shared().release_shared() }
    }

    #[inline]
    #[track_caller]
    fn lock_exclusive(&self) -> GuardNoSend {
        self.acquire_exclusive();
        GuardNoSend::new()
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive(&self) -> Option<GuardNoSend> {
        self.try_acquire_exclusive().then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, _guard: GuardNoSend) {
        // SAFETY: LOCK-API-STATE, which `lock_api` keeps for the hold for writing.
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

// SAFETY: the core's `downgrade` lets no writer come between the two holds.
unsafe impl ::lock_api::RawRwLockDowngrade for RawUpgradableRwLock {
    #[inline]
    unsafe fn downgrade(&self, guard: GuardNoSend) -> GuardNoSend {
        // SAFETY: LOCK-API-STATE, which `lock_api` keeps for the hold for writing.
        unsafe { self.turn_shared() };
        guard
    }
}

// SAFETY: a wait of the core that timed out has acquired nothing, and `time` rounds deadlines up
// only.
unsafe impl ::lock_api::RawRwLockTimed for RawUpgradableRwLock {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    #[track_caller]
    fn try_lock_shared_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.shared().acquire_shared_by(|| time::within(timeout)).then(GuardNoSend::new)
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared_until(&self, deadline: Instant) -> Option<GuardNoSend> {
        self.shared().acquire_shared_by(|| time::until(deadline)).then(GuardNoSend::new)
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.acquire_exclusive_by(|| time::within(timeout)).then(GuardNoSend::new)
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive_until(&self, deadline: Instant) -> Option<GuardNoSend> {
        self.acquire_exclusive_by(|| time::until(deadline)).then(GuardNoSend::new)
    }
}

// SAFETY: the right excludes writers and other upgradable readers (UPGRADE-RIGHT), and stays through
// an upgrade.
unsafe impl ::lock_api::RawRwLockUpgrade for RawUpgradableRwLock {
    type UpgradableGuard = GuardNoSend;

    #[inline]
    #[track_caller]
    fn lock_upgradable(&self) -> GuardNoSend {
        self.acquire_upgradable();
        GuardNoSend::new()
    }

    #[inline]
    #[track_caller]
    fn try_lock_upgradable(&self) -> Option<GuardNoSend> {
        self.try_acquire_upgradable().then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock_upgradable(&self, _guard: GuardNoSend) {
        // SAFETY: LOCK-API-STATE, which `lock_api` keeps for the upgradable hold.
        unsafe { self.release_upgradable() }
    }

    #[inline]
    #[track_caller]
    unsafe fn upgrade(&self, guard: GuardNoSend) -> GuardNoSend {
        // SAFETY: LOCK-API-STATE, which `lock_api` keeps for the upgradable hold.
        unsafe { self.turn_exclusive() };
        guard
    }

    #[inline]
    #[track_caller]
    unsafe fn try_upgrade(&self, guard: GuardNoSend) -> Result<GuardNoSend, GuardNoSend> {
        // SAFETY: LOCK-API-STATE, which `lock_api` keeps for the upgradable hold.
        if unsafe { self.try_turn_exclusive() } { Ok(guard) } else { Err(guard) }
    }
}

// SAFETY: the right stays, or is given up last, and the hold of the core's lock goes on.
unsafe impl ::lock_api::RawRwLockUpgradeDowngrade for RawUpgradableRwLock {
    #[inline]
    unsafe fn downgrade_upgradable(&self, guard: GuardNoSend) -> GuardNoSend {
        // SAFETY: LOCK-API-STATE, which `lock_api` keeps for the upgradable hold.
        unsafe { self.give_right_up() };
        guard
    }

    #[inline]
    unsafe fn downgrade_to_upgradable(&self, guard: GuardNoSend) -> GuardNoSend {
        // SAFETY: LOCK-API-STATE, which `lock_api` keeps for the hold for writing.
        unsafe { self.turn_upgradable() };
        guard
    }
}

// SAFETY: a wait of the core that timed out has acquired nothing, and an upgrade that timed out reads.
unsafe impl ::lock_api::RawRwLockUpgradeTimed for RawUpgradableRwLock {
    #[inline]
    #[track_caller]
    fn try_lock_upgradable_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.acquire_upgradable_by(|| time::within(timeout)).then(GuardNoSend::new)
    }

    #[inline]
    #[track_caller]
    fn try_lock_upgradable_until(&self, deadline: Instant) -> Option<GuardNoSend> {
        self.acquire_upgradable_by(|| time::until(deadline)).then(GuardNoSend::new)
    }

    #[inline]
    #[track_caller]
    unsafe fn try_upgrade_for(
        &self,
        guard: GuardNoSend,
        timeout: Duration,
    ) -> Result<GuardNoSend, GuardNoSend> {
        // SAFETY: LOCK-API-STATE, which `lock_api` keeps for the upgradable hold.
        let upgraded = unsafe { self.turn_exclusive_by(|| time::within(timeout)) };
        if upgraded { Ok(guard) } else { Err(guard) }
    }

    #[inline]
    #[track_caller]
    unsafe fn try_upgrade_until(
        &self,
        guard: GuardNoSend,
        deadline: Instant,
    ) -> Result<GuardNoSend, GuardNoSend> {
        // SAFETY: LOCK-API-STATE, which `lock_api` keeps for the upgradable hold.
        let upgraded = unsafe { self.turn_exclusive_by(|| time::until(deadline)) };
        if upgraded { Ok(guard) } else { Err(guard) }
    }
}
