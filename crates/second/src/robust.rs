//! This checker's machine as a [`RobustMachine`] platform of the core.

use crate::place::Place;
use crate::watch::{self, SleepEnded};
use crate::world::world;
use crate::{Model, U32, death};
use lockstead_core::robust::life::{LIFE_NUMBER, Life};
use lockstead_core::robust::{Addend, RobustMachine, WatchedWord, Woken};
use lockstead_core::{WaitBounds, WaitOutcome};
use std::ptr::NonNull;

impl RobustMachine for Model {
    type Segment = ();
    const MOST_WATCHES: usize = 7;
    const SPINS: u32 = 0;
    // Nobody else sees it: it is as being slow.
    const REST: Option<u64> = None;

    fn rest(_nanos: u64) -> Woken {
        Woken::Changed
    }

    fn trust() -> Option<u64> {
        world().config.trust
    }

    fn patience() -> u64 {
        world().config.patience
    }

    fn subtracts() -> bool {
        world().config.subtracts
    }

    #[track_caller]
    fn wait_any(watches: &[WatchedWord<'_, Self>], how: &WaitBounds<'_, Self>) -> Woken {
        let cancels = usize::from(how.cancel.is_some());
        match watch::wait_any(watches, how) {
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

    #[expect(
        clippy::not_unsafe_ptr_arg_deref,
        reason = "a scenario gives the words of its shared value"
    )]
    fn wake_shared(word: *const U32, count: u32) -> u32 {
        // SAFETY: the words of a scenario's shared value stay until its threads have ended, and
        // scenarios of shared locks free none of them.
        watch::wake_shared(Place::narrow(unsafe { &*word }), count)
    }

    #[track_caller]
    fn add_and_wake(word: &U32, add: Addend, count: u32) {
        let add = match add {
            Addend::One => 1,
            Addend::Doorbell => 1 << 30,
        };
        watch::add_and_wake(word, add, count);
    }

    fn at_death_wake(word: Option<NonNull<U32>>) -> Option<NonNull<U32>> {
        death::at_death_wake(word)
    }

    fn defer_wake(word: &U32) -> bool {
        death::defer_wake(word)
    }

    fn has_ended(_segment: &(), _slot: u32, life: Life) -> bool {
        death::has_ended(life.life() & LIFE_NUMBER)
    }
}
