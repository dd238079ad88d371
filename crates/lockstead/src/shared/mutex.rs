//! The mutex with its data, for segments.

use super::error::SharedError;
use super::locked::{HeldGuard, Inconsistent, Locked, sealed};
use super::shape::{LockKind, Shape};
use super::{Party, Shareable, held_error, named_before};
use crate::{CancelToken, time};
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, offset_of};
use core::ops::{Deref, DerefMut};
use lockstead_core::WaitBounds;
use lockstead_core::robust::word::NOT_RECOVERABLE;
use lockstead_core::robust::{self, Got, Identity};
use lockstead_linux::Linux;
use lockstead_linux::shared::{SegmentMember, member, participant_at};
use std::time::{Duration, Instant};

/// Mutual exclusion for the data inside, among all threads of all processes that have
/// the segment open; when the owner dies, the next one is told.
///
/// 8 bytes beside the data; zeroes are a free mutex with zeroes inside. One owner, which
/// alone releases, by dropping the guard; not recursive. A thread may hold any number of
/// them when it dies: all of them are recovered.
///
/// Works where it lies in a [`Segment`](super::Segment), and is
/// [`SharedError::NotInSegment`] elsewhere. The first acquisition of a thread has it take
/// part in the segment, which may fail ([`SharedError::Join`]).
///
/// # After `fork`
/// The child is another participant: it holds nothing of what its parent's thread holds,
/// and dropping a guard that it has inherited does nothing. (Unless the child has acquired
/// the same mutex by then: a guard is one pointer, and any guard releases what the thread
/// has. Let go of those that were inherited first.)
///
/// # Source
/// The robust futexes of Ingo Molnar and Ulrich Drepper (2006), without their list;
/// `docs/shared-locks.md`.
///
/// # Example
/// ```
/// use lockstead::shared::{SegmentOptions, Segment, SharedMutex};
///
/// let segment = Segment::<SharedMutex<u64>>::memfd("total", &SegmentOptions::new())?;
/// let total = segment.root();
/// std::thread::scope(|s| {
///     for _ in 0..4 {
///         s.spawn(|| *total.lock().unwrap().acquired().unwrap() += 1);
///     }
/// });
/// assert_eq!(*total.lock()?.recover(|_| ())?, 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[repr(C)]
pub struct SharedMutex<T> {
    pub(super) raw: robust::RawSharedMutex<Linux>,
    data: UnsafeCell<T>,
}

const _: () = assert!(size_of::<SharedMutex<()>>() == 8);
const _: () = assert!(size_of::<SharedMutex<u64>>() == 16);

// SAFETY: GUARD-SOLE among the peers that keep to the protocol. Another peer can write any bits
// there, and those are values of the type (SHAREABLE-BITS).
unsafe impl<T: Shareable> Sync for SharedMutex<T> {}

// SAFETY: SHAREABLE-BITS: two atomic words, and a `T`; `repr(C)`.
unsafe impl<T: Shareable> Shareable for SharedMutex<T> {
    const SHAPE: Shape = Shape::Lock {
        kind: LockKind::Mutex,
        size: size_of::<Self>(),
        offset: offset_of!(Self, data),
        data: &T::SHAPE,
    };
}

/// The outcome of an acquisition of a mutex.
type MutexOutcome<'a, T> = Result<Locked<SharedMutexGuard<'a, T>>, SharedError>;

impl<T: Shareable> SharedMutex<T> {
    /// Creates a free mutex around `value`, to be put into a segment by
    /// [`Segment::create_with`](super::Segment::create_with). Zeroed memory is one, too.
    #[must_use]
    pub const fn new(value: T) -> Self {
        SharedMutex { raw: robust::RawSharedMutex::new(), data: UnsafeCell::new(value) }
    }

    /// Acquires the mutex, waiting as long as it takes.
    ///
    /// # Errors
    /// [`SharedError::Recursive`], [`SharedError::NotInSegment`],
    /// [`SharedError::Join`].
    #[inline]
    pub fn lock(&self) -> MutexOutcome<'_, T> {
        self.lock_by(|| WaitBounds::FOREVER)
    }

    /// Acquires the mutex if that needs no wait: nobody has it, or its owner is dead.
    ///
    /// # Errors
    /// [`SharedError::Held`] if somebody else has it; as [`lock`](Self::lock).
    ///
    /// ```
    /// use lockstead::shared::{SegmentOptions, Segment, SharedError, SharedMutex};
    ///
    /// let segment = Segment::<SharedMutex<u64>>::memfd("one", &SegmentOptions::new())?;
    /// let held = segment.root().lock()?;
    /// std::thread::scope(|s| {
    ///     let other = s.spawn(|| segment.root().try_lock().map(|_| ()));
    ///     assert_eq!(other.join().unwrap(), Err(SharedError::Held));
    /// });
    /// # drop(held);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn try_lock(&self) -> MutexOutcome<'_, T> {
        match self.take() {
            Some(guard) => Ok(Locked::Acquired(guard)),
            None => self.try_slow(),
        }
    }

    /// Acquires the mutex, waiting at most `timeout`.
    ///
    /// # Errors
    /// [`SharedError::TimedOut`], not before the time is over; as [`lock`](Self::lock).
    #[inline]
    pub fn lock_timeout(&self, timeout: Duration) -> MutexOutcome<'_, T> {
        self.lock_by(|| time::within(timeout))
    }

    /// Acquires the mutex, waiting until `deadline` at most.
    ///
    /// # Errors
    /// [`SharedError::TimedOut`], not before the deadline; as [`lock`](Self::lock).
    #[inline]
    pub fn lock_until(&self, deadline: Instant) -> MutexOutcome<'_, T> {
        self.lock_by(|| time::until(deadline))
    }

    /// Acquires the mutex, unless a signal handler runs on this thread while it sleeps
    /// for it; with or without `SA_RESTART`.
    ///
    /// # Errors
    /// [`SharedError::Interrupted`]: a handler ran; as [`lock`](Self::lock).
    #[inline]
    pub fn lock_interruptible(&self) -> MutexOutcome<'_, T> {
        self.lock_by(|| time::INTERRUPTIBLE)
    }

    /// Acquires the mutex, unless `token` is fired, before the call or while it waits.
    ///
    /// # Errors
    /// [`SharedError::Cancelled`]: the token was fired and the mutex was not free; as
    /// [`lock`](Self::lock).
    ///
    /// ```
    /// use lockstead::CancelToken;
    /// use lockstead::shared::{SegmentOptions, Segment, SharedError, SharedMutex};
    ///
    /// let segment = Segment::<SharedMutex<u64>>::memfd("one", &SegmentOptions::new())?;
    /// let stop = CancelToken::new();
    /// let held = segment.root().lock()?;
    /// std::thread::scope(|s| {
    ///     let waiter = s.spawn(|| segment.root().lock_killable(&stop).map(|_| ()));
    ///     stop.cancel();
    ///     assert_eq!(waiter.join().unwrap(), Err(SharedError::Cancelled));
    /// });
    /// # drop(held);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn lock_killable(&self, token: &CancelToken) -> MutexOutcome<'_, T> {
        self.lock_by(|| token.wait())
    }

    /// Tells whether anybody has the mutex, dead or alive, at some moment during the call.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        let word = self.raw.peek();
        Identity::from_bits(word).is_some() && word != NOT_RECOVERABLE
    }

    /// Returns the data, without locking: nobody else can reach the mutex.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }

    #[inline(always)]
    fn lock_by<'a>(&self, how: impl FnOnce() -> WaitBounds<'a, Linux>) -> MutexOutcome<'_, T> {
        match self.take() {
            Some(guard) => Ok(Locked::Acquired(guard)),
            None => self.wait(&how()),
        }
    }

    /// Takes the mutex if it is free: the fast path of all acquisitions.
    #[inline(always)]
    fn take(&self) -> Option<SharedMutexGuard<'_, T>> {
        take(&self.raw).then(|| SharedMutexGuard::new(self))
    }

    #[inline]
    fn wait(&self, how: &WaitBounds<'_, Linux>) -> MutexOutcome<'_, T> {
        let mut error = SharedError::Held;
        self.settle(slow(&self.raw, Some(how), &mut error), error)
    }

    #[inline]
    fn try_slow(&self) -> MutexOutcome<'_, T> {
        let mut error = SharedError::Held;
        self.settle(slow(&self.raw, None, &mut error), error)
    }

    /// Turns the end of an acquisition by the calling thread into its outcome.
    #[inline]
    pub(super) fn settle(&self, end: AcquisitionEnd, error: SharedError) -> MutexOutcome<'_, T> {
        match end {
            AcquisitionEnd::Clean => Ok(Locked::Acquired(SharedMutexGuard::new(self))),
            AcquisitionEnd::OwnerDied => {
                Ok(Locked::OwnerDied(Inconsistent::new(SharedMutexGuard::new(self))))
            }
            AcquisitionEnd::NotRecoverable => Ok(Locked::NotRecoverable),
            AcquisitionEnd::Failed => Err(error),
        }
    }
}

/// The end of an acquisition. It fits a register, as guards are: what is passed through memory
/// costs more than the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AcquisitionEnd {
    Clean,
    OwnerDied,
    NotRecoverable,
    Failed,
}

/// Acquires it for the calling thread if it is free: the fast path of all acquisitions.
#[inline(always)]
pub(super) fn take(raw: &robust::RawSharedMutex<Linux>) -> bool {
    let Some(member) = member(core::ptr::from_ref(raw).addr()) else { return false };
    let taken = member.identity().is_some_and(|me| raw.take(me));
    if taken {
        member.took();
    }
    taken
}

/// Acquires as `how` says, or only tries.
#[cold]
#[inline(never)]
pub(super) fn slow(
    raw: &robust::RawSharedMutex<Linux>,
    how: Option<&WaitBounds<'_, Linux>>,
    error: &mut SharedError,
) -> AcquisitionEnd {
    match super::party(core::ptr::from_ref(raw).addr()) {
        Ok((member, party)) => {
            let outcome = match how {
                Some(how) => raw.lock(&party, how),
                None => raw.try_lock(&party),
            };
            let end = end_of(member, outcome, error);
            if how.is_none() {
                *error = held_error(*error);
            }
            end
        }
        Err(refused) => {
            *error = refused;
            AcquisitionEnd::Failed
        }
    }
}

/// Turns the outcome of the core into an end, and counts the lock.
pub(super) fn end_of(
    member: &SegmentMember,
    outcome: Result<Got, robust::RobustError>,
    error: &mut SharedError,
) -> AcquisitionEnd {
    match outcome {
        Ok(got) => {
            member.took();
            if got == Got::Clean { AcquisitionEnd::Clean } else { AcquisitionEnd::OwnerDied }
        }
        Err(robust::RobustError::NotRecoverable) => AcquisitionEnd::NotRecoverable,
        Err(refused) => {
            *error = super::error_of(refused);
            AcquisitionEnd::Failed
        }
    }
}

impl<T: Shareable + Default> Default for SharedMutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: Shareable> fmt::Debug for SharedMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedMutex").field("locked", &self.is_locked()).finish_non_exhaustive()
    }
}

/// The holder's access to the data of a [`SharedMutex`]; dropping it releases.
///
/// Stays on its thread, since the owner alone releases.
#[must_use = "the mutex is released as soon as the guard is dropped"]
pub struct SharedMutexGuard<'a, T: Shareable> {
    mutex: &'a SharedMutex<T>,
    not_send: PhantomData<*const ()>,
}

// SAFETY: a reference to a guard gives no more than `&T`, and `T` is Sync (GUARD-SOLE).
unsafe impl<T: Shareable> Sync for SharedMutexGuard<'_, T> {}

impl<'a, T: Shareable> SharedMutexGuard<'a, T> {
    /// Builds the guard of a mutex that the calling thread has.
    #[inline(always)]
    pub(super) fn new(mutex: &'a SharedMutex<T>) -> Self {
        SharedMutexGuard { mutex, not_send: PhantomData }
    }

    /// Returns the mutex without releasing it.
    pub(super) fn leak(self) -> &'a SharedMutex<T> {
        ManuallyDrop::new(self).mutex
    }
}

/// Releases for the calling thread. Returns false if it does not have the mutex.
///
/// Who the thread is is looked up again: in a forked child it is nobody, or somebody else
/// than the parent, whose lock it is.
#[inline(always)]
pub(super) fn release(raw: &robust::RawSharedMutex<Linux>) -> bool {
    give(raw) || release_slow(raw)
}

/// Releases for the calling thread if it has the mutex, nobody waits, and nobody died: the fast path of
/// [`release`]. Returns whether it did.
#[inline(always)]
pub(super) fn give(raw: &robust::RawSharedMutex<Linux>) -> bool {
    let address = core::ptr::from_ref(raw).addr();
    match member(address) {
        Some(member) if member.identity().is_some_and(|me| raw.give(me)) => {
            member.gave();
            named_before::restore(address);
            true
        }
        _ => false,
    }
}

#[cold]
#[inline(never)]
fn release_slow(raw: &robust::RawSharedMutex<Linux>) -> bool {
    let address = core::ptr::from_ref(raw).addr();
    let released = party_at(address).is_some_and(|(member, party)| {
        let released = raw.unlock(&party);
        if released {
            member.gave();
        }
        released
    });
    named_before::restore(address);
    released
}

/// Releases for the calling thread as one that has not touched what it protects: a death of which
/// the thread was told is told to the next owner. Returns false if it does not have the mutex.
pub(super) fn release_untouched(raw: &robust::RawSharedMutex<Linux>) -> bool {
    let address = core::ptr::from_ref(raw).addr();
    let released = party_at(address).is_some_and(|(member, party)| {
        let released = raw.unlock_untouched(&party);
        if released {
            member.gave();
        }
        released
    });
    named_before::restore(address);
    released
}

/// Returns the calling thread as a participant of the segment of an address, if it is one.
#[inline]
pub(super) fn party_at(address: usize) -> Option<(&'static SegmentMember, Party)> {
    let member = member(address).or_else(|| participant_at(address))?;
    Some((member, member.party()?))
}

/// Has the word say that what a dead owner left is in order. Returns false if the calling thread
/// does not have the mutex.
pub(super) fn mark_consistent(raw: &robust::RawSharedMutex<Linux>) -> bool {
    party_at(core::ptr::from_ref(raw).addr()).is_some_and(|(_, party)| raw.mark_consistent(&party))
}

impl<T: Shareable> Deref for SharedMutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: GUARD-SOLE among the peers that keep to the protocol; whatever others write is a
        // `T` (SHAREABLE-BITS).
        unsafe { &*self.mutex.data.get() }
    }
}

impl<T: Shareable> DerefMut for SharedMutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: GUARD-SOLE and SHAREABLE-BITS, as in `deref`.
        unsafe { &mut *self.mutex.data.get() }
    }
}

impl<T: Shareable> Drop for SharedMutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Not so in a forked child, which has inherited the guard and not the mutex.
        let _ = release(&self.mutex.raw);
    }
}

impl<T: Shareable> sealed::Sealed for SharedMutexGuard<'_, T> {}

impl<T: Shareable> HeldGuard for SharedMutexGuard<'_, T> {
    fn repair(&mut self, _: sealed::Ours) -> &mut T {
        self
    }

    fn mark_consistent(&self, _: sealed::Ours) {
        mark_consistent(&self.mutex.raw);
    }
}

impl<T: Shareable + fmt::Debug> fmt::Debug for SharedMutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
