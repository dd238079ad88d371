//! The real-time mutex that its holder may acquire again.

use super::Owner;
use super::raw::Raw;
use super::refusal::{refuse, too_deep};
use crate::error::{Cancelled, Interrupted, TimedOut};
use crate::guard::shown_as_data;
use crate::{
    CancelToken, Hooks, Unnamed,
    time::{self, forms},
};
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::panic::Location;
use lockstead_core::WaitBounds;
use lockstead_linux::Linux;
use lockstead_linux::pi::PiError;
use std::time::{Duration, Instant};

/// An [`RtMutex`](super::RtMutex) that its holder may acquire again, and releases with the last of
/// its guards.
///
/// 16 bytes beside the data; all-zero bytes are an unlocked mutex. Several guards of one
/// thread live at a time: they share the data, so that it is changed by way of a
/// [`Cell`] or [`RefCell`](core::cell::RefCell). The hooks see the first
/// acquisition and the last release only.
///
/// # Panics
/// As [`RtMutex`](super::RtMutex), but for recursive locking, up to 2³² guards of a
/// thread.
///
/// # Example
/// ```
/// use lockstead::rt::RtRecursiveMutex;
/// use std::cell::Cell;
///
/// let level = RtRecursiveMutex::new(Cell::new(1));
/// let outer = level.lock();
/// level.lock().set(2); // would panic with an RtMutex
/// assert_eq!(outer.get(), 2);
/// assert!(level.is_locked());
/// drop(outer);
/// assert!(!level.is_locked());
/// ```
#[repr(C)]
pub struct RtRecursiveMutex<T: ?Sized, H: Hooks = Unnamed> {
    raw: Raw<H>,
    /// The number of acquisitions after the first one; the holder's alone, 0 while there is none.
    again: Cell<u32>,
    data: T,
}

#[cfg(not(feature = "check"))]
const _: () = assert!(size_of::<RtRecursiveMutex<()>>() == 16);

// SAFETY: GUARD-SOLE: only the holder's thread reaches the data and `again`, which is one at a
// time, or whoever moves them, so `T: Send` suffices. All threads share the state of the hooks.
unsafe impl<T: ?Sized + Send, H: Hooks<State: Sync>> Sync for RtRecursiveMutex<T, H> {}

impl<T> RtRecursiveMutex<T> {
    /// Creates a free mutex that guards `value`.
    #[inline]
    #[cfg_attr(feature = "check", track_caller)]
    pub const fn new(value: T) -> Self {
        #[cfg(feature = "check")]
        let state = crate::check::CheckedLock::new(None, Some(Location::caller()));
        #[cfg(not(feature = "check"))]
        let state = ();
        RtRecursiveMutex::with_hooks(state, value)
    }
}

impl<T, H: Hooks> RtRecursiveMutex<T, H> {
    /// Creates a free mutex that guards `value` and starts with this state of its hooks.
    #[inline]
    pub const fn with_hooks(state: H::State, value: T) -> Self {
        RtRecursiveMutex { raw: Raw::new(state), again: Cell::new(0), data: value }
    }

    /// Returns the data. Nobody else can hold the mutex: it is the caller's own.
    pub fn into_inner(self) -> T {
        self.data
    }
}

impl<T: ?Sized, H: Hooks> RtRecursiveMutex<T, H> {
    /// Acquires the mutex, waiting as long as it takes.
    ///
    /// # Panics
    /// If that would never end (see the type).
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> RtRecursiveMutexGuard<'_, T, H> {
        self.settle(self.acquire(|| WaitBounds::FOREVER))
    }

    /// Acquires the mutex if it is free or the caller's, without waiting.
    #[inline]
    #[track_caller]
    pub fn try_lock(&self) -> Option<RtRecursiveMutexGuard<'_, T, H>> {
        if self.raw.word().is_mine() {
            self.enter_again();
        } else if !self.raw.try_lock(Location::caller()) {
            return None;
        }
        Some(self.settle(Ok(())))
    }

    forms! {
        RtRecursiveMutexGuard, PiError, |this, how| this.acquire(how), settle;
        panics: "On a lost owner (see the type).";
        /// Acquires the mutex, waiting at most `timeout`.
        lock_timeout;
        /// Acquires the mutex, waiting until `deadline` at most.
        lock_until;
        /// Acquires the mutex, unless a signal handler is to run on this thread while it waits;
        /// see [`RtMutex::lock_interruptible`](super::RtMutex::lock_interruptible).
        lock_interruptible;
        /// Acquires the mutex, unless `token` is fired; see
        /// [`RtMutex::lock_killable`](super::RtMutex::lock_killable).
        lock_killable;
    }

    /// Tells whether anybody holds the mutex, at some moment during the call.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.raw.word().is_locked()
    }

    /// Returns the holder of the mutex, at some moment during the call. Certain only about the
    /// calling thread itself.
    #[must_use]
    pub fn owner(&self) -> Option<Owner> {
        self.raw.owner()
    }

    /// Does what [`RtMutex::is_lost`](super::RtMutex::is_lost) does.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.raw.word().is_lost()
    }

    /// Returns how many guards the calling thread has; 0 if it does not hold the mutex.
    #[must_use]
    pub fn depth(&self) -> u64 {
        if self.raw.word().is_mine() { u64::from(self.again.get()) + 1 } else { 0 }
    }

    /// Returns the name given to the mutex.
    #[must_use]
    pub fn name(&self) -> Option<&'static str> {
        H::name(self.raw.state())
    }

    /// Returns the data, without locking: nobody else can reach the mutex.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.data
    }

    #[inline]
    #[track_caller]
    fn acquire<'a>(&self, how: impl FnOnce() -> WaitBounds<'a, Linux>) -> Result<(), PiError> {
        if self.raw.word().is_mine() {
            self.enter_again();
            return Ok(());
        }
        self.raw.lock(how, 0, Location::caller())
    }

    /// Counts one acquisition more. Only the holder calls it.
    #[inline]
    #[track_caller]
    fn enter_again(&self) {
        match self.again.get().checked_add(1) {
            Some(again) => self.again.set(again),
            None => too_deep(&self.raw.subject::<T>(KIND)),
        }
    }

    #[inline]
    #[track_caller]
    fn settle(&self, outcome: Result<(), PiError>) -> RtRecursiveMutexGuard<'_, T, H> {
        match outcome {
            Ok(()) => RtRecursiveMutexGuard { mutex: self, not_send: PhantomData },
            Err(error) => refuse(error, &self.raw.subject::<T>(KIND)),
        }
    }
}

const KIND: &str = "recursive real-time mutex";

impl<T: Default, H: Hooks> Default for RtRecursiveMutex<T, H> {
    fn default() -> Self {
        RtRecursiveMutex::with_hooks(H::NEW, T::default())
    }
}

/// Shows the data if the mutex is free or the caller's; never waits.
impl<T: ?Sized + fmt::Debug, H: Hooks> fmt::Debug for RtRecursiveMutex<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("RtRecursiveMutex");
        match self.try_lock() {
            Some(guard) => out.field("data", &&*guard),
            None => out.field("data", &format_args!("<locked>")),
        };
        out.finish_non_exhaustive()
    }
}

/// A holder's access to the data of an [`RtRecursiveMutex`]; dropping the last one
/// releases. Stays on its thread.
#[must_use = "the mutex is released as soon as the last guard is dropped"]
pub struct RtRecursiveMutexGuard<'a, T: ?Sized, H: Hooks = Unnamed> {
    mutex: &'a RtRecursiveMutex<T, H>,
    not_send: PhantomData<*const ()>,
}

// SAFETY: a reference to a guard gives no more than `&T`, and `T` is Sync (GUARD-SOLE).
unsafe impl<T: ?Sized + Sync, H: Hooks> Sync for RtRecursiveMutexGuard<'_, T, H> {}

impl<T: ?Sized, H: Hooks> Deref for RtRecursiveMutexGuard<'_, T, H> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.mutex.data
    }
}

impl<T: ?Sized, H: Hooks> Drop for RtRecursiveMutexGuard<'_, T, H> {
    #[inline]
    fn drop(&mut self) {
        match self.mutex.again.get() {
            // SAFETY: GUARD-HOLDS, and this is the last guard of the thread.
            0 => unsafe { self.mutex.raw.unlock() },
            again => self.mutex.again.set(again - 1),
        }
    }
}

shown_as_data!(RtRecursiveMutexGuard);
