//! What happens when, and chance.

use super::world::Ps;
use std::cmp::Ordering;

/// What happens at some time.
#[derive(Clone, Copy)]
pub(crate) enum What {
    /// A task has passed the time it wanted to, unless the number is out of date.
    Passed(u32, u32),
    /// A cache line arrives where it was asked for.
    Line(u32),
    /// A shared line has been read.
    Read(u32, u32),
    /// A processor has switched, or woken up.
    Dispatch(u32),
    /// The time slice of a processor's task is over, unless out of date.
    Slice(u32, u32),
    /// A sleeper's time is over, unless out of date.
    Timer(u32, u32),
    /// Counting begins.
    Count,
}

pub(super) struct Event {
    pub(super) at: Ps,
    pub(super) order: u64,
    pub(super) what: What,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}
impl Eq for Event {}
impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Event {
    // The heap's greatest is the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

/// A generator of random numbers (splitmix64).
#[derive(Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to below 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
