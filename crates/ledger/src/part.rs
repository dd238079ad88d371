//! The parts of a ledger in which room is claimed, and how much was.

use crate::growth::GrowingArea;
use crate::lock::{Extension, LockRecord};
use crate::module::ModuleRecord;
use crate::order::EdgeRecord;
use crate::shares::ShareChunk;
use crate::thread::ThreadRecord;
use crate::usage::SemaphoreUsage;
use crate::violation::ViolationRecord;

/// What exists of a ring in which one event was left.
const RING_PAGE: usize = 4096;

/// A part in which room is claimed by raising a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LedgerPart {
    /// The records of threads.
    Threads,
    /// The records of locks, and their tokens.
    Locks,
    /// The statistics of locks.
    Extensions,
    /// The words in which stacks are stored.
    StackWords,
    /// The records of modules.
    Modules,
    /// The edges between two locks.
    Edges,
    /// The violations of the rules.
    Violations,
    /// The usages of semaphores, by their origin.
    Usages,
    /// The chunks of further shares of stacks in the statistics of locks.
    Shares,
    /// The rings of events.
    Rings,
}

impl LedgerPart {
    /// Returns the areas in which an element of the part has its place.
    pub(crate) fn areas(self) -> &'static [GrowingArea] {
        match self {
            LedgerPart::Threads => &[GrowingArea::Threads],
            LedgerPart::Locks => &[GrowingArea::Locks, GrowingArea::Tokens],
            LedgerPart::Extensions => &[GrowingArea::Extensions],
            LedgerPart::StackWords => &[GrowingArea::Stacks, GrowingArea::Classes],
            LedgerPart::Modules => &[GrowingArea::Modules],
            LedgerPart::Edges => &[GrowingArea::Edges],
            LedgerPart::Violations => &[GrowingArea::Violations],
            LedgerPart::Usages => &[GrowingArea::Usages],
            LedgerPart::Shares => &[GrowingArea::Shares],
            LedgerPart::Rings => &[GrowingArea::Rings],
        }
    }
}

/// The number of parts there are.
pub const PARTS: usize = 10;

/// How many elements of each part have been claimed, in the order of [`LedgerPart`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extent(pub [u64; PARTS]);

impl Extent {
    /// All parts, in the order of their numbers.
    pub(crate) const PARTS: [LedgerPart; PARTS] = [
        LedgerPart::Threads,
        LedgerPart::Locks,
        LedgerPart::Extensions,
        LedgerPart::StackWords,
        LedgerPart::Modules,
        LedgerPart::Edges,
        LedgerPart::Violations,
        LedgerPart::Usages,
        LedgerPart::Shares,
        LedgerPart::Rings,
    ];

    /// Returns the number of bytes of the file that exist if so many were claimed, for
    /// whoever claims an element writes to it. The file has more if more were claimed.
    #[must_use]
    pub fn least_bytes(&self) -> u64 {
        let sizes = [
            size_of::<ThreadRecord>(),
            size_of::<LockRecord>(),
            size_of::<Extension>(),
            size_of::<u64>(),
            size_of::<ModuleRecord>(),
            size_of::<EdgeRecord>(),
            size_of::<ViolationRecord>(),
            size_of::<SemaphoreUsage>(),
            size_of::<ShareChunk>(),
            RING_PAGE,
        ];
        let all = self.0.iter().zip(sizes);
        all.fold(0, |sum: u64, (count, size)| sum.saturating_add(count.saturating_mul(size as u64)))
    }
}
