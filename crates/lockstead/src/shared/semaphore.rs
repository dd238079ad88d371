//! The counting semaphore, for segments.

use super::error::SharedError;
use super::shape::{LockKind, Shape};
use super::{GuardHolder, Party, Shareable, held_error};
use crate::{CancelToken, time};
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::sync::atomic::{AtomicU32, Ordering};
use lockstead_core::WaitBounds;
use lockstead_core::robust::{self, Units};
use lockstead_linux::Linux;
use std::time::{Duration, Instant};

/// The report about the units of a holder that dies, which are free again either way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OnDeath {
    /// Nobody is told of it.
    #[default]
    Return,
    /// The next acquisition that succeeds is told how many there were, once:
    /// [`Taken::HolderDied`].
    Report,
}

/// A counting semaphore among all threads of all processes that have the segment open.
/// The units of a holder that dies are free again.
///
/// 40 bytes; zeroes are one without units, that says nothing of the dead. Who takes
/// units has a [`Permit`], which is one of its thread's claims
/// ([`SegmentOptions::claims`](super::SegmentOptions::claims)), and gives them back or uses them
/// up.
///
/// Works where it lies in a [`Segment`](super::Segment).
///
/// # Example
/// ```
/// use lockstead::shared::{OnDeath, SegmentOptions, Segment, SharedSemaphore};
///
/// let segment = Segment::<SharedSemaphore>::memfd_with("slots", &SegmentOptions::new(), |slots| {
///     *slots = SharedSemaphore::new(2, OnDeath::Report);
/// })?;
/// let slots = segment.root();
/// let permit = slots.acquire(1)?.permit();
/// assert_eq!(slots.free(), 1);
/// drop(permit);
/// assert_eq!(slots.free(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[repr(C)]
pub struct SharedSemaphore {
    raw: robust::RawSharedSemaphore<Linux>,
    /// 0: [`OnDeath::Return`]; anything else: [`OnDeath::Report`].
    reports: AtomicU32,
    spare: AtomicU32,
}

const _: () = assert!(size_of::<SharedSemaphore>() as u64 == 40);

// SAFETY: SHAREABLE-BITS: the type is `repr(C)` and made of atomic words, for which all bits are
// values.
unsafe impl Shareable for SharedSemaphore {
    const SHAPE: Shape = Shape::Lock {
        kind: LockKind::Semaphore,
        size: size_of::<Self>(),
        offset: size_of::<Self>(),
        data: &<()>::SHAPE,
    };
}

type Taking<'a> = Result<Taken<'a>, SharedError>;

impl SharedSemaphore {
    /// Creates a semaphore with so many free units, to be put into a segment by
    /// [`Segment::create_with`](super::Segment::create_with).
    #[must_use]
    pub fn new(units: u32, on_death: OnDeath) -> Self {
        SharedSemaphore {
            raw: robust::RawSharedSemaphore::with_units(units),
            reports: AtomicU32::new(u32::from(on_death == OnDeath::Report)),
            spare: AtomicU32::new(0),
        }
    }

    /// Takes `units`, waiting as long as it takes.
    ///
    /// # Errors
    /// [`SharedError::TooManyClaims`], [`SharedError::NotInSegment`],
    /// [`SharedError::Join`].
    pub fn acquire(&self, units: u32) -> Taking<'_> {
        self.take(units, &WaitBounds::FOREVER)
    }

    /// Takes `units` if that needs no wait for units.
    ///
    /// # Errors
    /// [`SharedError::Held`] if there are too few; as [`acquire`](Self::acquire).
    ///
    /// ```
    /// use lockstead::shared::{OnDeath, SegmentOptions, Segment, SharedError, SharedSemaphore};
    ///
    /// let segment = Segment::<SharedSemaphore>::memfd("slots", &SegmentOptions::new())?;
    /// let slots = segment.root();
    /// assert_eq!(slots.try_acquire(1).map(drop), Err(SharedError::Held));
    /// slots.add(1)?;
    /// assert_eq!(slots.try_acquire(1).map(drop), Ok(()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_acquire(&self, units: u32) -> Taking<'_> {
        self.take_by(units, |party, claim| self.raw.try_acquire(party, claim, units))
            .map_err(held_error)
    }

    /// Takes `units`, waiting at most `timeout`.
    ///
    /// # Errors
    /// [`SharedError::TimedOut`], not before the time is over; as
    /// [`acquire`](Self::acquire).
    pub fn acquire_timeout(&self, units: u32, timeout: Duration) -> Taking<'_> {
        self.take(units, &time::within(timeout))
    }

    /// Takes `units`, waiting until `deadline` at most.
    ///
    /// # Errors
    /// [`SharedError::TimedOut`], not before the deadline; as
    /// [`acquire`](Self::acquire).
    pub fn acquire_until(&self, units: u32, deadline: Instant) -> Taking<'_> {
        self.take(units, &time::until(deadline))
    }

    /// Takes `units`, unless a signal handler runs on this thread while it sleeps for
    /// them.
    ///
    /// # Errors
    /// [`SharedError::Interrupted`]: a handler ran; as [`acquire`](Self::acquire).
    pub fn acquire_interruptible(&self, units: u32) -> Taking<'_> {
        self.take(units, &time::INTERRUPTIBLE)
    }

    /// Takes `units`, unless `token` is fired, before the call or while it waits.
    ///
    /// # Errors
    /// [`SharedError::Cancelled`]: the token was fired and there were too few; as
    /// [`acquire`](Self::acquire).
    pub fn acquire_killable(&self, units: u32, token: &CancelToken) -> Taking<'_> {
        self.take(units, &token.wait())
    }

    /// Adds `units` that nobody had. Returns false, and nothing is done, if there would be more
    /// than `u32::MAX`.
    ///
    /// # Errors
    /// [`SharedError::NotInSegment`], [`SharedError::Join`].
    pub fn add(&self, units: u32) -> Result<bool, SharedError> {
        let (_, party) = super::party(self.address())?;
        self.raw.add(&party, units).map_err(super::error_of)
    }

    /// Returns the number of free units, at some moment during the call. Those of a holder that has
    /// died are counted when somebody wants them.
    #[must_use]
    pub fn free(&self) -> u32 {
        self.raw.peek().1
    }

    /// Returns the number of all units, free or not, at some moment during the call.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.raw.peek().0
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    fn take(&self, units: u32, how: &WaitBounds<'_, Linux>) -> Taking<'_> {
        self.take_by(units, |party, claim| self.raw.acquire(party, claim, units, how))
    }

    fn take_by(
        &self,
        units: u32,
        by: impl FnOnce(&Party, usize) -> Result<Units, robust::RobustError>,
    ) -> Taking<'_> {
        let (member, party) = super::party(self.address())?;
        let claim = member.take_claim(party.domain.claims_each);
        let claim = claim.ok_or(SharedError::TooManyClaims)?;
        match by(&party, claim) {
            Ok(Units { lost }) => {
                // A peer may erase the claim.
                member.took();
                let holder = GuardHolder { member, me: party.me };
                let permit =
                    Permit { semaphore: self, holder, claim, units, not_send: PhantomData };
                Ok(match lost {
                    1.. if self.reports.load(Ordering::Relaxed) != 0 => {
                        Taken::HolderDied { permit, lost }
                    }
                    _ => Taken::Acquired(permit),
                })
            }
            Err(error) => {
                member.put_claim(party.me, claim);
                Err(super::error_of(error))
            }
        }
    }
}

impl fmt::Debug for SharedSemaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (total, free) = self.raw.peek();
        f.debug_struct("SharedSemaphore").field("total", &total).field("free", &free).finish()
    }
}

/// Units as they were taken.
#[must_use = "the units are given back as soon as this is dropped"]
#[derive(Debug)]
pub enum Taken<'a> {
    /// The units were taken, and nothing else is to be said.
    Acquired(Permit<'a>),
    /// The units were taken, and holders have died that had `lost` units, which are free again:
    /// whatever they stand for may want a look. Only semaphores with [`OnDeath::Report`] tell of
    /// it, and only once.
    HolderDied {
        /// The units that were taken.
        permit: Permit<'a>,
        /// The number of units that the dead had.
        lost: u32,
    },
}

impl<'a> Taken<'a> {
    /// Returns what was taken, whoever died.
    pub fn permit(self) -> Permit<'a> {
        match self {
            Taken::Acquired(permit) | Taken::HolderDied { permit, .. } => permit,
        }
    }
}

/// Units of a [`SharedSemaphore`], given back when dropped. Stays on its thread, whose
/// death gives them back as well.
#[must_use = "the units are given back as soon as the permit is dropped"]
pub struct Permit<'a> {
    semaphore: &'a SharedSemaphore,
    holder: GuardHolder,
    claim: usize,
    units: u32,
    not_send: PhantomData<*const ()>,
}

impl Permit<'_> {
    /// Returns the number of units of the permit.
    #[must_use]
    pub fn units(&self) -> u32 {
        self.units
    }

    /// Uses the units up: nobody gets them any more. The consumer's side of a semaphore
    /// that counts what is there, of which the producer's is
    /// [`add`](SharedSemaphore::add).
    ///
    /// ```
    /// use lockstead::shared::{SegmentOptions, Segment, SharedSemaphore};
    ///
    /// let segment = Segment::<SharedSemaphore>::memfd("jobs", &SegmentOptions::new())?;
    /// let jobs = segment.root();
    /// jobs.add(3)?;
    /// jobs.acquire(1)?.permit().consume();
    /// assert_eq!(jobs.total(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn consume(self) {
        ManuallyDrop::new(self)
            .end(|semaphore, party, claim, units| semaphore.raw.consume(party, claim, units));
    }

    /// Ends the claim, as `by` does. Where a peer has spoiled it there is nothing to end.
    fn end(
        &self,
        by: impl FnOnce(&SharedSemaphore, &Party, usize, u32) -> Result<bool, robust::RobustError>,
    ) {
        // In a forked child, nobody: it is the parent that has them.
        let Some(party) = self.holder.party() else { return };
        let ended = by(self.semaphore, &party, self.claim, self.units);
        if ended == Err(robust::RobustError::Copied) {
            // What the member counts is the child's by now.
            return;
        }
        self.holder.member.put_claim(party.me, self.claim);
        self.holder.member.gave();
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.end(|semaphore, party, claim, units| semaphore.raw.release(party, claim, units));
    }
}

impl fmt::Debug for Permit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("units", &self.units).finish_non_exhaustive()
    }
}
