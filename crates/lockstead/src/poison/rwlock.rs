//! The reader-writer lock that remembers a panic of a writer.

use super::{LockResult, TryLockError, TryLockResult, judge};
use crate::error::TimedOut;
use core::fmt;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// A [`crate::RwLock`] that is poisoned by a panic of a writer, with the results of
/// [`std::sync::RwLock`]. A panic of a reader poisons nothing: it cannot have changed the data.
///
/// ```
/// use lockstead::poison::RwLock;
///
/// let routes = RwLock::new(vec!["/"]);
/// std::thread::scope(|s| {
///     let half_way = s.spawn(|| {
///         let mut routes = routes.write().unwrap();
///         routes.clear();
///         panic!("before the new ones");
///     });
///     assert!(half_way.join().is_err());
/// });
/// assert!(routes.is_poisoned() && routes.read().is_err());
/// routes.write().unwrap_or_else(|poisoned| poisoned.into_inner()).push("/");
/// routes.clear_poison();
/// assert_eq!(routes.read().unwrap().len(), 1);
/// ```
#[derive(Default)]
pub struct RwLock<T: ?Sized> {
    /// The flag that a panicking writer sets before it releases; relaxed, since the lock orders it for
    /// the next holder.
    poisoned: AtomicBool,
    inner: crate::RwLock<T>,
}

impl<T> RwLock<T> {
    /// Creates a free lock that guards `value` and is not poisoned.
    #[cfg_attr(feature = "check", track_caller)]
    pub const fn new(value: T) -> Self {
        RwLock { poisoned: AtomicBool::new(false), inner: crate::RwLock::new(value) }
    }

    /// Returns the data.
    ///
    /// # Errors
    /// [`PoisonError`](super::PoisonError) with the data if the lock is poisoned.
    pub fn into_inner(self) -> LockResult<T> {
        let poisoned = self.is_poisoned();
        judge(poisoned, self.inner.into_inner())
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Acquires the lock for reading as [`crate::RwLock::read`] does.
    ///
    /// # Errors
    /// [`PoisonError`](super::PoisonError) with the guard if a writer has panicked.
    ///
    /// # Panics
    /// As [`crate::RwLock::read`], in this and all forms below.
    #[track_caller]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        self.reads(self.inner.read())
    }

    /// Acquires the lock for reading if that needs no waiting.
    ///
    /// # Errors
    /// [`TryLockError::WouldBlock`] if it is held, [`TryLockError::Poisoned`] with the guard if a
    /// writer has panicked.
    #[track_caller]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let guard = self.inner.try_read().ok_or(TryLockError::WouldBlock)?;
        Ok(self.reads(guard)?)
    }

    /// Acquires the lock for reading, waiting at most `timeout`.
    ///
    /// # Errors
    /// [`TimedOut`], and inside the success whether the lock is poisoned.
    #[track_caller]
    pub fn read_timeout(
        &self,
        timeout: Duration,
    ) -> Result<LockResult<RwLockReadGuard<'_, T>>, TimedOut> {
        Ok(self.reads(self.inner.read_timeout(timeout)?))
    }

    /// Acquires the lock for writing as [`crate::RwLock::write`] does.
    ///
    /// # Errors
    /// [`PoisonError`](super::PoisonError) with the guard if a writer has panicked.
    #[track_caller]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        self.writes(self.inner.write())
    }

    /// Acquires the lock for writing if that needs no waiting.
    ///
    /// # Errors
    /// [`TryLockError::WouldBlock`] if it is held, [`TryLockError::Poisoned`] with the guard if a
    /// writer has panicked.
    #[track_caller]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let guard = self.inner.try_write().ok_or(TryLockError::WouldBlock)?;
        Ok(self.writes(guard)?)
    }

    /// Acquires the lock for writing, waiting at most `timeout`.
    ///
    /// # Errors
    /// [`TimedOut`], and inside the success whether the lock is poisoned.
    #[track_caller]
    pub fn write_timeout(
        &self,
        timeout: Duration,
    ) -> Result<LockResult<RwLockWriteGuard<'_, T>>, TimedOut> {
        Ok(self.writes(self.inner.write_timeout(timeout)?))
    }

    /// Tells whether a writer has panicked and nobody has cleared that.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Relaxed)
    }

    /// Declares the data consistent again.
    pub fn clear_poison(&self) {
        self.poisoned.store(false, Ordering::Relaxed);
    }

    /// Returns the data, without locking.
    ///
    /// # Errors
    /// [`PoisonError`](super::PoisonError) with the data if the lock is poisoned.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        judge(self.is_poisoned(), self.inner.get_mut())
    }

    fn reads<'a>(
        &'a self,
        guard: crate::RwLockReadGuard<'a, T>,
    ) -> LockResult<RwLockReadGuard<'a, T>> {
        judge(self.is_poisoned(), RwLockReadGuard { guard })
    }

    fn writes<'a>(
        &'a self,
        guard: crate::RwLockWriteGuard<'a, T>,
    ) -> LockResult<RwLockWriteGuard<'a, T>> {
        let (poisoned, began_panicking) = (&self.poisoned, thread::panicking());
        judge(self.is_poisoned(), RwLockWriteGuard { guard, poisoned, began_panicking })
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        RwLock::new(value)
    }
}

/// Shows the data if no writer holds the lock; never waits.
impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RwLock")
            .field("poisoned", &self.is_poisoned())
            .field("inner", &&self.inner)
            .finish()
    }
}

/// A reader's access to the data of a [`RwLock`]. Dropping it releases.
#[must_use = "the lock is released as soon as the guard is dropped"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    guard: crate::RwLockReadGuard<'a, T>,
}

/// The writer's access to the data of a [`RwLock`]. Dropping it releases; if a panic began
/// while it lived, it poisons first.
#[must_use = "the lock is released as soon as the guard is dropped"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    guard: crate::RwLockWriteGuard<'a, T>,
    poisoned: &'a AtomicBool,
    /// The thread was unwinding already when it locked: that panic is not from this critical section.
    began_panicking: bool,
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        // The field `guard` releases after this.
        if !self.began_panicking && thread::panicking() {
            self.poisoned.store(true, Ordering::Relaxed);
        }
    }
}

/// Guards that are shown as the data that they give access to.
macro_rules! shown {
    ($($guard:ident),+) => {$(
        impl<T: ?Sized + fmt::Debug> fmt::Debug for $guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }

        impl<T: ?Sized + fmt::Display> fmt::Display for $guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }
    )+};
}
shown!(RwLockReadGuard, RwLockWriteGuard);
