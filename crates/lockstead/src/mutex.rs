//! The mutex with its data.

use crate::error::{Cancelled, Interrupted, TimedOut};
use crate::guard::MutexGuard;
use crate::refusal::{RefusedLock, refuse};
use crate::{
    CancelToken, Hooks, Owner, Unnamed,
    time::{self, forms},
};
use core::cell::UnsafeCell;
use core::fmt;
use core::panic::Location;
use lockstead_core::{LockError, RawMutex, WaitBounds};
use lockstead_linux::Linux;
use std::time::{Duration, Instant};

/// Mutual exclusion for the data inside, among the threads of one process.
///
/// 8 bytes beside the data; all-zero bytes are an unlocked mutex. One owner,
/// which alone releases, by dropping the guard; not recursive. Barging is
/// allowed for speed, starvation is not: a thread that has waited longer than
/// a bound asks to be handed the lock at the next release. The bound is a few
/// milliseconds, more the more threads sleep for locks
/// ([`Policy::BOUND`](lockstead_core::Policy::BOUND) and `SHARE` of
/// [`lockstead_core::Standard`]).
///
/// A mutex may be freed by the next holder as soon as that one has acquired
/// it: the releasing thread does not touch it any more (section "Lifetime" of
/// [`lockstead_core::mutex`]).
///
/// `H` watches the mutex: nothing by default, at no cost;
/// [`Named`](crate::Named) keeps a name and a call site.
///
/// # Panics
/// Every call that may wait panics, rather than hang, when the calling thread
/// holds the mutex already, and when the holder was left behind by `fork` in
/// the parent process. The panic shows the name of the mutex (or its type and
/// address), the place of this call and, for a named mutex, of the
/// acquisition. [`try_lock`](Self::try_lock) just fails.
///
/// # Leaked guards
/// [`core::mem::forget`] on a guard leaves the mutex locked for good. When the
/// thread that did so has ended, a later thread may be taken for it, and be
/// told of recursive locking.
///
/// # Source
/// The kernel's generic mutex (Molnar, 2005) and its optimistic spinning
/// (Zijlstra, Long, 2009 and 2013).
///
/// # Example
/// ```
/// use lockstead::Mutex;
///
/// static TOTAL: Mutex<u64> = Mutex::new(0);
/// std::thread::scope(|s| {
///     for _ in 0..4 {
///         s.spawn(|| *TOTAL.lock() += 1);
///     }
/// });
/// assert_eq!(*TOTAL.lock(), 4);
/// ```
#[repr(C)]
pub struct Mutex<T: ?Sized, H: Hooks = Unnamed> {
    pub(crate) raw: RawMutex<Linux, H, H::Waits>,
    data: UnsafeCell<T>,
}

#[cfg(not(feature = "check"))]
const _: () = assert!(size_of::<Mutex<()>>() == 8);
#[cfg(not(feature = "check"))]
const _: () = assert!(size_of::<Mutex<u64>>() == 16);

// SAFETY: GUARD-SOLE: other threads reach the data by moving it (into_inner) or through a guard, of
// which there is one at a time, so `T: Send` suffices. All threads share the state of the hooks.
unsafe impl<T: ?Sized + Send, H: Hooks<State: Sync>> Sync for Mutex<T, H> {}

impl<T> Mutex<T> {
    /// Creates a free mutex that guards `value`.
    #[inline]
    #[cfg_attr(feature = "check", track_caller)]
    pub const fn new(value: T) -> Self {
        #[cfg(feature = "check")]
        let raw =
            RawMutex::with_state(crate::check::CheckedLock::new(None, Some(Location::caller())));
        #[cfg(not(feature = "check"))]
        let raw = RawMutex::new();
        Mutex { raw, data: UnsafeCell::new(value) }
    }
}

impl<T, H: Hooks> Mutex<T, H> {
    /// Creates a free mutex that guards `value` and starts with this state of its hooks.
    #[inline]
    pub const fn with_hooks(state: H::State, value: T) -> Self {
        Mutex { raw: RawMutex::with_state(state), data: UnsafeCell::new(value) }
    }

    /// Returns the data. Nobody else can hold the mutex: it is the caller's own.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized, H: Hooks> Mutex<T, H> {
    /// Acquires the mutex, waiting as long as it takes.
    ///
    /// # Panics
    /// On recursive locking and on an owner lost in `fork` (see the type).
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T, H> {
        match self.raw.lock(Location::caller()) {
            // SAFETY: GUARD-HOLDS: this call has just acquired the lock.
            Ok(()) => unsafe { MutexGuard::new(self) },
            Err(error) => self.refuse(error),
        }
    }

    /// Acquires the mutex if it is free, without waiting. Returns `None` if it is held, also by the
    /// calling thread.
    ///
    /// ```
    /// let mutex = lockstead::Mutex::new(0);
    /// let guard = mutex.try_lock().expect("free");
    /// assert!(mutex.try_lock().is_none());
    /// # drop(guard);
    /// ```
    #[inline]
    #[track_caller]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T, H>> {
        // SAFETY: GUARD-HOLDS: this call has just acquired the lock.
        self.raw.try_lock(Location::caller()).then(|| unsafe { MutexGuard::new(self) })
    }

    forms! {
        MutexGuard, LockError, |this, how| this.acquire(0, how), settle;
        panics: "On recursive locking and on an owner lost in `fork` (see the type).";
        /// Acquires the mutex, waiting at most `timeout`. Zero: like [`try_lock`](Self::try_lock),
        /// but panics on recursion.
        ///
        /// ```
        /// use std::time::Duration;
        /// let mutex = lockstead::Mutex::new(7);
        /// match mutex.lock_timeout(Duration::from_millis(20)) {
        ///     Ok(guard) => assert_eq!(*guard, 7),
        ///     Err(late) => eprintln!("{late}"),
        /// }
        /// ```
        lock_timeout;
        /// Acquires the mutex, waiting until `deadline` at most.
        lock_until;
        /// Acquires the mutex, unless a signal handler runs on this thread while
        /// it sleeps for it; with or without `SA_RESTART`. The kernel's
        /// `mutex_lock_interruptible`.
        ///
        /// A handler that ran before the thread went to sleep does not end the
        /// wait: let the handler also set a flag, and check it before the call; to
        /// close the gap between the two altogether, let the handler fire a
        /// [`CancelToken`] and use [`lock_killable`](Self::lock_killable).
        lock_interruptible;
        /// Acquires the mutex, unless `token` is fired, before the call or while
        /// it waits. The kernel's `mutex_lock_killable`. See [`CancelToken`] for
        /// an example.
        lock_killable;
    }

    /// Does what [`lock`](Self::lock) does, telling the hooks that this mutex is nested inside
    /// another of the same class: level `subclass`, 0 for the outermost. Means nothing to an
    /// ordinary mutex. The kernel's `mutex_lock_nested`.
    ///
    /// # Panics
    /// On recursive locking and on an owner lost in `fork` (see the type).
    #[inline]
    #[track_caller]
    pub fn lock_nested(&self, subclass: u32) -> MutexGuard<'_, T, H> {
        self.settle(self.acquire(subclass, || WaitBounds::FOREVER))
    }

    /// Does what [`lock_interruptible`](Self::lock_interruptible) does, with a nesting level, as
    /// for [`lock_nested`](Self::lock_nested).
    ///
    /// # Errors
    /// [`Interrupted`]: a handler ran.
    ///
    /// # Panics
    /// On recursive locking and on an owner lost in `fork` (see the type).
    #[inline]
    #[track_caller]
    pub fn lock_interruptible_nested(
        &self,
        subclass: u32,
    ) -> Result<MutexGuard<'_, T, H>, Interrupted> {
        match self.acquire(subclass, || time::INTERRUPTIBLE) {
            Err(LockError::Interrupted) => Err(Interrupted),
            other => Ok(self.settle(other)),
        }
    }

    /// Tells whether anybody holds the mutex, at some moment during the call.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }

    /// Returns the holder of the mutex, at some moment during the call. Certain only about the
    /// calling thread itself.
    ///
    /// ```
    /// let mutex = lockstead::Mutex::new(());
    /// assert!(mutex.owner().is_none());
    /// let guard = mutex.lock();
    /// let owner = mutex.owner().expect("held");
    /// assert!(owner.is_current());
    /// # drop(guard);
    /// ```
    #[must_use]
    pub fn owner(&self) -> Option<Owner> {
        self.raw.owner().map(Owner::new)
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
    pub(crate) fn data(&self) -> *mut T {
        self.data.get()
    }

    #[inline]
    #[track_caller]
    fn acquire<'a>(
        &self,
        subclass: u32,
        how: impl FnOnce() -> WaitBounds<'a, Linux>,
    ) -> Result<(), LockError> {
        self.raw.lock_lazily(how, subclass, Location::caller())
    }

    /// Returns the guard of a successful acquisition; panics for one that would never have ended.
    #[inline]
    #[track_caller]
    fn settle(&self, outcome: Result<(), LockError>) -> MutexGuard<'_, T, H> {
        match outcome {
            // SAFETY: GUARD-HOLDS: this call has just acquired the lock.
            Ok(()) => unsafe { MutexGuard::new(self) },
            Err(error) => self.refuse(error),
        }
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(crate) fn refuse(&self, error: LockError) -> ! {
        refuse(
            error,
            &RefusedLock {
                kind: "mutex",
                name: self.name(),
                guards: core::any::type_name::<T>(),
                address: self.raw.id().0,
                acquired_at: H::acquired_at(self.raw.state()),
            },
        )
    }
}

impl<T: Default, H: Hooks> Default for Mutex<T, H> {
    fn default() -> Self {
        Mutex::with_hooks(H::NEW, T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Mutex::new(value)
    }
}

/// Shows the data if the mutex is free; never waits.
impl<T: ?Sized + fmt::Debug, H: Hooks> fmt::Debug for Mutex<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Mutex");
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
