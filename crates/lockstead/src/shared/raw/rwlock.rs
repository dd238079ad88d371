//! The reader-writer lock without data.

use super::super::error::SharedError;
use super::super::rwlock::{read_by, write_by};
use super::super::{GuardHolder, claim_on, held_error, mutex};
use super::RawOutcome;
use lockstead_core::WaitBounds;
use lockstead_core::robust::{Got, RawSharedRwLock, ReadHold};
use lockstead_linux::Linux;

/// [`SharedRwLock`](super::super::SharedRwLock) without its data: 8 bytes, zeroes are free.
#[repr(transparent)]
pub struct RawRwLock(RawSharedRwLock<Linux>);

const _: () = assert!(size_of::<RawRwLock>() == 8 && align_of::<RawRwLock>() == 8);

impl Default for RawRwLock {
    fn default() -> Self {
        RawRwLock(RawSharedRwLock::new())
    }
}

impl RawRwLock {
    /// Acquires it for reading, waiting as `how` says. With [`RawOutcome::OwnerDied`] the
    /// caller has it alone, to repair what a writer left.
    ///
    /// # Errors
    /// Those that `how` allows, and those of
    /// [`SharedRwLock::read`](super::super::SharedRwLock::read).
    pub fn read(&self, how: &WaitBounds<'_, Linux>) -> Result<RawOutcome, SharedError> {
        was_read(read_by(self.address(), |party, claim| self.0.read(party, claim, how)))
    }

    /// Acquires it for reading if that needs no wait.
    ///
    /// # Errors
    /// [`SharedError::Held`]; as [`read`](Self::read).
    pub fn try_read(&self) -> Result<RawOutcome, SharedError> {
        was_read(read_by(self.address(), |party, claim| self.0.try_read(party, claim)))
            .map_err(held_error)
    }

    /// Acquires it for writing, waiting as `how` says.
    ///
    /// # Errors
    /// Those that `how` allows, and those of
    /// [`SharedRwLock::write`](super::super::SharedRwLock::write).
    pub fn write(&self, how: &WaitBounds<'_, Linux>) -> Result<RawOutcome, SharedError> {
        was_written(write_by(self.address(), |party| self.0.write(party, how)))
    }

    /// Acquires it for writing if that needs no wait.
    ///
    /// # Errors
    /// [`SharedError::Held`]; as [`write`](Self::write).
    pub fn try_write(&self) -> Result<RawOutcome, SharedError> {
        was_written(write_by(self.address(), |party| self.0.try_write(party))).map_err(held_error)
    }

    /// Releases what the calling thread has of it, for reading or for writing. Returns false if
    /// that is nothing, or a claim that a peer has erased.
    pub fn unlock(&self) -> bool {
        let address = self.address();
        let Some((member, party)) = mutex::party_at(address) else { return false };
        let claim = claim_on(member, &party, address);
        let released = match claim {
            Some(number) => {
                let released = self.0.unread(&party, ReadHold::Claim(number));
                member.put_claim(party.me, number);
                released
            }
            None => self.0.unwrite(&party),
        };
        if released {
            member.gave();
        }
        released
    }

    /// Releases what the calling thread has alone, as one that has changed nothing: after
    /// [`RawOutcome::OwnerDied`] the next one is told of the death in its stead, and the lock stays
    /// usable. Returns false, and nothing is done, if the calling thread does not have it alone.
    pub fn unlock_untouched(&self) -> bool {
        let Some((member, party)) = mutex::party_at(self.address()) else { return false };
        let released = self.0.unwrite_untouched(&party);
        if released {
            member.gave();
        }
        released
    }

    /// Declares consistent what a dead writer left. Returns false if the calling thread does not
    /// have the lock alone.
    pub fn mark_consistent(&self) -> bool {
        let party = mutex::party_at(self.address());
        party.is_some_and(|(_, party)| self.0.mark_consistent(&party))
    }

    /// Tells whether a writer has died since what it protects was last declared consistent; or it
    /// is not recoverable, for that reason.
    #[must_use]
    pub fn is_inconsistent(&self) -> bool {
        self.0.peek() & lockstead_core::robust::word::INCONSISTENT != 0
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }
}

fn was_read(
    got: Result<Option<(GuardHolder, ReadHold)>, SharedError>,
) -> Result<RawOutcome, SharedError> {
    Ok(match got? {
        Some((_, ReadHold::Claim(_) | ReadHold::Alone)) => RawOutcome::Acquired,
        Some((_, ReadHold::OwnerDied)) => RawOutcome::OwnerDied,
        None => RawOutcome::NotRecoverable,
    })
}

fn was_written(
    got: Result<Option<(GuardHolder, Got)>, SharedError>,
) -> Result<RawOutcome, SharedError> {
    Ok(match got? {
        Some((_, Got::Clean)) => RawOutcome::Acquired,
        Some((_, Got::OwnerDied)) => RawOutcome::OwnerDied,
        None => RawOutcome::NotRecoverable,
    })
}

impl core::fmt::Debug for RawRwLock {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RawRwLock").finish_non_exhaustive()
    }
}
