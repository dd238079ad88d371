//! What a machine must offer beyond [`Platform`] for locks that survive their holders.
//!
//! # Role
//! Such locks lie in memory that several processes map. A participant may end between any two
//! of its steps, and nothing of its own runs then. The machine tells the others.
//!
//! # Invariants
//! The platform keeps all of them.
//!
//! - **DEATH-MARK** When a participant ends, the machine sets the low half of its
//!   [life word](super::life) to [`LIFE_DEAD`](super::life::LIFE_DEAD) and then wakes one of
//!   those that sleep on that half. It does so after everything the participant has written,
//!   and after the participant has left all queues of sleepers.
//! - **DEATH-NAMED-WORD** If the participant had [named](RobustMachine::at_death_wake) a word whose
//!   lower 30 bits are zero, the machine then wakes one of those that sleep on that word.
//! - **DEATH-WAIT-ORDER** [`RobustMachine::wait_any`] queues at the words in their order and
//!   compares each when it queues there, in one step with respect to wake-ups at that word. It
//!   reports the *last* of the words at which it was woken.
//! - **DEATH-LOST-WAKE** A participant that ends in [`RobustMachine::wait_any`] may have been woken
//!   at any of the words; that wake-up is lost.
//! - **DEATH-BY-ADDRESS** A wake-up takes an address and does not read the memory there.

use super::awaited::RobustWait;
use super::life::Life;
use super::outcome::RobustError;
use crate::platform::{Platform, WaitBounds};
use core::ptr::NonNull;

/// One of the words that a thread sleeps on at once, with the value expected there.
pub enum WatchedWord<'a, P: Platform> {
    /// A word at which wake-ups end the sleep.
    Word(&'a P::U32, u32),
    /// The low half of a word, at which wake-ups end the sleep.
    Low(&'a P::U64, u32),
    /// The high half of a word, which is only compared: no wake-up there ends the sleep.
    High(&'a P::U64, u32),
    /// A word that is only compared: no wake-up there ends the sleep.
    Seen(&'a P::U32, u32),
}

impl<P: Platform> Clone for WatchedWord<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Platform> Copy for WatchedWord<'_, P> {}

/// How a call to [`RobustMachine::wait_any`] ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// Somebody woke the sleeper at the word with this index, the last one if there were
    /// several. Never spurious where the machine can tell.
    At(usize),
    /// One of the words did not hold what was expected; or there was no reason.
    Changed,
    /// Nobody woke the sleeper for as long as it relies on being woken: it is to look again.
    Unsure,
    /// The deadline was reached.
    TimedOut,
    /// A signal handler ran.
    Interrupted,
    /// Somebody set the cancellation word.
    Cancelled,
    /// The caller is not the participant that fell asleep but a copy of it, which a signal
    /// handler made by forking. It must do nothing in the name of the participant, also if it has
    /// become another participant meanwhile.
    Copied,
}

/// A machine on which locks survive their holders. It keeps the invariants of this module.
pub trait RobustMachine: Platform {
    /// What the platform needs to know of a segment beyond its words.
    type Segment: 'static;

    /// Sleeps while all words hold what is expected of them, at most
    /// [`MOST_WATCHES`](Self::MOST_WATCHES) of them.
    fn wait_any(watches: &[WatchedWord<'_, Self>], how: &WaitBounds<'_, Self>) -> Woken;

    /// The number of words that [`wait_any`](Self::wait_any) can watch.
    const MOST_WATCHES: usize;

    /// Wakes up to `count` of those that sleep on a word shared by processes, the
    /// longest asleep first; returns how many. The address may dangle (DEATH-BY-ADDRESS).
    fn wake_shared(word: *const Self::U32, count: u32) -> u32;

    /// Adds to a word, wrapping, and wakes `count` of those that sleep on it. A participant
    /// that ends meanwhile has done both or neither.
    fn add_and_wake(word: &Self::U32, add: Addend, count: u32);

    /// Names `word` until the next call: should the calling participant end, the machine wakes
    /// one of those that sleep there (DEATH-NAMED-WORD). `None` names nothing. Returns what was
    /// named before; whoever names a word names that again afterwards.
    fn at_death_wake(word: Option<NonNull<Self::U32>>) -> Option<NonNull<Self::U32>>;

    /// Has the machine treat `word` as [named](Self::at_death_wake) while the caller owns a lock of
    /// the word's segment and has named nothing (DEATH-NAMED-WORD). Returns false if the machine
    /// does not promise that.
    fn defer_wake(word: &Self::U32) -> bool;

    /// How long a waiter [rests](Self::rest), in nanoseconds; `None`: it never does.
    const REST: Option<u64>;

    /// Does nothing for about so many nanoseconds.
    fn rest(nanos: u64) -> Woken;

    /// Returns how long a sleeper relies on DEATH-MARK before it asks
    /// [`has_ended`](Self::has_ended), in nanoseconds; `None`: it never asks.
    fn trust() -> Option<u64>;

    /// How often a waiter looks at the lock before it sleeps.
    const SPINS: u32;

    /// Returns how long a waiter lets others barge past before it has the lock reserved for itself,
    /// in nanoseconds. All participants wait as long, but in models.
    #[inline(always)]
    fn patience() -> u64 {
        5_000_000
    }

    /// Tells whether this processor does a load and a subtraction faster than a
    /// compare-exchange, right behind another locked instruction.
    #[inline(always)]
    fn subtracts() -> bool {
        false
    }

    /// Tells whether the participant that has this slot with this life word has certainly
    /// ended, by another source than DEATH-MARK.
    fn has_ended(segment: &Self::Segment, slot: u32, life: Life) -> bool;

    /// Tells whether the participant that has this slot with this life word is the calling
    /// thread, which may have come to the segment by several ways, as several participants.
    fn is_caller(_segment: &Self::Segment, _slot: u32, _life: Life) -> bool {
        false
    }

    /// Tells an observer of the process that the caller is about to wait. Returns whether one has taken
    /// note: only then the caller calls [`shared_wait_ends`](Self::shared_wait_ends) afterwards. A
    /// machine without observers returns false.
    #[inline(always)]
    fn shared_wait_begins(_wait: &RobustWait) -> bool {
        false
    }

    /// Tells the observer, which has taken note of the beginning, that the same wait has ended: with
    /// what it was for, or with this error.
    #[inline(always)]
    fn shared_wait_ends(_wait: &RobustWait, _error: Option<RobustError>) {}

    /// Notes that a sleeper which nobody woke has found what it slept for: its wake-up went to
    /// somebody who had no business there, or nowhere. The machine may have sleepers look again
    /// sooner.
    fn missed() {}

    /// Tells a model checker where the caller is in its program, with all that it has read so
    /// far; does nothing elsewhere.
    #[inline(always)]
    fn here() -> u64 {
        0
    }

    /// Tells a model checker that of all that the caller has read since it was
    /// [`here`](Self::here) only `kept` matters to what it will do.
    #[inline(always)]
    #[track_caller]
    fn turn(_here: u64, _kept: u64) {}
}

/// What [`RobustMachine::add_and_wake`] can add to a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Addend {
    /// The number 1, to a word that counts.
    One,
    /// The number 2^30, to a doorbell: its lower 30 bits stay zero (DEATH-NAMED-WORD).
    Doorbell,
}

/// Names again what the caller had named before a wait with this outcome. A copy of the participant
/// has named nothing, and does not begin to: what the participant had named is not the copy's.
#[inline]
pub(super) fn name_again<P: RobustMachine, T>(
    named: Option<NonNull<P::U32>>,
    outcome: &Result<T, RobustError>,
) {
    if !matches!(outcome, Err(RobustError::Copied)) {
        P::at_death_wake(named);
    }
}

/// Waits by `by`, and tells the machine's observer when that begins and how it ends.
///
/// # Errors
/// Returns the error of `by`, of which the observer is told.
#[inline]
pub(super) fn telling<P: RobustMachine, T>(
    wait: &RobustWait,
    by: impl FnOnce() -> Result<T, RobustError>,
) -> Result<T, RobustError> {
    let is_told = P::shared_wait_begins(wait);
    let ended = by();
    if is_told {
        P::shared_wait_ends(wait, ended.as_ref().err().copied());
    }
    ended
}
