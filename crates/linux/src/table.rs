//! The table of participants: grows, never moves, never shrinks.
//!
//! # Role
//! Slot numbers to [`Participant`]s. A static directory of chunks; a chunk is
//! mapped from the kernel, zeroed, when the seats run out.
//!
//! # Invariants
//! - P2: a chunk is published once and never unmapped.
//! - **TAB1** An unattended seat is vacated by the one reaper at work, after
//!   the kernel said that its thread is gone; an attended one by its thread.
//!   So no seat is vacated under a stranger.
//!
//! # Progress
//! Lock-free: whoever loses the race to publish a chunk uses the winner's.
//! Nothing here waits for another thread, which `fork` may have left behind.

use crate::atomics::U32;
use crate::platform::Linux;
use crate::seats;
use crate::sys;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use lockstead_core::{MAX_SLOTS, Participant, Slot};

const CHUNK_BITS: u32 = 10;
pub(crate) const CHUNK: u32 = 1 << CHUNK_BITS;
pub(crate) const CHUNKS: u32 = (MAX_SLOTS + 1) / CHUNK;

/// Seats looked at before the table grows instead: keeps joining cheap when
/// nearly all seats are taken.
const LOOKS: u32 = 64;

#[repr(C)]
pub(crate) struct Chunk {
    seats: [Participant<Linux>; CHUNK as usize],
    /// Not zero: nothing will tell when the thread of this seat ends.
    unattended: [U32; CHUNK as usize],
    /// What the thread of this seat is called in the table of who runs (`oncpu`).
    names: [U32; CHUNK as usize],
}

pub(crate) static DIRECTORY: [AtomicPtr<Chunk>; CHUNKS as usize] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; CHUNKS as usize];
/// Chunks in use; the others may exist already, but give no seats.
static OPEN: AtomicU32 = AtomicU32::new(1);
/// Where the next search for a seat starts. It rotates, so that a seat rests
/// as long as possible before it is used again.
static NEXT: AtomicU32 = AtomicU32::new(1);
/// Seats above this number were never taken.
static HIGHEST: AtomicU32 = AtomicU32::new(0);
/// There may be unattended seats.
static UNATTENDED: AtomicBool = AtomicBool::new(false);
/// A reaper is at work.
static REAPING: AtomicBool = AtomicBool::new(false);

/// The participant behind a slot.
#[inline]
pub(crate) fn participant(slot: Slot) -> &'static Participant<Linux> {
    &chunk(slot.get() >> CHUNK_BITS).seats[(slot.get() % CHUNK) as usize]
}

fn unattended(slot: Slot) -> &'static AtomicU32 {
    chunk(slot.get() >> CHUNK_BITS).unattended[(slot.get() % CHUNK) as usize].get()
}

/// What the thread in a slot is called in the table of who runs; 0: nobody knows.
#[inline]
pub(crate) fn name(slot: Slot) -> &'static AtomicU32 {
    chunk(slot.get() >> CHUNK_BITS).names[(slot.get() % CHUNK) as usize].get()
}

#[inline]
fn chunk(index: u32) -> &'static Chunk {
    // ord: TAB-1 acquire, pairs with TAB-2: the chunk is mapped.
    let chunk = DIRECTORY[index as usize].load(Ordering::Acquire);
    // SAFETY: a published chunk lives for ever (P2).
    unsafe { chunk.as_ref() }.unwrap_or_else(|| publish(index))
}

/// Maps a chunk unless somebody has. Also the way of a thread that learned a
/// slot number by a relaxed load and sees the directory as it was before: the
/// compare-exchange finds the pointer.
#[cold]
fn publish(index: u32) -> &'static Chunk {
    let _errno = sys::KeepErrno::new();
    let size = size_of::<Chunk>();
    let Some(fresh) = sys::map_zeroed(size) else {
        sys::die("no memory for the table of threads that take locks");
    };
    seats::keep();
    let entry = &DIRECTORY[index as usize];
    let chunk: NonNull<Chunk> = fresh.cast();
    // ord: TAB-2 release, pairs with TAB-1. Failure: acquire, as TAB-1.
    let result = entry.compare_exchange(
        core::ptr::null_mut(),
        chunk.as_ptr(),
        Ordering::Release,
        Ordering::Acquire,
    );
    match result {
        // SAFETY: mapped above, page aligned, all zeros is a chunk of vacant
        // seats, and from now on it lives for ever.
        Ok(_) => unsafe { chunk.as_ref() },
        Err(theirs) => {
            // SAFETY: nobody has seen our mapping.
            unsafe { sys::unmap(fresh, size) };
            // SAFETY: published by another thread, not null (P2).
            unsafe { &*theirs }
        }
    }
}

/// Takes a seat for the thread `tid`. With `attended`, the thread gives it
/// back by [`vacate`]; without, it is taken back some time after its end.
///
/// Ends the process when all [`MAX_SLOTS`] seats are taken by live threads.
pub(crate) fn claim(tid: u32, attended: bool) -> Slot {
    let slot = loop {
        let open = OPEN.load(Ordering::Relaxed);
        let full = open == CHUNKS;
        let seats = open * CHUNK;
        if let Some(slot) = search(tid, seats, if full { seats } else { LOOKS }) {
            break slot;
        }
        if reap() {
            continue;
        }
        if full {
            sys::die("more than 1048575 threads take locks at the same time");
        }
        // Lost to another thread: the table has grown all the same.
        let _ = OPEN.compare_exchange(open, open + 1, Ordering::Relaxed, Ordering::Relaxed);
    };
    HIGHEST.fetch_max(slot.get(), Ordering::Relaxed);
    if !attended {
        unattended(slot).store(1, Ordering::Relaxed);
        UNATTENDED.store(true, Ordering::Relaxed);
    }
    slot
}

fn search(tid: u32, seats: u32, looks: u32) -> Option<Slot> {
    (0..looks).find_map(|_| {
        let slot = Slot::new(NEXT.fetch_add(1, Ordering::Relaxed) % seats)?;
        participant(slot).claim(tid).then_some(slot)
    })
}

/// The calling thread gives its attended seat back.
pub(crate) fn vacate(slot: Slot) {
    participant(slot).vacate();
}

/// Takes back the seats of unattended threads that have ended; true if there
/// was one.
fn reap() -> bool {
    if !UNATTENDED.load(Ordering::Relaxed) {
        return false;
    }
    // ord: TAB-3 acquire, pairs with TAB-4: what the last reaper has vacated
    // is not vacated again (TAB1).
    if REAPING.swap(true, Ordering::Acquire) {
        return false;
    }
    let mut found = false;
    for slot in taken() {
        let mark = unattended(slot);
        if mark.load(Ordering::Relaxed) == 0 {
            continue;
        }
        let seat = participant(slot);
        if seat.tid().is_some_and(sys::thread_is_gone) {
            mark.store(0, Ordering::Relaxed);
            seat.vacate();
            found = true;
        }
    }
    // ord: TAB-4 release, pairs with TAB-3.
    REAPING.store(false, Ordering::Release);
    found
}

/// All seats that were ever taken.
fn taken() -> impl Iterator<Item = Slot> {
    (1..=HIGHEST.load(Ordering::Relaxed)).filter_map(Slot::new)
}

/// In the child of a `fork`: everybody but `me` is lost, and `me` is `tid`.
pub(crate) fn keep_only(me: Option<Slot>, tid: u32) {
    for slot in taken() {
        if Some(slot) != me {
            participant(slot).lose();
            unattended(slot).store(0, Ordering::Relaxed);
        }
    }
    if let Some(me) = me {
        participant(me).rename(tid);
    }
    REAPING.store(false, Ordering::Relaxed);
}
