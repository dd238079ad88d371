//! Leaves in the ledger what threads do on futex words: the locks and events of all
//! libraries that sleep by libc's function for system calls.
//!
//! # Role
//! [`wait_begins`] and [`wait_ends`] around a call that may sleep, [`wakes`] before one that
//! wakes. Whose word it is nobody here asks: the command tells it by the stacks.
//!
//! # State
//! A word has a record once somebody has slept on it, [`FUTEX_WORDS`] of them at most; the waits
//! on others are added up by the stack that led to them. A record counts waits, their times and
//! stacks; and, where locks have the stacks of their holders, those of the calls that woke. A
//! wake-up of a word without a record leaves nothing.
//!
//! A thread remembers the words on which it slept as Rust's mutex does, until it wakes them.
//!
//! Nothing says when a word is no lock any more. Its record goes on for whatever comes to lie
//! there, and ends when that is a lock that has a kind of its own.

use crate::events::EndedWait;
use crate::me::{self, Me, enter_beneath, resume};
use crate::site::CallSite;
use crate::state::{PARKED_WORDS, STATE};
use crate::sys;
use crate::waiters::is_recorded;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use lockstead_ledger::Birth;
use lockstead_ledger::events::ending;
use lockstead_ledger::futexes::{FutexTime, Slept, SleptWords};
use lockstead_ledger::lock::{
    Extension, FUTEX_WORDS, ObjectKind, RecordLife, SHARED_WORDS, attribute,
};
use lockstead_ledger::publish::{WaitKind, Waiting};

/// A sleep that a thread is about to ask for.
#[derive(Clone, Copy, Debug)]
pub struct FutexSleep {
    /// The word, of several the first.
    pub word: u64,
    /// Whether a thread may sleep so that is parked with its lock beside the word.
    pub may_be_parked: bool,
    /// Whether the wait counts as one for a lock until the command knows better: it looks like that
    /// of Rust's mutex, or the kernel hands over a lock.
    pub is_for_lock: bool,
    /// What the wait is published as.
    pub how: WaitKind,
    /// Its end in nanoseconds of the clock that `how` says; 0: none.
    pub deadline: u64,
}

/// What [`wait_begins`] leaves for [`wait_ends`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SleepPlace {
    /// The index of the record; 0: none.
    pub lock: u32,
    /// The id of the stack.
    pub stack: u32,
    /// Whether the wait counts as one for a lock.
    pub is_for_lock: bool,
}

/// How a sleep has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SleepEnd {
    /// Somebody woke the thread.
    Woken,
    /// The deadline has passed.
    TimedOut,
    /// A signal handler ran.
    Interrupted,
    /// It did not sleep.
    Refused,
}

/// Publishes that the calling thread is about to sleep.
pub fn wait_begins(sleep: &FutexSleep, site: &CallSite) -> SleepPlace {
    let Some(me) = enter_beneath(site) else { return SleepPlace::default() };
    let stack = me.stack(site);
    let beside = if sleep.may_be_parked { lock_beside(sleep.word) } else { 0 };
    let lock = me.futex_record(sleep.word, beside, stack);
    if beside != 0 {
        remember_parked(sleep.word, lock);
    }
    let place = SleepPlace { lock, stack, is_for_lock: sleep.is_for_lock };
    me.will_wait(lock);
    if sleep.is_for_lock
        && let Some(statistics) = me.ledger.extension(lock)
    {
        // It may never end, and say so then.
        statistics.handing.counted.fetch_max(1, Relaxed);
    }
    let waiting = Waiting {
        how: sleep.how,
        stack,
        target: sleep.word,
        since: sys::now(),
        deadline: sleep.deadline,
        companion: beside,
    };
    me.publish(&waiting, site);
    place
}

/// Ends the wait that [`wait_begins`] published.
pub fn wait_ends(place: SleepPlace, end: SleepEnd, site: &CallSite) {
    let Some(me) = resume(Some(site)) else { return };
    let now = me.clock();
    let record = me.record();
    let waiting = record.wait.read().map(|(_, waiting)| waiting);
    let since = waiting.map_or(now, |waiting| waiting.since);
    record.wait.end();
    if let Some(waiting) = waiting.filter(|_| place.is_for_lock && end != SleepEnd::TimedOut) {
        // Whether it slept or not: it takes the lock as one that others wait for.
        let slept = Slept { word: waiting.target, stack: place.stack, at: now };
        SleptWords::new(&record.slept).note(&slept);
    }
    // The value had changed: that was no wait.
    if end == SleepEnd::Refused {
        me.waits_no_more(place.lock);
        return;
    }
    me.has_waited(&EndedWait {
        how: WaitKind::FUTEX,
        is_for_lock: place.is_for_lock,
        ending: match end {
            SleepEnd::Woken => ending::GRANTED,
            SleepEnd::TimedOut => ending::TIMED_OUT,
            SleepEnd::Interrupted | SleepEnd::Refused => ending::INTERRUPTED,
        },
        lock: place.lock,
        stack: place.stack,
        since,
        now,
    });
    let waited = now.saturating_sub(since);
    let total = if place.is_for_lock { &record.waited } else { &record.idled };
    total.store(total.load(Relaxed) + waited, Relaxed);
    if let Some(lock) = me.ledger.lock(place.lock) {
        let key = (place.lock, lock.generation.load(Relaxed));
        FutexTime::add(&record.futex_times, key, waited, place.is_for_lock);
    }
    let Some(statistics) = me.ledger.extension(place.lock) else { return };
    match end {
        SleepEnd::Woken => statistics.contended.fetch_add(1, Relaxed),
        SleepEnd::TimedOut => statistics.timed_out.fetch_add(1, Relaxed),
        SleepEnd::Interrupted | SleepEnd::Refused => 0,
    };
    if place.is_for_lock {
        statistics.handing.counted.fetch_add(waited, Relaxed);
    }
    statistics.wait.add(waited, 1, place.stack);
    me.ledger.add_share(&statistics.waited_at, place.stack, 1, waited);
}

/// Counts a call that wakes sleepers of `word`, which is about to be made. The word may be gone
/// after it. `may_be_parked`: as with the sleep.
pub fn wakes(word: u64, may_be_parked: bool, site: &CallSite) {
    if STATE.futexes.load(Relaxed) == 0 {
        return;
    }
    // Whatever the thread is doing: what it gives back it does not hold any more.
    if let Some(record) = me::own_record() {
        SleptWords::new(&record.slept).forget(word);
    }
    let Some(me) = enter_beneath(site) else { return };
    // The memory beside the word is the sleeper's, which may be on its way to its end.
    let beside = || me.statistics_at(parked_for(word).filter(|_| may_be_parked)?);
    if let Some(statistics) = me.statistics_of(word).or_else(beside) {
        let stack = me.stack(site);
        me.ledger.add_share(&statistics.held_at, stack, 1, 0);
        if is_recorded() && statistics.waiters.load(Relaxed) != 0 {
            me.leave_wake(statistics.lock.load(Relaxed) as u32, stack, sys::now());
        }
    }
}

impl Me {
    /// Returns the record for a sleep on `word`, made if there is none; 0 where the ledger is full.
    fn futex_record(&self, word: u64, beside: u64, stack: u32) -> u32 {
        let (address, attributes) =
            if beside == 0 { (word, 0) } else { (beside, attribute::BESIDE) };
        let known = self.live_futex(address);
        if let Some(index) = known {
            return index;
        }
        let is_full = STATE.futexes.load(Relaxed) >= FUTEX_WORDS;
        let address = if is_full { SHARED_WORDS | u64::from(stack) } else { address };
        if is_full && let Some(index) = self.live_futex(address) {
            return index;
        }
        STATE.futexes.fetch_add(1, Relaxed);
        let birth = Birth {
            address,
            kind: ObjectKind::Futex,
            attributes,
            init_stack: 0,
            first_stack: stack,
            module: if is_full { 0 } else { self.module_of(address) },
        };
        // Whatever lived there before does so no more.
        let is_other = self.ledger.find_lock(address).is_some();
        let made =
            if is_other { self.ledger.init_lock(&birth) } else { self.ledger.use_lock(&birth) };
        made.unwrap_or(0)
    }

    fn live_futex(&self, address: u64) -> Option<u32> {
        self.ledger.find_lock(address).filter(|&index| self.is_live_futex(index))
    }

    fn is_live_futex(&self, index: u32) -> bool {
        let shape = self.ledger.lock(index).map(|lock| lock.shape());
        shape.is_some_and(|(kind, life, _)| kind == ObjectKind::Futex && life == RecordLife::Live)
    }

    fn statistics_of(&self, address: u64) -> Option<&'static Extension> {
        self.ledger.extension(self.live_futex(address)?)
    }

    fn statistics_at(&self, index: u32) -> Option<&'static Extension> {
        self.ledger.extension(index).filter(|_| self.is_live_futex(index))
    }
}

/// Returns where the lock of a thread that is parked on `word` is remembered, and what tells the
/// word from others with the same place.
fn parked_place(word: u64) -> (&'static AtomicU64, u32) {
    let number = word / 8;
    let at = (number ^ number >> 8 ^ number >> 16) as usize % PARKED_WORDS;
    (&STATE.parked[at], number as u32)
}

/// Remembers the record of the lock for which a thread is parked on `word`, in place of what
/// another word had there: of that one a wake-up is not counted then.
fn remember_parked(word: u64, lock: u32) {
    let (place, tag) = parked_place(word);
    place.store(u64::from(lock) << 32 | u64::from(tag), Relaxed);
}

/// Returns the record of the lock for which a thread is, or was, parked on `word`.
fn parked_for(word: u64) -> Option<u32> {
    let (place, tag) = parked_place(word);
    let known = place.load(Relaxed);
    let lock = (known >> 32) as u32;
    (lock != 0 && known as u32 == tag).then_some(lock)
}

/// Returns the address of the lock that the calling thread is parked for, which is about to sleep on
/// `word`; 0 where none stands there.
///
/// parking_lot's data of a thread has, in front of the word, the lock's address, a pointer to the
/// next thread in the queue, and two small numbers. Others may have something like that beside
/// their words: the command believes it where the stack is one of parking_lot.
fn lock_beside(word: u64) -> u64 {
    const DATA: u64 = 32;
    const PAGE: u64 = 4096;
    const SMALL: u64 = 4096;
    const USER_END: u64 = 1 << lockstead_unwind::arch::ADDRESS_BITS;
    let is_address = |address: u64| (PAGE..USER_END).contains(&address);
    if !word.is_multiple_of(8) || !(PAGE + DATA..USER_END).contains(&word) {
        return 0;
    }
    let data = word - DATA;
    // Another page may go at any time.
    if data / PAGE != word / PAGE || !sys::is_readable(word) {
        return 0;
    }
    // SAFETY: the four words are aligned and lie in the page of the word on which the calling thread
    // is about to sleep, and which the kernel has just read: the thread keeps that page until it is
    // woken.
    let words = unsafe { &*(data as *const [AtomicU64; 4]) };
    let [lock, next, first, second] = words.each_ref().map(|word| word.load(Relaxed));
    let is_next = next == 0 || is_address(next) && next % 8 == 0;
    if is_address(lock) && is_next && first < SMALL && second < SMALL { lock } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_beside_a_word_is_told_from_other_data() {
        /// The data and the word, in one page.
        #[repr(align(64))]
        struct Parked([u64; 5]);
        let beside = |data| {
            let parked = Parked(data);
            lock_beside(&raw const parked.0[4] as u64)
        };
        let lock = 0x5555_1234_5671;
        assert_eq!(beside([lock, 0, 0, 0, 1]), lock);
        assert_eq!(beside([lock, 0x5555_0000_0008, 1, 16, 1]), lock);
        assert_eq!(beside([lock, 0x5555_0000_0009, 0, 0, 1]), 0, "no pointer");
        assert_eq!(beside([lock, 0, 1 << 40, 0, 1]), 0, "no small number");
        assert_eq!(beside([7, 0, 0, 0, 1]), 0);
        for word in
            [0, 32, 4096, 4096 + 32, 1 << lockstead_unwind::arch::ADDRESS_BITS, u64::MAX - 7]
        {
            assert_eq!(lock_beside(word), 0, "{word:#x}");
        }
    }

    #[test]
    fn a_parked_thread_is_remembered_by_its_word_until_another_takes_the_place() {
        let word = 0x7f12_3456_7890;
        assert_eq!(parked_for(word), None);
        remember_parked(word, 7);
        assert_eq!((parked_for(word), parked_for(word + 8)), (Some(7), None));
        let other = (1..).map(|more| word + 8 * more);
        let place = |word| std::ptr::from_ref(parked_place(word).0);
        let other = other.into_iter().find(|&other| place(other) == place(word)).expect("one");
        assert_eq!(parked_for(other), None, "the place is the same, and the word is not");
        remember_parked(other, 9);
        assert_eq!((parked_for(word), parked_for(other)), (None, Some(9)));
    }
}
