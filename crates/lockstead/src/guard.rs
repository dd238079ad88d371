//! The guards of a mutex: proof that the thread holds it, and the way to the data.
//!
//! # Invariants
//! The guards of all locks of this crate keep these; each lock's acquisition makes them.
//!
//! - **GUARD-HOLDS** A guard exists only while the thread that made it holds the lock. It is not
//!   Send, so only that thread drops it, and with it gives the hold up.
//! - **GUARD-SOLE** A guard that gives exclusive access is the one way to the data while it
//!   lives; one that gives shared access is there with its like only.

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

// SAFETY: a reference to a guard gives no more than `&T`, and `T` is Sync (GUARD-SOLE).
unsafe impl<T: ?Sized + Sync, H: Hooks> Sync for MutexGuard<'_, T, H> {}

impl<'a, T: ?Sized, H: Hooks> MutexGuard<'a, T, H> {
    /// Wraps the hold of the calling thread.
    ///
    /// # Safety
    /// GUARD-HOLDS and GUARD-SOLE: the calling thread holds `mutex`, and no other guard of it
    /// exists.
    #[inline(always)]
    pub(crate) unsafe fn new(mutex: &'a Mutex<T, H>) -> Self {
        MutexGuard { mutex, not_send: PhantomData }
    }

    /// Returns the lock behind the guard.
    pub(crate) fn raw(guard: &Self) -> &'a RawMutex<Linux, H> {
        &guard.mutex.raw
    }

    /// Panics for a guard whose mutex could not be taken again.
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
        // SAFETY: GUARD-SOLE, which the lock keeps.
        unsafe { &*self.mutex.data() }
    }
}

impl<T: ?Sized, H: Hooks> DerefMut for MutexGuard<'_, T, H> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: GUARD-SOLE, which the lock keeps.
        unsafe { &mut *self.mutex.data() }
    }
}

impl<T: ?Sized, H: Hooks> Drop for MutexGuard<'_, T, H> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: GUARD-HOLDS, which the callers of `new` keep.
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

// SAFETY: a reference to a guard gives no more than `&T`, and `T` is Sync (GUARD-SOLE).
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
        // SAFETY: GUARD-SOLE: the pointer leads into the data of a mutex that is held and borrowed
        // as long as the guard lives.
        unsafe { self.data.as_ref() }
    }
}

impl<T: ?Sized, H: Hooks> DerefMut for MappedMutexGuard<'_, T, H> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: GUARD-SOLE, as in `deref`; the guard is borrowed exclusively.
        unsafe { self.data.as_mut() }
    }
}

impl<T: ?Sized, H: Hooks> Drop for MappedMutexGuard<'_, T, H> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: GUARD-HOLDS: `map` made it from a guard of the holder.
        unsafe { self.raw.unlock() }
    }
}
