//! Being passed by, and what a waiter does about it.
//!
//! # Role
//! A lock that is taken again as soon as it is released cannot be had by looking at it
//! every now and then, nor by asking its releases for a wake-up: who wakes up finds it
//! taken. Both cost whoever has it more than its section does, if that is short: the
//! line, the heat of the word, a system call for each wake-up. A waiter that sees this
//! happen *naps*: it sleeps by a timer of its own, and the lock knows nothing of it. So
//! few threads at a time use the lock, at the speed of a lock that nobody disputes, and
//! the others come back one after the other.
//!
//! # Protocol
//! Marking: M in the low half, by a compare-exchange, over whatever else is there. Any
//! release erases it. At the next look the word is free; or M and the owner are the
//! same, and the lock was held all the while; or it was released and is taken again: a
//! *miss*. A wake-up whose lock is taken by then is a miss as well. After
//! [`Policy::BACKOFF_AFTER`] of them a spinner leaves, and a waiter naps before it looks again.
//! A lock that was not released during a nap is waited for in the usual way.
//!
//! # Invariants
//! - M ⇒ the lock is held. Nothing else is concluded from its presence, and nothing
//!   that a lock relies on from its absence.
//! - A waiter owes nothing when it naps, and the lock is not told that it sleeps. To it
//!   a napper is a thread that was preempted: naps cannot lose a wake-up.
//!
//! # Progress
//! A nap ends before the waiter may insist on the lock (`sleep/`), so that the bound on
//! waiting is the same with naps and without.
//!
//! # Source
//! Fewer threads at a lock than there are: Johnson, Stoica, Ailamaki and Mowry,
//! "Decoupling contention management from scheduling" (2010); Dice, "Malthusian locks"
//! (2017), which have the releaser choose who rests. Here who waits finds out, and the
//! release is not told.

use crate::exchange::exchange;
use crate::platform::Platform;
use crate::policy::Policy;
use crate::word::{Subject, Word};
use core::marker::PhantomData;

/// What a waiter knows of being passed by.
pub(crate) struct Barging<P: Platform, K: Subject, Y: Policy> {
    count: u32,
    /// The owner beside the mark that this waiter has set; 0: it has set none.
    marked: u32,
    /// Looks left before the first mark.
    looks: u32,
    world: PhantomData<(P, K, Y)>,
}

impl<P: Platform, K: Subject, Y: Policy> Barging<P, K, Y> {
    /// Of a waiter that has seen nothing yet.
    pub(crate) fn new() -> Self {
        Barging { count: 0, marked: 0, looks: Y::LOOKS_BEFORE_MARK, world: PhantomData }
    }

    /// A spinner's look that found the lock taken: true when it is no use to go on.
    pub(crate) fn looked(&mut self, word: &P::U64, seen: Word) -> bool {
        if !Self::BACKS_OFF || K::available(seen) {
            return false;
        }
        if let Some(looks) = self.looks.checked_sub(1) {
            self.looks = looks;
            return false;
        }
        if seen.unreleased() && seen.subject() == self.marked {
            return false;
        }
        self.count += u32::from(self.marked != 0);
        if self.is_enough() {
            return true;
        }
        // A mark that fails is none: the next look tries again.
        let marked = exchange::<P, K>(word, seen, seen.with_unreleased());
        self.marked = if marked.is_ok() { seen.subject() } else { 0 };
        false
    }

    /// A wake-up came too late.
    pub(crate) fn barged_past(&mut self) {
        self.count += u32::from(Self::BACKS_OFF);
    }

    /// Whether it has happened often enough for a nap.
    pub(crate) fn is_enough(&self) -> bool {
        Self::BACKS_OFF && self.count >= Y::BACKOFF_AFTER
    }

    /// How often it has happened.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// After a nap: what the word says of the time since it was `marked`.
    pub(crate) fn slept(&mut self, marked: Word, seen: Word) {
        if seen.unreleased() && seen.subject() == marked.subject() {
            self.count = 0;
        } else {
            self.barged_past();
        }
    }

    /// Of a semaphore nobody knows who would release it, or whether anybody will.
    const BACKS_OFF: bool = K::OWNED && Y::BACKOFF_AFTER != 0;
}
