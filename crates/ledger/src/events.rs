//! The rings in which threads leave what happens to them, and the command finds it.
//!
//! # Role
//! Of a run that is recorded each thread leaves its waits, its holds of locks that are waited for,
//! its calls that wake others, and its own life, each as one event of four words. The command takes
//! them out while the program runs. An event is of the past when it is left, with its beginning and
//! its length: one that is lost leaves no other without its other half.
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
            let mut event = [0; 4];
            for (value, word) in event.iter_mut().zip(&slot.words) {
                *value = word.load(Relaxed);
            }
            each(event);
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
        // SAFETY: as above; the slots lie behind the record, whose size is a multiple of their
        // alignment.
        let slots =
            unsafe { core::slice::from_raw_parts(base.add(size_of::<RingRecord>()).cast(), slots) };
        EventRing { written: &record.written, lost: &record.lost, taken: &record.taken, slots }
    }
}

/// What an event tells of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum EventKind {
    /// A wait that has ended.
    Wait = 1,
    /// A hold of a lock that was waited for, by this thread before it or by others meanwhile.
    Hold = 2,
    /// A call that wakes others and gives nothing back: a signal of a condition, a token of a
    /// semaphore, a wake-up of a futex word.
    Wake = 3,
    /// The life of a thread that has ended.
    Thread = 4,
}

/// The bit of a wait's kind that says of a futex word: the wait counts as one for a lock until the
/// command knows better.
pub const FOR_LOCK: u8 = 0x80;

/// The facts of a hold, a bit each.
pub mod hold {
    /// The lock is held for reading.
    pub const READ: u8 = 1;
    /// Its beginning is an estimate by the coarse clock.
    pub const COARSE: u8 = 2;
    /// The thread had waited for it.
    pub const AFTER_WAIT: u8 = 4;
    /// Others were waiting when it ended.
    pub const WAITED_FOR: u8 = 8;
    /// It ended in a wait on a condition, which gives the mutex back.
    pub const LENT: u8 = 16;
}

/// How a wait ended, by number.
pub mod ending {
    /// The thread has what it waited for.
    pub const GRANTED: u8 = 0;
    /// Its deadline has passed.
    pub const TIMED_OUT: u8 = 1;
    /// A handler has interrupted it.
    pub const INTERRUPTED: u8 = 2;
    /// It was refused, or came to nothing for another reason.
    pub const REFUSED: u8 = 3;
    /// The thread was cancelled, or left the wait by an exception.
    pub const ABANDONED: u8 = 4;
}

/// One event, as its thread leaves it and the command finds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// What it tells of.
    pub kind: EventKind,
    /// The time at which it began, in nanoseconds of `CLOCK_MONOTONIC`.
    pub began: u64,
    /// How long it lasted, in nanoseconds; at most [`Event::LONGEST`].
    pub lasted: u64,
    /// What it was like: of a wait the number of its [`WaitKind`](crate::publish::WaitKind), perhaps with
    /// [`FOR_LOCK`], of a hold its facts ([`hold`]).
    pub how: u8,
    /// How it ended, if it was a wait ([`ending`]).
    pub ending: u8,
    /// The index of the lock's record; 0: none. Of a wait for the end of a thread, and of a life,
    /// the serial number of that thread, or of the creator; 0 where it is not known.
    pub lock: u32,
    /// The low bits of the lock's generation, which tell lives at one address apart.
    pub generation: u8,
    /// Id of the stack of the call, of a hold that of its acquisition.
    pub stack: u32,
    /// The serial number of the thread.
    pub thread: u32,
    /// The kernel's number of the thread, if it is a life.
    pub tid: u32,
}

impl Event {
    /// The longest time that an event can say: three days.
    pub const LONGEST: u64 = (1 << 48) - 1;
    /// The bits of an index in the word of a lock; a ledger has no more locks.
    const INDEX: u32 = 27;
    /// The number of generations that are told apart.
    pub const GENERATIONS: u32 = 1 << (32 - Self::INDEX);

    /// Returns the part of a lock's generation that is in events.
    #[inline]
    #[must_use]
    pub const fn life(generation: u32) -> u8 {
        (generation % Self::GENERATIONS) as u8
    }

    /// Returns the words in which it travels.
    #[inline]
    #[must_use]
    pub fn to_words(&self) -> [u64; 4] {
        let lock = match self.kind {
            EventKind::Thread => self.lock,
            _ => self.lock & ((1 << Self::INDEX) - 1) | u32::from(self.generation) << Self::INDEX,
        };
        [
            self.began,
            self.lasted.min(Self::LONGEST)
                | (self.kind as u64) << 48
                | u64::from(self.ending) << 52
                | u64::from(self.how) << 56,
            u64::from(lock) | u64::from(self.stack) << 32,
            u64::from(self.thread) | u64::from(self.tid) << 32,
        ]
    }

    /// Reads the words of an event. Returns `None` for what no thread of this version leaves.
    #[must_use]
    pub fn from_words([began, what, place, thread]: [u64; 4]) -> Option<Event> {
        let kind = match what >> 48 & 15 {
            1 => EventKind::Wait,
            2 => EventKind::Hold,
            3 => EventKind::Wake,
            4 => EventKind::Thread,
            _ => return None,
        };
        let lock = place as u32;
        let is_life = kind == EventKind::Thread;
        Some(Event {
            kind,
            began,
            lasted: what & Self::LONGEST,
            how: (what >> 56) as u8,
            ending: (what >> 52 & 15) as u8,
            lock: if is_life { lock } else { lock & ((1 << Self::INDEX) - 1) },
            generation: if is_life { 0 } else { (lock >> Self::INDEX) as u8 },
            stack: (place >> 32) as u32,
            thread: thread as u32,
            tid: (thread >> 32) as u32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_comes_out_of_its_words_as_it_went_in() {
        let event = Event {
            kind: EventKind::Wait,
            began: 1 << 60,
            lasted: Event::LONGEST,
            how: 9,
            ending: ending::ABANDONED,
            lock: (1 << 27) - 1,
            generation: 31,
            stack: u32::MAX,
            thread: u32::MAX,
            tid: 7,
        };
        assert_eq!(Event::from_words(event.to_words()), Some(event));
        let long = Event { lasted: u64::MAX, ..event };
        assert_eq!(Event::from_words(long.to_words()), Some(event));
        let life = Event { kind: EventKind::Thread, lock: u32::MAX, generation: 0, ..event };
        assert_eq!(Event::from_words(life.to_words()), Some(life));
        assert_eq!(Event::from_words([0; 4]), None);
        assert_eq!(Event::from_words([0, 15 << 48, 0, 0]), None);
    }
}
