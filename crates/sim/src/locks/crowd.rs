//! lockstead's mutex with one ingredient left out: the queue of spinners.

use lockstead_core::{Policy, Slot, Standard};

/// As the shipped policy, but all spinners look at the lock.
pub(crate) struct Crowd;

impl Policy for Crowd {
    const SPIN: u64 = Standard::SPIN;
    const TURNS: u32 = Standard::TURNS;
    const GAP: u64 = Standard::GAP;
    const STALE: u64 = Standard::STALE;
    const LOOK: u64 = Standard::LOOK;
    const FIRST: u32 = Standard::FIRST;
    const BOUND: u64 = Standard::BOUND;
    const SHARE: u64 = Standard::SHARE;
    const HEIR_SPIN: u64 = Standard::HEIR_SPIN;
    const QUEUE: bool = false;

    fn joins(tail: Option<Slot>, processors: u32) -> bool {
        Standard::joins(tail, processors)
    }
}
