//! The real-time mutex with its data.

use super::Owner;
use super::guard::RtMutexGuard;
use super::raw::Raw;
use super::refusal::refuse;
use crate::error::{Cancelled, Interrupted, TimedOut};
use crate::named::Label;
use crate::{
    CancelToken, Hooks, Named, Site, Unnamed,
    time::{self, forms},
};
use core::cell::UnsafeCell;
use core::fmt;
use core::panic::Location;
use lockstead_core::WaitBounds;
use lockstead_linux::pi::PiError;
use std::time::{Duration, Instant};

/// Mutual exclusion with priority inheritance for the data inside, among the threads of
/// one process.
///
/// 8 bytes beside the data; all-zero bytes are an unlocked mutex. One owner, which
/// alone releases, by dropping the guard; not recursive ([`RtRecursiveMutex`] is).
/// While threads wait, the owner runs with the highest priority among them and its own.
/// The [module](super) says how it differs from [`Mutex`](crate::Mutex), and for whom
/// it is. Its memory may be freed by the next holder as soon as that one has acquired
/// it.
///
/// [`RtRecursiveMutex`]: super::RtRecursiveMutex
///
/// # Panics
/// Every call that may wait panics, rather than hang, when the calling thread holds the
/// mutex already, when the holder has ended or was left behind by `fork`, and when the
/// wait would close a cycle of waiting threads that nothing else ends.
/// [`try_lock`](Self::try_lock) just fails.
///
/// # Example
/// ```
/// use lockstead::rt::RtMutex;
///
/// static TOTAL: RtMutex<u64> = RtMutex::new(0);
/// std::thread::scope(|s| {
///     for _ in 0..4 {
///         s.spawn(|| *TOTAL.lock() += 1);
///     }
/// });
/// assert_eq!(*TOTAL.lock(), 4);
/// ```
#[repr(C)]
pub struct RtMutex<T: ?Sized, H: Hooks = Unnamed> {
    pub(super) raw: Raw<H>,
    data: UnsafeCell<T>,
}

/// An [`RtMutex`] with a name and the place of its latest acquisition.
pub type NamedRtMutex<T> = RtMutex<T, Named>;

#[cfg(not(feature = "check"))]
const _: () = assert!(size_of::<RtMutex<()>>() == 8);
#[cfg(not(feature = "check"))]
const _: () = assert!(size_of::<NamedRtMutex<()>>() == 32);

// SAFETY: GUARD-SOLE: other threads reach the data by moving it (into_inner) or through a guard, of
// which there is one at a time, so `T: Send` suffices. All threads share the state of the hooks.
unsafe impl<T: ?Sized + Send, H: Hooks<State: Sync>> Sync for RtMutex<T, H> {}

impl<T> RtMutex<T> {
    /// Creates a free mutex that guards `value`.
    #[inline]
    #[cfg_attr(feature = "check", track_caller)]
    pub const fn new(value: T) -> Self {
        #[cfg(feature = "check")]
        let state = crate::check::CheckedLock::new(None, Some(Location::caller()));
        #[cfg(not(feature = "check"))]
        let state = ();
        RtMutex::with_hooks(state, value)
    }
}

impl<T> NamedRtMutex<T> {
    /// Creates a free mutex that guards `value` and is called `name` in messages.
    pub const fn named(name: &'static str, value: T) -> Self {
        RtMutex::with_hooks(Label::new(Some(name)), value)
    }
}

impl<T: ?Sized> NamedRtMutex<T> {
    /// Returns where the mutex was last acquired; `None` if it never was.
    #[must_use]
    pub fn acquired_at(&self) -> Option<Site> {
        Named::acquired_at(self.raw.state())
    }
}

impl<T, H: Hooks> RtMutex<T, H> {
    /// Creates a free mutex that guards `value` and starts with this state of its hooks.
    #[inline]
    pub const fn with_hooks(state: H::State, value: T) -> Self {
        RtMutex { raw: Raw::new(state), data: UnsafeCell::new(value) }
    }

    /// Returns the data. Nobody else can hold the mutex: it is the caller's own.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized, H: Hooks> RtMutex<T, H> {
    /// Acquires the mutex, waiting as long as it takes.
    ///
    /// # Panics
    /// If that would never end (see the type).
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> RtMutexGuard<'_, T, H> {
        self.lock_nested(0)
    }

    /// Acquires the mutex if it is free, without waiting. Returns `None` if it is held, also by the
    /// calling thread.
    #[inline]
    #[track_caller]
    pub fn try_lock(&self) -> Option<RtMutexGuard<'_, T, H>> {
        // SAFETY: GUARD-HOLDS: this call has just acquired the lock.
        self.raw.try_lock(Location::caller()).then(|| unsafe { RtMutexGuard::new(self) })
    }

    forms! {
        RtMutexGuard, PiError, |this, how| this.raw.lock(how, 0, Location::caller()), settle;
        panics: "On recursive locking and on a lost owner (see the type).";
        /// Acquires the mutex, waiting at most `timeout`.
        lock_timeout;
        /// Acquires the mutex, waiting until `deadline` at most.
        lock_until;
        /// Acquires the mutex, unless a signal handler is to run on this thread while it waits.
        /// The handler runs when the wait has ended, up to 5 ms late, and every 5 ms the wait
        /// begins anew, behind others of the same priority.
        lock_interruptible;
        /// Acquires the mutex, unless `token` is fired, before the call or while it waits.
        /// Firing it ends the wait up to 5 ms late, and every 5 ms the wait begins anew,
        /// behind others of the same priority.
        lock_killable;
    }

    /// Does what [`lock`](Self::lock) does, telling the hooks that this mutex is nested inside
    /// another of the same class: level `subclass`, 0 for the outermost.
    ///
    /// # Panics
    /// If the wait would never end (see the type).
    #[inline]
    #[track_caller]
    pub fn lock_nested(&self, subclass: u32) -> RtMutexGuard<'_, T, H> {
        self.settle(self.raw.lock(|| WaitBounds::FOREVER, subclass, Location::caller()))
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

    /// Tells whether an owner has ended while it held the mutex, and somebody has found out: nobody
    /// acquires it any more. The data is reached by [`get_mut`](Self::get_mut) and
    /// [`into_inner`](Self::into_inner) only.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.raw.word().is_lost()
    }

    /// Returns the name given to the mutex.
    #[must_use]
    pub fn name(&self) -> Option<&'static str> {
        H::name(self.raw.state())
    }

    /// Returns what the hooks keep in this mutex.
    #[must_use]
    pub fn hook_state(&self) -> &H::State {
        self.raw.state()
    }

    /// Returns the data, without locking: nobody else can reach the mutex.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }

    /// Returns the address of the data, for the guards.
    #[inline(always)]
    pub(super) fn data(&self) -> *mut T {
        self.data.get()
    }

    #[inline]
    #[track_caller]
    fn settle(&self, outcome: Result<(), PiError>) -> RtMutexGuard<'_, T, H> {
        match outcome {
            // SAFETY: GUARD-HOLDS: this call has just acquired the lock.
            Ok(()) => unsafe { RtMutexGuard::new(self) },
            Err(error) => refuse(error, &self.raw.subject::<T>("real-time mutex")),
        }
    }
}

impl<T: Default, H: Hooks> Default for RtMutex<T, H> {
    fn default() -> Self {
        RtMutex::with_hooks(H::NEW, T::default())
    }
}

impl<T> From<T> for RtMutex<T> {
    fn from(value: T) -> Self {
        RtMutex::new(value)
    }
}

/// Shows the data if the mutex is free; never waits.
impl<T: ?Sized + fmt::Debug, H: Hooks> fmt::Debug for RtMutex<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("RtMutex");
        if let Some(name) = self.name() {
            out.field("name", &name);
        }
        match self.try_lock() {
            Some(guard) => out.field("data", &&*guard),
            None => out.field("data", &format_args!("<locked>")),
        };
        out.finish_non_exhaustive()
    }
}
