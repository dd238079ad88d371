//! What `parking_lot` and `lock_api` call by other names, or have and the standard library has not:
//! so that code which says `use lockstead as parking_lot` compiles.

use crate::{Hooks, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, time};
use core::panic::Location;
use lockstead_core::{LockError, WaitBounds};
use std::time::{Duration, Instant};

/// Creates a free mutex in a constant: [`Mutex::new`], which is `const` itself.
///
/// ```
/// static HITS: lockstead::Mutex<u32> = lockstead::const_mutex(0);
/// *HITS.lock() += 1;
/// ```
pub const fn const_mutex<T>(value: T) -> Mutex<T> {
    Mutex::new(value)
}

/// Creates a free reader-writer lock in a constant: [`RwLock::new`], which is `const` itself.
///
/// ```
/// static ROUTES: lockstead::RwLock<Vec<&str>> = lockstead::const_rwlock(Vec::new());
/// ROUTES.write().push("/");
/// ```
pub const fn const_rwlock<T>(value: T) -> RwLock<T> {
    RwLock::new(value)
}

/// A mutex that is granted in the order of asking, with `lock_api`'s methods. 24 bytes beside
/// the data. Where threads outnumber processors that is slow: each release waits until the next one in
/// the line has a processor. [`FairMutex`](crate::FairMutex) has short waits without it.
///
/// ```
/// let turns = lockstead::FifoMutex::new(0);
/// *turns.lock() += 1;
/// assert_eq!(turns.into_inner(), 1);
/// ```
pub type FifoMutex<T> = ::lock_api::Mutex<crate::lock_api::RawFifoMutex, T>;
/// The guard of a [`FifoMutex`].
pub type FifoMutexGuard<'a, T> = ::lock_api::MutexGuard<'a, crate::lock_api::RawFifoMutex, T>;

impl<T: ?Sized, H: Hooks> Mutex<T, H> {
    /// Acquires the mutex, waiting at most `timeout`: [`lock_timeout`](Self::lock_timeout) as
    /// an `Option`.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let mutex = lockstead::Mutex::new(7);
    /// assert!(mutex.try_lock_for(Duration::from_millis(1)).is_some());
    /// ```
    ///
    /// # Panics
    /// As [`lock`](Self::lock).
    #[inline]
    #[track_caller]
    pub fn try_lock_for(&self, timeout: Duration) -> Option<MutexGuard<'_, T, H>> {
        self.lock_timeout(timeout).ok()
    }

    /// Acquires the mutex, waiting until `deadline` at most: [`lock_until`](Self::lock_until) as an
    /// `Option`.
    ///
    /// # Panics
    /// As [`lock`](Self::lock).
    #[inline]
    #[track_caller]
    pub fn try_lock_until(&self, deadline: Instant) -> Option<MutexGuard<'_, T, H>> {
        self.lock_until(deadline).ok()
    }

    /// Releases the mutex without its guard.
    ///
    /// ```
    /// let mutex = lockstead::Mutex::new(7);
    /// std::mem::forget(mutex.lock());
    /// // SAFETY: this thread has the mutex, and its guard is gone.
    /// unsafe { mutex.force_unlock() };
    /// assert!(!mutex.is_locked());
    /// ```
    ///
    /// # Safety
    /// The calling thread has acquired the mutex, and its guard is never used or dropped again.
    #[inline]
    pub unsafe fn force_unlock(&self) {
        // SAFETY: the caller says that the thread holds it.
        unsafe { self.raw.unlock() }
    }

    /// Returns the address of the data. To reach it is unsafe unless the mutex is held.
    #[inline]
    pub fn data_ptr(&self) -> *mut T {
        self.data()
    }
}

impl<T: ?Sized, H: Hooks> RwLock<T, H> {
    /// Acquires the lock for reading, waiting at most `timeout`: [`read_timeout`](Self::read_timeout)
    /// as an `Option`.
    ///
    /// # Panics
    /// See the type.
    #[inline]
    #[track_caller]
    pub fn try_read_for(&self, timeout: Duration) -> Option<RwLockReadGuard<'_, T, H>> {
        self.read_timeout(timeout).ok()
    }

    /// Acquires the lock for reading, waiting until `deadline` at most.
    ///
    /// # Panics
    /// See the type.
    #[inline]
    #[track_caller]
    pub fn try_read_until(&self, deadline: Instant) -> Option<RwLockReadGuard<'_, T, H>> {
        self.read_until(deadline).ok()
    }

    /// Acquires the lock for writing, waiting at most `timeout`: [`write_timeout`](Self::write_timeout)
    /// as an `Option`.
    ///
    /// # Panics
    /// See the type.
    #[inline]
    #[track_caller]
    pub fn try_write_for(&self, timeout: Duration) -> Option<RwLockWriteGuard<'_, T, H>> {
        self.write_timeout(timeout).ok()
    }

    /// Acquires the lock for writing, waiting until `deadline` at most.
    ///
    /// # Panics
    /// See the type.
    #[inline]
    #[track_caller]
    pub fn try_write_until(&self, deadline: Instant) -> Option<RwLockWriteGuard<'_, T, H>> {
        self.write_until(deadline).ok()
    }

    /// Acquires the lock for reading, and passes those that wait if it is being read already.
    ///
    /// For a thread that may read already, further up: [`read`](Self::read) would have it wait
    /// for a writer that waits for it. Readers that all ask so may keep a writer off for good.
    ///
    /// ```
    /// let lock = lockstead::RwLock::new(1);
    /// let outer = lock.read();
    /// let inner = lock.read_recursive(); // whoever wants to write by now
    /// assert_eq!(*outer, *inner);
    /// ```
    ///
    /// # Panics
    /// See the type.
    #[inline]
    #[track_caller]
    pub fn read_recursive(&self) -> RwLockReadGuard<'_, T, H> {
        let how = || WaitBounds::FOREVER;
        self.settle_read(self.raw.read_recursive_lazily(how, Location::caller()))
    }

    /// Acquires the lock for reading, as [`read_recursive`](Self::read_recursive) does, if that needs
    /// no waiting.
    #[inline]
    #[track_caller]
    pub fn try_read_recursive(&self) -> Option<RwLockReadGuard<'_, T, H>> {
        let taken = self.raw.try_read_recursive(Location::caller());
        // SAFETY: GUARD-HOLDS: this call has just acquired the lock.
        taken.then(|| unsafe { RwLockReadGuard::new(self) })
    }

    /// Does what [`read_recursive`](Self::read_recursive) does, waiting at most `timeout`.
    ///
    /// # Panics
    /// See the type.
    #[track_caller]
    pub fn try_read_recursive_for(&self, timeout: Duration) -> Option<RwLockReadGuard<'_, T, H>> {
        let how = || time::within(timeout);
        match self.raw.read_recursive_lazily(how, Location::caller()) {
            Err(LockError::TimedOut) => None,
            other => Some(self.settle_read(other)),
        }
    }

    /// Does what [`read_recursive`](Self::read_recursive) does, waiting until `deadline` at most.
    ///
    /// # Panics
    /// See the type.
    #[track_caller]
    pub fn try_read_recursive_until(&self, deadline: Instant) -> Option<RwLockReadGuard<'_, T, H>> {
        self.try_read_recursive_for(deadline.saturating_duration_since(Instant::now()))
    }

    /// Tells whether a writer holds the lock, at some moment during the call.
    #[must_use]
    pub fn is_locked_exclusive(&self) -> bool {
        self.writer().is_some()
    }

    /// Releases a hold for reading without its guard.
    ///
    /// # Safety
    /// The caller answers for a hold for reading whose guard is never used or dropped again.
    #[inline]
    pub unsafe fn force_unlock_read(&self) {
        // SAFETY: the caller answers for the hold.
        unsafe { self.raw.unlock_read() }
    }

    /// Releases the hold for writing without its guard.
    ///
    /// # Safety
    /// The calling thread has acquired the lock for writing, and the guard is never used or dropped
    /// again.
    #[inline]
    pub unsafe fn force_unlock_write(&self) {
        // SAFETY: the caller says that the thread holds it.
        unsafe { self.raw.unlock_write() }
    }

    /// Returns the address of the data. To reach it is unsafe unless the lock is held.
    #[inline]
    pub fn data_ptr(&self) -> *mut T {
        self.data()
    }
}
