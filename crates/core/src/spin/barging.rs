//! Being barged past: a waiter finds out that others take the lock again and again.
//!
//! # Role
//! A waiter cannot get a lock that is taken again as soon as it is released by looking at it now
//! and then, nor by asking its releases for a wake-up: the woken thread finds it taken. Both
//! cost the owner more than a short section does: its cache line, slow unlocks, a system call
//! for each wake-up. A waiter that sees this happen *backs off*: it sleeps by a timer of its own
//! (`sleep/backoff.rs`), and the lock knows nothing of it. So few threads at a time use the
//! lock, as fast as one that nobody contends for, and the others come back one by one.
//!
//! # Protocol
//! ```text
//!   look:  taken ──▶ set *unreleased* ──▶ next look
//!                                          ├─ free                       take it
//!                                          ├─ unreleased, same owner     held all the while
//!                                          └─ else                       barged past: count
//! ```
//! Any release erases *unreleased*. A wake-up whose lock is taken by then counts as well. After
//! [`Policy::BACKOFF_AFTER`] of them a spinner leaves, and a waiter backs off before it looks
//! again. If the lock was not released during the back-off sleep, the section is long, and the
//! waiter waits in the usual way.
//!
//! A waiter that asks for a wake-up sleeps on a word that names the owner. Where the lock changes
//! hands faster than a thread gets to sleep, the system refuses each such sleep, and all waiters
//! would spin inside it, for a lock of its own. So one whose sleep was refused backs off at once
//! ([`Policy::backs_off_refused`]), and asks for a wake-up again after that.
//!
//! # Invariants
//! - **BARGING-HINT** *unreleased* ⇒ the lock is held. Nothing else is concluded from its
//!   presence, and nothing that a lock relies on from its absence.
//! - **BARGING-NO-DUTY** A waiter that backs off has no wake-up to pass on, and the lock is not
//!   told that it sleeps. To the lock it is a thread that was preempted, so that a back-off
//!   sleep cannot lose a wake-up.
//!
//! # Progress
//! A back-off sleep ends before the waiter may insist on the lock (`sleep/`): the bound on
//! waiting is the same with it and without.
//!
//! # Source
//! Fewer threads at a lock than there are: Johnson, Stoica, Ailamaki and Mowry, "Decoupling
//! contention management from scheduling" (2010); Dice, "Malthusian locks" (2017), which have
//! the releaser choose the thread that rests. Here the waiter finds out, and the release is not told.

use crate::exchange::exchange;
use crate::platform::Platform;
use crate::policy::Policy;
use crate::word::{Subject, Word};
use core::marker::PhantomData;

/// The state of a waiter that counts how often it was barged past.
pub(crate) struct Barging<P: Platform, K: Subject, Y: Policy> {
    count: u32,
    /// Whether the last sleep that asked for a wake-up was refused, and no back-off sleep came since.
    refused: bool,
    /// The owner at the time at which this waiter set *unreleased*; 0: it has not.
    marked: u32,
    /// Looks left before this waiter first sets *unreleased*.
    looks: u32,
    world: PhantomData<(P, K, Y)>,
}

impl<P: Platform, K: Subject, Y: Policy> Barging<P, K, Y> {
    /// Begins with a waiter that has seen nothing yet.
    pub(crate) fn new() -> Self {
        let looks = Y::LOOKS_BEFORE_MARK;
        Barging { count: 0, refused: false, marked: 0, looks, world: PhantomData }
    }

    /// Takes note of a spinner's look that found the lock taken. Returns true if it is no use to
    /// go on.
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
        // If the exchange fails nothing is set: the next look tries again.
        let marked = exchange::<P, K>(word, seen, seen.with_unreleased());
        self.marked = if marked.is_ok() { seen.subject() } else { 0 };
        false
    }

    /// Counts that others took the lock before this waiter.
    pub(crate) fn barged_past(&mut self) {
        self.count += u32::from(Self::BACKS_OFF);
    }

    /// Takes note of a sleep that asked for a wake-up: whether it was `refused`, for the word had
    /// changed.
    pub(crate) fn asked(&mut self, refused: bool) {
        self.refused = refused && K::OWNED && Y::backs_off_refused(P::processors());
    }

    /// Tells whether the waiter has to back off: it was barged past often enough, or refused a sleep.
    pub(crate) fn is_enough(&self) -> bool {
        self.refused || Self::BACKS_OFF && self.count >= Y::BACKOFF_AFTER
    }

    /// Returns how often others took the lock before this waiter.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Takes note, after a back-off sleep, of what the word says about the time since it was
    /// `marked`.
    pub(crate) fn slept(&mut self, marked: Word, seen: Word) {
        self.refused = false;
        if seen.unreleased() && seen.subject() == marked.subject() {
            self.count = 0;
        } else {
            self.barged_past();
        }
    }

    /// Whether waiters that are barged past back off. They do not for a semaphore: no word names the
    /// thread that would release it.
    const BACKS_OFF: bool = K::OWNED && Y::BACKOFF_AFTER != 0;
}
