//! Proof of holding a mutex.

use crate::{Hooks, Mutex, Unnamed};
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use lockstead_core::{LockError, RawMutex};
use lockstead_linux::Linux;

/// Guards that are shown as the data that they give access to.
macro_rules! shown_as_data {
    ($($guard:ident),+) => {$(
        impl<T: ?Sized + core::fmt::Debug, H: $crate::Hooks> core::fmt::Debug
            for $guard<'_, T, H>
        {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                (**self).fmt(f)
            }
        }

        impl<T: ?Sized + core::fmt::Display, H: $crate::Hooks> core::fmt::Display
            for $guard<'_, T, H>
        {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                (**self).fmt(f)
            }
        }
    )+};
}
pub(crate) use shown_as_data;

shown_as_data!(MutexGuard, MappedMutexGuard);

/// The holder's access to the data of a [`Mutex`]; dropping it releases.
///
/// Stays on its thread, since the owner alone releases:
///
/// ```compile_fail,E0277
/// let mutex = lockstead::Mutex::new(0);
/// let guard = mutex.lock();
/// std::thread::scope(|s| { s.spawn(move || drop(guard)); });
/// ```
#[must_use = "the mutex is released as soon as the guard is dropped"]
pub struct MutexGuard<'a, T: ?Sized, H: Hooks = Unnamed> {
    mutex: &'a Mutex<T, H>,
    not_send: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives no more than `&T`.
unsafe impl<T: ?Sized + Sync, H: Hooks> Sync for MutexGuard<'_, T, H> {}

impl<'a, T: ?Sized, H: Hooks> MutexGuard<'a, T, H> {
    /// # Safety
    /// The calling thread holds `mutex`, and no other guard of it exists.
    #[inline(always)]
    pub(crate) unsafe fn new(mutex: &'a Mutex<T, H>) -> Self {
        MutexGuard { mutex, not_send: PhantomData }
    }

    /// The lock behind the guard.
    pub(crate) fn raw(guard: &Self) -> &'a RawMutex<Linux, H> {
        &guard.mutex.raw
    }

    /// The panic for a guard whose mutex could not be taken again.
    #[track_caller]
    pub(crate) fn refuse(guard: &Self, error: LockError) -> ! {
        guard.mutex.refuse(error)
    }

    /// Narrows the guard to a part of the data.
    ///
    /// A function, not a method, so that it cannot hide one of `T`.
    ///
    /// ```
    /// use lockstead::{Mutex, MutexGuard};
    ///
    /// let mutex = Mutex::new((1, String::from("a")));
    /// let mut name = MutexGuard::map(mutex.lock(), |both| &mut both.1);
    /// name.push('b');
    /// drop(name);
    /// assert_eq!(mutex.into_inner().1, "ab");
    /// ```
    pub fn map<U: ?Sized>(
        guard: Self,
        part: impl FnOnce(&mut T) -> &mut U,
    ) -> MappedMutexGuard<'a, U, H> {
        let mut guard = guard;
        // If `part` panics the guard is still whole, and releases.
        let data = NonNull::from(part(&mut *guard));
        let guard = ManuallyDrop::new(guard);
        MappedMutexGuard { raw: Self::raw(&guard), data, part: PhantomData, not_send: PhantomData }
    }
}

impl<T: ?Sized, H: Hooks> Deref for MutexGuard<'_, T, H> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard is the one access to the data while it lives.
        unsafe { &*self.mutex.data() }
    }
}

impl<T: ?Sized, H: Hooks> DerefMut for MutexGuard<'_, T, H> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard is the one access to the data while it lives.
        unsafe { &mut *self.mutex.data() }
    }
}

impl<T: ?Sized, H: Hooks> Drop for MutexGuard<'_, T, H> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard was made by the holder and is not Send, so the
        // calling thread holds the mutex.
        unsafe { self.mutex.raw.unlock() }
    }
}

/// A [`MutexGuard`] narrowed to a part of the data by [`MutexGuard::map`];
/// dropping it releases the whole mutex.
#[must_use = "the mutex is released as soon as the guard is dropped"]
pub struct MappedMutexGuard<'a, T: ?Sized, H: Hooks = Unnamed> {
    raw: &'a RawMutex<Linux, H>,
    data: NonNull<T>,
    part: PhantomData<&'a mut T>,
    not_send: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives no more than `&T`.
unsafe impl<T: ?Sized + Sync, H: Hooks> Sync for MappedMutexGuard<'_, T, H> {}

impl<'a, T: ?Sized, H: Hooks> MappedMutexGuard<'a, T, H> {
    /// Narrows the guard further. See [`MutexGuard::map`].
    pub fn map<U: ?Sized>(
        guard: Self,
        part: impl FnOnce(&mut T) -> &mut U,
    ) -> MappedMutexGuard<'a, U, H> {
        let mut guard = guard;
        let data = NonNull::from(part(&mut *guard));
        let guard = ManuallyDrop::new(guard);
        MappedMutexGuard { raw: guard.raw, data, part: PhantomData, not_send: PhantomData }
    }
}

impl<T: ?Sized, H: Hooks> Deref for MappedMutexGuard<'_, T, H> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: points into the data of a mutex that is held and borrowed
        // as long as the guard lives; the guard is the one access to it.
        unsafe { self.data.as_ref() }
    }
}

impl<T: ?Sized, H: Hooks> DerefMut for MappedMutexGuard<'_, T, H> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`.
        unsafe { self.data.as_mut() }
    }
}

impl<T: ?Sized, H: Hooks> Drop for MappedMutexGuard<'_, T, H> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: made from a guard of the holder and not Send.
        unsafe { self.raw.unlock() }
    }
}
