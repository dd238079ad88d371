//! The reader-writer lock with upgradable reads, without data.
//!
//! The core's lock knows readers and writers. Here a mutex stands beside it, the *right*: who
//! writes, or reads and may go on to write, has it.
//!
//! ```text
//!  reads               ─────────────────────▶ lock, shared
//!  reads upgradably    ───▶ right ──────────▶ lock, shared
//!  writes              ───▶ right ──────────▶ lock, exclusive
//! ```
//!
//! An upgrade lets go of the shared hold and asks for the exclusive one. Nobody else can write in
//! between, since the right stays. Those who wait for the right hold no reader off: beside an
//! upgradable reader plain ones come and go however many want to write. (A word that knew
//! upgradable readers would have them wait in one room with the readers past the bound, and a
//! reader could be kept off by them.) The price: 8 bytes, and another pair of a mutex for
//! each write.
//!
//! # Invariants
//! - **UPGRADE-RIGHT** Who holds the lock exclusively, or asks the core for that, holds the right.
//! - **UPGRADE-LAST** The hold of the core's lock is given up last, so that nothing is touched
//!   afterwards: the next holder may free it.

use super::{RawMutex, RawRwLock};
use crate::refusal::AbortOnUnwind;
use lockstead_core::WaitBounds;
use lockstead_linux::Linux;

/// The raw reader-writer lock of the `lock_api` back end that has upgradable reads, too: 24
/// bytes.
///
/// Acquiring on the thread that writes or reads upgradably, and a writer lost in `fork`, panic;
/// reading beside an own upgradable read does not.
#[derive(Debug)]
pub struct RawUpgradableRwLock {
    lock: RawRwLock,
    right: RawMutex,
}

/// Gives the right back where the lock could not be had.
struct Right<'a>(&'a RawMutex);

impl Drop for Right<'_> {
    fn drop(&mut self) {
        // SAFETY: LOCK-API-STATE: whoever makes it has just acquired the mutex, and forgets it if the
        // hold goes on.
        unsafe { self.0.release() }
    }
}

impl RawUpgradableRwLock {
    pub(crate) const fn free() -> Self {
        RawUpgradableRwLock { lock: RawRwLock::free(), right: RawMutex::free() }
    }

    /// Returns the part that readers use.
    #[inline]
    pub(crate) fn shared(&self) -> &RawRwLock {
        &self.lock
    }

    /// Acquires the right, then by `acquire` the lock, and keeps both or neither.
    #[inline]
    #[track_caller]
    fn with_right(&self, got_right: bool, acquire: impl FnOnce(&RawRwLock) -> bool) -> bool {
        if !got_right {
            return false;
        }
        let right = Right(&self.right);
        let acquired = acquire(&self.lock);
        if acquired {
            core::mem::forget(right);
        }
        acquired
    }

    #[inline]
    #[track_caller]
    pub(crate) fn acquire_exclusive(&self) {
        self.right.acquire();
        let right = Right(&self.right);
        self.lock.acquire_exclusive();
        core::mem::forget(right);
    }

    #[inline]
    #[track_caller]
    pub(crate) fn try_acquire_exclusive(&self) -> bool {
        self.with_right(self.right.try_acquire(), RawRwLock::try_acquire_exclusive)
    }

    /// Acquires for writing. Returns false if the deadline passed.
    #[inline]
    #[track_caller]
    pub(crate) fn acquire_exclusive_by(
        &self,
        how: impl Fn() -> WaitBounds<'static, Linux>,
    ) -> bool {
        let mut once = None;
        let got_right = self.right.acquire_by(|| *once.get_or_insert_with(&how));
        self.with_right(got_right, |lock| {
            lock.acquire_exclusive_by(|| *once.get_or_insert_with(&how))
        })
    }

    /// Releases the hold for writing.
    ///
    /// # Safety
    /// LOCK-API-STATE: the calling thread holds the lock for writing.
    #[inline]
    pub(crate) unsafe fn release_exclusive(&self) {
        // SAFETY: LOCK-API-STATE: the caller holds the lock, and so the right; in this order by
        // UPGRADE-LAST.
        unsafe {
            self.right.release();
            self.lock.release_exclusive();
        }
    }

    #[inline]
    #[track_caller]
    pub(crate) fn acquire_upgradable(&self) {
        self.right.acquire();
        let right = Right(&self.right);
        self.lock.acquire_shared();
        core::mem::forget(right);
    }

    #[inline]
    #[track_caller]
    pub(crate) fn try_acquire_upgradable(&self) -> bool {
        self.with_right(self.right.try_acquire(), RawRwLock::try_acquire_shared)
    }

    /// Acquires for reading upgradably. Returns false if the deadline passed.
    #[inline]
    #[track_caller]
    pub(crate) fn acquire_upgradable_by(
        &self,
        how: impl Fn() -> WaitBounds<'static, Linux>,
    ) -> bool {
        let mut once = None;
        let got_right = self.right.acquire_by(|| *once.get_or_insert_with(&how));
        self.with_right(got_right, |lock| lock.acquire_shared_by(|| *once.get_or_insert_with(&how)))
    }

    /// Releases the upgradable hold.
    ///
    /// # Safety
    /// LOCK-API-STATE: the calling thread holds the lock upgradably.
    #[inline]
    pub(crate) unsafe fn release_upgradable(&self) {
        // SAFETY: LOCK-API-STATE: the caller holds both; in this order by UPGRADE-LAST.
        unsafe {
            self.right.release();
            self.lock.release_shared();
        }
    }

    /// Turns the upgradable hold into one for writing, once the other readers have gone.
    ///
    /// # Safety
    /// LOCK-API-STATE: the calling thread holds the lock upgradably.
    #[track_caller]
    pub(crate) unsafe fn turn_exclusive(&self) {
        // The guard would release a lock that is not held.
        let bomb = AbortOnUnwind;
        // SAFETY: LOCK-API-STATE: the caller holds the lock for reading.
        unsafe { self.lock.release_shared() };
        self.lock.acquire_exclusive();
        core::mem::forget(bomb);
    }

    /// Does what [`turn_exclusive`](Self::turn_exclusive) does if `acquire` gets the lock, otherwise
    /// the hold stays as it was.
    ///
    /// # Safety
    /// LOCK-API-STATE: the calling thread holds the lock upgradably.
    #[track_caller]
    unsafe fn turn_exclusive_if(&self, acquire: impl FnOnce(&RawRwLock) -> bool) -> bool {
        let bomb = AbortOnUnwind;
        // SAFETY: LOCK-API-STATE: the caller holds the lock for reading.
        unsafe { self.lock.release_shared() };
        let acquired = acquire(&self.lock);
        if !acquired {
            // Waits for nobody: who writes has the right, and that is here (UPGRADE-RIGHT).
            self.lock.acquire_shared();
        }
        core::mem::forget(bomb);
        acquired
    }

    /// Does what [`turn_exclusive`](Self::turn_exclusive) does if nobody else reads.
    ///
    /// # Safety
    /// LOCK-API-STATE: the calling thread holds the lock upgradably.
    #[track_caller]
    pub(crate) unsafe fn try_turn_exclusive(&self) -> bool {
        // SAFETY: LOCK-API-STATE: the calling thread holds the lock upgradably; the caller keeps it.
        !self.lock.is_shared_by_several()
            && unsafe { self.turn_exclusive_if(RawRwLock::try_acquire_exclusive) }
    }

    /// Does what [`turn_exclusive`](Self::turn_exclusive) does if the others have gone by the
    /// deadline.
    ///
    /// # Safety
    /// LOCK-API-STATE: the calling thread holds the lock upgradably.
    #[track_caller]
    pub(crate) unsafe fn turn_exclusive_by(
        &self,
        how: impl FnOnce() -> WaitBounds<'static, Linux>,
    ) -> bool {
        // SAFETY: LOCK-API-STATE: the calling thread holds the lock upgradably; the caller keeps it.
        unsafe { self.turn_exclusive_if(|lock| lock.acquire_exclusive_by(how)) }
    }

    /// Turns the hold for writing into one for reading.
    ///
    /// # Safety
    /// LOCK-API-STATE: the calling thread holds the lock for writing.
    pub(crate) unsafe fn turn_shared(&self) {
        // SAFETY: LOCK-API-STATE: the caller holds the lock for writing, and so the right.
        unsafe {
            self.lock.turn_shared();
            self.right.release();
        }
    }

    /// Turns the hold for writing into an upgradable one.
    ///
    /// # Safety
    /// LOCK-API-STATE: the calling thread holds the lock for writing.
    pub(crate) unsafe fn turn_upgradable(&self) {
        // SAFETY: LOCK-API-STATE: the caller holds the lock for writing; the right stays.
        unsafe { self.lock.turn_shared() }
    }

    /// Turns the upgradable hold into one for reading.
    ///
    /// # Safety
    /// LOCK-API-STATE: the calling thread holds the lock upgradably.
    pub(crate) unsafe fn give_right_up(&self) {
        // SAFETY: LOCK-API-STATE: the caller holds the right, and goes on to hold the lock.
        unsafe { self.right.release() }
    }
}
