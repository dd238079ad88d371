//! The biased mutex with one step broken: the models notice.

use crate::common::Sleeps;
use lockstead_core::{Nanos, Off, Platform, RawBiased, WaitBounds};
use lockstead_model::{
    Cell, Config, FailureKind, Membarrier, Model, Ordering, Scenario, U32, freed,
};
use std::panic::Location;

/// A biased mutex, what it guards, and a word to look at in the middle of a section.
pub(super) struct Guarded {
    pub(super) lock: RawBiased<Model, Off, Sleeps>,
    pub(super) count: Cell<u32>,
    pulse: U32,
}

impl Guarded {
    pub(super) fn new() -> Self {
        Guarded { lock: RawBiased::new(), count: Cell::new(0), pulse: U32::ZERO }
    }

    /// Adds, in two steps between which others go on.
    pub(super) fn section(&self) {
        let before = self.count.get();
        self.pulse.load(Ordering::Relaxed);
        self.count.set(before + 1);
    }

    /// Takes the lock, adds, and releases.
    fn add(&self) {
        let hold = self.lock.lock(Location::caller()).expect("not recursive");
        self.section();
        // SAFETY: this thread locked it above, in the way that the hold says, and releases it once.
        unsafe { self.lock.unlock(hold) };
    }
}

/// Makes the scenario in which one thread takes it twice, another once.
pub(super) fn two() -> Scenario<Guarded> {
    Scenario::new(Guarded::new)
        .thread(|guarded| {
            guarded.add();
            guarded.add();
        })
        .thread(Guarded::add)
}

/// Makes the same scenario with one more thread that gives up.
fn two_and_a_timed_one() -> Scenario<Guarded> {
    two().thread(|guarded| {
        let how = || WaitBounds { deadline: Some(Nanos(100)), ..WaitBounds::FOREVER };
        if let Ok(hold) = guarded.lock.lock_lazily(how, 0, Location::caller()) {
            guarded.count.set(guarded.count.get() + 1);
            // SAFETY: this thread locked it above, in the way that the hold says, and releases it
            // once.
            unsafe { guarded.lock.unlock(hold) };
        }
    })
}

/// Makes the scenario in which the thread that has it comes back when the other one has asked for
/// it.
fn owner_comes_back() -> Scenario<Guarded> {
    Scenario::new(Guarded::new)
        .thread(|guarded| {
            guarded.add();
            guarded.add();
            while guarded.lock.belongs_to().is_some() {
                Model::relax();
            }
            guarded.add();
        })
        .thread(|guarded| {
            while guarded.lock.belongs_to().is_none() {
                Model::relax();
            }
            guarded.add();
        })
}

/// Makes the scenario in which each of two threads adds and the second one frees the lock after its
/// release.
fn last_frees() -> Scenario<Guarded> {
    Scenario::new(Guarded::new).threads(2, |guarded| {
        let hold = guarded.lock.lock(Location::caller()).expect("not recursive");
        guarded.count.set(guarded.count.get() + 1);
        let last = guarded.count.get() == 2;
        // SAFETY: this thread locked it above, in the way that the hold says, and releases it once.
        unsafe { guarded.lock.unlock(hold) };
        if last {
            freed(guarded);
        }
    })
}

/// Makes the scenario of a thread that holds it takes it again.
fn twice() -> Scenario<Guarded> {
    Scenario::new(Guarded::new).thread(|guarded| {
        for _ in 0..2 {
            let hold = guarded.lock.lock(Location::caller()).expect("not recursive");
            let again = guarded.lock.lock(Location::caller());
            assert!(again.is_err(), "it has it already");
            // SAFETY: this thread locked it above, in the way that the hold says, and releases it
            // once.
            unsafe { guarded.lock.unlock(hold) };
        }
    })
}

fn small() -> Config {
    Config::new().rescue(true).spurious(0).slow_unlocks(0).preemptions(2).stale_reads(1)
}

#[test]
fn model_biased_misses_broken_looks() {
    missed!(two(), biased_revokes_without_a_fence, FailureKind::Race, small());
    missed!(two(), biased_owner_looks_no_second_time, FailureKind::Race, small());
    missed!(two(), biased_owner_looks_before_it_says_so, FailureKind::Race, small());
    missed!(
        two(),
        biased_revoker_looks_before_the_fence,
        FailureKind::Race,
        small().preemptions(3)
    );
    missed!(two(), biased_revoker_waits_for_nobody, FailureKind::Race, small());
    missed!(two(), biased_owner_is_made_beside_the_inner_mutex, FailureKind::Race, small());
    missed!(twice(), biased_owner_takes_it_twice, FailureKind::Panic(_), small());
}

#[test]
fn model_biased_misses_trust_where_fences_are_denied() {
    let denied = small().membarrier(Membarrier::Denied).preemptions(3);
    missed!(owner_comes_back(), biased_revoker_believes_without_a_fence, FailureKind::Race, denied);
}

#[test]
fn model_biased_misses_sleep_without_end() {
    missed!(two(), biased_revoker_looks_no_second_time, FailureKind::Deadlock, small());
    missed!(two(), biased_owner_that_backs_out_stays_in, _, small());
}

#[test]
fn model_biased_misses_broken_surrender() {
    let late = small().jumps(1, 1000);
    missed!(two_and_a_timed_one(), biased_one_that_gives_up_keeps_the_inner_mutex, _, late);
    missed!(
        two_and_a_timed_one(),
        biased_lock_is_plain_before_the_owner_has_left,
        FailureKind::Race,
        late
    );
}

#[test]
fn model_biased_misses_a_touch_after_the_release() {
    missed!(last_frees(), biased_release_looks_again, FailureKind::UseAfterFree, small());
}
