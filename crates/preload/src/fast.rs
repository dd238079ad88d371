//! Takes the fast path, in assembler: an acquisition without waiting, known to this
//! thread, and its release.
//!
//! # Role
//! Does what [`record`](crate::record) does, for the one case that programs do
//! millions of times: the lock is free, the acquisition is known to the thread,
//! its time of holding is not measured, and the release comes in order.
//! Everything else goes on to Rust. The price on x86-64 is some fifty instructions for
//! an acquisition and twenty for a release, and no shared line is written.
//!
//! # Protocol
//! Acquire: this process records (`STATE.base`), the thread is the C library's
//! ([`tls`](crate::tls)) and recorded (`Words::record`), and nothing of ours is in progress on it
//! (`busy`). Either the line of lock and call site knows this very call: stack pointer and three
//! more return addresses. Or one of the two places for chains of this call site
//! knows the call, and one of the two of the set of the address knows the lock.
//! Then the real function that tries; then the push, in the order of the
//! ledger's `publish`. A signal handler may have come in between: if what was
//! known is forgotten by then, or this is a child that the handler has forked,
//! Rust goes on.
//!
//! Release: the newest entry is this lock's, of the same step of the coarse clock,
//! and not special. It is popped, and the real function is
//! jumped to.
//!
//! # Invariants
//! As in `me`, `chain` (CHAIN-READABLE), the ledger's `known` and its `publish` (LEDGER-HELD). All
//! offsets are computed from the types.

use crate::chain;
use crate::state::StatePage;
use core::mem::offset_of;
use lockstead_ledger::header::{LedgerHeader, OwnLine, TICK_SHIFT};
use lockstead_ledger::known::{CacheLine, KnownLine, KnownLock};
use lockstead_ledger::publish::Flags;
use lockstead_ledger::thread::{ThreadRecord, cache_offset, chains_offset, held_offset};

/// The offsets that the assembler code uses.
#[derive(Debug)]
#[doc(hidden)]
pub struct Offset;

#[doc(hidden)]
#[allow(missing_docs, reason = "named like the fields")]
impl Offset {
    pub const BASE: usize = offset_of!(StatePage, base);
    pub const CAPACITY: usize = offset_of!(StatePage, held);
    pub const CLOCK: usize = offset_of!(LedgerHeader, clock) + offset_of!(OwnLine, 0);
    pub const TICK_SHIFT: u32 = TICK_SHIFT;

    pub const BUSY: usize = offset_of!(ThreadRecord, busy);
    pub const TID: usize = offset_of!(ThreadRecord, tid);
    pub const TOP: usize = offset_of!(ThreadRecord, top);

    pub const HASH: i32 = chain::HASH;
    pub const HASH_SHIFT: u32 = chain::HASH_SHIFT;
    pub const CHAIN_SHIFT: u32 = chain::CHAIN_SHIFT;
    pub const LINES: usize = cache_offset();
    pub const CHAINS: usize = chains_offset();
    pub const SETS: usize = offset_of!(ThreadRecord, sets);

    // In a line, and the first four in any place of a known lock.
    pub const ADDRESS: usize = offset_of!(CacheLine, known) + offset_of!(KnownLock, address);
    /// The offset of a line's lock and stack, which one load fetches.
    pub const PLACE: usize = offset_of!(CacheLine, known) + offset_of!(KnownLock, lock);
    pub const STACK: usize = offset_of!(CacheLine, known) + offset_of!(KnownLock, stack);
    pub const NEXT_SAMPLE: usize =
        offset_of!(CacheLine, known) + offset_of!(KnownLock, next_sample);
    pub const COUNT: usize = offset_of!(CacheLine, known) + offset_of!(KnownLock, count);
    pub const SITE: usize = offset_of!(CacheLine, site);
    pub const SP: usize = offset_of!(CacheLine, sp);
    pub const RETURNS: usize = offset_of!(CacheLine, returns);
    pub const DISTANCES: usize = offset_of!(CacheLine, distances);

    /// The place of entry number zero; the newest is one entry below that of number `top`.
    pub const HELD: usize = held_offset();
    /// The flags of holdings whose release has more to do.
    pub const SPECIAL: u32 = Flags::TIMED.0 | Flags::LENT.0;
}

// Whether the thread is busy and whether it is in a handler are one word.
const _: () = assert!(offset_of!(ThreadRecord, context) == Offset::BUSY + 4);
const _: () = assert!(Offset::BUSY.is_multiple_of(8));
const _: () = assert!(size_of::<CacheLine>() == 64 && offset_of!(CacheLine, known) == 0);
const _: () = assert!(offset_of!(KnownLock, stack) == offset_of!(KnownLock, lock) + 4);
// The second of two places differs from the first in one bit of its address.
const _: () = assert!(size_of::<KnownLock>() == 32 && size_of::<KnownLine>() == 64);
const _: () = assert!(chains_offset().is_multiple_of(2 * size_of::<CacheLine>()));
const _: () =
    assert!(size_of::<lockstead_ledger::publish::HeldEntry<lockstead_ledger::Native>>() == 32);
// The record's pointer is the first of the thread's words.
const _: () = assert!(offset_of!(crate::tls::ThreadWords, record) == 0);

const _: () = assert!(Flags::READ.0 == 1 && Flags::TRIED.0 == 1 << 3);
