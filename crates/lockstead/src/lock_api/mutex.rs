//! The mutex without data.

use super::sent;
use crate::refusal::{AbortOnUnwind, RefusedLock, refuse};
use crate::time;
use ::lock_api::GuardNoSend;
use core::panic::Location;
use lockstead_core::policy::Fair;
use lockstead_core::{LockError, Nanos, Off, Platform, Policy, Standard, WaitBounds};
use lockstead_linux::Linux;
use std::time::{Duration, Instant};

/// The raw mutex of the `lock_api` back end: 8 bytes, handoff after a bound.
///
/// Recursive locking and an owner lost in `fork` panic; see
/// [`lockstead::Mutex`](crate::Mutex).
#[derive(Debug)]
pub struct RawMutex<Y: Policy = Standard> {
    raw: lockstead_core::RawMutex<Linux, Off, Y>,
}

/// The raw mutex whose waits are short; see [`lockstead::FairMutex`](crate::FairMutex).
pub type RawFairMutex = RawMutex<Fair>;

impl<Y: Policy> RawMutex<Y> {
    pub(crate) const fn free() -> Self {
        RawMutex { raw: lockstead_core::RawMutex::new() }
    }

    #[inline]
    #[track_caller]
    pub(crate) fn acquire(&self) {
        if let Err(error) = self.raw.lock(Location::caller()) {
            self.refused(error, None);
        }
    }

    /// Acquires the mutex; returns false if the deadline passed.
    #[inline]
    #[track_caller]
    pub(crate) fn acquire_by(&self, how: impl FnOnce() -> WaitBounds<'static, Linux>) -> bool {
        let mut deadline = None;
        let how = || {
            let how = how();
            deadline = how.deadline;
            how
        };
        match self.raw.lock_lazily(how, 0, Location::caller()) {
            Ok(()) => true,
            Err(LockError::TimedOut) => false,
            Err(error) => self.refused(error, deadline),
        }
    }

    /// Acquires the mutex in another way than by waiting, or panics. Returns false if the deadline
    /// passed.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn refused(&self, error: LockError, deadline: Option<Nanos>) -> bool {
        if !sent::waits_all_the_same(error, deadline) {
            self.refuse(error)
        }
        sent::take_in_time(deadline, || self.try_acquire())
    }

    #[inline]
    #[track_caller]
    pub(crate) fn try_acquire(&self) -> bool {
        self.raw.try_lock(Location::caller())
    }

    /// Releases the mutex of the calling thread.
    ///
    /// # Safety
    /// LOCK-API-STATE: the calling thread holds the mutex.
    #[inline]
    pub(crate) unsafe fn release(&self) {
        // SAFETY: LOCK-API-STATE: the calling thread holds the mutex; the caller keeps it.
        unsafe { self.raw.unlock() }
    }

    /// Releases the mutex and acquires it again, and lets others have it in between: if any are near,
    /// it waits until one has taken it, for a bound at most.
    ///
    /// # Safety
    /// LOCK-API-STATE: the calling thread holds the mutex.
    #[track_caller]
    pub(crate) unsafe fn step_aside(&self) {
        let near = self.raw.peek();
        if !(near.waiters() || near.handoff() || near.tail().is_some()) {
            return;
        }
        // SAFETY: LOCK-API-STATE: the calling thread holds the mutex; the caller keeps it.
        unsafe { self.release() };
        let until = Linux::now().after(Y::BOUND);
        while !self.is_held() && Linux::now() < until {
            std::thread::yield_now();
        }
        self.acquire();
    }

    pub(crate) fn is_held(&self) -> bool {
        self.raw.is_locked()
    }

    pub(super) fn core(&self) -> &lockstead_core::RawMutex<Linux, Off, Y> {
        &self.raw
    }

    /// Ends the process: the mutex could not be taken again after a wait on a
    /// condition variable, and the caller's guard would release it.
    #[cold]
    #[track_caller]
    pub(super) fn abort(&self, error: LockError) -> ! {
        let _bomb = AbortOnUnwind;
        self.refuse(error)
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn refuse(&self, error: LockError) -> ! {
        refuse(
            error,
            &RefusedLock {
                kind: "mutex",
                name: None,
                guards: core::any::type_name::<Self>(),
                address: self.raw.id().0,
                acquired_at: None,
            },
        )
    }
}

// SAFETY: the core's mutex is exclusive, acquires and releases. A lock operation that unwinds
// (recursion, lost owner) has acquired nothing. A mutex that is moved or dropped while locked has
// no waiter, since those borrow it.
unsafe impl<Y: Policy> ::lock_api::RawMutex for RawMutex<Y> {
    const INIT: Self = Self::free();
    type Guard = GuardNoSend;

    #[inline]
    #[track_caller]
    fn lock(&self) -> GuardNoSend {
        self.acquire();
        GuardNoSend::new()
    }

    #[inline]
    #[track_caller]
    fn try_lock(&self) -> Option<GuardNoSend> {
        self.try_acquire().then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock(&self, _guard: GuardNoSend) {
        // SAFETY: LOCK-API-STATE: `lock_api` unlocks for a guard, on the thread that took it.
        unsafe { self.release() }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.is_held()
    }
}

// SAFETY: as of `RawMutex`; a wait of the core that timed out has acquired nothing, and `time`
// rounds deadlines up only.
unsafe impl<Y: Policy> ::lock_api::RawMutexTimed for RawMutex<Y> {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    #[track_caller]
    fn try_lock_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.acquire_by(|| time::within(timeout)).then(GuardNoSend::new)
    }

    #[inline]
    #[track_caller]
    fn try_lock_until(&self, deadline: Instant) -> Option<GuardNoSend> {
        self.acquire_by(|| time::until(deadline)).then(GuardNoSend::new)
    }
}
