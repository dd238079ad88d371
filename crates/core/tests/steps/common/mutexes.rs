//! Mutexes of the machine, whose words a test reads and writes as the other threads would.

use super::{Alone, U64, as_participant};
use lockstead_core::word::Word;
use lockstead_core::{Atomic64, Hooks, Off, Ordering, Policy, RawMutex, Slot};

/// Makes a mutex that lives for ever.
pub(crate) fn mutex<Y: Policy>() -> &'static RawMutex<Alone, Off, Y> {
    Box::leak(Box::new(RawMutex::new()))
}

/// Writes the word of a lock.
pub(crate) fn force<H: Hooks, Y: Policy>(lock: &RawMutex<Alone, H, Y>, word: Word) {
    // SAFETY: a mutex begins with its word (`repr(C)`), an atomic, and `lock` borrows it.
    let atomic: &U64 = unsafe { &*std::ptr::from_ref(lock).cast() };
    atomic.store(word.0, Ordering::Relaxed);
}

/// Changes the word of a lock.
pub(crate) fn change<H: Hooks, Y: Policy>(
    lock: &RawMutex<Alone, H, Y>,
    change: impl FnOnce(Word) -> Word,
) {
    force(lock, change(lock.peek()));
}

/// Erases the low half of the word, whatever it is, as a release does that has looked before
/// others wrote there.
pub(crate) fn release_blindly<H: Hooks, Y: Policy>(lock: &RawMutex<Alone, H, Y>) {
    change(lock, |word| Word(word.0 >> 32 << 32));
}

/// Releases the lock as participant `number`, which holds it.
pub(crate) fn release<H: Hooks, Y: Policy>(lock: &RawMutex<Alone, H, Y>, number: u32) {
    as_participant(number, || {
        assert!(lock.is_mine());
        // SAFETY: the line above asserts that this participant holds it.
        unsafe { lock.unlock() };
    });
}

/// Returns the slot of a participant.
pub(crate) fn slot(number: u32) -> Slot {
    Slot::new(number).expect("a participant")
}

/// Bits of the word, each in its place.
pub(crate) mod bits {
    pub(crate) const WAITERS: u64 = 1 << 20;
    pub(crate) const PREPARING: u64 = 1 << 21;
    pub(crate) const HANDOFF_ASLEEP: u64 = 1 << 22;
    pub(crate) const RESERVED: u64 = 1 << 23;
    pub(crate) const SLOW: u64 = 0x7f << 24;
    pub(crate) const ONE_SLOW: u64 = 1 << 24;
    pub(crate) const UNRELEASED: u64 = 1 << 31;
    pub(crate) const COVERED: u64 = 1 << 32;
    pub(crate) const HANDOFF: u64 = 1 << 33;
    pub(crate) const CONTEXTS: u64 = 1 << 34;
    /// What a hand-off waiter sets that registers.
    pub(crate) const REGISTERED: u64 = HANDOFF | RESERVED | SLOW;

    /// Returns the bits of a queue whose last spinner is this participant.
    pub(crate) const fn tail(number: u32) -> u64 {
        (number as u64) << 44
    }
}
