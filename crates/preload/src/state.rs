//! Says whether this process records, and where: 4 KiB that a fork empties.
//!
//! # Invariants
//! - **STATE-OWN-LEDGER** The page is zero, or it names a mapped ledger of this very process.
//!   `MADV_WIPEONFORK` keeps that across every kind of fork, also a raw `clone`
//!   that libc never hears of: the child finds zero and passes everything
//!   through, until the fork handler has made it a ledger of its own. A child
//!   that shares its parent's memory (`vfork`) shares the ledger too.
//! - **STATE-FILLED-ONCE** The page is filled once per process, by one thread, before any
//!   other can look; the base address last.

use crate::wiped::{self, PADDING, Padding};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};
use lockstead_ledger::{Ledger, LedgerLayout};

/// The number of records of ended threads that are remembered for their next use.
pub const SPARE_THREADS: usize = 64;

/// The number of words with a bit for each ring of events that a ledger can have.
const SPARE_RING_WORDS: usize = (LedgerLayout::MOST_RINGS as usize).div_ceil(32);

/// The number of words of parked threads that are remembered, a power of two.
pub const PARKED_WORDS: usize = 256;

/// The page that says whether the process records.
#[repr(C, align(4096))]
#[derive(Debug)]
pub struct StatePage {
    before: Padding,
    /// The address of the ledger; zero: this process does not record.
    pub base: AtomicUsize,
    /// The number of entries of each thread's held stack.
    pub held: AtomicUsize,
    /// Records that may be spare, by index plus one: see `records.rs`.
    pub spare: [AtomicU32; SPARE_THREADS],
    /// How often one has become spare and found no slot.
    pub spare_unnoted: AtomicU32,
    /// That number when a look at all records began that has found none.
    pub spare_sought: AtomicU32,
    /// Where the next such look begins.
    pub spare_next: AtomicU32,
    /// The number of futex words that have records of their own.
    pub futexes: AtomicU32,
    /// Whether threads leave events: not zero in a run that is recorded.
    pub recorded: AtomicU32,
    /// The rings of events whose threads have ended, a bit each.
    pub spare_rings: [AtomicU32; SPARE_RING_WORDS],
    /// The locks of parked threads, by the words on which these sleep: see `futex.rs`.
    pub parked: [AtomicU64; PARKED_WORDS],
    /// The number of threads beside this one, as far as is known.
    #[cfg(feature = "check")]
    pub others: AtomicU32,
    ledger: UnsafeCell<MaybeUninit<Ledger<'static>>>,
    after: Padding,
}

// SAFETY: all fields but `ledger` are atomics; `set` writes that one before `base`, and
// `ledger` reads it after (STATE-FILLED-ONCE).
unsafe impl Sync for StatePage {}

/// The page of this process.
pub static STATE: StatePage = StatePage {
    before: PADDING,
    base: AtomicUsize::new(0),
    held: AtomicUsize::new(0),
    spare: [const { AtomicU32::new(0) }; SPARE_THREADS],
    spare_unnoted: AtomicU32::new(0),
    spare_sought: AtomicU32::new(0),
    spare_next: AtomicU32::new(0),
    futexes: AtomicU32::new(0),
    recorded: AtomicU32::new(0),
    spare_rings: [const { AtomicU32::new(0) }; SPARE_RING_WORDS],
    parked: [const { AtomicU64::new(0) }; PARKED_WORDS],
    #[cfg(feature = "check")]
    others: AtomicU32::new(0),
    ledger: UnsafeCell::new(MaybeUninit::zeroed()),
    after: PADDING,
};

/// The ledger that was set last, for a forked child: its page is empty.
struct Last(UnsafeCell<Option<Ledger<'static>>>);

// SAFETY: `set` writes it with the page, while one thread runs in the library
// (STATE-FILLED-ONCE); a forked child reads it, which has one thread.
unsafe impl Sync for Last {}

static LAST: Last = Last(UnsafeCell::new(None));

/// Returns the ledger of the process that this one was forked from, which is not mapped
/// here; `None` in one that was not forked.
///
/// # Safety
/// Called before this process has a ledger of its own, by its one thread.
#[must_use]
pub unsafe fn of_parent() -> Option<Ledger<'static>> {
    // SAFETY: the caller promises that this is the only thread, so that nobody writes it.
    unsafe { *LAST.0.get() }
}

/// Forgets the ledger that was set last, and returns it.
///
/// # Safety
/// Nobody else is in the library, and nobody comes.
pub unsafe fn forget() -> Option<Ledger<'static>> {
    // SAFETY: the caller promises that nobody else reads or writes it.
    unsafe { (*LAST.0.get()).take() }
}

/// Returns the ledger of this process, if it records.
#[inline(always)]
#[must_use]
pub fn ledger() -> Option<&'static Ledger<'static>> {
    if STATE.base.load(Relaxed) == 0 {
        return None;
    }
    // SAFETY: `set` has written it before `base` (STATE-FILLED-ONCE), and it is of this process
    // (STATE-OWN-LEDGER, kept by the kernel).
    Some(unsafe { (*STATE.ledger.get()).assume_init_ref() })
}

/// Fills the page that says whether the process records.
///
/// # Safety
/// The ledger stays mapped to the end of the process; no other thread runs in
/// the library, and the page is empty.
pub unsafe fn set(ledger: Ledger<'static>) {
    // SAFETY: the caller promises that no other thread runs in the library.
    unsafe {
        *LAST.0.get() = Some(ledger);
        set_aside(ledger);
    }
    STATE.held.store(ledger.layout().held as usize, Relaxed);
    // ord: PRE-1 (release): what was stored above.
    STATE.base.store(ledger.base() as usize, Release);
}

/// Fills in the ledger for those that have begun to use it, and for nobody else.
///
/// # Safety
/// As [`set`].
pub unsafe fn set_aside(ledger: Ledger<'static>) {
    // SAFETY: the caller promises that no other thread writes it; none reads it while the base
    // is zero.
    unsafe { (*STATE.ledger.get()).write(ledger) };
}

/// Notes that the ring of events with this index is free: its thread leaves no more events.
pub fn spare_ring(index: usize) {
    if let Some(word) = STATE.spare_rings.get(index / 32) {
        // ord: PRE-9 (release): how far the thread has written the ring.
        word.fetch_or(1 << (index % 32), Release);
    }
}

/// Returns the index of a ring of events whose thread has ended, and which is the caller's now.
#[must_use]
pub fn take_spare_ring() -> Option<usize> {
    for (place, word) in STATE.spare_rings.iter().enumerate() {
        let mut free = word.load(Relaxed);
        while free != 0 {
            let first = free.trailing_zeros();
            // ord: PRE-9 (acquire): how far its last thread has written the ring.
            match word.compare_exchange_weak(free, free & (free - 1), Acquire, Relaxed) {
                Ok(_) => return Some(place * 32 + first as usize),
                Err(now) => free = now,
            }
        }
    }
    None
}

/// Asks the kernel to empty the page in forked children. False where it cannot:
/// then nothing may be recorded (STATE-OWN-LEDGER).
#[must_use]
pub fn wipe_on_fork() -> bool {
    // SAFETY: `STATE` lies between its paddings (WIPED-ALONE), in zero-initialised private memory, and the
    // library lives with its being empty (STATE-OWN-LEDGER).
    unsafe { wiped::advise(&raw const STATE.base as usize, PAGE, libc::MADV_WIPEONFORK) }
}

/// The bytes of what the kernel empties, which is a page where pages are small.
const PAGE: usize = 4096;

const _: () = assert!(size_of::<StatePage>() == PAGE + 2 * size_of::<Padding>());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_that_was_given_back_is_given_to_one_thread() {
        let rings = [0, 31, 32, LedgerLayout::MOST_RINGS as usize - 1];
        assert_eq!(take_spare_ring(), None);
        rings.into_iter().for_each(spare_ring);
        assert_eq!(rings.map(|_| take_spare_ring()), rings.map(Some), "the lowest first");
        assert_eq!(take_spare_ring(), None);
        spare_ring(rings[1]);
        assert_eq!([take_spare_ring(), take_spare_ring()], [Some(rings[1]), None]);
    }
}
