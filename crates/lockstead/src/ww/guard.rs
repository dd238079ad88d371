//! Proof of holding a wait/wound mutex.

use super::{Context, WwMutex};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

/// The holder's access to the data of a [`WwMutex`]; dropping it releases.
#[must_use = "the mutex is released as soon as the guard is dropped"]
pub struct WwGuard<'a, T: ?Sized> {
    mutex: &'a WwMutex<T>,
    context: Option<&'a Context>,
    not_send: PhantomData<*const ()>,
}

// SAFETY: a reference to a guard gives no more than `&T`, and `T` is Sync (GUARD-SOLE).
unsafe impl<T: ?Sized + Sync> Sync for WwGuard<'_, T> {}

impl<'a, T: ?Sized> WwGuard<'a, T> {
    /// Wraps the hold of the calling thread.
    ///
    /// # Safety
    /// GUARD-HOLDS and GUARD-SOLE: the calling thread has acquired `mutex` in `context`, or without
    /// one, and no other guard of it exists.
    #[inline(always)]
    pub(super) unsafe fn new(mutex: &'a WwMutex<T>, context: Option<&'a Context>) -> Self {
        WwGuard { mutex, context, not_send: PhantomData }
    }

    /// Returns the mutex that the guard holds.
    ///
    /// A function, not a method, so that it cannot hide one of `T`.
    #[must_use]
    pub fn mutex(guard: &Self) -> &'a WwMutex<T> {
        guard.mutex
    }
}

impl<T: ?Sized> Deref for WwGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: GUARD-SOLE: the lock lets no other guard live meanwhile.
        unsafe { &*self.mutex.data() }
    }
}

impl<T: ?Sized> DerefMut for WwGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: GUARD-SOLE: the lock lets no other guard live meanwhile.
        unsafe { &mut *self.mutex.data() }
    }
}

impl<T: ?Sized> Drop for WwGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if let Some(context) = self.context {
            context.rules.released();
        }
        // SAFETY: GUARD-HOLDS, which the callers of `new` keep; the context in which the thread
        // acquired outlives the guard.
        unsafe { self.mutex.raw.unlock(self.context.map(|context| &context.raw)) }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for WwGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for WwGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
