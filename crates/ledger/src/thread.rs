//! The record of a thread: who it is, what it waits for, what it holds, and
//! what it counts by itself.
//!
//! # Layout
//! One [`ThreadRecord`] (a page), [`CACHE_LINES`] lines of acquisition cache,
//! [`CHAINS`] call chains and [`KEYS`] keys (a page each), then the held stack and
//! the room for further locks ([`KnownLine`]), which are sparse: only touched pages exist,
//! and nobody touches the keys but the library that checks. So a thread costs 16 KiB
//! (20 where it is checked) until it holds more than [`HELD_IN_FIRST_PAGE`] locks at
//! once or uses more different ones than find room in its first page; then one
//! page more for each [`SETS_IN_PAGE`] cache lines of the program in which there
//! are such locks, 256 KiB at most.

use crate::cells::{Native, NativeWord};
use crate::futexes::{FUTEX_TIMES, FutexTime, SLEPT_WORDS, SleptWord, SleptWords};
use crate::publish::{HeldEntry, HeldStack, PublishedWait};
use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

pub use crate::known::{CacheLine, KnownLine, KnownLock};

/// The lines of the acquisition cache.
pub const CACHE_LINES: usize = 64;

/// The call chains that are remembered beside the acquisition cache.
pub const CHAINS: usize = 64;

/// The number of keys of what is held: a page of them.
pub const KEYS: usize = 512;

/// The sets in the thread's first page, for locks that find no line in the acquisition cache.
pub const NEAR_SETS: usize = 32;

/// The number of sets in a page.
pub const SETS_IN_PAGE: usize = 4096 / size_of::<KnownLine>();

/// The number of held locks for which a thread's first 16 KiB suffice.
pub const HELD_IN_FIRST_PAGE: usize = 4096 / size_of::<HeldEntry<Native>>();

/// The number of records in use up to which an ended thread's record is kept for the report. Beyond, a
/// record that nobody has had is used only where no other one is spare.
pub const KEPT_ENDED: usize = 1024;

/// The states of a record, in [`ThreadRecord::state`].
pub mod state {
    /// The record was not used yet.
    pub const FREE: u32 = 0;
    /// The creator of a thread that does not run yet has claimed the record.
    pub const CLAIMED: u32 = 1;
    /// The thread of the record runs.
    pub const LIVE: u32 = 2;
    /// The thread of the record has ended; the record may be claimed anew.
    pub const ENDED: u32 = 3;
    /// The thread of the record has ended and left locks behind, which the held stack shows.
    /// The record is never claimed anew.
    pub const LEAKED: u32 = 4;
}

/// The first page of a thread.
#[repr(C, align(4096))]
#[derive(Debug)]
pub struct ThreadRecord {
    // The fast path touches these, which lie in one cache line.
    /// The number of entries on the held stack.
    pub top: NativeWord,
    /// The word that is not zero while the library works for this thread outside its fast path: a
    /// signal handler that finds it set passes through unrecorded.
    pub busy: AtomicU32,
    /// The word that is not zero in a signal handler, in the library that checks: then its fast
    /// path does nothing.
    pub context: AtomicU32,
    /// The highest address of the thread's stack; 0 when it is not known.
    pub stack_high: AtomicU64,
    /// The lowest address of the thread's stack.
    pub stack_low: AtomicU64,
    /// The index of this record.
    pub index: AtomicU32,
    /// What the record is used for: one of [`state`].
    pub state: AtomicU32,
    /// The lowest lock that may live on the thread's stack; the largest number if there is
    /// none. The library that checks keeps it.
    pub lowest_lock: AtomicU64,
    /// The pseudo-random state of the library, for this thread.
    pub dice: AtomicU64,
    /// Which sets are in use. Lower half: their number less one, times the size
    /// of one. Upper half: where they begin, in bytes from here.
    pub sets: AtomicU64,

    /// What the thread waits for.
    pub wait: PublishedWait<Native>,
    /// The number of times that the record was claimed.
    pub generation: AtomicU32,
    /// The number of the ring in which the thread leaves events, plus one; 0 when it has none yet, or
    /// no more.
    pub ring: AtomicU32,
    /// The acquisitions of this thread that are not in its cache's counts.
    pub acquisitions: AtomicU64,

    /// The kernel's thread id, in the process's own PID namespace.
    pub tid: AtomicU32,
    /// The bit that stands for this thread, and for others, where threads are marked. The
    /// library that checks keeps it.
    pub mark: AtomicU32,
    /// The `pthread_t` of the thread.
    pub handle: AtomicU64,
    /// The function it began with; 0 for the first thread and for threads that
    /// were not created through `pthread_create`.
    pub start_routine: AtomicU64,
    /// The number of gaps in the held stack.
    pub emptied: NativeWord,
    /// The index of the creator's record plus one; 0 when it is not known.
    pub creator: AtomicU32,
    /// The stack of the call that created the thread.
    pub creation_stack: AtomicU32,
    /// The time at which the thread was created, or first seen if nobody saw that, in nanoseconds
    /// of `CLOCK_MONOTONIC`.
    pub began: AtomicU64,
    /// The time at which the thread ended, in nanoseconds of `CLOCK_MONOTONIC`; 0 while it runs.
    pub ended: AtomicU64,
    /// The name as the kernel has it, zero-terminated, when it is known.
    pub name: [AtomicU64; 2],
    /// The `generation` of which the thread was joined or detached: its `handle` may stand for
    /// another thread now.
    handle_released: AtomicU32,
    /// The number of the parent's thread that forked, in the first thread of a forked child.
    /// Locks taken before the fork still name that one as their owner.
    pub forked_by: AtomicU32,

    /// Acquisitions that found the lock taken.
    pub contended: AtomicU64,
    /// Nanoseconds spent waiting for locks.
    pub waited: AtomicU64,
    /// Nanoseconds spent waiting for other things: conditions, semaphores,
    /// barriers, threads.
    pub idled: AtomicU64,
    /// Calls from signal handlers that were passed through unrecorded.
    pub skipped: AtomicU64,
    /// Locks that could not be put on the held stack.
    pub held_dropped: AtomicU64,
    /// The pages of the further sets that have ever been used, a bit for each.
    pub far_pages: AtomicU64,
    /// The number of the thread among all that the process ever had, from 1; never that of
    /// another one.
    pub serial: AtomicU32,
    /// The number of locks that have lost their place in the sets to others.
    pub displaced: AtomicU32,
    /// Up to when the thread has paid for the holds that it has timed, in nanoseconds of
    /// `CLOCK_MONOTONIC`.
    pub paid_until: AtomicU64,
    /// The time at which the thread last read the clock while it held nothing.
    pub clock_read: AtomicU64,
    /// The futex words on which the thread has slept.
    pub slept: [SleptWord<Native>; SLEPT_WORDS],
    /// How long it has slept on futex words, by their locks.
    pub futex_times: [FutexTime; FUTEX_TIMES],
    /// The first sets of the thread.
    pub near: [KnownLine; NEAR_SETS],
}

/// What threads counted whose records have been given to others. It is added up when a record
/// is claimed anew, so that the totals of a process stay right.
#[repr(C)]
#[derive(Debug)]
pub struct Retired {
    /// The number of these threads.
    pub threads: AtomicU64,
    /// The nanoseconds that they lived.
    pub lived: AtomicU64,
    /// Their acquisitions that found the lock taken.
    pub contended: AtomicU64,
    /// Nanoseconds that they waited for locks.
    pub waited: AtomicU64,
    /// Nanoseconds that they waited for other things.
    pub idled: AtomicU64,
    /// Their calls from signal handlers that went unrecorded.
    pub skipped: AtomicU64,
    /// Locks that found no room on their held stacks.
    pub held_dropped: AtomicU64,
}

const _: () = assert!(size_of::<ThreadRecord>() == 4096);
const _: () = assert!(offset_of!(ThreadRecord, wait) == 64);

/// Returns the number of sets beyond those in the first page, for `held` entries of the held
/// stack.
#[must_use]
pub const fn far_sets(held: usize) -> usize {
    // One page at least, and at most 64: `far_pages` has a bit for each.
    let sets = (held / 4).next_power_of_two();
    if sets < SETS_IN_PAGE {
        SETS_IN_PAGE
    } else if sets > 64 * SETS_IN_PAGE {
        64 * SETS_IN_PAGE
    } else {
        sets
    }
}

/// Returns the bytes from a thread's record to the next one's, for `held` entries.
#[must_use]
pub const fn stride(held: usize) -> usize {
    (far_offset(held) + far_sets(held) * size_of::<KnownLine>()).next_multiple_of(4096)
}

/// Returns the bytes from a thread's record to its acquisition cache.
#[must_use]
pub const fn cache_offset() -> usize {
    size_of::<ThreadRecord>()
}

/// Returns the bytes from a thread's record to its call chains.
#[must_use]
pub const fn chains_offset() -> usize {
    cache_offset() + CACHE_LINES * size_of::<CacheLine>()
}

/// Returns the bytes from a thread's record to its held stack.
#[must_use]
pub const fn held_offset() -> usize {
    keys_offset() + KEYS * size_of::<u64>()
}

/// Returns the bytes from a thread's record to its keys.
#[must_use]
pub const fn keys_offset() -> usize {
    chains_offset() + CHAINS * size_of::<CacheLine>()
}

/// Returns the bytes from a thread's record to its further sets, for `held` entries.
#[must_use]
pub const fn far_offset(held: usize) -> usize {
    (held_offset() + held * size_of::<HeldEntry<Native>>()).next_multiple_of(4096)
}

impl ThreadRecord {
    /// Notes that the thread that had the record in this `generation` was joined or detached. It may have
    /// gone to another thread since: of that one this says nothing.
    pub fn release_handle(&self, generation: u32) {
        self.handle_released.fetch_max(generation, Relaxed);
    }

    /// Tells whether the record's thread was joined or detached, so that its `handle` may stand for another
    /// thread now.
    #[must_use]
    pub fn is_handle_released(&self) -> bool {
        // A record that the command has made for itself is of no generation.
        let released = self.handle_released.load(Relaxed);
        released != 0 && released == self.generation.load(Relaxed)
    }
}

/// A thread's whole part of the ledger.
#[derive(Clone, Copy, Debug)]
pub struct ThreadPart<'a> {
    /// The first page of the thread.
    pub record: &'a ThreadRecord,
    /// The lines of the acquisition cache.
    pub cache: &'a [CacheLine; CACHE_LINES],
    /// Call chains that the thread has walked, whatever the lock. In these lines address and
    /// count mean nothing. So a lock that is new to the cache does not cost a walk when its
    /// caller is known.
    pub chains: &'a [CacheLine; CHAINS],
    /// The entries of the held stack.
    pub held: &'a [HeldEntry<Native>],
    /// The further sets, for locks that find no place elsewhere.
    pub far: &'a [KnownLine],
    /// What the thread holds up to each of the first entries of the held stack, as a number.
    /// The library that checks keeps it for itself.
    pub keys: &'a [AtomicU64; KEYS],
}

impl<'a> ThreadPart<'a> {
    /// Returns the thread whose record lies at `base`.
    ///
    /// # Safety
    /// `base` is the address of a thread's part of a mapped ledger with `held`
    /// entries, and the mapping outlives `'a`.
    #[inline(always)]
    #[must_use]
    pub unsafe fn at(base: *const u8, held: usize) -> ThreadPart<'a> {
        // SAFETY: the caller promises that the parts lie one after the other in memory that
        // stays mapped. All their fields are atomics, so that concurrent changes by other
        // threads and processes are no data races, and every bit pattern is valid
        // (LEDGER-ZERO).
        unsafe {
            ThreadPart {
                record: &*base.cast(),
                cache: &*base.add(cache_offset()).cast(),
                chains: &*base.add(chains_offset()).cast(),
                held: core::slice::from_raw_parts(base.add(held_offset()).cast(), held),
                far: core::slice::from_raw_parts(base.add(far_offset(held)).cast(), far_sets(held)),
                keys: &*base.add(keys_offset()).cast(),
            }
        }
    }

    /// Empties the record of a thread that has ended, for another one, and adds what it has
    /// counted to `totals`. The number of its episodes stays, so that none is ever used
    /// twice.
    pub fn retire(&self, totals: &Retired) {
        let record = self.record;
        // A thread that was never to run has not ended either, and does not count.
        totals.threads.fetch_add(u64::from(record.ended.load(Relaxed) != 0), Relaxed);
        let lived = record.ended.load(Relaxed).saturating_sub(record.began.load(Relaxed));
        totals.lived.fetch_add(lived, Relaxed);
        record.acquisitions.store(0, Relaxed);
        for (total, own) in [
            (&totals.contended, &record.contended),
            (&totals.waited, &record.waited),
            (&totals.idled, &record.idled),
            (&totals.skipped, &record.skipped),
            (&totals.held_dropped, &record.held_dropped),
        ] {
            total.fetch_add(own.swap(0, Relaxed), Relaxed);
        }
        for word in [
            &record.stack_high,
            &record.stack_low,
            &record.handle,
            &record.start_routine,
            &record.began,
            &record.ended,
            &record.paid_until,
            &record.clock_read,
            &record.name[0],
            &record.name[1],
        ] {
            word.store(0, Relaxed);
        }
        for word in [
            &record.tid,
            &record.creator,
            &record.creation_stack,
            &record.forked_by,
            &record.busy,
            &record.context,
        ] {
            word.store(0, Relaxed);
        }
        for known in self.known() {
            known.address.store(0, Relaxed);
        }
        SleptWords::new(&record.slept).clear();
        record.futex_times.iter().for_each(FutexTime::clear);
        for line in self.cache.iter().chain(self.chains) {
            line.sp.store(0, Relaxed);
        }
    }

    /// Returns the held locks, as their thread publishes them.
    #[inline(always)]
    #[must_use]
    pub fn stack(&self) -> HeldStack<'a, Native> {
        HeldStack::new(&self.record.top, &self.record.emptied, self.held)
    }
}
