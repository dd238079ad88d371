//! The reader-writer lock with its data.

use crate::error::{Cancelled, Interrupted, TimedOut};
use crate::refusal::{RefusedLock, refuse};
use crate::rwlock_guard::{RwLockReadGuard, RwLockWriteGuard};
use crate::{
    CancelToken, Hooks, Owner, Unnamed,
    time::{self, forms},
};
use core::cell::UnsafeCell;
use core::fmt;
use core::panic::Location;
use lockstead_core::{LockError, RawRwLock, WaitBounds};
use lockstead_linux::Linux;
use std::time::{Duration, Instant};

/// Many readers or one writer of the data inside. 16 bytes beside the data;
/// all-zero bytes are a free lock.
///
/// Neither side starves: writers are served in turn, and readers that come
/// while a writer has waited past the bound (see [`Mutex`](crate::Mutex)) wait
/// behind it. For short sections a
/// [`Mutex`](crate::Mutex) is faster: readers still write to the lock.
///
/// Reading twice on one thread, one guard inside the other, may wait for ever:
/// a writer may have been promised the lock in between. It is not detected.
///
/// # Panics
/// Every call that may wait panics, rather than hang, when the calling thread
/// holds the lock for writing, and when the writer was left behind by `fork` in
/// the parent process. (A reader that was left behind cannot be told from
/// others: a writer waits for it.) A call that reads panics when 1,048,575 read
/// already, some of whom must have leaked their guards.
///
/// # Example
/// ```
/// use lockstead::RwLock;
///
/// let routes = RwLock::new(vec!["/"]);
/// {
///     let (one, two) = (routes.read(), routes.try_read());
///     assert_eq!(one.len() + two.map_or(0, |routes| routes.len()), 2);
/// }
/// routes.write().push("/about");
/// assert_eq!(routes.into_inner().len(), 2);
/// ```
#[repr(C)]
pub struct RwLock<T: ?Sized, H: Hooks = Unnamed> {
    pub(crate) raw: RawRwLock<Linux, H>,
    data: UnsafeCell<T>,
}

#[cfg(not(feature = "check"))]
const _: () = assert!(size_of::<RwLock<()>>() == 16);

// SAFETY: GUARD-SOLE: readers share `&T` among threads (Sync), and the writer may drop or replace
// the data for another thread (Send). All threads share the state of the hooks.
unsafe impl<T: ?Sized + Send + Sync, H: Hooks<State: Sync>> Sync for RwLock<T, H> {}

impl<T> RwLock<T> {
    /// Creates a free lock that guards `value`.
    #[inline]
    #[cfg_attr(feature = "check", track_caller)]
    pub const fn new(value: T) -> Self {
        #[cfg(feature = "check")]
        let raw = RawRwLock::with_state(
            crate::check::CheckedLock::new(None, Some(Location::caller())).reader_writer(),
        );
        #[cfg(not(feature = "check"))]
        let raw = RawRwLock::new();
        RwLock { raw, data: UnsafeCell::new(value) }
    }
}

impl<T, H: Hooks> RwLock<T, H> {
    /// Creates a free lock that guards `value` and starts with this state of its hooks.
    #[inline]
    pub const fn with_hooks(state: H::State, value: T) -> Self {
        RwLock { raw: RawRwLock::with_state(state), data: UnsafeCell::new(value) }
    }

    /// Returns the data. Nobody else can hold the lock: it is the caller's own.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized, H: Hooks> RwLock<T, H> {
    /// Acquires the lock for reading, waiting as long as it takes.
    ///
    /// # Panics
    /// See the type.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> RwLockReadGuard<'_, T, H> {
        self.settle_read(self.take_read(|| WaitBounds::FOREVER))
    }

    /// Acquires the lock for reading if that needs no waiting.
    #[inline]
    #[track_caller]
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T, H>> {
        // SAFETY: GUARD-HOLDS: this call has just acquired the lock.
        self.raw.try_read(Location::caller()).then(|| unsafe { RwLockReadGuard::new(self) })
    }

    forms! {
        RwLockReadGuard, LockError, |this, how| this.take_read(how), settle_read;
        panics: "See the type.";
        /// Acquires the lock for reading, waiting at most `timeout`.
        read_timeout;
        /// Acquires the lock for reading, waiting until `deadline` at most.
        read_until;
        /// Acquires the lock for reading, unless a signal handler runs on this thread
        /// while it sleeps for it; see
        /// [`Mutex::lock_interruptible`](crate::Mutex::lock_interruptible).
        read_interruptible;
        /// Acquires the lock for reading, unless `token` is fired, before the call or
        /// while it waits.
        read_killable;
    }

    /// Acquires the lock for writing, waiting as long as it takes.
    ///
    /// # Panics
    /// See the type.
    #[inline]
    #[track_caller]
    pub fn write(&self) -> RwLockWriteGuard<'_, T, H> {
        self.settle_write(self.take_write(|| WaitBounds::FOREVER))
    }

    /// Acquires the lock for writing if that needs no waiting.
    #[inline]
    #[track_caller]
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T, H>> {
        // SAFETY: GUARD-HOLDS: this call has just acquired the lock.
        self.raw.try_write(Location::caller()).then(|| unsafe { RwLockWriteGuard::new(self) })
    }

    forms! {
        RwLockWriteGuard, LockError, |this, how| this.take_write(how), settle_write;
        panics: "See the type.";
        /// Acquires the lock for writing, waiting at most `timeout`.
        write_timeout;
        /// Acquires the lock for writing, waiting until `deadline` at most.
        write_until;
        /// Acquires the lock for writing, unless a signal handler runs on this thread
        /// while it sleeps for it; see
        /// [`Mutex::lock_interruptible`](crate::Mutex::lock_interruptible).
        write_interruptible;
        /// Acquires the lock for writing, unless `token` is fired, before the call or
        /// while it waits.
        write_killable;
    }

    /// Tells whether anybody holds the lock, at some moment during the call.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }

    /// Returns how many readers hold the lock, at some moment during the call.
    #[must_use]
    pub fn readers(&self) -> u32 {
        self.raw.readers()
    }

    /// Returns the holder of the lock for writing, at some moment during the call.
    #[must_use]
    pub fn writer(&self) -> Option<Owner> {
        self.raw.writer().map(Owner::new)
    }

    /// Returns the name given to the lock.
    #[must_use]
    pub fn name(&self) -> Option<&'static str> {
        H::name(self.raw.state())
    }

    /// Returns what the hooks keep in this lock.
    #[must_use]
    pub fn hook_state(&self) -> &H::State {
        self.raw.state()
    }

    /// Returns the data, without locking: nobody else can reach the lock.
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
    fn take_read<'a>(&self, how: impl FnOnce() -> WaitBounds<'a, Linux>) -> Result<(), LockError> {
        self.raw.read_lazily(how, 0, Location::caller())
    }

    #[inline]
    #[track_caller]
    pub(crate) fn settle_read(&self, outcome: Result<(), LockError>) -> RwLockReadGuard<'_, T, H> {
        match outcome {
            // SAFETY: GUARD-HOLDS: this call has just acquired the lock.
            Ok(()) => unsafe { RwLockReadGuard::new(self) },
            Err(error) => self.refuse(error),
        }
    }

    #[inline]
    #[track_caller]
    fn take_write<'a>(&self, how: impl FnOnce() -> WaitBounds<'a, Linux>) -> Result<(), LockError> {
        self.raw.write_lazily(how, 0, Location::caller())
    }

    #[inline]
    #[track_caller]
    fn settle_write(&self, outcome: Result<(), LockError>) -> RwLockWriteGuard<'_, T, H> {
        match outcome {
            // SAFETY: GUARD-HOLDS: this call has just acquired the lock.
            Ok(()) => unsafe { RwLockWriteGuard::new(self) },
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
                kind: "reader-writer lock",
                name: self.name(),
                guards: core::any::type_name::<T>(),
                address: self.raw.id().0,
                acquired_at: H::acquired_at(self.raw.state()),
            },
        )
    }
}

impl<T: Default, H: Hooks> Default for RwLock<T, H> {
    fn default() -> Self {
        RwLock::with_hooks(H::NEW, T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        RwLock::new(value)
    }
}

/// Shows the data if no writer holds the lock; never waits.
impl<T: ?Sized + fmt::Debug, H: Hooks> fmt::Debug for RwLock<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("RwLock");
        if let Some(name) = self.name() {
            out.field("name", &name);
        }
        match self.try_read() {
            Some(guard) => out.field("data", &&*guard),
            None => out.field("data", &format_args!("<locked>")),
        };
        out.finish_non_exhaustive()
    }
}
