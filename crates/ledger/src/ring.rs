//! The rings in which threads leave what happens to them, and the command finds it.
//!
//! # Role
//! Of a run that is recorded each thread leaves its [events](crate::events), of four words each, in
//! a ring of its own. The command takes them out while the program runs.
//!
//! # Protocol
//! A ring has one producer: the thread whose record names it, and when that has ended, another one
//! that gets it. A signal handler leaves events where the thread is not at it (`me` of the
//! preload library). It has one consumer, the command.
//! 1. *leaves*: [`EventRing::leave`]: if `written` is a whole ring ahead of `taken`, there is no
//!    room, and a loss is counted. Else the slot is filled, and then `written` goes up.
//! 2. *takes*: [`EventRing::take`]: the slots from `taken` up to `written` are copied, and then
//!    `taken` goes up.
//!
//! Both numbers only go up; the slot of an event is its number modulo the slots.
//!
//! # Invariants
//! - **RING-WHOLE** From `taken` up to `written` each slot holds one whole event, and nobody
//!   writes to it.
//! - **RING-COUNTED** Each event is taken once, in the order of its ring, or counted as lost. Of a
//!   thread that is killed, or jumps out of it, while it leaves one, that one is neither.
//! - **RING-UNTRUSTED** The command takes no more events than there are slots, whatever the program
//!   has written to the numbers.
//!
//! # Ordering
//! Labels LED-15 and LED-16 in `docs/memory-ordering.md`.
//!
//! # Progress
//! No loop on the producer's side.

use crate::cells::{Cells, Native, NativeWord};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use lockstead_core::{Atomic64, fault};

/// The number of events that a ring of a large ledger has room for: 1 MiB. It takes a million events
/// a second for the 30 ms that the command may lack a processor.
pub const RING_EVENTS: usize = 32 * 1024;
/// The number in a ledger for which there is little address space.
pub const FEW_RING_EVENTS: usize = 4096;

// The place of an event is found by a mask, and rings lie behind each other in whole pages.
const _: () = {
    assert!(RING_EVENTS.is_power_of_two() && FEW_RING_EVENTS.is_power_of_two());
    assert!(RingRecord::stride(RING_EVENTS) == 4096 + (1 << 20));
    assert!(RingRecord::stride(FEW_RING_EVENTS) == 4096 + FEW_RING_EVENTS * 32);
};

/// The place of one event in a ring.
#[repr(C)]
#[derive(Debug)]
pub struct EventSlot<C: Cells> {
    words: [C::Word; 4],
}

impl<C: Cells> EventSlot<C> {
    /// A place in which nothing was left yet.
    pub const EMPTY: Self = EventSlot { words: [const { C::Word::ZERO }; 4] };
}

/// The ring of one thread: a view of its numbers and its slots.
#[derive(Debug)]
pub struct EventRing<'a, C: Cells> {
    /// The number of events that were left.
    pub written: &'a C::Word,
    /// The number of events that found no room.
    pub lost: &'a C::Word,
    /// The number of events that the command has taken.
    pub taken: &'a C::Word,
    /// The places of the events; a power of two of them.
    pub slots: &'a [EventSlot<C>],
}

impl<C: Cells> EventRing<'_, C> {
    /// Returns the slot of the event with this number.
    fn slot(&self, number: u64) -> &EventSlot<C> {
        &self.slots[number as usize & (self.slots.len() - 1)]
    }

    /// Leaves an event, or counts it as lost. Only the ring's thread calls this.
    #[inline]
    pub fn leave(&self, event: [u64; 4]) {
        let written = self.written.load(Relaxed);
        // ord: LED-16 (acquire): the command has read the slot.
        let waiting = written.wrapping_sub(self.taken.load(Acquire));
        if waiting >= self.slots.len() as u64 && !fault!(ring_overwrites_what_was_not_taken) {
            if !fault!(ring_counts_no_losses) {
                self.lost.store(self.lost.load(Relaxed) + 1, Relaxed);
            }
            return;
        }
        if fault!(ring_publishes_before_it_writes) {
            self.written.store(written + 1, Release); // ord: LED-15
        }
        let slot = self.slot(written);
        for (word, value) in slot.words.iter().zip(event) {
            word.store(value, Relaxed);
        }
        // ord: LED-15 (release): the event.
        self.written.store(written + 1, Release);
    }

    /// Takes all events that are there, oldest first, and returns their number. Only the command
    /// calls this, one thread at a time.
    pub fn take(&self, mut each: impl FnMut([u64; 4])) -> u64 {
        let taken = self.taken.load(Relaxed);
        // ord: LED-15 (acquire): the events.
        let written = self.written.load(Acquire);
        let count = written.wrapping_sub(taken).min(self.slots.len() as u64);
        if fault!(ring_frees_before_it_reads) {
            self.taken.store(taken.wrapping_add(count), Release); // ord: LED-16
        }
        for number in 0..count {
            let slot = self.slot(taken.wrapping_add(number));
            each(core::array::from_fn(|at| slot.words[at].load(Relaxed)));
        }
        if count != 0 {
            // ord: LED-16 (release): the slots have been read.
            self.taken.store(taken.wrapping_add(count), Release);
        }
        count
    }

    /// Returns how many events found no room so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }
}

/// The beginning of a ring as it lies in the ledger; its slots follow. What the thread writes and
/// what the command writes are in cache lines of their own.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct RingRecord {
    written: NativeWord,
    lost: NativeWord,
    spare_thread: [NativeWord; 6],
    taken: NativeWord,
    spare_command: [NativeWord; 7],
}

impl RingRecord {
    /// Returns the number of bytes from a ring with so many slots to the next one, whole pages.
    #[must_use]
    pub const fn stride(slots: usize) -> usize {
        (size_of::<RingRecord>() + slots * size_of::<EventSlot<Native>>()).next_multiple_of(4096)
    }

    /// Returns the ring of the record at `base`.
    ///
    /// # Safety
    /// [`RingRecord::stride`] of `slots` bytes from `base` on are mapped for `'a`, and `base` is
    /// aligned to a page. `slots` is a power of two.
    #[inline]
    #[must_use]
    pub(crate) unsafe fn at<'a>(base: *const u8, slots: usize) -> EventRing<'a, Native> {
        // SAFETY: the caller promises the bytes. Record and slots consist of atomics, for which
        // every bit pattern is valid (LEDGER-ZERO).
        let record = unsafe { &*base.cast::<RingRecord>() };
        // SAFETY: the record is within those bytes.
        let first = unsafe { base.add(size_of::<RingRecord>()) }.cast::<EventSlot<Native>>();
        // SAFETY: as above; the slots lie behind the record, whose size is a multiple of their
        // alignment.
        let slots = unsafe { core::slice::from_raw_parts(first, slots) };
        EventRing { written: &record.written, lost: &record.lost, taken: &record.taken, slots }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::vec::Vec;

    const SLOTS: usize = 4;

    /// The memory of a ring.
    struct Memory {
        written: NativeWord,
        lost: NativeWord,
        taken: NativeWord,
        slots: [EventSlot<Native>; SLOTS],
    }

    impl Memory {
        fn new() -> Memory {
            let [written, lost, taken] = [const { NativeWord::ZERO }; 3];
            Memory { written, lost, taken, slots: [const { EventSlot::EMPTY }; SLOTS] }
        }

        fn ring(&self) -> EventRing<'_, Native> {
            let Memory { written, lost, taken, slots } = self;
            EventRing { written, lost, taken, slots }
        }

        fn take(&self) -> Vec<[u64; 4]> {
            let mut events = Vec::new();
            let count = self.ring().take(|event| events.push(event));
            assert_eq!(count, events.len() as u64);
            events
        }
    }

    #[test]
    fn no_more_is_taken_than_there_are_slots() {
        let memory = Memory::new();
        for (is, was) in [(u64::MAX, 0), (0, 1), (5, 0)] {
            memory.written.store(is, Relaxed);
            memory.taken.store(was, Relaxed);
            assert_eq!(memory.take().len(), SLOTS, "{is} after {was}");
        }
    }

    #[test]
    fn a_full_ring_counts_what_it_has_no_room_for() {
        let memory = Memory::new();
        let events =
            |numbers: core::ops::Range<u64>| numbers.map(|at| [at, at + 1, at + 2, at + 3]);
        for round in 0..3 {
            events(round..round + SLOTS as u64 + 2).for_each(|event| memory.ring().leave(event));
            assert_eq!(memory.take(), Vec::from_iter(events(round..round + SLOTS as u64)));
            assert_eq!(memory.ring().lost(), 2 * (round + 1));
        }
        assert_eq!(memory.take(), [[0; 4]; 0]);
    }

    #[test]
    fn a_thread_writes_over_nothing_though_the_command_has_taken_what_was_never_left() {
        let memory = Memory::new();
        memory.taken.store(1, Relaxed);
        memory.ring().leave([7; 4]);
        assert_eq!((memory.ring().lost(), memory.written.load(Relaxed)), (1, 0));
    }

    #[test]
    fn the_slots_of_a_ring_lie_behind_its_numbers() {
        const SLOTS: usize = 128;
        #[repr(C, align(4096))]
        struct Bytes([u8; RingRecord::stride(SLOTS)]);
        let bytes = std::boxed::Box::new(Bytes([0; RingRecord::stride(SLOTS)]));
        // SAFETY: so many bytes, of zero and aligned to a page, that nothing else uses and that
        // live as long as the ring.
        let ring = unsafe { RingRecord::at(bytes.0.as_ptr(), SLOTS) };
        let events = |round: u64| (0..SLOTS as u64).map(move |at| [round, at, u64::MAX, at]);
        for round in 1..3 {
            events(round).for_each(|event| ring.leave(event));
            let mut taken = Vec::new();
            ring.take(|event| taken.push(event));
            assert_eq!(taken, Vec::from_iter(events(round)));
        }
        assert_eq!(ring.lost(), 0);
    }
}
