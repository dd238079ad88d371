//! What a machine must offer beyond [`Platform`] for locks that survive their
//! holders.
//!
//! # Role
//! Such locks lie in memory that several processes share. A participant may end
//! between any two of its steps, and nothing of its own runs then: what tells the
//! others is the machine.
//!
//! # Invariants a platform must keep
//! - **D1** When a participant ends, the machine sets the low half of its
//!   [life word](super::SlotRecord) to [`LIFE_DEAD`](super::life::LIFE_DEAD) and then wakes
//!   one of those that sleep on that half. It does so after everything the
//!   participant has written, and after it has left all queues of sleepers.
//! - **D2** Then, if the participant had [named](Robust::at_death_wake) a word whose
//!   lower 30 bits are zero, it wakes one of those that sleep on it.
//! - **D3** [`Robust::wait_any`] queues at the words in their order and compares each
//!   when it queues there, in one step with respect to wakes at that word. It reports
//!   the *last* of the words at which it was woken.
//! - **D4** A participant that ends in [`Robust::wait_any`] may have been woken at any
//!   of the words; that wake-up is lost.
//! - **D5** A wake-up takes an address and does not read the memory there (P5).

use super::life::Life;
use crate::platform::{Platform, Wait};
use core::ptr::NonNull;

/// One of the words a thread sleeps on at once.
pub enum Watch<'a, P: Platform> {
    /// A word.
    Word(&'a P::U32, u32),
    /// The low half of a word.
    Low(&'a P::U64, u32),
    /// The high half of a word, which is only compared: no wake-up there ends the sleep.
    High(&'a P::U64, u32),
    /// A word that is only compared: no wake-up there ends the sleep.
    Seen(&'a P::U32, u32),
}

impl<P: Platform> Clone for Watch<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Platform> Copy for Watch<'_, P> {}

/// How a call to [`Robust::wait_any`] ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// By a wake-up at the word with this index, the last one if there were several.
    /// Never spurious where the machine can tell.
    At(usize),
    /// One of the words did not hold what was expected; or for no reason.
    Changed,
    /// By nobody, for as long as the sleeper relies on being woken: it is to look again.
    Unsure,
    /// The deadline passed.
    TimedOut,
    /// A signal handler ran.
    Interrupted,
    /// The cancellation word was set.
    Cancelled,
    /// This is not the participant that fell asleep but a copy of it, as a signal handler
    /// makes by forking a process: it must do nothing in that one's name.
    Copied,
}

/// A machine on which locks survive their holders. See the module's invariants.
pub trait Robust: Platform {
    /// What else the platform needs to know of a segment.
    type Segment: 'static;

    /// Sleeps while all words hold what is expected of them, at most
    /// [`MOST_WATCHES`](Self::MOST_WATCHES) of them.
    fn wait_any(watches: &[Watch<'_, Self>], how: &Wait<'_, Self>) -> Woken;

    /// How many words [`wait_any`](Self::wait_any) can watch.
    const MOST_WATCHES: usize;

    /// Wakes up to `count` of those that sleep on a word shared by processes, the
    /// longest asleep first; returns how many. The address may dangle (D5).
    fn wake_shared(word: *const Self::U32, count: u32) -> u32;

    /// Adds to a word, wrapping, and wakes `count` of those that sleep on it; a
    /// participant that ends does both or neither.
    fn add_and_wake(word: &Self::U32, add: Addend, count: u32);

    /// From now until the next call: should the calling participant end, one of those
    /// that sleep on `word` is woken (D2). `None`: nobody is. Returns what was named
    /// before, to be named again; whoever names a word sees to that.
    fn at_death_wake(word: Option<NonNull<Self::U32>>) -> Option<NonNull<Self::U32>>;

    /// From now on, while the caller owns a lock of the word's segment: should it end
    /// when it has named nothing, one of those that sleep on `word` is woken (D2). False
    /// if the machine does not promise that.
    fn defer_wake(word: &Self::U32) -> bool;

    /// How long a waiter [rests](Self::rest), in nanoseconds; `None`: it does not.
    const REST: Option<u64>;

    /// Does nothing for so many nanoseconds or somewhat more, or less.
    fn rest(nanos: u64) -> Woken;

    /// How long a sleeper relies on D1 before it asks [`has_ended`](Self::has_ended),
    /// in nanoseconds; `None`: for ever.
    const TRUST: Option<u64>;

    /// How often a waiter looks before it sleeps.
    const SPINS: u32;

    /// Whether this processor is sooner done with a look and a subtraction than with a
    /// compare-exchange, right behind another locked instruction.
    #[inline(always)]
    fn subtracts() -> bool {
        false
    }

    /// Whether the participant that sits in this slot with this life word has certainly
    /// ended, by another source than D1.
    fn has_ended(segment: &Self::Segment, slot: u32, life: Life) -> bool;

    /// Whether the participant that sits in this slot with this life word is the calling
    /// thread, which may have come to the segment by several ways, as several participants.
    fn is_caller(_segment: &Self::Segment, _slot: u32, _life: Life) -> bool {
        false
    }

    /// A sleeper that nobody woke has found what it slept for: its wake-up went to somebody who
    /// had no business there, or nowhere. The machine may have sleepers look again sooner.
    fn missed() {}

    /// Where the caller is in its program, with all that it has read so far. For a
    /// model checker; nothing elsewhere.
    #[inline(always)]
    fn here() -> u64 {
        0
    }

    /// Of all that the caller has read since it was [`here`](Self::here), only `kept`
    /// matters to what it will do: a model checker then knows that it is where it was.
    #[inline(always)]
    #[track_caller]
    fn turn(_here: u64, _kept: u64) {}
}

/// What [`Robust::add_and_wake`] can add.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Addend {
    /// 1.
    One,
    /// 2^30.
    Doorbell,
}
