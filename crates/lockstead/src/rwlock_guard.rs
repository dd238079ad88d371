//! Proof of holding a reader-writer lock.

use crate::guard::shown_as_data;
use crate::{Hooks, RwLock, Unnamed};
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};

shown_as_data!(RwLockReadGuard, RwLockWriteGuard);

/// A reader's access to the data of a [`RwLock`]; dropping it releases.
#[must_use = "the lock is released as soon as the guard is dropped"]
pub struct RwLockReadGuard<'a, T: ?Sized, H: Hooks = Unnamed> {
    lock: &'a RwLock<T, H>,
    not_send: PhantomData<*const ()>,
}

/// The writer's access to the data of a [`RwLock`]; dropping it releases.
#[must_use = "the lock is released as soon as the guard is dropped"]
pub struct RwLockWriteGuard<'a, T: ?Sized, H: Hooks = Unnamed> {
    lock: &'a RwLock<T, H>,
    not_send: PhantomData<*const ()>,
}

// SAFETY: a reference to a guard gives no more than `&T`, and `T` is Sync (GUARD-SOLE).
unsafe impl<T: ?Sized + Sync, H: Hooks> Sync for RwLockReadGuard<'_, T, H> {}
// SAFETY: a reference to this guard, too, gives no more than `&T`, and `T` is Sync (GUARD-SOLE).
unsafe impl<T: ?Sized + Sync, H: Hooks> Sync for RwLockWriteGuard<'_, T, H> {}

impl<'a, T: ?Sized, H: Hooks> RwLockReadGuard<'a, T, H> {
    /// Wraps a hold for reading of the calling thread.
    ///
    /// # Safety
    /// GUARD-HOLDS: the calling thread holds `lock` for reading, and this guard alone stands for
    /// that hold.
    #[inline(always)]
    pub(crate) unsafe fn new(lock: &'a RwLock<T, H>) -> Self {
        RwLockReadGuard { lock, not_send: PhantomData }
    }
}

impl<'a, T: ?Sized, H: Hooks> RwLockWriteGuard<'a, T, H> {
    /// Wraps the hold for writing of the calling thread.
    ///
    /// # Safety
    /// GUARD-HOLDS and GUARD-SOLE: the calling thread holds `lock` for writing, and no other guard
    /// of it exists.
    #[inline(always)]
    pub(crate) unsafe fn new(lock: &'a RwLock<T, H>) -> Self {
        RwLockWriteGuard { lock, not_send: PhantomData }
    }

    /// Goes on as a reader, with no other writer in between.
    ///
    /// ```
    /// use lockstead::{RwLock, RwLockWriteGuard};
    ///
    /// let config = RwLock::new(1);
    /// let mut writing = config.write();
    /// *writing = 2;
    /// let reading = RwLockWriteGuard::downgrade(writing);
    /// assert!(config.try_read().is_some());
    /// assert!(config.try_write().is_none());
    /// assert_eq!(*reading, 2);
    /// ```
    pub fn downgrade(guard: Self) -> RwLockReadGuard<'a, T, H> {
        let guard = ManuallyDrop::new(guard);
        // SAFETY: GUARD-HOLDS: the guard, which is not dropped, stood for the hold for writing; the
        // new one stands for the hold for reading.
        unsafe {
            guard.lock.raw.downgrade();
            RwLockReadGuard::new(guard.lock)
        }
    }
}

impl<T: ?Sized, H: Hooks> Deref for RwLockReadGuard<'_, T, H> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: GUARD-SOLE: no writer has access while the guard lives.
        unsafe { &*self.lock.data() }
    }
}

impl<T: ?Sized, H: Hooks> Deref for RwLockWriteGuard<'_, T, H> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: GUARD-SOLE: the lock lets no other guard live meanwhile.
        unsafe { &*self.lock.data() }
    }
}

impl<T: ?Sized, H: Hooks> DerefMut for RwLockWriteGuard<'_, T, H> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: GUARD-SOLE: the lock lets no other guard live meanwhile.
        unsafe { &mut *self.lock.data() }
    }
}

impl<T: ?Sized, H: Hooks> Drop for RwLockReadGuard<'_, T, H> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: GUARD-HOLDS: the callers of `new` hold the lock for the guard.
        unsafe { self.lock.raw.unlock_read() }
    }
}

impl<T: ?Sized, H: Hooks> Drop for RwLockWriteGuard<'_, T, H> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: GUARD-HOLDS: the callers of `new` hold the lock for the guard.
        unsafe { self.lock.raw.unlock_write() }
    }
}
