//! What a thread knows of locks by heart: their numbers, and how often it has
//! acquired them.
//!
//! # Role
//! An acquisition that is known costs no look at anything shared. Each lock that
//! a thread uses is a [`KnownLock`] of it, in one of two kinds of places:
//!
//! - a [`CacheLine`], chosen by lock and call site, which knows the chain of
//!   calls too: one comparison of one line, for the few locks that matter most;
//! - a [`KnownLine`], chosen by the lock's address alone, for all others. Locks that
//!   lie side by side in the program have their sets side by side, so that a walk
//!   through many locks is one through memory.
//!
//! # State
//! The sets begin as the few of the thread's first page. When so many locks have
//! displaced each other as there are sets, they are given up for those of the far
//! region, a part of it at first and then all ([`ThreadPart::more_sets`]). What was
//! known before may lie then where nobody looks for it any more: it is
//! forgotten, but for its count, which is still read and in the end given to the
//! lock.
//!
//! # Invariants
//! - **KNOWN-COMPLETE** A `KnownLock` whose address is not zero is complete. Only its own thread
//!   writes it.
//! - **KNOWN-COUNTS** All counts are in the lines, in the first page's sets, and in pages
//!   of the far region that `far_pages` names.

use crate::thread::{NEAR_SETS, SETS_IN_PAGE, ThreadPart, ThreadRecord, far_offset};
use core::mem::offset_of;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// A lock that a thread knows.
#[repr(C)]
#[derive(Debug)]
pub struct KnownLock {
    /// The address of the lock; 0: nothing is known here.
    pub address: AtomicU64,
    /// The index of the lock's record.
    pub lock: AtomicU32,
    /// Id of the stack of the last acquisition; in a line, that of its chain.
    pub stack: AtomicU32,
    /// Acquisitions since this was made. They belong to the lock's count, and are added to
    /// its record when the place is given to another.
    pub count: AtomicU32,
    /// Generation of the lock's record when this was made.
    pub generation: AtomicU32,
    /// The value of `count` at which the next hold is timed; 0: each is.
    pub next_sample: AtomicU32,
    /// The time at which the last hold was timed, in steps of `2^PRICE_SHIFT` nanoseconds
    /// (`timing.rs` of the preload library).
    pub timed_at: AtomicU16,
    /// The binary logarithm of the holds of which one is timed, on average.
    pub rarity: AtomicU8,
    /// The last byte of `count` when another lock last wanted the place. That count
    /// has gone on by a multiple of 256 since costs that lock its place, no more.
    pub wanted_at: AtomicU8,
}

const _: () = assert!(size_of::<KnownLock>() == 32);

/// Two places for locks in one cache line.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct KnownLine(pub [KnownLock; 2]);

/// One line of the acquisition cache: an acquisition known to its thread, by
/// lock, call site and call chain.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct CacheLine {
    /// The lock that was acquired.
    pub known: KnownLock,
    /// The place where the return address of the call lies: the stack pointer at the call, below
    /// it. 0: the line has no chain.
    pub sp: AtomicU64,
    /// The low half of that return address.
    pub site: AtomicU32,
    /// The low halves of the next three return addresses up the stack.
    pub returns: [AtomicU32; 3],
    /// The place where `returns` lie: eightfold distance from `sp`. A chain that is known less far
    /// repeats the return address itself, at distance 0.
    pub distances: [AtomicU16; 3],
    spare: AtomicU16,
}

const _: () = assert!(size_of::<CacheLine>() == 64);

/// Returns the set of an address, in bytes from the first, before the mask. It is the number
/// of the cache line it lies in, moved by odd multiples of what lies further up, lest locks
/// at a large stride meet in few sets. The fast path computes the same.
#[inline(always)]
#[must_use]
pub fn set_of(address: u64) -> u32 {
    let address = address as u32;
    let (line, page, more) = (address >> 6, address >> 12, address >> 18);
    line.wrapping_add(page.wrapping_mul(5)).wrapping_add(more.wrapping_mul(3)) << 6
}

impl KnownLock {
    /// Tells whether another lock may have the place: there is nothing in it, or the lock in
    /// it was not used since the last time that this was asked.
    #[must_use]
    pub fn yields(&self) -> bool {
        let count = self.count.load(Relaxed) as u8;
        let unused = self.wanted_at.load(Relaxed) == count;
        self.wanted_at.store(count, Relaxed);
        unused || self.address.load(Relaxed) == 0
    }
}

impl<'a> ThreadPart<'a> {
    /// Returns all places of known locks. Any thread may call this.
    pub fn known(&self) -> impl Iterator<Item = &'a KnownLock> + use<'a> {
        let lines = self.cache.iter().map(|line| &line.known);
        let pages = self.record.far_pages.load(Relaxed);
        let far = self.far.chunks(SETS_IN_PAGE).enumerate();
        let far = far.filter(move |(page, _)| pages >> page & 1 != 0).flat_map(|(_, sets)| sets);
        lines.chain(self.record.near.iter().chain(far).flat_map(|set| &set.0))
    }

    /// Returns the places outside of the lines in which a lock of this address may be known.
    /// Only the thread itself calls this.
    pub fn known_by_address(&self, address: u64) -> impl Iterator<Item = &'a KnownLock> + use<'a> {
        let thread = *self;
        let far = [self.first_far_mask(), self.last_far_mask()].into_iter();
        let far = far.map(move |mask| (set_of(address) & mask) as usize / size_of::<KnownLine>());
        let far = far.filter(move |at| thread.has_page(*at)).map(move |at| &thread.far[at]);
        let near = (set_of(address) & NEAR_MASK) as usize / size_of::<KnownLine>();
        core::iter::once(&self.record.near[near]).chain(far).flat_map(|set| &set.0)
    }

    /// Returns the set of a lock of this address. Only the thread itself calls this.
    #[must_use]
    pub fn set(&self, address: u64) -> &'a KnownLine {
        let (mask, is_near) = self.sets();
        let at = (set_of(address) & mask) as usize / size_of::<KnownLine>();
        if is_near {
            return &self.record.near[at];
        }
        if !self.has_page(at) {
            let pages = &self.record.far_pages;
            pages.store(pages.load(Relaxed) | 1 << (at / SETS_IN_PAGE), Relaxed);
        }
        &self.far[at]
    }

    /// Makes the sets those of the first page, and notes that no lock lies on the stack. Only
    /// the thread that has claimed the record calls this.
    pub fn first_sets(&self) {
        self.record.lowest_lock.store(u64::MAX, Relaxed);
        self.record.displaced.store(0, Relaxed);
        self.record.sets.store(sets(NEAR, NEAR_MASK), Relaxed);
    }

    /// Notes that a lock loses its place in its set to another. Says whether that has
    /// happened so often that there are more sets from now on. Only the thread itself calls
    /// this, while its fast path does not run.
    #[must_use]
    pub fn more_sets(&self) -> bool {
        let record = self.record;
        let displaced = record.displaced.load(Relaxed) + 1;
        record.displaced.store(displaced, Relaxed);
        let (mask, is_near) = self.sets();
        if displaced as usize * size_of::<KnownLine>() <= mask as usize {
            return false;
        }
        record.displaced.store(0, Relaxed);
        let more = if is_near { self.first_far_mask() } else { self.last_far_mask() };
        record.sets.store(sets(far_offset(self.held.len()), more), Relaxed);
        more != mask
    }

    /// Returns the mask of the sets in use, and whether they are those of the first page.
    fn sets(&self) -> (u32, bool) {
        let sets = self.record.sets.load(Relaxed);
        (sets as u32, sets >> 32 == NEAR as u64)
    }

    fn has_page(&self, set: usize) -> bool {
        self.record.far_pages.load(Relaxed) >> (set / SETS_IN_PAGE) & 1 != 0
    }

    fn first_far_mask(&self) -> u32 {
        self.last_far_mask().min(mask(8 * SETS_IN_PAGE))
    }

    fn last_far_mask(&self) -> u32 {
        mask(self.far.len())
    }
}

/// The offset of the first page's sets.
const NEAR: usize = offset_of!(ThreadRecord, near);
const NEAR_MASK: u32 = mask(NEAR_SETS);

/// Returns what [`ThreadRecord::sets`] holds for these sets.
const fn sets(offset: usize, mask: u32) -> u64 {
    (offset as u64) << 32 | mask as u64
}

const fn mask(sets: usize) -> u32 {
    (sets as u32 - 1) * size_of::<KnownLine>() as u32
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::thread::stride;
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::collections::HashSet;
    use std::vec::Vec;

    const HELD: usize = 16 * 1024;

    fn with_thread(test: impl FnOnce(ThreadPart<'_>)) {
        let memory = Layout::from_size_align(stride(HELD), 4096).unwrap();
        // SAFETY: the size is not zero, and the block is freed below with the same layout.
        let base = unsafe { alloc_zeroed(memory) };
        assert!(!base.is_null());
        // SAFETY: the block is as large as a thread's part with so many entries, all zero,
        // and stays until `test` has ended.
        let thread = unsafe { ThreadPart::at(base, HELD) };
        thread.first_sets();
        test(thread);
        // SAFETY: the block was allocated above with this layout, and `test`, which alone
        // had references into it, has ended.
        unsafe { dealloc(base, memory) };
    }

    fn grow(thread: &ThreadPart<'_>) -> u32 {
        let mut displaced = 1;
        while !thread.more_sets() {
            displaced += 1;
            assert!(displaced <= 512);
        }
        displaced
    }

    #[test]
    fn what_is_known_is_found_whatever_the_sets() {
        with_thread(|thread| {
            let address = 0x7f12_3456_7000;
            let mut places = Vec::new();
            for displaced in [32, 512] {
                places.push(core::ptr::from_ref(&thread.set(address).0[1]));
                assert_eq!(grow(&thread), displaced);
            }
            places.push(core::ptr::from_ref(&thread.set(address).0[1]));
            for place in places {
                assert!(thread.known_by_address(address).any(|known| core::ptr::eq(known, place)));
                assert!(thread.known().any(|known| core::ptr::eq(known, place)));
            }
            // No more than there is.
            assert!((0..100_000).all(|_| !thread.more_sets()));
        });
    }

    #[test]
    fn only_pages_that_were_used_are_looked_at() {
        with_thread(|thread| {
            let first = thread.known().count();
            assert_eq!(first, thread.cache.len() + 2 * NEAR_SETS);
            grow(&thread);
            assert_eq!(thread.known().count(), first);
            for address in [0x1000, 0x1040, 0x1fc0] {
                let _ = thread.set(address);
            }
            assert!(thread.known().count() <= first + 4 * SETS_IN_PAGE);
        });
    }

    #[test]
    fn locks_at_any_stride_spread_over_the_sets() {
        for shift in 6..=20 {
            let sets: HashSet<u32> = (0..2048u64)
                .map(|i| set_of(0x7f00_0000_0000 + (i << shift)) & mask(4096))
                .collect();
            assert!(sets.len() >= 1024, "stride {}: {}", 1u64 << shift, sets.len());
        }
    }

    #[test]
    fn a_place_yields_when_it_was_not_used_since_it_was_wanted_last() {
        with_thread(|thread| {
            let known = &thread.cache[0].known;
            assert!(known.yields(), "nothing is there");
            known.address.store(8, Relaxed);
            known.wanted_at.store(u8::MAX, Relaxed);
            for count in [0, 7] {
                known.count.store(count, Relaxed);
                assert!(!known.yields());
            }
            assert!(known.yields());
        });
    }
}
