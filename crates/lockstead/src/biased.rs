//! The mutex that belongs to one thread until another one comes, with its data.

use crate::error::{Cancelled, Interrupted, TimedOut};
use crate::guard::shown_as_data;
use crate::refusal::{RefusedLock, refuse};
use crate::{
    CancelToken, Hooks, Owner, Unnamed,
    time::{self, forms},
};
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::panic::Location;
use lockstead_core::biased::BiasedHold;
use lockstead_core::{LockError, RawBiased, WaitBounds};
use lockstead_linux::Linux;
use std::time::{Duration, Instant};

/// A [`Mutex`](crate::Mutex) for data that one thread uses all but always: it belongs to
/// the first thread that locks it, which needs no atomic instruction for that, until
/// another thread comes.
///
/// # What it costs
/// - Its owner, for each lock and unlock: some loads, two plain stores. The figures
///   are in `docs/benchmarks.md`.
/// - The first thread that comes beside the owner: one `membarrier`, a system call that
///   interrupts the processors on which other threads of the process run, some
///   microseconds. If the owner holds the lock just then, it waits, as for any mutex, but
///   is not woken: it looks every 50 µs at first and every millisecond in the end.
/// - Everybody, for ever after: an ordinary mutex, and a look at whether it is one. The
///   bias does not come back by itself; see [`rebias`](Self::rebias).
/// - The first such lock of a process: a registration for the `membarrier`, which takes
///   milliseconds in a process of several threads.
///
/// It pays for a lock that its owner takes some thousand times before anybody else does.
/// For a lock that threads take in turn, take a [`Mutex`](crate::Mutex).
///
/// # Where it is an ordinary mutex from the start
/// Where the kernel refuses the `membarrier`: before Linux 4.14, or by a filter for system
/// calls. Should a process forbid itself the call afterwards, with locks biased already,
/// exclusion holds; but another thread then waits until the owner next uses the lock, or
/// ends.
///
/// # Threads that end, and `fork`
/// A lock whose owner has ended still belongs to it, or to whichever thread gets its slot
/// in the table of threads; the next to come ends that for the usual price. In the child
/// of `fork` the thread that called it keeps the locks that are its. What others owned is
/// taken over if it was free, and refused as lost if it was held. The child of `vfork` is
/// its parent's thread, to the locks as well; the `membarrier` reaches it.
///
/// In all else it behaves as a [`Mutex`](crate::Mutex): not recursive, not poisoned, and
/// the next holder may free it, for the release is its last access. It knows no
/// [`Condvar`](crate::Condvar).
///
/// # Panics
/// As a [`Mutex`](crate::Mutex): every call that may wait panics when the calling thread
/// holds the lock already, and when its holder was left behind by `fork`. A signal handler
/// may be told of recursion, too, where its thread is in the middle of acquiring the same
/// lock.
///
/// # Leaked guards
/// [`core::mem::forget`] on a guard leaves the lock locked for good.
///
/// # Source
/// Kawachiya, Koseki, Onodera, "Lock reservation" (2002); Dice, Moir, Scherer, "Quickly
/// reacquirable locks" (2003).
///
/// # Example
/// ```
/// use lockstead::BiasedMutex;
///
/// let seen = BiasedMutex::new(Vec::new());
/// for number in 0..1000 {
///     seen.lock().push(number); // by its owner: no atomic instruction
/// }
/// std::thread::scope(|s| {
///     s.spawn(|| seen.lock().clear()); // ends that
/// });
/// assert!(seen.lock().is_empty() && !seen.is_biased());
/// ```
#[repr(C)]
pub struct BiasedMutex<T: ?Sized, H: Hooks = Unnamed> {
    raw: RawBiased<Linux, H>,
    data: UnsafeCell<T>,
}

#[cfg(not(feature = "check"))]
const _: () = assert!(size_of::<BiasedMutex<()>>() == 16);

// SAFETY: GUARD-SOLE: other threads reach the data by moving it (into_inner) or through a guard, of
// which there is one at a time, so `T: Send` suffices. All threads share the state of the hooks.
unsafe impl<T: ?Sized + Send, H: Hooks<State: Sync>> Sync for BiasedMutex<T, H> {}

impl<T> BiasedMutex<T> {
    /// Creates a free mutex that guards `value`, and will belong to the first thread that locks it.
    #[inline]
    #[cfg_attr(feature = "check", track_caller)]
    pub const fn new(value: T) -> Self {
        #[cfg(feature = "check")]
        let raw =
            RawBiased::with_state(crate::check::CheckedLock::new(None, Some(Location::caller())));
        #[cfg(not(feature = "check"))]
        let raw = RawBiased::new();
        BiasedMutex { raw, data: UnsafeCell::new(value) }
    }
}

impl<T, H: Hooks> BiasedMutex<T, H> {
    /// Creates a free mutex that guards `value` and starts with this state of its hooks.
    #[inline]
    pub const fn with_hooks(state: H::State, value: T) -> Self {
        BiasedMutex { raw: RawBiased::with_state(state), data: UnsafeCell::new(value) }
    }

    /// Returns the data. Nobody else can hold the mutex: it is the caller's own.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized, H: Hooks> BiasedMutex<T, H> {
    /// Acquires the mutex, waiting as long as it takes.
    ///
    /// # Panics
    /// On recursive locking and on an owner lost in `fork` (see the type).
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> BiasedMutexGuard<'_, T, H> {
        self.settle(self.raw.lock(Location::caller()))
    }

    /// Acquires the mutex if it is free, without waiting for a holder. Returns `None` if it is
    /// held, also by the calling thread. Ends the bias if it belongs to another thread and is not
    /// seen to be held.
    #[inline]
    #[track_caller]
    pub fn try_lock(&self) -> Option<BiasedMutexGuard<'_, T, H>> {
        self.raw.try_lock(Location::caller()).map(|hold| self.guard(hold))
    }

    forms! {
        BiasedMutexGuard, LockError, |this, how| this.acquire(0, how), settle;
        panics: "On recursive locking and on an owner lost in `fork` (see the type).";
        /// Acquires the mutex, waiting at most `timeout`.
        lock_timeout;
        /// Acquires the mutex, waiting until `deadline` at most.
        lock_until;
        /// Acquires the mutex, unless a signal handler runs on this thread while it sleeps for
        /// it; see [`Mutex::lock_interruptible`](crate::Mutex::lock_interruptible).
        lock_interruptible;
        /// Acquires the mutex, unless `token` is fired, before the call or while it waits.
        lock_killable;
    }

    /// Does what [`lock`](Self::lock) does, telling the hooks that this mutex is nested inside
    /// another of the same class; see [`Mutex::lock_nested`](crate::Mutex::lock_nested).
    ///
    /// # Panics
    /// On recursive locking and on an owner lost in `fork` (see the type).
    #[inline]
    #[track_caller]
    pub fn lock_nested(&self, subclass: u32) -> BiasedMutexGuard<'_, T, H> {
        self.settle(self.acquire(subclass, || WaitBounds::FOREVER))
    }

    /// Tells whether it belongs to a thread, at some moment during the call: false before the first
    /// lock and after another thread has come.
    #[must_use]
    pub fn is_biased(&self) -> bool {
        self.raw.belongs_to().is_some()
    }

    /// Lets it belong to the next thread that locks it, whatever it was before. For who
    /// hands it to another thread, or knows that the threads that shared it are gone.
    ///
    /// ```
    /// let mut mutex = lockstead::BiasedMutex::new(0);
    /// *mutex.lock() += 1;
    /// mutex.rebias();
    /// std::thread::spawn(move || {
    ///     *mutex.lock() += 1; // the owner from here on
    /// });
    /// ```
    pub fn rebias(&mut self) {
        self.raw.rebias();
    }

    /// Tells whether anybody holds the mutex, at some moment during the call.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }

    /// Returns the holder of the mutex, at some moment during the call. Certain only about the
    /// calling thread itself. (Whom it is biased to is [`is_biased`](Self::is_biased)'s business.)
    #[must_use]
    pub fn owner(&self) -> Option<Owner> {
        self.raw.holder().map(Owner::new)
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

    #[inline]
    #[track_caller]
    fn acquire<'a>(
        &self,
        subclass: u32,
        how: impl FnOnce() -> WaitBounds<'a, Linux>,
    ) -> Result<BiasedHold, LockError> {
        self.raw.lock_lazily(how, subclass, Location::caller())
    }

    /// Builds the guard of a lock that the caller has just acquired in this way.
    #[inline(always)]
    fn guard(&self, hold: BiasedHold) -> BiasedMutexGuard<'_, T, H> {
        BiasedMutexGuard { mutex: self, hold, not_send: PhantomData }
    }

    /// Returns the guard of a successful acquisition; panics for one that would never have ended.
    #[inline(always)]
    #[track_caller]
    fn settle(&self, outcome: Result<BiasedHold, LockError>) -> BiasedMutexGuard<'_, T, H> {
        match outcome {
            Ok(hold) => self.guard(hold),
            Err(error) => self.refuse(error),
        }
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn refuse(&self, error: LockError) -> ! {
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

impl<T: Default, H: Hooks> Default for BiasedMutex<T, H> {
    fn default() -> Self {
        BiasedMutex::with_hooks(H::NEW, T::default())
    }
}

impl<T> From<T> for BiasedMutex<T> {
    fn from(value: T) -> Self {
        BiasedMutex::new(value)
    }
}

/// Shows whether it is held, not the data: to look at that would end the bias.
impl<T: ?Sized, H: Hooks> fmt::Debug for BiasedMutex<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("BiasedMutex");
        if let Some(name) = self.name() {
            out.field("name", &name);
        }
        out.field("biased", &self.is_biased()).field("locked", &self.is_locked());
        out.finish_non_exhaustive()
    }
}

shown_as_data!(BiasedMutexGuard);

/// The holder's access to the data of a [`BiasedMutex`]; dropping it releases.
///
/// Stays on its thread, since the owner alone releases:
///
/// ```compile_fail,E0277
/// let mutex = lockstead::BiasedMutex::new(0);
/// let guard = mutex.lock();
/// std::thread::scope(|s| { s.spawn(move || drop(guard)); });
/// ```
#[must_use = "the mutex is released as soon as the guard is dropped"]
pub struct BiasedMutexGuard<'a, T: ?Sized, H: Hooks = Unnamed> {
    mutex: &'a BiasedMutex<T, H>,
    hold: BiasedHold,
    not_send: PhantomData<*const ()>,
}

// SAFETY: a reference to a guard gives no more than `&T`, and `T` is Sync (GUARD-SOLE).
unsafe impl<T: ?Sized + Sync, H: Hooks> Sync for BiasedMutexGuard<'_, T, H> {}

impl<T: ?Sized, H: Hooks> Deref for BiasedMutexGuard<'_, T, H> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: GUARD-SOLE: the lock lets no other guard live meanwhile.
        unsafe { &*self.mutex.data.get() }
    }
}

impl<T: ?Sized, H: Hooks> DerefMut for BiasedMutexGuard<'_, T, H> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: GUARD-SOLE: the lock lets no other guard live meanwhile.
        unsafe { &mut *self.mutex.data.get() }
    }
}

impl<T: ?Sized, H: Hooks> Drop for BiasedMutexGuard<'_, T, H> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: GUARD-HOLDS, which `guard` keeps; `hold` says how the thread acquired.
        unsafe { self.mutex.raw.unlock(self.hold) }
    }
}
