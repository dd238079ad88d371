//! Poisoning, for those who want it: a mutex and a reader-writer lock that tell the next holder that
//! a thread panicked in the middle of a critical section.
//!
//! The ordinary [`Mutex`](crate::Mutex) does not poison: a panic releases it
//! like any other end of scope. The types of the results are those of
//! [`std::sync`], so that code moves over unchanged.

use crate::error::{Cancelled, Interrupted, TimedOut};
use crate::{CancelToken, Owner};
use core::fmt;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

mod rwlock;

pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

/// A [`crate::Mutex`] that is poisoned by a panic of its holder, at the cost of
/// one more byte and a look at the panic count in each critical section.
///
/// ```
/// use lockstead::poison::Mutex;
///
/// let ledger = Mutex::new(vec![1, 2]);
/// std::thread::scope(|s| {
///     let half_way = s.spawn(|| {
///         let mut entries = ledger.lock().unwrap();
///         entries.push(3);
///         panic!("before the fourth");
///     });
///     assert!(half_way.join().is_err());
/// });
/// assert!(ledger.is_poisoned());
/// let mut entries = ledger.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
/// entries.pop(); // repair, then
/// drop(entries);
/// ledger.clear_poison();
/// assert!(ledger.lock().is_ok());
/// ```
#[derive(Default)]
pub struct Mutex<T: ?Sized> {
    /// The flag that a panicking holder sets before it releases; relaxed, since the mutex orders it
    /// for the next holder.
    poisoned: AtomicBool,
    inner: crate::Mutex<T>,
}

impl<T> Mutex<T> {
    /// Creates a free mutex that guards `value` and is not poisoned.
    pub const fn new(value: T) -> Self {
        Mutex { poisoned: AtomicBool::new(false), inner: crate::Mutex::new(value) }
    }

    /// Takes the mutex apart and returns the data.
    ///
    /// # Errors
    /// [`PoisonError`] with the data if the mutex is poisoned.
    pub fn into_inner(self) -> LockResult<T> {
        let poisoned = self.is_poisoned();
        judge(poisoned, self.inner.into_inner())
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Acquires the mutex as [`crate::Mutex::lock`] does.
    ///
    /// # Errors
    /// [`PoisonError`] with the guard if a holder has panicked.
    ///
    /// # Panics
    /// As [`crate::Mutex::lock`], in this and all forms below.
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        self.guard(self.inner.lock())
    }

    /// Locks if that needs no waiting.
    ///
    /// # Errors
    /// [`TryLockError::WouldBlock`] if it is held,
    /// [`TryLockError::Poisoned`] with the guard if a holder has panicked.
    #[track_caller]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let guard = self.inner.try_lock().ok_or(TryLockError::WouldBlock)?;
        Ok(self.guard(guard)?)
    }

    /// Locks, waiting at most `timeout`; see [`crate::Mutex::lock_timeout`].
    ///
    /// # Errors
    /// [`TimedOut`], and inside the success whether the mutex is poisoned.
    #[track_caller]
    pub fn lock_timeout(
        &self,
        timeout: Duration,
    ) -> Result<LockResult<MutexGuard<'_, T>>, TimedOut> {
        Ok(self.guard(self.inner.lock_timeout(timeout)?))
    }

    /// Locks, waiting until `deadline` at most; see [`crate::Mutex::lock_until`].
    ///
    /// # Errors
    /// [`TimedOut`], and inside the success whether the mutex is poisoned.
    #[track_caller]
    pub fn lock_until(&self, deadline: Instant) -> Result<LockResult<MutexGuard<'_, T>>, TimedOut> {
        Ok(self.guard(self.inner.lock_until(deadline)?))
    }

    /// Locks unless a signal handler runs; see
    /// [`crate::Mutex::lock_interruptible`].
    ///
    /// # Errors
    /// [`Interrupted`], and inside the success whether the mutex is poisoned.
    #[track_caller]
    pub fn lock_interruptible(&self) -> Result<LockResult<MutexGuard<'_, T>>, Interrupted> {
        Ok(self.guard(self.inner.lock_interruptible()?))
    }

    /// Locks unless `token` is fired; see [`crate::Mutex::lock_killable`].
    ///
    /// # Errors
    /// [`Cancelled`], and inside the success whether the mutex is poisoned.
    #[track_caller]
    pub fn lock_killable(
        &self,
        token: &CancelToken,
    ) -> Result<LockResult<MutexGuard<'_, T>>, Cancelled> {
        Ok(self.guard(self.inner.lock_killable(token)?))
    }

    /// Tells whether a holder has panicked and nobody has cleared that.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Relaxed)
    }

    /// Declares the data consistent again.
    pub fn clear_poison(&self) {
        self.poisoned.store(false, Ordering::Relaxed);
    }

    /// Tells whether anybody holds the mutex, at some moment during the call.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.inner.is_locked()
    }

    /// Returns the holder of the mutex, at some moment during the call.
    #[must_use]
    pub fn owner(&self) -> Option<Owner> {
        self.inner.owner()
    }

    /// Returns the data, without locking.
    ///
    /// # Errors
    /// [`PoisonError`] with the data if the mutex is poisoned.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        judge(self.is_poisoned(), self.inner.get_mut())
    }

    fn guard<'a>(&'a self, guard: crate::MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let guard =
            MutexGuard { guard, poisoned: &self.poisoned, began_panicking: thread::panicking() };
        judge(self.is_poisoned(), guard)
    }
}

fn judge<V>(poisoned: bool, value: V) -> LockResult<V> {
    if poisoned { Err(PoisonError::new(value)) } else { Ok(value) }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Mutex::new(value)
    }
}

/// Shows the data if the mutex is free; never waits.
impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex")
            .field("poisoned", &self.is_poisoned())
            .field("inner", &&self.inner)
            .finish()
    }
}

/// The holder's access to the data of a [`Mutex`]. Dropping it releases; if a
/// panic began while it lived, it poisons first.
#[must_use = "the mutex is released as soon as the guard is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    guard: crate::MutexGuard<'a, T>,
    poisoned: &'a AtomicBool,
    /// The thread was unwinding already when it locked: that panic is not from
    /// this critical section.
    began_panicking: bool,
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// Returns the guard without poison, for a condition variable.
    pub(crate) fn inner_mut(&mut self) -> &mut crate::MutexGuard<'a, T> {
        &mut self.guard
    }

    /// Tells whether a holder of the mutex has panicked.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Relaxed)
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        // The field `guard` releases after this.
        if !self.began_panicking && thread::panicking() {
            self.poisoned.store(true, Ordering::Relaxed);
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
