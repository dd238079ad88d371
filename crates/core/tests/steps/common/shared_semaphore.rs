//! The semaphore of a segment: its numbers.

use super::U32;
use super::segment::{Segment, get, set, words};
use super::shared::calls;

/// The numbers of a semaphore.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Numbers {
    pub(crate) total: u32,
    pub(crate) free: u32,
    pub(crate) lost: u32,
    pub(crate) asleep: u32,
    pub(crate) on_their_way: u32,
    pub(crate) channel: u32,
}

/// Returns the words of the semaphore.
pub(crate) fn parts(segment: &'static Segment) -> &'static [U32; 8] {
    words(&segment.semaphore)
}

/// Writes all numbers, and forgets what was asked of the machine.
pub(crate) fn write(segment: &'static Segment, numbers: Numbers) {
    let Numbers { total, free, lost, asleep, on_their_way, channel } = numbers;
    let all = [0, 0, total, free, lost, asleep, on_their_way, channel];
    parts(segment).iter().zip(all).for_each(|(word, value)| set(word, value));
    calls();
}

pub(crate) fn numbers(segment: &'static Segment) -> Numbers {
    let [word, _, total, free, lost, asleep, on_their_way, channel] =
        parts(segment).each_ref().map(get);
    assert_eq!(word, 0, "the mutex is free");
    Numbers { total, free, lost, asleep, on_their_way, channel }
}

pub(crate) const SOME: Numbers =
    Numbers { total: 9, free: 2, lost: 0, asleep: 0, on_their_way: 0, channel: 40 };

/// Returns what a claim says that is about the semaphore.
pub(crate) fn what(segment: &'static Segment) -> u32 {
    segment.offset(&segment.semaphore)
}
