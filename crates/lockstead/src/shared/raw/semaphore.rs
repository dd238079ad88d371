//! The counting semaphore without permits to keep: a thread has units.

use super::super::error::SharedError;
use super::super::{OnDeath, Party, claim_on, error_of, held_error, mutex, party};
use core::sync::atomic::{AtomicU32, Ordering};
use lockstead_core::robust::{self, RawSharedSemaphore, Units};
use lockstead_core::{Atomic32, WaitBounds};
use lockstead_linux::Linux;

/// [`SharedSemaphore`](super::super::SharedSemaphore) with one account for each thread, of
/// as many units as it has taken: 40 bytes. A thread needs one claim for each semaphore
/// that it has units of.
#[repr(C)]
pub struct RawSemaphore {
    raw: RawSharedSemaphore<Linux>,
    /// The [`OnDeath`] of the semaphore, 0 or 1.
    reports: AtomicU32,
    spare: AtomicU32,
}

const _: () = assert!(size_of::<RawSemaphore>() == 40 && align_of::<RawSemaphore>() == 8);

impl RawSemaphore {
    /// Creates a semaphore with so many free units.
    #[must_use]
    pub fn new(units: u32, on_death: OnDeath) -> Self {
        RawSemaphore {
            raw: RawSharedSemaphore::with_units(units),
            reports: AtomicU32::new(u32::from(on_death == OnDeath::Report)),
            spare: AtomicU32::new(0),
        }
    }

    /// Takes `units`, waiting as `how` says; returns how many the dead had of which nobody
    /// was told, if it reports that.
    ///
    /// # Errors
    /// Those that `how` allows, and those of
    /// [`SharedSemaphore::acquire`](super::super::SharedSemaphore::acquire).
    pub fn acquire(&self, units: u32, how: &WaitBounds<'_, Linux>) -> Result<u32, SharedError> {
        self.take(|party, claim| self.raw.acquire(party, claim, units, how))
    }

    /// Takes `units` if that needs no wait for units.
    ///
    /// # Errors
    /// [`SharedError::Held`] if there are too few; as [`acquire`](Self::acquire).
    pub fn try_acquire(&self, units: u32) -> Result<u32, SharedError> {
        self.take(|party, claim| self.raw.try_acquire(party, claim, units)).map_err(held_error)
    }

    /// Gives `units` back. Returns false, and nothing is done, if the calling thread has fewer.
    ///
    /// # Errors
    /// [`SharedError::Spoiled`].
    pub fn release(&self, units: u32) -> Result<bool, SharedError> {
        self.give(|party, claim| self.raw.release(party, claim, units))
    }

    /// Uses `units` up. Returns false, and nothing is done, if the calling thread has fewer.
    ///
    /// # Errors
    /// [`SharedError::Spoiled`].
    pub fn consume(&self, units: u32) -> Result<bool, SharedError> {
        self.give(|party, claim| self.raw.consume(party, claim, units))
    }

    /// Takes `units` and uses them up, as [`try_acquire`](Self::try_acquire) and
    /// [`consume`](Self::consume) do, if that is one step. Returns whether it did: where it did not, the
    /// two may all the same.
    ///
    /// ```
    /// use lockstead::shared::raw::{Form, RawSegment, RawSemaphore};
    /// use lockstead::shared::{OnDeath, SegmentOptions};
    ///
    /// let segment = RawSegment::memfd("raw", &SegmentOptions::new(), &Form::unknown(40), |root| {
    ///     // SAFETY: the root has 40 bytes, and nobody else knows of it yet.
    ///     unsafe { root.cast().write(RawSemaphore::new(2, OnDeath::Return)) };
    /// })?;
    /// // SAFETY: in the root, at a multiple of 8, and used as a semaphore by all who use it.
    /// let semaphore = unsafe { segment.root().cast::<RawSemaphore>().as_ref() };
    /// semaphore.try_acquire(1)?;
    /// assert!(semaphore.try_use_up(1));
    /// assert!(!semaphore.try_use_up(1));
    /// assert_eq!(semaphore.units(), (1, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn try_use_up(&self, units: u32) -> bool {
        party(self.address()).is_ok_and(|(_, party)| self.raw.try_use_up(&party, units))
    }

    /// Adds `units` that nobody had. Returns false, and nothing is done, if there would be more
    /// than `u32::MAX`.
    ///
    /// # Errors
    /// [`SharedError::NotInSegment`], [`SharedError::Join`], [`SharedError::Spoiled`].
    pub fn add(&self, units: u32) -> Result<bool, SharedError> {
        let (_, party) = party(self.address())?;
        self.raw.add(&party, units).map_err(error_of)
    }

    /// Reads all units, and the free ones among them, at some moment during the call.
    #[must_use]
    pub fn units(&self) -> (u32, u32) {
        self.raw.peek()
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    fn take(
        &self,
        by: impl FnOnce(&Party, usize) -> Result<Units, robust::RobustError>,
    ) -> Result<u32, SharedError> {
        let (member, party) = party(self.address())?;
        let account = claim_on(member, &party, self.address());
        let claim = account.or_else(|| member.take_claim(party.domain.claims_each));
        let claim = claim.ok_or(SharedError::TooManyClaims)?;
        match by(&party, claim) {
            Ok(Units { lost }) => {
                if account.is_none() {
                    // A peer may erase the claim.
                    member.took();
                }
                Ok(if self.reports.load(Ordering::Relaxed) != 0 { lost } else { 0 })
            }
            Err(error) => {
                if account.is_none() {
                    member.put_claim(party.me, claim);
                }
                Err(error_of(error))
            }
        }
    }

    fn give(
        &self,
        by: impl FnOnce(&Party, usize) -> Result<bool, robust::RobustError>,
    ) -> Result<bool, SharedError> {
        let Some((member, party)) = mutex::party_at(self.address()) else { return Ok(false) };
        let Some(claim) = claim_on(member, &party, self.address()) else { return Ok(false) };
        let given = by(&party, claim).map_err(error_of)?;
        let left = party.domain.claims_of(party.me.slot()).get(claim);
        if given && left.is_none_or(|claim| claim.what.load(Ordering::Relaxed) == 0) {
            member.put_claim(party.me, claim);
            member.gave();
        }
        Ok(given)
    }
}

impl core::fmt::Debug for RawSemaphore {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (total, free) = self.units();
        f.debug_struct("RawSemaphore").field("total", &total).field("free", &free).finish()
    }
}
