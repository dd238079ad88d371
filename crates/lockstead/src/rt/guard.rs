//! Proof of holding a real-time mutex.

use super::RtMutex;
use super::raw::Raw;
use crate::guard::shown_as_data;
use crate::{Hooks, Unnamed};
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

shown_as_data!(RtMutexGuard, MappedRtMutexGuard);

/// The holder's access to the data of an [`RtMutex`]; dropping it releases.
///
/// Stays on its thread, since the owner alone releases:
///
/// ```compile_fail,E0277
/// let mutex = lockstead::rt::RtMutex::new(0);
/// let guard = mutex.lock();
/// std::thread::scope(|s| { s.spawn(move || drop(guard)); });
/// ```
#[must_use = "the mutex is released as soon as the guard is dropped"]
pub struct RtMutexGuard<'a, T: ?Sized, H: Hooks = Unnamed> {
    mutex: &'a RtMutex<T, H>,
    not_send: PhantomData<*const ()>,
}

// SAFETY: a reference to a guard gives no more than `&T`, and `T` is Sync (GUARD-SOLE).
unsafe impl<T: ?Sized + Sync, H: Hooks> Sync for RtMutexGuard<'_, T, H> {}

impl<'a, T: ?Sized, H: Hooks> RtMutexGuard<'a, T, H> {
    /// Wraps the hold of the calling thread.
    ///
    /// # Safety
    /// GUARD-HOLDS and GUARD-SOLE: the calling thread holds `mutex`, and no other guard of it
    /// exists.
    #[inline(always)]
    pub(super) unsafe fn new(mutex: &'a RtMutex<T, H>) -> Self {
        RtMutexGuard { mutex, not_send: PhantomData }
    }
}

impl<T: ?Sized, H: Hooks> Deref for RtMutexGuard<'_, T, H> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: GUARD-SOLE, which the lock keeps.
        unsafe { &*self.mutex.data() }
    }
}

impl<T: ?Sized, H: Hooks> DerefMut for RtMutexGuard<'_, T, H> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: GUARD-SOLE, which the lock keeps.
        unsafe { &mut *self.mutex.data() }
    }
}

impl<T: ?Sized, H: Hooks> Drop for RtMutexGuard<'_, T, H> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: GUARD-HOLDS, which the callers of `new` keep.
        unsafe { self.mutex.raw().unlock() }
    }
}

/// An [`RtMutexGuard`] narrowed to a part of the data by [`RtMutexGuard::map`];
/// dropping it releases the whole mutex.
#[must_use = "the mutex is released as soon as the guard is dropped"]
pub struct MappedRtMutexGuard<'a, T: ?Sized, H: Hooks = Unnamed> {
    raw: &'a Raw<H>,
    data: NonNull<T>,
    part: PhantomData<&'a mut T>,
    not_send: PhantomData<*const ()>,
}

// SAFETY: a reference to a guard gives no more than `&T`, and `T` is Sync (GUARD-SOLE).
unsafe impl<T: ?Sized + Sync, H: Hooks> Sync for MappedRtMutexGuard<'_, T, H> {}

impl<'a, T: ?Sized, H: Hooks> MappedRtMutexGuard<'a, T, H> {
    pub(super) fn narrow<W: ?Sized>(
        mut guard: RtMutexGuard<'a, W, H>,
        part: impl FnOnce(&mut W) -> &mut T,
    ) -> Self {
        // If `part` panics the guard is still whole, and releases.
        let data = NonNull::from(part(&mut *guard));
        let guard = ManuallyDrop::new(guard);
        MappedRtMutexGuard {
            raw: guard.mutex.raw(),
            data,
            part: PhantomData,
            not_send: PhantomData,
        }
    }
}

impl<T: ?Sized, H: Hooks> Deref for MappedRtMutexGuard<'_, T, H> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: GUARD-SOLE: the pointer leads into the data of a mutex that is held and borrowed
        // as long as the guard lives.
        unsafe { self.data.as_ref() }
    }
}

impl<T: ?Sized, H: Hooks> DerefMut for MappedRtMutexGuard<'_, T, H> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: GUARD-SOLE, as in `deref`; the guard is borrowed exclusively.
        unsafe { self.data.as_mut() }
    }
}

impl<T: ?Sized, H: Hooks> Drop for MappedRtMutexGuard<'_, T, H> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: GUARD-HOLDS: `map` made it from a guard of the holder.
        unsafe { self.raw.unlock() }
    }
}
