//! The mutex.

use super::telling::{at_once, locked, tried};
use ::std::fmt;
use ::std::mem::ManuallyDrop;
use ::std::ops::{Deref, DerefMut};
use ::std::sync::{self, LockResult, TryLockResult};
use lockstead_told::home::Home;
use lockstead_told::{Listener, ToldLock, ending, flag, kind, listener, way};

/// A [`std::sync::Mutex`](::std::sync::Mutex) that tells of its acquisitions and releases.
#[repr(C)]
pub struct Mutex<T: ?Sized> {
    home: Home,
    inner: sync::Mutex<T>,
}

/// The guard of a [`Mutex`], as [`std::sync::MutexGuard`](::std::sync::MutexGuard).
#[must_use = "if unused the Mutex will immediately unlock"]
pub struct MutexGuard<'a, T: ?Sized + 'a> {
    inner: ManuallyDrop<sync::MutexGuard<'a, T>>,
    /// The address of the mutex.
    address: usize,
}

/// Describes the mutex at this address.
pub(super) fn told(address: usize) -> ToldLock {
    ToldLock::new(address, kind::MUTEX, flag::FOLLOWED)
}

impl<T> Mutex<T> {
    /// Creates a free mutex.
    #[inline]
    pub const fn new(value: T) -> Mutex<T> {
        Mutex { home: Home::new(), inner: sync::Mutex::new(value) }
    }

    /// Returns the data.
    ///
    /// # Errors
    /// If a thread has panicked while it held the mutex, with the data.
    pub fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Returns the address by which the lock is told.
    fn address(&self) -> usize {
        self.home.address()
    }

    /// Describes the lock to who is told something of it first.
    fn told_first(&self, listener: &Listener) -> ToldLock {
        told(self.home.settle(listener, None))
    }

    fn guard<'a>(&self, inner: sync::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        MutexGuard { inner: ManuallyDrop::new(inner), address: self.address() }
    }

    /// Acquires the mutex, waiting as long as it takes.
    ///
    /// # Errors
    /// If a thread has panicked while it held the mutex, with the guard.
    #[inline]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let result = match listener() {
            None => self.inner.lock(),
            Some(listener) => self.lock_told(listener),
        };
        locked(result, |inner| self.guard(inner))
    }

    #[cold]
    #[inline(never)]
    fn lock_told(&self, listener: &Listener) -> LockResult<sync::MutexGuard<'_, T>> {
        let lock = self.told_first(listener);
        if let Some(result) = at_once(self.inner.try_lock()) {
            listener.acquired(&lock, way::ALONE);
            return result;
        }
        let noted =
            listener.wait_begins(&lock, way::ALONE, (0, 0), ::std::ptr::from_ref(&lock).addr());
        let result = self.inner.lock();
        if noted {
            listener.wait_ends(&lock, way::ALONE, ending::GRANTED);
        }
        listener.acquired(&lock, way::WAITED);
        result
    }

    /// Acquires the mutex if it is free.
    ///
    /// # Errors
    /// If it is taken; or poisoned, with the guard.
    #[inline]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        tried(self.inner.try_lock(), |inner| {
            if let Some(listener) = listener() {
                listener.acquired(&self.told_first(listener), way::TRIED);
            }
            self.guard(inner)
        })
    }

    /// Tells whether a thread has panicked while it held the mutex.
    #[inline]
    pub fn is_poisoned(&self) -> bool {
        self.inner.is_poisoned()
    }

    /// Forgets that a thread has panicked.
    #[inline]
    pub fn clear_poison(&self) {
        self.inner.clear_poison();
    }

    /// Returns the data, without locking.
    ///
    /// # Errors
    /// If a thread has panicked while it held the mutex, with the data.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.inner.get_mut()
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// Returns the guard inside and the mutex's address, and tells nothing.
    pub(super) fn into_parts(self) -> (sync::MutexGuard<'a, T>, usize) {
        let mut guard = ManuallyDrop::new(self);
        // SAFETY: the guard that has it is never dropped, so that it is taken once.
        (unsafe { ManuallyDrop::take(&mut guard.inner) }, guard.address)
    }

    /// Builds the guard anew that [`into_parts`](Self::into_parts) has taken apart.
    pub(super) fn of_parts(inner: sync::MutexGuard<'a, T>, address: usize) -> Self {
        MutexGuard { inner: ManuallyDrop::new(inner), address }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if let Some(listener) = listener() {
            listener.releases(&told(self.address));
        }
        // SAFETY: this is the drop of the guard that has it, so that nobody uses it afterwards.
        unsafe { ManuallyDrop::drop(&mut self.inner) };
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (*self.inner).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (*self.inner).fmt(f)
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Mutex::new(value)
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Mutex::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
