//! The number by which a process is known in a segment.
//!
//! # Role
//! Every participant's life word names its process by a number, and the number is that of a
//! living process exactly as long as a record lock on its byte of the segment's file is held
//! (see [`description`](super::description)). The one reference to the lock's description is
//! a mapping of one page without access, which forked children do not inherit
//! (`MADV_DONTFORK`). So the lock lives exactly as long as the memory of the process: closing
//! descriptors does not release it, nor does a forked child keep it, and `exec` ends it, as
//! it ends the participant. It needs no process number of the kernel's, which begin again in
//! every PID namespace and after every start of the system, and no clock.
//!
//! # Numbers are drawn
//! From a counter in the segment, one after the other: a number comes up again after
//! [`LAST_NUMBER`] others, and is passed over while it is held. Who gets one holds its lock before
//! any of its threads takes a slot under it. So whoever has a slot under that number in this moment
//! is dead, and is declared so ([`oracle`](super::oracle)): a slot cannot pass for one of the new
//! process, be it that the segment is a copy, or that the system was started again meanwhile, or
//! the container.
//!
//! # Exclusive, or shared
//! The lock is one for writing, which only those can hold who may write the file. Where
//! somebody has locked the byte for reading, as who may only read the file can do with all
//! bytes there are, the process takes a lock for reading too, which nobody who only reads
//! can refuse it, and its number says so ([`SHARED`]). That lock does not prove that the process
//! lives, since nobody can tell the two apart before the reader has ended; what
//! [`oracle`](super::oracle) asks besides does not need it.

use super::description::{self, LAST_NUMBER, SHARED, SegmentDescription, Standing};
use super::oracle;
use super::process::OwnPlace;
use super::refusal::JoinError;
use super::registry::{AttachedSegment, Chore};
use crate::sys;
use core::sync::atomic::Ordering;
use lockstead_core::Atomic32;
use lockstead_core::robust::Life;

/// The number of numbers that a process passes over because somebody seems to have them for
/// reading.
const PASSED: u32 = 64;

/// The length of the mapping that keeps the record lock.
const HOLD: usize = 4096;

/// Returns the number of this process in the segment, which is taken if it has none. The caller is
/// a member, or about to be, or attaches.
///
/// # Errors
/// Why it can have none: nobody would learn of the end of its threads where the kernel's
/// mark fails to appear.
pub(super) fn of_process(attached: &AttachedSegment) -> Result<u32, JoinError> {
    let place = attached.place().ok_or(JoinError::Foreign)?;
    let number = place.number.load(Ordering::Relaxed);
    if number != 0 {
        return Ok(number);
    }
    let _alone = place.alone();
    let number = place.number.load(Ordering::Relaxed);
    if number != 0 {
        return Ok(number);
    }
    let number = take(attached, place)?;
    // Before any thread takes a slot under it. About all others, too: who comes first after a start
    // of the system finds no living ones.
    oracle::bury_predecessors(attached, number);
    if !oracle::lives_anybody(attached) {
        attached.scrub(Chore::EndNames);
    }
    place.number.store(number, Ordering::Relaxed);
    Ok(number)
}

fn take(attached: &AttachedSegment, place: &OwnPlace) -> Result<u32, JoinError> {
    let file = SegmentDescription::open(attached).map_err(JoinError::NoDescription)?;
    let number = draw(attached, &file)?;
    // SAFETY: MAPPING-OURS: a fresh mapping at an address of the kernel's choice, without access.
    let hold = unsafe {
        let (nowhere, alike) = (core::ptr::null_mut(), libc::MAP_SHARED);
        libc::mmap(nowhere, HOLD, libc::PROT_NONE, alike, file.file(), 0)
    };
    if hold == libc::MAP_FAILED {
        return Err(JoinError::NoMemory(sys::errno()));
    }
    // SAFETY: MAPPING-OURS: `mmap` made the mapping above, and nobody else knows it.
    if unsafe { libc::madvise(hold, HOLD, libc::MADV_DONTFORK) } != 0 {
        let error = sys::errno();
        // SAFETY: MAPPING-OURS: `mmap` made the mapping above, and nobody else knows it.
        unsafe { libc::munmap(hold, HOLD) };
        return Err(JoinError::NoMemory(error));
    }
    place.hold.store(hold.expose_provenance(), Ordering::Relaxed);
    let kept = is_kept(attached, number, file);
    if kept.is_err() {
        forget(place);
    }
    kept.map(|()| number)
}

/// Tells whether the lock is there still when only the mapping refers to its description. A file
/// system whose mappings are those of another one's files refers to these instead.
fn is_kept(
    attached: &AttachedSegment,
    number: u32,
    file: SegmentDescription,
) -> Result<(), JoinError> {
    let kind_keeps = description::keeps_locks_of_mappings(file.file());
    drop(file);
    match oracle::ask(attached, number & !SHARED) {
        // Behind a reader's lock one's own is not seen.
        Standing::Shared { .. } if number & SHARED != 0 && kind_keeps => Ok(()),
        Standing::Alone { .. } => Ok(()),
        Standing::Unknown(error) => Err(JoinError::NoRecordLocks(error)),
        Standing::Free | Standing::Shared { .. } => Err(JoinError::ForgetfulFileSystem),
    }
}

/// Draws numbers until one can be locked.
fn draw(attached: &AttachedSegment, file: &SegmentDescription) -> Result<u32, JoinError> {
    // No thread ever has the first slot, so that its note serves as the counter.
    let counter = attached.domain().records.first().ok_or(JoinError::Foreign)?;
    let mut passed = 0;
    for _ in 0..=LAST_NUMBER {
        let number = counter.note.fetch_add(1, Ordering::Relaxed) % LAST_NUMBER + 1;
        if file.lock(number, false).map_err(JoinError::NoRecordLocks)? {
            return Ok(number);
        }
        match description::standing(file.file(), number) {
            // Another process; or one that has just let go.
            Standing::Alone { exactly: true } | Standing::Free => {}
            // Another process, most likely. But who only reads can lock all numbers like this.
            Standing::Shared { exactly: true } if passed < PASSED => passed += 1,
            Standing::Alone { exactly: false } => return Err(JoinError::FileLocked),
            Standing::Shared { .. } => {
                // Behind the reader's lock may be another process's, which has a slot somewhere.
                if !oracle::is_named(attached, number)
                    && file.lock(number, true).map_err(JoinError::NoRecordLocks)?
                {
                    return Ok(SHARED | number);
                }
            }
            Standing::Unknown(error) => return Err(JoinError::NoRecordLocks(error)),
        }
    }
    Err(JoinError::TooManyProcesses)
}

/// Takes the process out of the segment, of which none of its threads is a member.
pub(super) fn forget(place: &OwnPlace) {
    let hold = place.hold.swap(0, Ordering::Relaxed);
    if hold != 0 {
        // SAFETY: MAPPING-OURS: `take` mapped it, and nobody accesses it.
        unsafe { libc::munmap(core::ptr::with_exposed_provenance_mut(hold), HOLD) };
    }
    place.number.store(0, Ordering::Relaxed);
}

impl AttachedSegment {
    /// Prepares a worn-out slot, so that nobody else does, and nobody takes it for worn
    /// out: its life word then, which is to be replaced when the slot is in order. Should the
    /// process end before, the slot is worn out again.
    ///
    /// # Errors
    /// [`JoinError`] if the process is not known in the segment; `Ok(None)` if the slot is
    /// not, or no longer, like this.
    pub fn prepare(&self, slot: u32, worn_out: Life) -> Result<Option<Life>, JoinError> {
        let process = of_process(self)?;
        let life = worn_out.prepared(process);
        let Some(record) = self.domain().record(slot).filter(|_| worn_out.is_worn_out()) else {
            return Ok(None);
        };
        if !record.change(worn_out, life) {
            return Ok(None);
        }
        self.domain().erase_claims(slot);
        Ok(Some(life))
    }
}
