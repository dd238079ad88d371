//! lockstead's mutex with one ingredient left out.

use lockstead_core::{Policy, Slot, Standard};

/// The queue of spinners: all look at the lock.
pub(crate) const QUEUE: u8 = 0;
/// The bound on waiting.
pub(crate) const BOUND: u8 = 1;
/// Rests of waiters that are passed by.
pub(crate) const NAPS: u8 = 2;

/// The shipped policy without one of these.
pub(crate) struct Without<const WHAT: u8>;

/// Longer than any simulation.
const AN_HOUR: u64 = 3_600_000_000_000;

impl<const WHAT: u8> Policy for Without<WHAT> {
    const SPIN: u64 = Standard::SPIN;
    const ASK: u64 = Standard::ASK;
    const TURNS: u32 = Standard::TURNS;
    const GAP: u64 = Standard::GAP;
    const STALE: u64 = Standard::STALE;
    const LOOK: u64 = Standard::LOOK;
    const FIRST: u32 = Standard::FIRST;
    const BOUND: u64 = if WHAT == BOUND { AN_HOUR } else { Standard::BOUND };
    const SHARE: u64 = Standard::SHARE;
    const HEIR_SPIN: u64 = Standard::HEIR_SPIN;
    const MISSES: u32 = if WHAT == NAPS { 0 } else { Standard::MISSES };
    const QUEUE: bool = WHAT != QUEUE;

    fn joins(tail: Option<Slot>, processors: u32) -> bool {
        Standard::joins(tail, processors)
    }

    fn beside(processors: u32) -> bool {
        Standard::beside(processors)
    }
}
