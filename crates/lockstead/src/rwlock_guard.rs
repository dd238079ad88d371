//! Proof of holding a reader-writer lock.

use crate::guard::shown_as_data;
use crate::{Hooks, RwLock, Unnamed};
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use lockstead_core::RawRwLock;
use lockstead_linux::Linux;

shown_as_data!(RwLockReadGuard, RwLockWriteGuard, MappedRwLockReadGuard, MappedRwLockWriteGuard);

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

/// Defines a guard narrowed to a part of the data, and how the whole guard becomes one.
macro_rules! mapped {
    (
        $(#[$doc:meta])* $mapped:ident of $guard:ident, $unlock:ident, ($($mut:tt)?);
        $(#[$map_doc:meta])* map;
    ) => {
        $(#[$doc])*
        #[must_use = "the lock is released as soon as the guard is dropped"]
        pub struct $mapped<'a, T: ?Sized, H: Hooks = Unnamed> {
            raw: &'a RawRwLock<Linux, H>,
            data: NonNull<T>,
            part: PhantomData<&'a $($mut)? T>,
            not_send: PhantomData<*const ()>,
        }

        // SAFETY: a reference to a guard gives no more than `&T`, and `T` is Sync (GUARD-SOLE).
        unsafe impl<T: ?Sized + Sync, H: Hooks> Sync for $mapped<'_, T, H> {}

        impl<'a, T: ?Sized, H: Hooks> $guard<'a, T, H> {
            /// Returns the lock that the guard holds.
            pub fn rwlock(guard: &Self) -> &'a RwLock<T, H> {
                guard.lock
            }

            $(#[$map_doc])*
            #[allow(unused_mut, reason = "one of the two guards gives exclusive access")]
            pub fn map<U: ?Sized>(
                mut guard: Self,
                part: impl FnOnce(& $($mut)? T) -> & $($mut)? U,
            ) -> $mapped<'a, U, H> {
                // If `part` panics the guard is still whole, and releases.
                let data = NonNull::from(part(& $($mut)? *guard));
                let guard = ManuallyDrop::new(guard);
                $mapped { raw: &guard.lock.raw, data, part: PhantomData, not_send: PhantomData }
            }

            /// Narrows the guard to a part of the data, if `part` finds one.
            ///
            /// # Errors
            /// The guard as it was, if `part` returned `None`.
            #[allow(unused_mut, reason = "one of the two guards gives exclusive access")]
            pub fn try_map<U: ?Sized>(
                mut guard: Self,
                part: impl FnOnce(& $($mut)? T) -> Option<& $($mut)? U>,
            ) -> Result<$mapped<'a, U, H>, Self> {
                let Some(data) = part(& $($mut)? *guard).map(NonNull::from) else {
                    return Err(guard);
                };
                let guard = ManuallyDrop::new(guard);
                let (part, not_send) = (PhantomData, PhantomData);
                Ok($mapped { raw: &guard.lock.raw, data, part, not_send })
            }
        }

        impl<'a, T: ?Sized, H: Hooks> $mapped<'a, T, H> {
            #[doc = concat!("Narrows the guard further. See [`", stringify!($guard), "::map`].")]
            #[allow(unused_mut, reason = "one of the two guards gives exclusive access")]
            pub fn map<U: ?Sized>(
                mut guard: Self,
                part: impl FnOnce(& $($mut)? T) -> & $($mut)? U,
            ) -> $mapped<'a, U, H> {
                let data = NonNull::from(part(& $($mut)? *guard));
                let guard = ManuallyDrop::new(guard);
                $mapped { raw: guard.raw, data, part: PhantomData, not_send: PhantomData }
            }

            #[doc = concat!("Narrows the guard further, if `part` finds a part. See [`", stringify!($guard), "::try_map`].")]
            ///
            /// # Errors
            /// The guard as it was, if `part` returned `None`.
            #[allow(unused_mut, reason = "one of the two guards gives exclusive access")]
            pub fn try_map<U: ?Sized>(
                mut guard: Self,
                part: impl FnOnce(& $($mut)? T) -> Option<& $($mut)? U>,
            ) -> Result<$mapped<'a, U, H>, Self> {
                let Some(data) = part(& $($mut)? *guard).map(NonNull::from) else {
                    return Err(guard);
                };
                let guard = ManuallyDrop::new(guard);
                let (part, not_send) = (PhantomData, PhantomData);
                Ok($mapped { raw: guard.raw, data, part, not_send })
            }
        }

        impl<T: ?Sized, H: Hooks> Deref for $mapped<'_, T, H> {
            type Target = T;

            #[inline]
            fn deref(&self) -> &T {
                // SAFETY: GUARD-SOLE: the pointer leads into the data of a lock that is held and
                // borrowed as long as the guard lives.
                unsafe { self.data.as_ref() }
            }
        }

        impl<T: ?Sized, H: Hooks> Drop for $mapped<'_, T, H> {
            #[inline]
            fn drop(&mut self) {
                // SAFETY: GUARD-HOLDS: it was made from a guard of the holder.
                unsafe { self.raw.$unlock() }
            }
        }
    };
}

mapped! {
    /// A [`RwLockReadGuard`] narrowed to a part of the data by [`RwLockReadGuard::map`].
    MappedRwLockReadGuard of RwLockReadGuard, unlock_read, ();
    /// Narrows the guard to a part of the data.
    ///
    /// ```
    /// use lockstead::{RwLock, RwLockReadGuard};
    ///
    /// let both = RwLock::new((1, "a"));
    /// let first = RwLockReadGuard::map(both.read(), |both| &both.0);
    /// assert_eq!((*first, both.readers()), (1, 1));
    /// ```
    map;
}

mapped! {
    /// A [`RwLockWriteGuard`] narrowed to a part of the data by [`RwLockWriteGuard::map`].
    MappedRwLockWriteGuard of RwLockWriteGuard, unlock_write, (mut);
    /// Narrows the guard to a part of the data.
    ///
    /// ```
    /// use lockstead::{RwLock, RwLockWriteGuard};
    ///
    /// let both = RwLock::new((1, "a"));
    /// *RwLockWriteGuard::map(both.write(), |both| &mut both.0) += 1;
    /// assert_eq!(both.into_inner(), (2, "a"));
    /// ```
    map;
}

impl<T: ?Sized, H: Hooks> DerefMut for MappedRwLockWriteGuard<'_, T, H> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: GUARD-SOLE, as in `deref`; the guard is borrowed exclusively.
        unsafe { self.data.as_mut() }
    }
}
