//! The reader-writer lock.

use super::telling::{at_once, locked, tried};
use ::std::fmt;
use ::std::mem::ManuallyDrop;
use ::std::ops::{Deref, DerefMut};
use ::std::sync::{self, LockResult, TryLockResult};
use lockstead_told::home::Home;
use lockstead_told::{Listener, ToldLock, ending, flag, kind, listener, way};

/// A [`std::sync::RwLock`](::std::sync::RwLock) that tells of its acquisitions and releases.
#[repr(C)]
pub struct RwLock<T: ?Sized> {
    home: Home,
    inner: sync::RwLock<T>,
}

/// The guard of a reader, as [`std::sync::RwLockReadGuard`](::std::sync::RwLockReadGuard).
#[must_use = "if unused the RwLock will immediately unlock"]
pub struct RwLockReadGuard<'a, T: ?Sized + 'a> {
    inner: ManuallyDrop<sync::RwLockReadGuard<'a, T>>,
    /// The address of the lock.
    address: usize,
}

/// The guard of a writer, as [`std::sync::RwLockWriteGuard`](::std::sync::RwLockWriteGuard).
#[must_use = "if unused the RwLock will immediately unlock"]
pub struct RwLockWriteGuard<'a, T: ?Sized + 'a> {
    inner: ManuallyDrop<sync::RwLockWriteGuard<'a, T>>,
    /// The address of the lock.
    address: usize,
}

/// Describes the lock at this address. Readers of the standard library's wait behind a writer that
/// waits.
fn told(address: usize) -> ToldLock {
    ToldLock::new(address, kind::RWLOCK, flag::FOLLOWED | flag::WRITERS_FIRST)
}

impl<T> RwLock<T> {
    /// Creates a free lock.
    #[inline]
    pub const fn new(value: T) -> RwLock<T> {
        RwLock { home: Home::new(), inner: sync::RwLock::new(value) }
    }

    /// Returns the data.
    ///
    /// # Errors
    /// If a writer has panicked, with the data.
    pub fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Returns the address by which the lock is told.
    fn address(&self) -> usize {
        self.home.address()
    }

    /// Describes the lock to who is told something of it first.
    fn told_first(&self, listener: &Listener) -> ToldLock {
        told(self.home.settle(listener, None))
    }

    /// Acquires the lock for reading, waiting as long as it takes.
    ///
    /// # Errors
    /// If a writer has panicked, with the guard.
    #[inline]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let result = match listener() {
            None => self.inner.read(),
            Some(listener) => self.read_told(listener),
        };
        let address = self.address();
        locked(result, |inner| RwLockReadGuard { inner: ManuallyDrop::new(inner), address })
    }

    #[cold]
    #[inline(never)]
    fn read_told(&self, listener: &Listener) -> LockResult<sync::RwLockReadGuard<'_, T>> {
        let lock = self.told_first(listener);
        if let Some(result) = at_once(self.inner.try_read()) {
            listener.acquired(&lock, way::READ);
            return result;
        }
        let noted =
            listener.wait_begins(&lock, way::READ, (0, 0), ::std::ptr::from_ref(&lock).addr());
        let result = self.inner.read();
        if noted {
            listener.wait_ends(&lock, way::READ, ending::GRANTED);
        }
        listener.acquired(&lock, way::READ | way::WAITED);
        result
    }

    /// Acquires the lock for reading if that needs no waiting.
    ///
    /// # Errors
    /// If it is taken; or poisoned, with the guard.
    #[inline]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let address = self.address();
        tried(self.inner.try_read(), |inner| {
            if let Some(listener) = listener() {
                listener.acquired(&self.told_first(listener), way::READ | way::TRIED);
            }
            RwLockReadGuard { inner: ManuallyDrop::new(inner), address }
        })
    }

    /// Acquires the lock for writing, waiting as long as it takes.
    ///
    /// # Errors
    /// If a writer has panicked, with the guard.
    #[inline]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let result = match listener() {
            None => self.inner.write(),
            Some(listener) => self.write_told(listener),
        };
        let address = self.address();
        locked(result, |inner| RwLockWriteGuard { inner: ManuallyDrop::new(inner), address })
    }

    #[cold]
    #[inline(never)]
    fn write_told(&self, listener: &Listener) -> LockResult<sync::RwLockWriteGuard<'_, T>> {
        let lock = self.told_first(listener);
        if let Some(result) = at_once(self.inner.try_write()) {
            listener.acquired(&lock, way::ALONE);
            return result;
        }
        let noted =
            listener.wait_begins(&lock, way::ALONE, (0, 0), ::std::ptr::from_ref(&lock).addr());
        let result = self.inner.write();
        if noted {
            listener.wait_ends(&lock, way::ALONE, ending::GRANTED);
        }
        listener.acquired(&lock, way::ALONE | way::WAITED);
        result
    }

    /// Acquires the lock for writing if that needs no waiting.
    ///
    /// # Errors
    /// If it is taken; or poisoned, with the guard.
    #[inline]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let address = self.address();
        tried(self.inner.try_write(), |inner| {
            if let Some(listener) = listener() {
                listener.acquired(&self.told_first(listener), way::ALONE | way::TRIED);
            }
            RwLockWriteGuard { inner: ManuallyDrop::new(inner), address }
        })
    }

    /// Tells whether a writer has panicked.
    #[inline]
    pub fn is_poisoned(&self) -> bool {
        self.inner.is_poisoned()
    }

    /// Forgets that a writer has panicked.
    #[inline]
    pub fn clear_poison(&self) {
        self.inner.clear_poison();
    }

    /// Returns the data, without locking.
    ///
    /// # Errors
    /// If a writer has panicked, with the data.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.inner.get_mut()
    }
}

impl<'rwlock, T: ?Sized> RwLockWriteGuard<'rwlock, T> {
    /// Makes a reader of the writer, without letting other writers in between.
    pub fn downgrade(this: Self) -> RwLockReadGuard<'rwlock, T> {
        let mut this = ManuallyDrop::new(this);
        let address = this.address;
        // SAFETY: the guard that has it is never dropped, so that it is taken once.
        let inner = unsafe { ManuallyDrop::take(&mut this.inner) };
        let lock = told(address);
        let listener = listener();
        // Without a wait, and without an order: the thread has the lock already.
        listener.inspect(|listener| listener.releases(&lock));
        let inner = sync::RwLockWriteGuard::downgrade(inner);
        listener.inspect(|listener| listener.acquired(&lock, way::READ | way::TRIED));
        RwLockReadGuard { inner: ManuallyDrop::new(inner), address }
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if let Some(listener) = listener() {
            listener.releases(&told(self.address));
        }
        // SAFETY: this is the drop of the guard that has it, so that nobody uses it afterwards.
        unsafe { ManuallyDrop::drop(&mut self.inner) };
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (*self.inner).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (*self.inner).fmt(f)
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if let Some(listener) = listener() {
            listener.releases(&told(self.address));
        }
        // SAFETY: this is the drop of the guard that has it, so that nobody uses it afterwards.
        unsafe { ManuallyDrop::drop(&mut self.inner) };
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (*self.inner).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (*self.inner).fmt(f)
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        RwLock::new(value)
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        RwLock::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
