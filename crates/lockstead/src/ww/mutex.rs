//! The wait/wound mutex with its data.

use super::{Class, Context, Error, WwGuard, rules};
use crate::error::{Interrupted, TimedOut};
use crate::refusal::{RefusedLock, refuse};
use crate::{Owner, Site, time};
use core::cell::UnsafeCell;
use core::fmt;
use core::panic::Location;
use lockstead_core::ww::{ContextPatience, RawWwMutex, WwError};
use lockstead_core::{LockError, WaitBounds};
use lockstead_linux::Linux;
use std::time::Duration;

/// Mutual exclusion for the data inside, one of several locks that a thread may
/// hold at a time, acquired in any order. See the [module](super).
///
/// 24 bytes beside the data. One owner, which alone releases, by dropping the
/// guard; not recursive.
///
/// # Panics
/// Every call that may wait panics, rather than hang, when the calling thread holds
/// the mutex already, unless in the same context, and when the holder was left
/// behind by `fork` in the parent process.
pub struct WwMutex<T: ?Sized> {
    pub(super) raw: RawWwMutex<Linux>,
    rules: rules::RuleLock,
    data: UnsafeCell<T>,
}

const _: () = assert!(size_of::<RawWwMutex<Linux>>() == 24);

// SAFETY: GUARD-SOLE: other threads reach the data by moving it (into_inner) or through a guard, of
// which there is one at a time, so `T: Send` suffices.
unsafe impl<T: ?Sized + Send> Sync for WwMutex<T> {}

impl<T> WwMutex<T> {
    /// Creates a free mutex of this class that guards `value`.
    #[must_use]
    pub const fn new(class: &'static Class, value: T) -> Self {
        WwMutex {
            raw: RawWwMutex::new(),
            rules: rules::RuleLock::of(class),
            data: UnsafeCell::new(value),
        }
    }

    /// Returns the data. Nobody else can hold the mutex: it is the caller's own.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized> WwMutex<T> {
    /// Acquires in a context, waiting as long as it takes and is safe.
    ///
    /// # Errors
    /// [`Error::Deadlock`]: back off; [`Error::Already`]: the context holds it.
    ///
    /// # Panics
    /// On recursive locking and on an owner lost in `fork` (see the type).
    #[inline]
    #[track_caller]
    pub fn lock<'a>(&'a self, context: &'a Context) -> Result<WwGuard<'a, T>, Error> {
        self.acquire(context, &ContextPatience::ENDLESS)
    }

    /// Does what [`lock`](Self::lock) does, unless a signal handler runs on this thread while it
    /// sleeps.
    ///
    /// # Errors
    /// As [`lock`](Self::lock), and [`Error::Interrupted`].
    ///
    /// # Panics
    /// On recursive locking and on an owner lost in `fork` (see the type).
    #[track_caller]
    pub fn lock_interruptible<'a>(&'a self, context: &'a Context) -> Result<WwGuard<'a, T>, Error> {
        self.acquire(context, &INTERRUPTIBLE)
    }

    /// Does what [`lock`](Self::lock) does, waiting at most `timeout`.
    ///
    /// # Errors
    /// As [`lock`](Self::lock), and [`Error::TimedOut`].
    ///
    /// # Panics
    /// On recursive locking and on an owner lost in `fork` (see the type).
    #[track_caller]
    pub fn lock_timeout<'a>(
        &'a self,
        context: &'a Context,
        timeout: Duration,
    ) -> Result<WwGuard<'a, T>, Error> {
        let deadline = time::within(timeout).deadline;
        self.acquire(context, &ContextPatience { deadline, interruptible: false })
    }

    /// Acquires the lock that the context was refused, once all its guards are
    /// dropped.
    ///
    /// # Panics
    /// If the context holds a lock. On recursive locking and on an owner lost in
    /// `fork` (see the type).
    #[track_caller]
    pub fn lock_slow<'a>(&'a self, context: &'a Context) -> WwGuard<'a, T> {
        match self.acquire_slow(context, &ContextPatience::ENDLESS) {
            Ok(guard) => guard,
            Err(_) => unreachable!("nothing but the lock ends the wait"),
        }
    }

    /// Does what [`lock_slow`](Self::lock_slow) does, unless a signal handler runs on this thread
    /// while it sleeps.
    ///
    /// # Errors
    /// [`Interrupted`]: a handler ran.
    ///
    /// # Panics
    /// As [`lock_slow`](Self::lock_slow).
    #[track_caller]
    pub fn lock_slow_interruptible<'a>(
        &'a self,
        context: &'a Context,
    ) -> Result<WwGuard<'a, T>, Interrupted> {
        self.acquire_slow(context, &INTERRUPTIBLE).map_err(|_| Interrupted)
    }

    /// Acquires in a context if that needs no waiting.
    #[inline]
    #[track_caller]
    pub fn try_lock<'a>(&'a self, context: &'a Context) -> Option<WwGuard<'a, T>> {
        self.rules.asked(self.address(), context, Location::caller());
        if !self.raw.try_lock(Some(&context.raw), Location::caller()) {
            return None;
        }
        context.rules.acquired();
        // SAFETY: GUARD-HOLDS: this call has just acquired the lock in this context.
        Some(unsafe { WwGuard::new(self, Some(context)) })
    }

    /// Acquires without a context, as any mutex. A thread that holds locks in a
    /// context must not: it might wait for ever.
    ///
    /// # Panics
    /// On recursive locking and on an owner lost in `fork` (see the type).
    #[inline]
    #[track_caller]
    pub fn lock_alone(&self) -> WwGuard<'_, T> {
        match self.acquire_alone(&WaitBounds::FOREVER) {
            Ok(guard) => guard,
            Err(error) => self.refuse(error),
        }
    }

    /// Does what [`lock_alone`](Self::lock_alone) does, waiting at most `timeout`.
    ///
    /// # Errors
    /// [`TimedOut`], not before the time is over.
    ///
    /// # Panics
    /// On recursive locking and on an owner lost in `fork` (see the type).
    #[track_caller]
    pub fn lock_alone_timeout(&self, timeout: Duration) -> Result<WwGuard<'_, T>, TimedOut> {
        match self.acquire_alone(&time::within(timeout)) {
            Ok(guard) => Ok(guard),
            Err(LockError::TimedOut) => Err(TimedOut),
            Err(error) => self.refuse(error),
        }
    }

    /// Acquires without a context if that needs no waiting.
    #[inline]
    #[track_caller]
    pub fn try_lock_alone(&self) -> Option<WwGuard<'_, T>> {
        // SAFETY: GUARD-HOLDS: this call has just acquired the lock without a context.
        self.raw.try_lock(None, Location::caller()).then(|| unsafe { WwGuard::new(self, None) })
    }

    /// Tells whether anybody holds the mutex, at some moment during the call.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }

    /// Tells whether this context holds the mutex.
    #[must_use]
    pub fn is_held_in(&self, context: &Context) -> bool {
        self.raw.is_held_in(&context.raw)
    }

    /// Returns the holder of the mutex, at some moment during the call.
    #[must_use]
    pub fn owner(&self) -> Option<Owner> {
        self.raw.owner().map(Owner::new)
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

    /// Returns what tells this lock from others.
    pub(super) fn address(&self) -> usize {
        core::ptr::from_ref(&self.raw).addr()
    }

    #[inline]
    #[track_caller]
    fn acquire<'a>(
        &'a self,
        context: &'a Context,
        patience: &ContextPatience,
    ) -> Result<WwGuard<'a, T>, Error> {
        self.acquire_by(context, |here| self.raw.lock_how(&context.raw, patience, here))
    }

    #[inline]
    #[track_caller]
    fn acquire_by<'a>(
        &'a self,
        context: &'a Context,
        lock: impl FnOnce(Site) -> Result<(), WwError>,
    ) -> Result<WwGuard<'a, T>, Error> {
        let here = Location::caller();
        self.rules.asked(self.address(), context, here);
        match lock(here) {
            Ok(()) => {
                context.rules.acquired();
                // SAFETY: GUARD-HOLDS: this call has just acquired the lock in this context.
                Ok(unsafe { WwGuard::new(self, Some(context)) })
            }
            Err(error) => {
                let error = self.understand(error);
                if error == Error::Deadlock {
                    context.rules.refused(self.address(), here);
                }
                Err(error)
            }
        }
    }

    #[track_caller]
    fn acquire_slow<'a>(
        &'a self,
        context: &'a Context,
        patience: &ContextPatience,
    ) -> Result<WwGuard<'a, T>, Error> {
        assert!(
            context.acquired() == 0,
            "lock_slow at {} in a context of class `{}` that holds {} lock(s): it waits as long as \
             it takes, and others may wait for those; drop their guards first",
            Location::caller(),
            context.class().name(),
            context.acquired(),
        );
        context.rules.slow(context, Location::caller());
        self.acquire_by(context, |here| self.raw.lock_slow(&context.raw, patience, here))
    }

    #[inline]
    #[track_caller]
    fn acquire_alone(&self, how: &WaitBounds<'_, Linux>) -> Result<WwGuard<'_, T>, LockError> {
        self.rules.asked_alone(Location::caller());
        self.raw.lock_alone(how, Location::caller())?;
        // SAFETY: GUARD-HOLDS: this call has just acquired the lock without a context.
        Ok(unsafe { WwGuard::new(self, None) })
    }

    #[cold]
    #[track_caller]
    fn understand(&self, error: WwError) -> Error {
        match error {
            WwError::Deadlock => Error::Deadlock,
            WwError::Already => Error::Already,
            WwError::Lock(LockError::Interrupted) => Error::Interrupted,
            WwError::Lock(LockError::TimedOut) => Error::TimedOut,
            WwError::Lock(error) => self.refuse(error),
        }
    }

    #[track_caller]
    fn refuse(&self, error: LockError) -> ! {
        refuse(
            error,
            &RefusedLock {
                kind: "wait/wound mutex",
                name: None,
                guards: core::any::type_name::<T>(),
                address: self.address(),
                acquired_at: None,
            },
        )
    }
}

const INTERRUPTIBLE: ContextPatience = ContextPatience { deadline: None, interruptible: true };

/// Shows the data if the mutex is free; never waits.
impl<T: ?Sized + fmt::Debug> fmt::Debug for WwMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("WwMutex");
        match self.try_lock_alone() {
            Some(guard) => shown.field("data", &&*guard),
            None => shown.field("data", &format_args!("<locked>")),
        };
        shown.finish()
    }
}
