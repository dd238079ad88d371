//! The reader-writer lock without data.

use super::sent;
use crate::refusal::{RefusedLock, refuse};
use crate::time;
use ::lock_api::GuardNoSend;
use core::panic::Location;
use lockstead_core::{LockError, Nanos, WaitBounds};
use lockstead_linux::Linux;
use std::time::{Duration, Instant};

/// The raw reader-writer lock of the `lock_api` back end: 16 bytes, neither
/// side starves.
///
/// Acquiring on the thread that writes, and a writer lost in `fork`, panic; see
/// [`lockstead::RwLock`](crate::RwLock).
#[derive(Debug)]
pub struct RawRwLock {
    raw: lockstead_core::RawRwLock<Linux>,
}

impl RawRwLock {
    pub(crate) const fn free() -> Self {
        RawRwLock { raw: lockstead_core::RawRwLock::new() }
    }

    #[inline]
    #[track_caller]
    pub(crate) fn acquire_shared(&self) {
        self.acquire_shared_by(|| WaitBounds::FOREVER);
    }

    #[inline]
    #[track_caller]
    pub(crate) fn acquire_exclusive(&self) {
        self.acquire_exclusive_by(|| WaitBounds::FOREVER);
    }

    /// Acquires for reading. Returns false if the deadline passed.
    #[inline]
    #[track_caller]
    pub(crate) fn acquire_shared_by(
        &self,
        how: impl FnOnce() -> WaitBounds<'static, Linux>,
    ) -> bool {
        let mut deadline = None;
        let outcome = self.raw.read_lazily(noted(how, &mut deadline), 0, Location::caller());
        self.settle(outcome, deadline, Self::try_acquire_shared)
    }

    /// Acquires for writing. Returns false if the deadline passed.
    #[inline]
    #[track_caller]
    pub(crate) fn acquire_exclusive_by(
        &self,
        how: impl FnOnce() -> WaitBounds<'static, Linux>,
    ) -> bool {
        let mut deadline = None;
        let outcome = self.raw.write_lazily(noted(how, &mut deadline), 0, Location::caller());
        self.settle(outcome, deadline, Self::try_acquire_exclusive)
    }

    #[inline]
    #[track_caller]
    pub(crate) fn try_acquire_shared(&self) -> bool {
        self.raw.try_read(Location::caller())
    }

    /// Acquires for reading, and passes those that wait if the lock is being read: by the caller, who
    /// would wait for them in vain.
    #[cfg(feature = "lock_api_0_4")]
    #[inline]
    #[track_caller]
    pub(crate) fn acquire_shared_again(&self) {
        self.acquire_shared_again_by(|| WaitBounds::FOREVER);
    }

    /// Does what [`acquire_shared_again`](Self::acquire_shared_again) does. Returns false if the
    /// deadline passed.
    #[cfg(feature = "lock_api_0_4")]
    #[inline]
    #[track_caller]
    pub(crate) fn acquire_shared_again_by(
        &self,
        how: impl FnOnce() -> WaitBounds<'static, Linux>,
    ) -> bool {
        let mut deadline = None;
        let outcome = self.raw.read_recursive_lazily(noted(how, &mut deadline), Location::caller());
        self.settle(outcome, deadline, Self::try_acquire_shared_again)
    }

    #[cfg(feature = "lock_api_0_4")]
    #[inline]
    #[track_caller]
    pub(crate) fn try_acquire_shared_again(&self) -> bool {
        self.raw.try_read_recursive(Location::caller())
    }

    /// Tells whether more than one reader holds the lock, at some moment during the call.
    pub(crate) fn is_shared_by_several(&self) -> bool {
        self.raw.readers() > 1
    }

    #[inline]
    #[track_caller]
    pub(crate) fn try_acquire_exclusive(&self) -> bool {
        self.raw.try_write(Location::caller())
    }

    /// Releases a hold for reading.
    ///
    /// # Safety
    /// LOCK-API-STATE: the caller answers for a hold for reading.
    #[inline]
    pub(crate) unsafe fn release_shared(&self) {
        // SAFETY: LOCK-API-STATE: the caller answers for a hold for reading.
        unsafe { self.raw.unlock_read() }
    }

    /// Releases the hold for writing.
    ///
    /// # Safety
    /// LOCK-API-STATE: the calling thread holds the lock for writing.
    #[inline]
    pub(crate) unsafe fn release_exclusive(&self) {
        // SAFETY: LOCK-API-STATE: the calling thread holds the lock for writing; the caller keeps
        // it.
        unsafe { self.raw.unlock_write() }
    }

    /// Turns the hold for writing into one for reading.
    ///
    /// # Safety
    /// LOCK-API-STATE: the calling thread holds the lock for writing.
    pub(crate) unsafe fn turn_shared(&self) {
        // SAFETY: LOCK-API-STATE: the calling thread holds the lock for writing; the caller keeps
        // it.
        unsafe { self.raw.downgrade() }
    }

    pub(crate) fn is_held(&self) -> bool {
        self.raw.is_locked()
    }

    pub(crate) fn is_written(&self) -> bool {
        self.raw.writer().is_some()
    }

    /// Tells how an acquisition ended: false if the deadline passed. Panics if it was refused, unless
    /// `take` may have the lock some time.
    #[inline]
    #[track_caller]
    fn settle(
        &self,
        outcome: Result<(), LockError>,
        deadline: Option<Nanos>,
        take: fn(&Self) -> bool,
    ) -> bool {
        match outcome {
            Ok(()) => true,
            Err(LockError::TimedOut) => false,
            Err(error) if sent::waits_all_the_same(error, deadline) => {
                sent::take_in_time(deadline, || take(self))
            }
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
                name: None,
                guards: core::any::type_name::<Self>(),
                address: self.raw.id().0,
                acquired_at: None,
            },
        )
    }
}

/// Returns `how` as it is, with a note of its deadline once it is asked for.
#[inline]
fn noted(
    how: impl FnOnce() -> WaitBounds<'static, Linux>,
    deadline: &mut Option<Nanos>,
) -> impl FnOnce() -> WaitBounds<'static, Linux> {
    move || {
        let how = how();
        *deadline = how.deadline;
        how
    }
}

// SAFETY: the core's lock keeps the writer apart from everybody, acquires and releases. An
// operation that unwinds (recursion, lost owner) has acquired nothing. A lock that is moved or
// dropped while held has no waiter, since those borrow it.
unsafe impl ::lock_api::RawRwLock for RawRwLock {
    const INIT: Self = Self::free();
    type SharedGuard = GuardNoSend;
    type ExclusiveGuard = GuardNoSend;

    #[inline]
    #[track_caller]
    fn lock_shared(&self) -> GuardNoSend {
        self.acquire_shared();
        GuardNoSend::new()
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared(&self) -> Option<GuardNoSend> {
        self.try_acquire_shared().then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock_shared(&self, _guard: GuardNoSend) {
        // SAFETY: LOCK-API-STATE, which `lock_api` keeps for a hold for reading.
        unsafe { self.release_shared() }
    }

    #[inline]
    #[track_caller]
    fn lock_exclusive(&self) -> GuardNoSend {
        self.acquire_exclusive();
        GuardNoSend::new()
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive(&self) -> Option<GuardNoSend> {
        self.try_acquire_exclusive().then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, _guard: GuardNoSend) {
        // SAFETY: LOCK-API-STATE, which `lock_api` keeps for the hold for writing.
        unsafe { self.release_exclusive() }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.is_held()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.is_written()
    }
}

// SAFETY: the core's `downgrade` lets no writer come between the two holds.
unsafe impl ::lock_api::RawRwLockDowngrade for RawRwLock {
    unsafe fn downgrade(&self, guard: GuardNoSend) -> GuardNoSend {
        // SAFETY: LOCK-API-STATE, which `lock_api` keeps for the hold for writing.
        unsafe { self.turn_shared() };
        guard
    }
}

// SAFETY: a wait of the core that timed out has acquired nothing, and `time` rounds deadlines up
// only.
unsafe impl ::lock_api::RawRwLockTimed for RawRwLock {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    #[track_caller]
    fn try_lock_shared_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.acquire_shared_by(|| time::within(timeout)).then(GuardNoSend::new)
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared_until(&self, deadline: Instant) -> Option<GuardNoSend> {
        self.acquire_shared_by(|| time::until(deadline)).then(GuardNoSend::new)
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.acquire_exclusive_by(|| time::within(timeout)).then(GuardNoSend::new)
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive_until(&self, deadline: Instant) -> Option<GuardNoSend> {
        self.acquire_exclusive_by(|| time::until(deadline)).then(GuardNoSend::new)
    }
}
