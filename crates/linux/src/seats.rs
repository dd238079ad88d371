//! The table of participants, described for those who look from outside.
//!
//! # Role
//! A lock word names its owner by a slot, and only the table knows which thread
//! that is. `lockstead dump` reads the memory of any process and has to find the
//! table in it, also in a program without symbols. So each program or library
//! that has these locks inside has this description among its data, where it
//! is found by its first bytes.
//!
//! # Reading
//! 1. [`Description`], 8-aligned, in readable memory that is mapped from the
//!    file of the code that sleeps: a program and a library it loads may both
//!    have a table, and each lock is of one of them.
//! 2. `directory`, an array of `chunks` addresses; null: no such chunk yet.
//! 3. The seat of slot `s` is number `s % chunk_seats` of the seats that begin
//!    at the address in entry `s / chunk_seats`; seats are `seat_size` bytes apart.
//! 4. In a seat, 32 bits each: at `tid` the kernel's number of its thread, as the
//!    process has it; at `standing` 0 vacant, 1 taken, 2 left behind by `fork`.
//!
//! # Which words have owners
//! Those of sleeps that hear these bits of `FUTEX_WAIT_BITSET`, and no others:
//!
//! | bits | the thread sleeps |
//! |---|---|
//! | `fffffff8` | for a mutex, and looks again from time to time |
//! | `00000001` | for a mutex, as the heir |
//! | `fffffffc` | for anything else, or on a mutex of an older version |
//! | `00000003` | as the heir of a semaphore |
//!
//! The owner's slot is in the low 20 bits of the 32-bit word that is slept on;
//! 0: the mutex is changing hands. Sleeps with a cancellation word are of another
//! call, which has no such bits.
//!
//! # Compatibility
//! Readers refuse a version that they do not know. It changes with any of this.

use crate::platform::Linux;
use crate::table::{CHUNK, CHUNKS, Chunk, DIRECTORY};
use core::sync::atomic::AtomicPtr;
use lockstead_core::Participant;

/// See the module's documentation. No field but the last changes size between
/// architectures.
#[repr(C, align(8))]
struct Description {
    magic: [u8; 16],
    version: u32,
    /// Seats of a chunk.
    chunk_seats: u32,
    /// Entries of the directory.
    chunks: u32,
    /// Bytes from a seat to the next.
    seat_size: u32,
    /// Bytes from the start of a seat to the thread's number.
    tid: u32,
    /// Bytes from the start of a seat to its standing.
    standing: u32,
    directory: &'static [AtomicPtr<Chunk>; CHUNKS as usize],
}

static DESCRIPTION: Description = Description {
    magic: *b"lockstead seats\n",
    version: 1,
    chunk_seats: CHUNK,
    chunks: CHUNKS,
    seat_size: size_of::<Participant<Linux>>() as u32,
    tid: Participant::<Linux>::TID as u32,
    standing: Participant::<Linux>::STANDING as u32,
    directory: &DIRECTORY,
};

/// Called before the first seat is taken. A read that the compiler may not leave
/// out: nothing else refers to the description, and linkers drop what nothing
/// refers to.
pub(crate) fn keep() {
    // SAFETY: reads a field of a static, which is initialised and aligned.
    let _ = unsafe { (&raw const DESCRIPTION.version).read_volatile() };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership;
    use lockstead_core::Slot;

    #[test]
    fn the_description_leads_to_the_seat_of_a_thread() {
        let me = Slot::new(membership::me_or_zero()).unwrap_or_else(membership::join);
        // SAFETY: asks for a number.
        let tid = unsafe { libc::gettid() }.unsigned_abs();
        let d = &DESCRIPTION;
        let slot = me.get();
        let chunk = d.directory[(slot / d.chunk_seats) as usize]
            .load(core::sync::atomic::Ordering::Acquire);
        let seat = chunk.cast::<u8>().wrapping_add((slot % d.chunk_seats * d.seat_size) as usize);
        let word = |offset: u32| {
            // SAFETY: the chunk is mapped for good (P2), and the offset is that
            // of an atomic of 32 bits in a seat.
            unsafe { seat.wrapping_add(offset as usize).cast::<u32>().read_volatile() }
        };
        assert_eq!((word(d.tid), word(d.standing)), (tid, 1));
        assert_eq!(size_of::<Description>(), 48);
    }
}
