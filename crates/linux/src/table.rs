//! Keeps the table of participants, which grows, never moves, and never shrinks.
//!
//! # Role
//! Slot numbers to [`TableEntry`]s. A static directory of chunks; a chunk is
//! mapped from the kernel, zeroed, when the slots run out.
//!
//! # Invariants
//! - **TABLE-FOREVER** A chunk is published once and never unmapped.
//! - **TABLE-ONE-REAPER** An unattended slot is vacated by the one reaper at work, after
//!   the kernel said that its thread is gone; an attended one by its thread.
//!   So no slot is vacated under a stranger.
//!
//! # Progress
//! Lock-free: a thread that loses the race to publish a chunk uses the winner's.
//! Nothing here waits for another thread, which `fork` may have left behind.

use crate::atomics::U32;
use crate::linux::Linux;
use crate::slots;
use crate::sys;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering, fence};
use lockstead_core::{MAX_SLOTS, Slot, TableEntry};

const CHUNK_BITS: u32 = 10;
pub(crate) const CHUNK: u32 = 1 << CHUNK_BITS;
pub(crate) const CHUNKS: u32 = (MAX_SLOTS + 1) / CHUNK;

/// Slots looked at before the table grows instead: keeps joining cheap when
/// nearly all slots are taken.
const LOOKS: u32 = 64;

#[repr(C)]
pub(crate) struct TableChunk {
    participants: [TableEntry<Linux>; CHUNK as usize],
    /// A slot's word is not zero if nothing will tell when the thread of this slot ends.
    unattended: [U32; CHUNK as usize],
    /// What the thread of this slot is called in the table of who runs (`oncpu`).
    names: [U32; CHUNK as usize],
}

pub(crate) static DIRECTORY: [AtomicPtr<TableChunk>; CHUNKS as usize] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; CHUNKS as usize];
/// The number of chunks in use; the others may exist already, but give no slots.
static OPEN: AtomicU32 = AtomicU32::new(1);
/// The place at which the next search for a slot starts. It rotates, so that a slot rests as long
/// as possible before it is used again.
static NEXT: AtomicU32 = AtomicU32::new(1);
/// Slots above this number were never taken.
static HIGHEST: AtomicU32 = AtomicU32::new(0);
/// Whether there may be unattended slots.
static UNATTENDED: AtomicBool = AtomicBool::new(false);
/// Whether a reaper is at work.
static REAPING: AtomicBool = AtomicBool::new(false);

/// Returns the participant behind a slot.
#[inline]
pub(crate) fn participant(slot: Slot) -> &'static TableEntry<Linux> {
    &chunk(slot.get() >> CHUNK_BITS).participants[(slot.get() % CHUNK) as usize]
}

fn unattended(slot: Slot) -> &'static AtomicU32 {
    chunk(slot.get() >> CHUNK_BITS).unattended[(slot.get() % CHUNK) as usize].get()
}

/// Returns the name of the thread in a slot in the table of who runs; 0: nobody knows.
#[inline]
pub(crate) fn name(slot: Slot) -> &'static AtomicU32 {
    chunk(slot.get() >> CHUNK_BITS).names[(slot.get() % CHUNK) as usize].get()
}

#[inline]
fn chunk(index: u32) -> &'static TableChunk {
    // ord: TAB-1 acquire, pairs with TAB-2: the chunk is mapped.
    let chunk = DIRECTORY[index as usize].load(Ordering::Acquire);
    // SAFETY: null, or a published chunk, which lives for ever (TABLE-FOREVER, kept by
    // `publish`).
    unsafe { chunk.as_ref() }.unwrap_or_else(|| publish(index))
}

/// Maps a chunk unless another thread has. A thread that learned a slot number by a relaxed
/// load, and sees the directory as it was before, comes here too: the compare-exchange finds
/// the pointer.
#[cold]
fn publish(index: u32) -> &'static TableChunk {
    let _errno = sys::KeepErrno::new();
    let size = size_of::<TableChunk>();
    let Some(fresh) = sys::map_zeroed(size) else {
        sys::die("no memory for the table of threads that take locks");
    };
    slots::keep();
    let entry = &DIRECTORY[index as usize];
    let chunk: NonNull<TableChunk> = fresh.cast();
    // ord: TAB-2 release, pairs with TAB-1. Failure: acquire, as TAB-1.
    let result = entry.compare_exchange(
        core::ptr::null_mut(),
        chunk.as_ptr(),
        Ordering::Release,
        Ordering::Acquire,
    );
    match result {
        // SAFETY: mapped above and page aligned; zeros are a chunk of vacant slots. From the
        // exchange on it lives for ever (TABLE-FOREVER).
        Ok(_) => unsafe { chunk.as_ref() },
        Err(theirs) => {
            // SAFETY: the exchange failed, so that no other thread has seen our mapping.
            unsafe { sys::unmap(fresh, size) };
            // SAFETY: not null, so that another thread has published it (TABLE-FOREVER).
            unsafe { &*theirs }
        }
    }
}

/// Takes a slot for the thread `tid`. With `attended`, the thread gives it
/// back by [`vacate`]; without, it is taken back some time after its end.
///
/// Ends the process when all [`MAX_SLOTS`] slots are taken by live threads.
pub(crate) fn claim(tid: u32, attended: bool) -> Slot {
    let slot = loop {
        let open = OPEN.load(Ordering::Relaxed);
        let full = open == CHUNKS;
        let slots = open * CHUNK;
        if let Some(slot) = search(tid, slots, if full { slots } else { LOOKS }) {
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
    // ord: TAB-5 acquire, pairs with the one in `vacate`.
    HIGHEST.fetch_max(slot.get(), Ordering::Acquire);
    if !attended {
        unattended(slot).store(1, Ordering::Relaxed);
        UNATTENDED.store(true, Ordering::Relaxed);
    }
    slot
}

fn search(tid: u32, slots: u32, looks: u32) -> Option<Slot> {
    (0..looks).find_map(|_| {
        let slot = Slot::new(NEXT.fetch_add(1, Ordering::Relaxed) % slots)?;
        participant(slot).claim(tid).then_some(slot)
    })
}

/// Gives the slot of a thread that has ended back. Where locks may still name that thread, those
/// who may wait for one of them are told to look again.
pub(crate) fn vacate(slot: Slot) {
    // ord: GONE-3 fence, pairs with GONE-2: what the thread did comes before its name is erased.
    fence(Ordering::Release);
    if participant(slot).vacate() {
        // ord: TAB-5 release, pairs with the one in `claim`. It changes nothing and reads the newest value:
        // a thread is told below, or has seen the end of this one.
        HIGHEST.fetch_max(0, Ordering::Release);
        taken().for_each(lockstead_core::ww::look_again::<crate::Linux>);
    }
}

/// Takes back the slots of unattended threads that have ended. Returns true if there was one.
fn reap() -> bool {
    if !UNATTENDED.load(Ordering::Relaxed) {
        return false;
    }
    // ord: TAB-3 acquire, pairs with TAB-4: what the last reaper has vacated
    // is not vacated again (TABLE-ONE-REAPER).
    if REAPING.swap(true, Ordering::Acquire) {
        return false;
    }
    let mut found = false;
    for slot in taken() {
        let mark = unattended(slot);
        if mark.load(Ordering::Relaxed) == 0 {
            continue;
        }
        let taken = participant(slot);
        if taken.tid().is_some_and(sys::thread_is_gone) {
            mark.store(0, Ordering::Relaxed);
            vacate(slot);
            found = true;
        }
    }
    // ord: TAB-4 release, pairs with TAB-3.
    REAPING.store(false, Ordering::Release);
    found
}

/// Returns all slots that were ever taken.
fn taken() -> impl Iterator<Item = Slot> {
    (1..=HIGHEST.load(Ordering::Relaxed)).filter_map(Slot::new)
}

/// Marks all threads but `me` as lost, in the child of a `fork`, where `me` is `tid`.
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
