//! What a thread keeps of its sleeps on futex words: which it has slept on and not woken since, and
//! how long it slept for which lock.
//!
//! # Role
//! A lock of the kind of Rust's `std::sync::Mutex` leaves its word at *contended* when a thread
//! acquires it that has slept on it, and so that thread calls to wake when it gives the lock back.
//! Hence a thread that has slept on such a word, and has neither woken it nor gone on sleeping on
//! it, holds the lock, once it is out of the function that acquires it.
//!
//! # Protocol
//! The thread alone writes: [`SleptWords::note`] when a sleep has ended, before anything else is
//! published, and [`SleptWords::forget`] before it calls to wake. Of a thread in a published wait
//! the words are as reliable as its held stack (LEDGER-STILL of [`publish`](crate::publish)); of one
//! that the kernel says to sleep, too, for it has stored whatever it will.
//!
//! # Ordering
//! Label LED-14 in `docs/memory-ordering.md`, in the same way as LED-3.

use crate::cells::Cells;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};
use lockstead_core::{Atomic64, fault};

/// The number of words that a thread remembers.
pub const SLEPT_WORDS: usize = 8;
/// The number of locks for which a thread adds up its sleeps.
pub const FUTEX_TIMES: usize = 16;

/// A word on which a thread has slept; all zero: none.
#[repr(C)]
#[derive(Debug)]
pub struct SleptWord<C: Cells> {
    word: C::Word,
    stack: C::Word,
    at: C::Word,
}

impl<C: Cells> SleptWord<C> {
    /// A place with no word in it.
    pub const NONE: Self =
        SleptWord { word: C::Word::ZERO, stack: C::Word::ZERO, at: C::Word::ZERO };
}

/// A sleep that has ended, as a thread notes it and as a reader sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slept {
    /// The address of the word.
    pub word: u64,
    /// Id of the stack that led to the sleep.
    pub stack: u32,
    /// The time at which it ended, in nanoseconds of `CLOCK_MONOTONIC`.
    pub at: u64,
}

/// The words that one thread has slept on.
pub struct SleptWords<'a, C: Cells>(&'a [SleptWord<C>]);

impl<C: Cells> core::fmt::Debug for SleptWords<'_, C> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.read()).finish()
    }
}

impl<'a, C: Cells> SleptWords<'a, C> {
    /// Makes the view of a thread's words.
    #[must_use]
    pub fn new(words: &'a [SleptWord<C>]) -> Self {
        SleptWords(words)
    }

    /// Notes that a sleep has ended. The thread itself calls this, before it publishes anything
    /// else. Where there is no room, the oldest word is forgotten.
    pub fn note(&self, slept: &Slept) {
        let known = self.0.iter().find(|known| known.word.load(Relaxed) == slept.word);
        let free = || self.0.iter().find(|known| known.word.load(Relaxed) == 0);
        let oldest = || self.0.iter().min_by_key(|known| known.at.load(Relaxed));
        let Some(place) = known.or_else(free).or_else(oldest) else { return };
        // ord: LED-14 (release): a reader of any of these knows that the wait before has ended.
        place.word.store(0, Release);
        place.stack.store(slept.stack.into(), Release); // ord: LED-14
        place.at.store(slept.at, Release); // ord: LED-14
        place.word.store(slept.word, Release); // ord: LED-14
    }

    /// Forgets a word. The thread itself calls this before it wakes others that sleep on it.
    pub fn forget(&self, word: u64) {
        if fault!(ledger_remembers_what_was_woken) {
            return;
        }
        for known in self.0.iter().filter(|known| known.word.load(Relaxed) == word) {
            known.word.store(0, Release); // ord: LED-14
        }
    }

    /// Forgets all words, for another thread that gets the memory.
    pub fn clear(&self) {
        self.0.iter().for_each(|known| known.word.store(0, Relaxed));
    }

    /// Reads the words. Any thread of any process may call this.
    pub fn read(&self) -> impl Iterator<Item = Slept> + use<'a, C> {
        self.0.iter().filter_map(|known| {
            // ord: LED-14 (acquire): a word of a later time brings its episode along.
            let word = known.word.load(Acquire);
            let stack = known.stack.load(Acquire) as u32; // ord: LED-14
            let at = known.at.load(Acquire); // ord: LED-14
            (word != 0).then_some(Slept { word, stack, at })
        })
    }
}

/// How long a thread has slept for one lock, or one event.
#[repr(C)]
#[derive(Debug, Default)]
pub struct FutexTime {
    /// The index of the lock's record; 0: none.
    pub lock: AtomicU32,
    /// The number of that record's life.
    pub generation: AtomicU32,
    /// Nanoseconds that count as waiting for a lock in the thread's sums.
    pub waited: AtomicU64,
    /// Nanoseconds that count as idle in the thread's sums.
    pub idled: AtomicU64,
}

impl FutexTime {
    /// Adds a sleep to what its thread, which calls this, has slept for the same lock. Where there
    /// is no room, the shortest is forgotten: it stays in the thread's sums as it was counted.
    pub fn add(times: &[FutexTime], (lock, generation): (u32, u32), ns: u64, is_for_lock: bool) {
        let of = |time: &FutexTime| (time.lock.load(Relaxed), time.generation.load(Relaxed));
        let known = times.iter().find(|time| of(time) == (lock, generation));
        let all = |time: &&FutexTime| time.waited.load(Relaxed) + time.idled.load(Relaxed);
        let place = known.or_else(|| {
            let place = times.iter().min_by_key(all)?;
            place.clear();
            place.lock.store(lock, Relaxed);
            place.generation.store(generation, Relaxed);
            Some(place)
        });
        let Some(place) = place else { return };
        let sum = if is_for_lock { &place.waited } else { &place.idled };
        sum.store(sum.load(Relaxed) + ns, Relaxed);
    }

    /// Forgets the lock, and how long the thread has slept for it.
    pub fn clear(&self) {
        self.lock.store(0, Relaxed);
        self.waited.store(0, Relaxed);
        self.idled.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::cells::Native;
    use std::vec::Vec;

    fn slept(word: u64) -> Slept {
        Slept { word, stack: word as u32, at: word }
    }

    #[test]
    fn a_word_is_known_until_it_is_woken_or_the_oldest_of_too_many() {
        let places = [const { SleptWord::<Native>::NONE }; 3];
        let words = SleptWords::new(&places);
        (1..=3).for_each(|word| words.note(&slept(word)));
        words.forget(2);
        words.note(&Slept { at: 9, ..slept(1) });
        let known: Vec<Slept> = words.read().collect();
        assert_eq!(known, [Slept { at: 9, ..slept(1) }, slept(3)]);
        words.note(&slept(4));
        words.note(&slept(5));
        let known: Vec<u64> = words.read().map(|known| known.word).collect();
        assert_eq!(known, [1, 4, 5], "3 was the oldest");
    }

    #[test]
    fn sleeps_are_added_up_by_lock_and_the_shortest_goes() {
        let times = [FutexTime::default(), FutexTime::default()];
        FutexTime::add(&times, (1, 0), 5, true);
        FutexTime::add(&times, (2, 0), 50, false);
        FutexTime::add(&times, (1, 0), 1, false);
        FutexTime::add(&times, (2, 1), 7, true);
        let sums = times.map(|time| [&time.waited, &time.idled].map(|sum| sum.load(Relaxed)));
        assert_eq!(sums, [[7, 0], [0, 50]]);
    }
}
