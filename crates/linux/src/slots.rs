//! Describes the table of participants for a reader outside the process.
//!
//! # Role
//! A lock word names its owner by a slot, and only the table knows which thread
//! that is. `lockstead dump` reads the memory of any process and has to find the
//! table in it, also in a program without symbols. So each program or library
//! that has these locks inside has this description among its data, where it
//! is found by its first bytes.
//!
//! # Reading
//! 1. [`SlotsDescription`], 8-aligned, in readable memory that is mapped from the
//!    file of the code that sleeps: a program and a library it loads may both
//!    have a table, and each lock is of one of them.
//! 2. `directory`, an array of `chunks` addresses; null: no such chunk yet.
//! 3. The record of slot `s` is number `s % chunk_slots` of those that begin
//!    at the address in entry `s / chunk_slots`; slots are `slot_size` bytes apart.
//! 4. In a record, 32 bits each: at `tid` the kernel's number of its thread, as the
//!    process has it; at `standing` 0 vacant, 1 taken, 2 left behind by `fork`.
//!
//! # Which sleeps are for a lock with an owner
//! Those that hear these bits of `FUTEX_WAIT_BITSET`, and no others:
//!
//! | bits | the thread sleeps |
//! |---|---|
//! | `fffffff0` | for a lock, until it has it; it may look again from time to time |
//! | `fffffff8` | for a lock, until it has it or gives up; it may look again from time to time |
//! | `00000001` | for a lock, as the hand-off waiter of the mutex on whose word it sleeps |
//! | `fffffffc` | for anything else |
//! | `00000003` | as the hand-off waiter of a semaphore |
//!
//! The fifth argument of such a call, at which the kernel does not look, is the address of the lock,
//! and in its two low bits how the thread wants it:
//!
//! | bits | the lock | its first 32 bits |
//! |---|---|---|
//! | 0 | a mutex | the owner's slot in the low 20; 0: it is changing hands |
//! | 1 | a reader-writer lock, to read | bit 20 not set: the writer's slot in the low 20; set: the number of readers there |
//! | 2 | the same, to write | the same |
//! | 3 | a once | the slot of the thread that runs the initialiser in the low 20 |
//!
//! The word that is slept on may be another one: the waiting room of a reader-writer lock, or a word
//! of the thread's own slot. Sleeps with a cancellation word are of another call, which has no such
//! bits.
//!
//! # Compatibility
//! Readers refuse a version that they do not know. It changes with any of this.

use crate::linux::Linux;
use crate::table::{CHUNK, CHUNKS, DIRECTORY, TableChunk};
use core::sync::atomic::AtomicPtr;
use lockstead_core::TableEntry;

/// The description that the module's documentation specifies. No field but the last changes size
/// between architectures.
#[repr(C, align(8))]
struct SlotsDescription {
    magic: [u8; 16],
    version: u32,
    /// The number of slots of a chunk.
    chunk_slots: u32,
    /// The number of entries of the directory.
    chunks: u32,
    /// Bytes from a slot to the next.
    slot_size: u32,
    /// Bytes from the start of a slot to the thread's number.
    tid: u32,
    /// Bytes from the start of a slot to its standing.
    standing: u32,
    directory: &'static [AtomicPtr<TableChunk>; CHUNKS as usize],
}

static DESCRIPTION: SlotsDescription = SlotsDescription {
    // The bytes that readers of every version look for.
    magic: *b"lockstead seats\n",
    version: 2,
    chunk_slots: CHUNK,
    chunks: CHUNKS,
    slot_size: size_of::<TableEntry<Linux>>() as u32,
    tid: TableEntry::<Linux>::TID as u32,
    standing: TableEntry::<Linux>::STATUS as u32,
    directory: &DIRECTORY,
};

/// Keeps the description in the program, before the first slot is taken: nothing else refers
/// to it, and linkers drop what nothing refers to.
pub(crate) fn keep() {
    // SAFETY: the field is one of a static, which is initialised, aligned and never written.
    let _ = unsafe { (&raw const DESCRIPTION.version).read_volatile() };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{me, membership};
    use lockstead_core::Slot;

    #[test]
    fn the_description_leads_to_the_slot_of_a_thread() {
        let me = Slot::new(me::me_or_zero()).unwrap_or_else(membership::join);
        // SAFETY: the call takes no argument and returns a number.
        let tid = unsafe { libc::gettid() }.unsigned_abs();
        let d = &DESCRIPTION;
        let slot = me.get();
        let chunk = d.directory[(slot / d.chunk_slots) as usize]
            .load(core::sync::atomic::Ordering::Acquire);
        let place = chunk.cast::<u8>().wrapping_add((slot % d.chunk_slots * d.slot_size) as usize);
        let word = |offset: u32| {
            // SAFETY: the chunk is mapped for good (TABLE-FOREVER), and the offset is that
            // of an atomic of 32 bits in a slot.
            unsafe { place.wrapping_add(offset as usize).cast::<u32>().read_volatile() }
        };
        assert_eq!((word(d.tid), word(d.standing)), (tid, 1));
        assert_eq!(size_of::<SlotsDescription>(), 48);
    }
}
