//! The guards of a mutex: proof that the thread holds it, and the way to the data.
//!
//! # Invariants
//! The guards of all locks of this crate keep these; each lock's acquisition makes them.
//!
//! - **GUARD-HOLDS** A guard exists only while the thread that made it holds the lock. It is not
//!   Send, so only that thread drops it, and with it gives the hold up.
//! - **GUARD-SOLE** A guard that gives exclusive access is the one way to the data while it
//!   lives; one that gives shared access is there with its like only.

use crate::refusal::AbortOnUnwind;
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

/// Defines the guards of a mutex: the one of an acquisition, and the one that is narrowed to a part
/// of the data. `raw` of the mutex has the operations, `data` leads to the data.
macro_rules! guards {
    (
        $(#[$doc:meta])* $guard:ident of $mutex:ident;
        $(#[$mapped_doc:meta])* $mapped:ident over $raw:ty;
        $(#[$map_doc:meta])* map;
    ) => {
        $crate::guard::shown_as_data!($guard, $mapped);

        $(#[$doc])*
        #[must_use = "the mutex is released as soon as the guard is dropped"]
        pub struct $guard<'a, T: ?Sized, H: Hooks = Unnamed> {
            mutex: &'a $mutex<T, H>,
            not_send: PhantomData<*const ()>,
        }

        // SAFETY: a reference to a guard gives no more than `&T`, and `T` is Sync (GUARD-SOLE).
        unsafe impl<T: ?Sized + Sync, H: Hooks> Sync for $guard<'_, T, H> {}

        impl<'a, T: ?Sized, H: Hooks> $guard<'a, T, H> {
            /// Wraps the hold of the calling thread.
            ///
            /// # Safety
            /// GUARD-HOLDS and GUARD-SOLE: the calling thread holds `mutex`, and no other guard of
            /// it exists.
            #[inline(always)]
            pub(crate) unsafe fn new(mutex: &'a $mutex<T, H>) -> Self {
                $guard { mutex, not_send: PhantomData }
            }

            $(#[$map_doc])*
            pub fn map<U: ?Sized>(
                mut guard: Self,
                part: impl FnOnce(&mut T) -> &mut U,
            ) -> $mapped<'a, U, H> {
                // If `part` panics the guard is still whole, and releases.
                let data = NonNull::from(part(&mut *guard));
                let guard = ManuallyDrop::new(guard);
                $mapped { raw: &guard.mutex.raw, data, part: PhantomData, not_send: PhantomData }
            }

            /// Narrows the guard to a part of the data, if `part` finds one.
            ///
            /// # Errors
            /// The guard as it was, if `part` returned `None`.
            pub fn try_map<U: ?Sized>(
                mut guard: Self,
                part: impl FnOnce(&mut T) -> Option<&mut U>,
            ) -> Result<$mapped<'a, U, H>, Self> {
                let Some(data) = part(&mut *guard).map(NonNull::from) else { return Err(guard) };
                let guard = ManuallyDrop::new(guard);
                let (part, not_send) = (PhantomData, PhantomData);
                Ok($mapped { raw: &guard.mutex.raw, data, part, not_send })
            }
        }

        impl<T: ?Sized, H: Hooks> Deref for $guard<'_, T, H> {
            type Target = T;

            #[inline]
            fn deref(&self) -> &T {
                // SAFETY: GUARD-SOLE: the lock lets no other guard live meanwhile.
                unsafe { &*self.mutex.data() }
            }
        }

        impl<T: ?Sized, H: Hooks> DerefMut for $guard<'_, T, H> {
            #[inline]
            fn deref_mut(&mut self) -> &mut T {
                // SAFETY: GUARD-SOLE: the lock lets no other guard live meanwhile.
                unsafe { &mut *self.mutex.data() }
            }
        }

        impl<T: ?Sized, H: Hooks> Drop for $guard<'_, T, H> {
            #[inline]
            fn drop(&mut self) {
                // SAFETY: GUARD-HOLDS: the callers of `new` hold the lock for the guard.
                unsafe { self.mutex.raw.unlock() }
            }
        }

        $(#[$mapped_doc])*
        #[must_use = "the mutex is released as soon as the guard is dropped"]
        pub struct $mapped<'a, T: ?Sized, H: Hooks = Unnamed> {
            raw: &'a $raw,
            data: NonNull<T>,
            part: PhantomData<&'a mut T>,
            not_send: PhantomData<*const ()>,
        }

        // SAFETY: a reference to a guard gives no more than `&T`, and `T` is Sync (GUARD-SOLE).
        unsafe impl<T: ?Sized + Sync, H: Hooks> Sync for $mapped<'_, T, H> {}

        impl<'a, T: ?Sized, H: Hooks> $mapped<'a, T, H> {
            #[doc = concat!("Narrows the guard further. See [`", stringify!($guard), "::map`].")]
            pub fn map<U: ?Sized>(
                mut guard: Self,
                part: impl FnOnce(&mut T) -> &mut U,
            ) -> $mapped<'a, U, H> {
                let data = NonNull::from(part(&mut *guard));
                let guard = ManuallyDrop::new(guard);
                $mapped { raw: guard.raw, data, part: PhantomData, not_send: PhantomData }
            }

            #[doc = concat!("Narrows the guard further, if `part` finds a part. See [`", stringify!($guard), "::try_map`].")]
            ///
            /// # Errors
            /// The guard as it was, if `part` returned `None`.
            pub fn try_map<U: ?Sized>(
                mut guard: Self,
                part: impl FnOnce(&mut T) -> Option<&mut U>,
            ) -> Result<$mapped<'a, U, H>, Self> {
                let Some(data) = part(&mut *guard).map(NonNull::from) else { return Err(guard) };
                let guard = ManuallyDrop::new(guard);
                let (part, not_send) = (PhantomData, PhantomData);
                Ok($mapped { raw: guard.raw, data, part, not_send })
            }
        }

        impl<T: ?Sized, H: Hooks> Deref for $mapped<'_, T, H> {
            type Target = T;

            #[inline]
            fn deref(&self) -> &T {
                // SAFETY: GUARD-SOLE: the pointer leads into the data of a mutex that is held and
                // borrowed as long as the guard lives.
                unsafe { self.data.as_ref() }
            }
        }

        impl<T: ?Sized, H: Hooks> DerefMut for $mapped<'_, T, H> {
            #[inline]
            fn deref_mut(&mut self) -> &mut T {
                // SAFETY: GUARD-SOLE, as in `deref`; the guard is borrowed exclusively.
                unsafe { self.data.as_mut() }
            }
        }

        impl<T: ?Sized, H: Hooks> Drop for $mapped<'_, T, H> {
            #[inline]
            fn drop(&mut self) {
                // SAFETY: GUARD-HOLDS: `map` made it from a guard of the holder.
                unsafe { self.raw.unlock() }
            }
        }
    };
}
pub(crate) use guards;

guards! {
    /// The holder's access to the data of a [`Mutex`]; dropping it releases.
    ///
    /// Stays on its thread, since the owner alone releases:
    ///
    /// ```compile_fail,E0277
    /// let mutex = lockstead::Mutex::new(0);
    /// let guard = mutex.lock();
    /// std::thread::scope(|s| { s.spawn(move || drop(guard)); });
    /// ```
    MutexGuard of Mutex;
    /// A [`MutexGuard`] narrowed to a part of the data by [`MutexGuard::map`];
    /// dropping it releases the whole mutex.
    MappedMutexGuard over RawMutex<Linux, H, H::Waits>;
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
    map;
}

impl<'a, T: ?Sized, H: Hooks> MutexGuard<'a, T, H> {
    /// Returns the mutex that the guard holds.
    pub fn mutex(guard: &Self) -> &'a Mutex<T, H> {
        guard.mutex
    }

    /// Releases the mutex, runs `f`, and acquires the mutex again.
    ///
    /// ```
    /// use lockstead::{Mutex, MutexGuard};
    ///
    /// let mutex = Mutex::new(1);
    /// let mut guard = mutex.lock();
    /// MutexGuard::unlocked(&mut guard, || *mutex.lock() += 1);
    /// assert_eq!(*guard, 2);
    /// ```
    ///
    /// # Panics
    /// If `f` does; the mutex is acquired again before. The process ends where that is refused.
    #[track_caller]
    pub fn unlocked<R>(guard: &mut Self, f: impl FnOnce() -> R) -> R {
        /// Acquires again, also when `f` unwinds.
        struct Again<'a, T: ?Sized, H: Hooks>(&'a Mutex<T, H>);

        impl<T: ?Sized, H: Hooks> Drop for Again<'_, T, H> {
            fn drop(&mut self) {
                let bomb = AbortOnUnwind;
                core::mem::forget(self.0.lock());
                core::mem::forget(bomb);
            }
        }

        // SAFETY: GUARD-HOLDS: this thread holds the mutex; the guard is borrowed exclusively, so it
        // lends nobody the data until the mutex is acquired again (GUARD-SOLE).
        unsafe { guard.mutex.raw.unlock() };
        let _again = Again(guard.mutex);
        f()
    }

    /// Returns the lock behind the guard.
    pub(crate) fn raw(guard: &Self) -> &'a RawMutex<Linux, H, H::Waits> {
        &guard.mutex.raw
    }

    /// Panics for a guard whose mutex could not be taken again.
    #[track_caller]
    pub(crate) fn refuse(guard: &Self, error: LockError) -> ! {
        guard.mutex.refuse(error)
    }
}
