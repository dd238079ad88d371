//! The model as a [`RobustMachine`] platform of the core.

use crate::config::Fault;
use crate::engine::{self, MOST_WATCHES, has_ended, with};
use crate::watch::{self, SleepEnded, WatchedLocation};
use crate::{Model, U32};
use lockstead_core::robust::life::{LIFE_NUMBER, Life};
use lockstead_core::robust::{Addend, RobustMachine, WatchedWord, Woken};
use lockstead_core::{WaitBounds, WaitOutcome};
use std::panic::Location;
use std::ptr::NonNull;

/// Returns how the cancellation word of a wait is watched.
fn cancelling(word: &U32) -> WatchedLocation<'_> {
    WatchedLocation { atom: &word.atom, shift: 0, expected: 0, queues: true }
}

fn watched<'a>(watch: &WatchedWord<'a, Model>) -> WatchedLocation<'a> {
    let (atom, shift, expected, queues) = match *watch {
        WatchedWord::Word(word, expected) => (&word.atom, 0, expected, true),
        WatchedWord::Low(word, expected) => (&word.atom, 0, expected, true),
        WatchedWord::High(word, expected) => (&word.atom, 32, expected, false),
        WatchedWord::Seen(word, expected) => (&word.atom, 0, expected, false),
    };
    WatchedLocation { atom, shift, expected, queues }
}

impl RobustMachine for Model {
    type Segment = ();
    // One is for the cancellation word.
    const MOST_WATCHES: usize = MOST_WATCHES - 1;
    const SPINS: u32 = 0;
    // Nobody else sees it: it is as being slow.
    const REST: Option<u64> = None;

    fn rest(_nanos: u64) -> Woken {
        Woken::Changed
    }

    fn trust() -> Option<u64> {
        with(|engine| engine.config.trust)
    }

    fn patience() -> u64 {
        with(|engine| engine.config.patience)
    }

    fn subtracts() -> bool {
        with(|engine| engine.config.subtracts)
    }

    #[track_caller]
    fn wait_any(watches: &[WatchedWord<'_, Self>], how: &WaitBounds<'_, Self>) -> Woken {
        let site = Location::caller();
        // As on Linux the cancellation word comes first: to have been woken there hides no
        // other wake-up.
        let cancels = usize::from(how.cancel.is_some());
        let at = |at: usize| match how.cancel {
            Some(cancel) if at == 0 => cancelling(cancel),
            _ => watched(&watches[(at - cancels).min(watches.len() - 1)]),
        };
        // No allocation: a thread that is killed here frees nothing.
        let words: [_; MOST_WATCHES] = std::array::from_fn(at);
        let first_only = with(|engine| engine.config.fault == Some(Fault::FirstWordOnly));
        let watched = if first_only { 1 } else { watches.len() };
        let words = &words[..watched + cancels];
        let deadline = how.deadline.map(|deadline| deadline.0);
        match watch::wait_any(words, deadline, how.interruptible, site) {
            SleepEnded::At(index) => match index.checked_sub(cancels) {
                Some(index) => Woken::At(index),
                None if how.cancelled() => Woken::Cancelled,
                None => Woken::Changed,
            },
            SleepEnded::As(WaitOutcome::TimedOut) => Woken::TimedOut,
            SleepEnded::As(WaitOutcome::Interrupted) => Woken::Interrupted,
            SleepEnded::As(_) => Woken::Changed,
        }
    }

    #[track_caller]
    fn wake_shared(word: *const U32, count: u32) -> u32 {
        watch::wake_shared(word.addr(), count, Location::caller())
    }

    #[track_caller]
    fn add_and_wake(word: &U32, add: Addend, count: u32) {
        let add = match add {
            Addend::One => 1,
            Addend::Doorbell => 1 << 30,
        };
        watch::add_and_wake(word, add, count, Location::caller());
    }

    #[track_caller]
    fn at_death_wake(word: Option<NonNull<U32>>) -> Option<NonNull<U32>> {
        // SAFETY: the core, which names the word, keeps it where it is until it names another
        // (DEATH-NAMED-WORD).
        let word = word.map(|word| unsafe { &*word.as_ptr() });
        let named = watch::at_death_wake(word, Location::caller());
        named.and_then(|named| NonNull::new(named.cast_mut()))
    }

    #[track_caller]
    fn defer_wake(word: &U32) -> bool {
        watch::defer_wake(word, Location::caller())
    }

    #[track_caller]
    fn has_ended(_segment: &(), _slot: u32, life: Life) -> bool {
        has_ended(life.life() & LIFE_NUMBER, Location::caller())
    }

    fn here() -> u64 {
        engine::here()
    }

    #[track_caller]
    fn turn(here: u64, kept: u64) {
        engine::turn(here, kept, Location::caller());
    }
}
