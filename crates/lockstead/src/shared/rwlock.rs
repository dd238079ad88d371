//! The reader-writer lock with its data, for segments.

use super::error::SharedError;
use super::locked::{HeldGuard, Inconsistent, Locked, sealed};
use super::shape::{LockKind, Shape};
use super::{GuardHolder, Party, Shareable, held_error};
use crate::{CancelToken, time};
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::offset_of;
use core::ops::{Deref, DerefMut};
use lockstead_core::WaitBounds;
use lockstead_core::robust::{self, Got, ReadHold};
use lockstead_linux::Linux;
use std::time::{Duration, Instant};

/// Many readers or one writer, among all threads of all processes that have the segment
/// open; the death of a reader costs nothing, that of a writer is told to the next one.
///
/// 8 bytes beside the data; zeroes are a free lock with zeroes inside. Not recursive, and
/// no way from reading to writing. A reader is one by a claim that lies at its slot: a
/// dead one's claims are void, and it need not be repaired what it did not change.
///
/// A thread that has no claim left ([`SegmentOptions::claims`](super::SegmentOptions::claims))
/// reads alone. Where an owner died, the next one repairs, also if it wanted to read: it has
/// the lock alone until then, and until it is released.
///
/// Works where it lies in a [`Segment`](super::Segment).
///
/// # Source
/// Readers that write lines of their own are those of brlock (Linux 2.4) and of hazard
/// pointers (Maged Michael, 2004).
///
/// # Example
/// ```
/// use lockstead::shared::{SegmentOptions, Segment, SharedRwLock};
///
/// let segment = Segment::<SharedRwLock<[u64; 4]>>::memfd("rates", &SegmentOptions::new())?;
/// segment.root().write()?.recover(|rates| *rates = [0; 4])?[2] = 7;
/// let rates = segment.root().read()?.recover(|rates| *rates = [0; 4])?;
/// assert_eq!(rates[2], 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[repr(C)]
pub struct SharedRwLock<T> {
    raw: robust::RawSharedRwLock<Linux>,
    data: UnsafeCell<T>,
}

const _: () = assert!(size_of::<SharedRwLock<u64>>() == 16);

// SAFETY: GUARD-SOLE among the peers that keep to the protocol. Another peer can write any bits
// there, and those are values of the type (SHAREABLE-BITS).
unsafe impl<T: Shareable> Sync for SharedRwLock<T> {}

// SAFETY: SHAREABLE-BITS: two atomic words, and a `T`; `repr(C)`.
unsafe impl<T: Shareable> Shareable for SharedRwLock<T> {
    const SHAPE: Shape = Shape::Lock {
        kind: LockKind::RwLock,
        size: size_of::<Self>(),
        offset: offset_of!(Self, data),
        data: &T::SHAPE,
    };
}

type Reading<'a, T> = Result<Locked<SharedReadGuard<'a, T>>, SharedError>;
type Writing<'a, T> = Result<Locked<SharedWriteGuard<'a, T>>, SharedError>;

impl<T: Shareable> SharedRwLock<T> {
    /// Creates a free lock around `value`, to be put into a segment by
    /// [`Segment::create_with`](super::Segment::create_with). Zeroed memory is one, too.
    #[must_use]
    pub const fn new(value: T) -> Self {
        SharedRwLock { raw: robust::RawSharedRwLock::new(), data: UnsafeCell::new(value) }
    }

    /// Acquires the lock for reading, waiting as long as it takes.
    ///
    /// # Errors
    /// [`SharedError::Recursive`] if the calling thread has it for writing,
    /// [`SharedError::NotInSegment`], [`SharedError::Join`].
    #[inline]
    pub fn read(&self) -> Reading<'_, T> {
        self.read_as(&WaitBounds::FOREVER)
    }

    /// Acquires the lock for reading if that needs no wait.
    ///
    /// # Errors
    /// [`SharedError::Held`] if somebody writes; as [`read`](Self::read).
    #[inline]
    pub fn try_read(&self) -> Reading<'_, T> {
        self.read_by(|party, claim| self.raw.try_read(party, claim)).map_err(held_error)
    }

    /// Acquires the lock for reading, waiting at most `timeout`.
    ///
    /// # Errors
    /// [`SharedError::TimedOut`], not before the time is over; as [`read`](Self::read).
    pub fn read_timeout(&self, timeout: Duration) -> Reading<'_, T> {
        self.read_as(&time::within(timeout))
    }

    /// Acquires the lock for reading, waiting until `deadline` at most.
    ///
    /// # Errors
    /// [`SharedError::TimedOut`], not before the deadline; as [`read`](Self::read).
    pub fn read_until(&self, deadline: Instant) -> Reading<'_, T> {
        self.read_as(&time::until(deadline))
    }

    /// Acquires the lock for reading, unless a signal handler runs on this thread while
    /// it sleeps for it.
    ///
    /// # Errors
    /// [`SharedError::Interrupted`]: a handler ran; as [`read`](Self::read).
    pub fn read_interruptible(&self) -> Reading<'_, T> {
        self.read_as(&time::INTERRUPTIBLE)
    }

    /// Acquires the lock for reading, unless `token` is fired, before the call or while
    /// it waits.
    ///
    /// # Errors
    /// [`SharedError::Cancelled`]: the token was fired and the lock was not to be had; as
    /// [`read`](Self::read).
    pub fn read_killable(&self, token: &CancelToken) -> Reading<'_, T> {
        self.read_as(&token.wait())
    }

    /// Acquires the lock for writing, waiting as long as it takes.
    ///
    /// # Errors
    /// [`SharedError::Recursive`] if the calling thread has it, also for reading,
    /// [`SharedError::NotInSegment`], [`SharedError::Join`].
    #[inline]
    pub fn write(&self) -> Writing<'_, T> {
        self.write_as(&WaitBounds::FOREVER)
    }

    /// Acquires the lock for writing if that needs no wait.
    ///
    /// # Errors
    /// [`SharedError::Held`] if somebody else has it; as [`write`](Self::write).
    #[inline]
    pub fn try_write(&self) -> Writing<'_, T> {
        self.write_by(|party| self.raw.try_write(party)).map_err(held_error)
    }

    /// Acquires the lock for writing, waiting at most `timeout`.
    ///
    /// # Errors
    /// [`SharedError::TimedOut`], not before the time is over; as
    /// [`write`](Self::write).
    pub fn write_timeout(&self, timeout: Duration) -> Writing<'_, T> {
        self.write_as(&time::within(timeout))
    }

    /// Acquires the lock for writing, waiting until `deadline` at most.
    ///
    /// # Errors
    /// [`SharedError::TimedOut`], not before the deadline; as [`write`](Self::write).
    pub fn write_until(&self, deadline: Instant) -> Writing<'_, T> {
        self.write_as(&time::until(deadline))
    }

    /// Acquires the lock for writing, unless a signal handler runs on this thread while
    /// it sleeps for it.
    ///
    /// # Errors
    /// [`SharedError::Interrupted`]: a handler ran; as [`write`](Self::write).
    pub fn write_interruptible(&self) -> Writing<'_, T> {
        self.write_as(&time::INTERRUPTIBLE)
    }

    /// Acquires the lock for writing, unless `token` is fired, before the call or while
    /// it waits.
    ///
    /// # Errors
    /// [`SharedError::Cancelled`]: the token was fired and the lock was not to be had; as
    /// [`write`](Self::write).
    pub fn write_killable(&self, token: &CancelToken) -> Writing<'_, T> {
        self.write_as(&token.wait())
    }

    /// Returns the data, without locking: nobody else can reach the lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    #[inline]
    fn read_as(&self, how: &WaitBounds<'_, Linux>) -> Reading<'_, T> {
        self.read_by(|party, claim| self.raw.read(party, claim, how))
    }

    #[inline]
    fn read_by(
        &self,
        by: impl FnOnce(&Party, Option<usize>) -> Result<ReadHold, robust::RobustError>,
    ) -> Reading<'_, T> {
        let Some((holder, hold)) = read_by(self.address(), by)? else {
            return Ok(Locked::NotRecoverable);
        };
        let guard = SharedReadGuard { lock: self, holder, hold, not_send: PhantomData };
        Ok(match hold {
            ReadHold::Claim(_) | ReadHold::Alone => Locked::Acquired(guard),
            ReadHold::OwnerDied => Locked::OwnerDied(Inconsistent::new(guard)),
        })
    }

    #[inline]
    fn write_as(&self, how: &WaitBounds<'_, Linux>) -> Writing<'_, T> {
        self.write_by(|party| self.raw.write(party, how))
    }

    #[inline]
    fn write_by(
        &self,
        by: impl FnOnce(&Party) -> Result<Got, robust::RobustError>,
    ) -> Writing<'_, T> {
        let Some((holder, got)) = write_by(self.address(), by)? else {
            return Ok(Locked::NotRecoverable);
        };
        let guard = SharedWriteGuard { lock: self, holder, not_send: PhantomData };
        Ok(match got {
            Got::Clean => Locked::Acquired(guard),
            Got::OwnerDied => Locked::OwnerDied(Inconsistent::new(guard)),
        })
    }
}

/// Acquires the lock at this address for reading, as `by` does with the thread's party and
/// a claim that it does not use; `None`: it is not recoverable.
#[inline]
pub(super) fn read_by(
    address: usize,
    by: impl FnOnce(&Party, Option<usize>) -> Result<ReadHold, robust::RobustError>,
) -> Result<Option<(GuardHolder, ReadHold)>, SharedError> {
    let (member, party) = super::party(address)?;
    let claim = member.take_claim(party.domain.claims_each);
    let outcome = by(&party, claim);
    if let (Some(number), false) = (claim, matches!(outcome, Ok(ReadHold::Claim(_)))) {
        member.put_claim(party.me, number);
    }
    match outcome {
        Ok(hold) => {
            // Also by a claim: a peer may erase that.
            member.took();
            Ok(Some((GuardHolder { member, me: party.me }, hold)))
        }
        Err(robust::RobustError::NotRecoverable) => Ok(None),
        Err(error) => Err(super::error_of(error)),
    }
}

/// Takes the lock for writing by `how`, as `read_by` does for reading.
#[inline]
pub(super) fn write_by(
    address: usize,
    by: impl FnOnce(&Party) -> Result<Got, robust::RobustError>,
) -> Result<Option<(GuardHolder, Got)>, SharedError> {
    let (member, party) = super::party(address)?;
    match by(&party) {
        Ok(got) => {
            member.took();
            Ok(Some((GuardHolder { member, me: party.me }, got)))
        }
        Err(robust::RobustError::NotRecoverable) => Ok(None),
        Err(error) => Err(super::error_of(error)),
    }
}

impl<T: Shareable + Default> Default for SharedRwLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: Shareable> fmt::Debug for SharedRwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = robust::Identity::from_bits(self.raw.peek()).is_some();
        f.debug_struct("SharedRwLock").field("written", &written).finish_non_exhaustive()
    }
}

/// A reader's access to the data of a [`SharedRwLock`]; dropping it releases. Stays on
/// its thread.
#[must_use = "the lock is released as soon as the guard is dropped"]
pub struct SharedReadGuard<'a, T: Shareable> {
    lock: &'a SharedRwLock<T>,
    holder: GuardHolder,
    hold: ReadHold,
    not_send: PhantomData<*const ()>,
}

// SAFETY: a reference to a guard gives no more than `&T`, and `T` is Sync (GUARD-SOLE).
unsafe impl<T: Shareable> Sync for SharedReadGuard<'_, T> {}

impl<T: Shareable> Deref for SharedReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: GUARD-SOLE: no peer that keeps to the protocol writes while the guard lives;
        // whatever others write is a `T` (SHAREABLE-BITS).
        unsafe { &*self.lock.data.get() }
    }
}

impl<T: Shareable> Drop for SharedReadGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // In a forked child, nobody: it is the parent that reads.
        let Some(party) = self.holder.party() else { return };
        self.lock.raw.unread(&party, self.hold);
        if let ReadHold::Claim(number) = self.hold {
            self.holder.member.put_claim(party.me, number);
        }
        self.holder.member.gave();
    }
}

impl<T: Shareable> sealed::Sealed for SharedReadGuard<'_, T> {}

impl<T: Shareable> HeldGuard for SharedReadGuard<'_, T> {
    fn repair(&mut self, _: sealed::Ours) -> &mut T {
        // SAFETY: GUARD-SOLE: the guard of an acquisition after a dead owner has the lock alone.
        unsafe { &mut *self.lock.data.get() }
    }

    fn mark_consistent(&self, _: sealed::Ours) {
        if let Some(party) = self.holder.party() {
            self.lock.raw.mark_consistent(&party);
        }
    }
}

impl<T: Shareable + fmt::Debug> fmt::Debug for SharedReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// The writer's access to the data of a [`SharedRwLock`]; dropping it releases. Stays on
/// its thread.
#[must_use = "the lock is released as soon as the guard is dropped"]
pub struct SharedWriteGuard<'a, T: Shareable> {
    lock: &'a SharedRwLock<T>,
    holder: GuardHolder,
    not_send: PhantomData<*const ()>,
}

// SAFETY: a reference to a guard gives no more than `&T`, and `T` is Sync (GUARD-SOLE).
unsafe impl<T: Shareable> Sync for SharedWriteGuard<'_, T> {}

impl<T: Shareable> Deref for SharedWriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: GUARD-SOLE among the peers that keep to the protocol; whatever others write is a
        // `T` (SHAREABLE-BITS).
        unsafe { &*self.lock.data.get() }
    }
}

impl<T: Shareable> DerefMut for SharedWriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: GUARD-SOLE and SHAREABLE-BITS, as in `deref`.
        unsafe { &mut *self.lock.data.get() }
    }
}

impl<T: Shareable> Drop for SharedWriteGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // In a forked child, nobody: it is the parent that writes.
        let Some(party) = self.holder.party() else { return };
        self.lock.raw.unwrite(&party);
        self.holder.member.gave();
    }
}

impl<T: Shareable> sealed::Sealed for SharedWriteGuard<'_, T> {}

impl<T: Shareable> HeldGuard for SharedWriteGuard<'_, T> {
    fn repair(&mut self, _: sealed::Ours) -> &mut T {
        self
    }

    fn mark_consistent(&self, _: sealed::Ours) {
        if let Some(party) = self.holder.party() {
            self.lock.raw.mark_consistent(&party);
        }
    }
}

impl<T: Shareable + fmt::Debug> fmt::Debug for SharedWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
