//! The condition variable, for segments.

use super::error::SharedError;
use super::locked::Locked;
use super::mutex::{self, AcquisitionEnd, SharedMutexGuard};
use super::shape::{LockKind, Shape};
use super::{Shareable, named_before};
use crate::{CancelToken, time};
use core::fmt;
use lockstead_core::WaitBounds;
use lockstead_core::robust;
use lockstead_linux::Linux;
use lockstead_linux::shared::participant_at;
use std::time::{Duration, Instant};

/// Waiting, with a [`SharedMutex`](super::SharedMutex), for what it protects to change.
///
/// 8 bytes; zeroes are one on which nobody waits. A waiter that dies after it was
/// notified has the others look again, so a notification is not lost. Who waits may be
/// woken without one.
///
/// Works where it lies in a [`Segment`](super::Segment), the same as the mutex.
///
/// # Example
/// ```
/// use lockstead::shared::{SegmentOptions, Segment, Shareable, SharedCondvar, SharedMutex};
///
/// #[derive(Shareable)]
/// #[repr(C)]
/// struct Gate {
///     open: SharedMutex<u32>,
///     opened: SharedCondvar,
/// }
///
/// let segment = Segment::<Gate>::memfd("gate", &SegmentOptions::new())?;
/// let gate = segment.root();
/// std::thread::scope(|s| {
///     s.spawn(|| {
///         *gate.open.lock().unwrap().acquired().unwrap() = 1;
///         gate.opened.notify_all();
///     });
///     let open = gate.open.lock().unwrap().acquired().unwrap();
///     let open = gate.opened.wait_while(open, |open| *open == 0).unwrap();
///     assert_eq!(*open.acquired().unwrap(), 1);
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[repr(C)]
pub struct SharedCondvar {
    raw: robust::RawSharedCondvar<Linux>,
}

const _: () = assert!(size_of::<SharedCondvar>() == 8);

// SAFETY: SHAREABLE-BITS: the type is `repr(C)` and made of atomic words, for which all bits are
// values.
unsafe impl Shareable for SharedCondvar {
    const SHAPE: Shape = Shape::Lock {
        kind: LockKind::Condvar,
        size: size_of::<Self>(),
        offset: size_of::<Self>(),
        data: &<()>::SHAPE,
    };
}

/// The end of a wait for a condition that the caller may give up.
#[must_use = "the mutex is released as soon as this is dropped"]
#[derive(Debug)]
pub struct Waited<G> {
    /// The mutex, taken back.
    pub mutex: Locked<G>,
    /// The reason for which the caller gave up; `None`: it was notified, or woken for no reason.
    pub ended: Option<SharedError>,
}

type Guard<'a, T> = SharedMutexGuard<'a, T>;
type CondvarOutcome<'a, T> = Result<Waited<Guard<'a, T>>, SharedError>;

impl SharedCondvar {
    /// Creates a condition variable on which nobody waits. Zeroed memory is one, too.
    #[must_use]
    pub const fn new() -> Self {
        SharedCondvar { raw: robust::RawSharedCondvar::new() }
    }

    /// Releases the mutex, waits to be notified, and takes it back, which may find that
    /// an owner died meanwhile. May return without a notification.
    ///
    /// # Errors
    /// [`SharedError::NotInSegment`] if this does not lie in the segment of the mutex;
    /// [`SharedError::Recursive`] where a peer has spoiled the mutex. It is released
    /// then. [`SharedError::Cancelled`] in a child that a signal handler has forked
    /// meanwhile: the mutex, and the wait, are the parent's.
    pub fn wait<'a, T: Shareable>(
        &self,
        guard: Guard<'a, T>,
    ) -> Result<Locked<Guard<'a, T>>, SharedError> {
        self.wait_as(guard, &WaitBounds::FOREVER).map(|waited| waited.mutex)
    }

    /// Does what [`wait`](Self::wait) does, at most for `timeout`; taking the mutex back may take
    /// longer.
    ///
    /// # Errors
    /// As [`wait`](Self::wait). That the time is over is said in [`Waited::ended`].
    pub fn wait_timeout<'a, T: Shareable>(
        &self,
        guard: Guard<'a, T>,
        timeout: Duration,
    ) -> CondvarOutcome<'a, T> {
        self.wait_as(guard, &time::within(timeout))
    }

    /// Does what [`wait`](Self::wait) does, until `deadline` at most; taking the mutex back may
    /// take longer.
    ///
    /// # Errors
    /// As [`wait_timeout`](Self::wait_timeout).
    pub fn wait_until<'a, T: Shareable>(
        &self,
        guard: Guard<'a, T>,
        deadline: Instant,
    ) -> CondvarOutcome<'a, T> {
        self.wait_as(guard, &time::until(deadline))
    }

    /// Does what [`wait`](Self::wait) does, unless a signal handler runs on this thread meanwhile.
    ///
    /// # Errors
    /// As [`wait`](Self::wait). That a handler ran is said in [`Waited::ended`].
    pub fn wait_interruptible<'a, T: Shareable>(
        &self,
        guard: Guard<'a, T>,
    ) -> CondvarOutcome<'a, T> {
        self.wait_as(guard, &time::INTERRUPTIBLE)
    }

    /// Does what [`wait`](Self::wait) does, unless `token` is fired, before the call or meanwhile.
    ///
    /// # Errors
    /// As [`wait`](Self::wait). That the token was fired is said in [`Waited::ended`].
    pub fn wait_killable<'a, T: Shareable>(
        &self,
        guard: Guard<'a, T>,
        token: &CancelToken,
    ) -> CondvarOutcome<'a, T> {
        self.wait_as(guard, &token.wait())
    }

    /// Waits as long as `condition` holds of what the mutex protects. Ends as well when
    /// an owner has died: whether the condition holds is then to be found out anew, after
    /// the repair.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_while<'a, T: Shareable>(
        &self,
        guard: Guard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> Result<Locked<Guard<'a, T>>, SharedError> {
        let mut guard = guard;
        while condition(&mut guard) {
            match self.wait(guard)? {
                Locked::Acquired(again) => guard = again,
                other => return Ok(other),
            }
        }
        Ok(Locked::Acquired(guard))
    }

    /// Does what [`wait_while`](Self::wait_while) does, at most for `timeout`.
    ///
    /// # Errors
    /// As [`wait_timeout`](Self::wait_timeout).
    pub fn wait_while_timeout<'a, T: Shareable>(
        &self,
        guard: Guard<'a, T>,
        timeout: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> CondvarOutcome<'a, T> {
        let how = time::within(timeout);
        let mut guard = guard;
        while condition(&mut guard) {
            match self.wait_as(guard, &how)? {
                Waited { mutex: Locked::Acquired(again), ended: None } => guard = again,
                other => return Ok(other),
            }
        }
        Ok(Waited { mutex: Locked::Acquired(guard), ended: None })
    }

    /// Wakes one that waits. The caller may or may not have the mutex.
    pub fn notify_one(&self) {
        self.raw.notify_one();
    }

    /// Wakes all that wait. The caller may or may not have the mutex.
    pub fn notify_all(&self) {
        self.raw.notify_all();
    }

    fn wait_as<'a, T: Shareable>(
        &self,
        guard: Guard<'a, T>,
        how: &WaitBounds<'_, Linux>,
    ) -> CondvarOutcome<'a, T> {
        let mutex = guard.leak();
        let (end, error, ended) = wait_on(&self.raw, &mutex.raw, how)?;
        let mutex = mutex.settle(end, error)?;
        Ok(Waited { mutex, ended })
    }
}

/// The end of taking the mutex back, the error if that failed, and the reason of giving up, if the
/// caller did.
pub(super) type Ended = (AcquisitionEnd, SharedError, Option<SharedError>);

/// Releases the mutex, waits as `how` says, and takes it back.
///
/// # Errors
/// As [`SharedCondvar::wait`]; the mutex is released then, if the thread had it.
pub(super) fn wait_on(
    raw: &robust::RawSharedCondvar<Linux>,
    mutex: &robust::RawSharedMutex<Linux>,
    how: &WaitBounds<'_, Linux>,
) -> Result<Ended, SharedError> {
    let address = core::ptr::from_ref(mutex).addr();
    let Some((member, party)) = mutex::party_at(address) else {
        // A forked child that has its parent's guard.
        return Err(SharedError::NotInSegment);
    };
    let here = participant_at(core::ptr::from_ref(raw).addr());
    if !here.is_some_and(|here| core::ptr::eq(here, member)) {
        let _ = mutex::release(mutex);
        return Err(SharedError::NotInSegment);
    }
    let waited = match raw.wait(&party, mutex, how) {
        Ok(waited) => waited,
        Err(robust::RobustError::Copied) => return Err(SharedError::Cancelled),
        // It was a peer's doing that the thread does not have the mutex.
        Err(_) => {
            named_before::restore(address);
            return Ok((AcquisitionEnd::NotRecoverable, SharedError::Spoiled, None));
        }
    };
    member.gave();
    named_before::remember(address, waited.named);
    let mut error = SharedError::Recursive;
    let end = mutex::end_of(member, waited.mutex, &mut error);
    if matches!(end, AcquisitionEnd::NotRecoverable | AcquisitionEnd::Failed) {
        named_before::restore(address);
    }
    Ok((end, error, waited.ended.map(super::error_of)))
}

impl Default for SharedCondvar {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SharedCondvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedCondvar").finish_non_exhaustive()
    }
}
