//! The biased mutex with one line broken (see `build/biased.rs`): the models notice. Each
//! scenario passes with the core as it ships.

#[macro_use]
mod common;
#[macro_use]
mod broken_cores;

use lockstead_model::{Cell, Config, Kind, Membarrier, Model, Ordering, Scenario, U32, freed};
use std::panic::Location;

cores!(
    biased_revokes_without_a_fence,
    biased_owner_looks_no_second_time,
    biased_owner_looks_before_it_says_so,
    biased_revoker_looks_before_the_fence,
    biased_revoker_waits_for_nobody,
    biased_revoker_believes_without_a_fence,
    biased_revoker_looks_no_second_time,
    biased_owner_that_backs_out_stays_in,
    biased_lock_is_plain_before_the_owner_has_left,
    biased_one_that_gives_up_keeps_the_inner_mutex,
    biased_release_looks_again,
    biased_owner_is_made_beside_the_inner_mutex,
    biased_owner_takes_it_twice,
);

macro_rules! lock {
    ($core:ident) => {
        $core::biased::RawBiased::<Model, $core::hooks::Off, $core::policies::Sleeps>::new()
    };
}

/// Takes the lock, adds, in two steps between which others go on, and releases.
macro_rules! add {
    ($shared:expr) => {{
        let (lock, count, pulse) = $shared;
        let hold = lock.lock(Location::caller()).expect("not recursive");
        let before = count.get();
        pulse.load(Ordering::Relaxed);
        count.set(before + 1);
        // SAFETY: locked above, so.
        unsafe { lock.unlock(hold) };
    }};
}

/// One takes it twice, another once.
macro_rules! two {
    ($core:ident) => {
        Scenario::new(|| (lock!($core), Cell::new(0), U32::ZERO))
            .thread(|shared| {
                add!(shared);
                add!(shared);
            })
            .thread(|shared| add!(shared))
    };
}

/// The same, and one that gives up.
macro_rules! two_and_a_timed_one {
    ($core:ident) => {
        two!($core).thread(|(lock, count, _)| {
            use $core::platform::{Nanos, Wait};
            let how = || Wait { deadline: Some(Nanos(100)), ..Wait::FOREVER };
            if let Ok(hold) = lock.lock_lazily(how, 0, Location::caller()) {
                count.set(count.get() + 1);
                // SAFETY: locked above, so.
                unsafe { lock.unlock(hold) };
            }
        })
    };
}

/// One that has it comes back when the other one has asked for it.
macro_rules! owner_comes_back {
    ($core:ident) => {
        Scenario::new(|| (lock!($core), Cell::new(0), U32::ZERO))
            .thread(|shared| {
                add!(shared);
                add!(shared);
                while shared.0.belongs_to().is_some() {
                    <Model as lockstead_core::Platform>::relax();
                }
                add!(shared);
            })
            .thread(|shared| {
                while shared.0.belongs_to().is_none() {
                    <Model as lockstead_core::Platform>::relax();
                }
                add!(shared);
            })
    };
}

macro_rules! last_frees {
    ($core:ident) => {
        Scenario::new(|| (lock!($core), Cell::new(2))).threads(2, |(lock, left)| {
            let hold = lock.lock(Location::caller()).expect("not recursive");
            left.set(left.get() - 1);
            let last = left.get() == 0;
            // SAFETY: locked above, so.
            unsafe { lock.unlock(hold) };
            if last {
                freed(lock);
            }
        })
    };
}

/// A thread that holds it takes it again.
macro_rules! twice {
    ($core:ident) => {
        Scenario::new(|| (lock!($core), Cell::new(0), U32::ZERO)).thread(|(lock, _, _)| {
            for _ in 0..2 {
                let hold = lock.lock(Location::caller()).expect("not recursive");
                let again = lock.lock(Location::caller());
                assert!(again.is_err(), "it has it already");
                // SAFETY: locked above, so.
                unsafe { lock.unlock(hold) };
            }
        })
    };
}

fn small() -> Config {
    Config::new().rescue(true).spurious(0).slow_unlocks(0).preemptions(2).stale_reads(1)
}

#[test]
fn model_biased_misses_broken_looks() {
    missed!(two, biased_revokes_without_a_fence, Kind::Race, small());
    missed!(two, biased_owner_looks_no_second_time, Kind::Race, small());
    missed!(two, biased_owner_looks_before_it_says_so, Kind::Race, small());
    missed!(two, biased_revoker_looks_before_the_fence, Kind::Race, small().preemptions(3));
    missed!(two, biased_revoker_waits_for_nobody, Kind::Race, small());
    missed!(two, biased_owner_is_made_beside_the_inner_mutex, Kind::Race, small());
    missed!(twice, biased_owner_takes_it_twice, Kind::Panic(_), small());
}

#[test]
fn model_biased_misses_trust_where_fences_are_denied() {
    let denied = small().membarrier(Membarrier::Denied).preemptions(3);
    missed!(owner_comes_back, biased_revoker_believes_without_a_fence, Kind::Race, denied);
}

#[test]
fn model_biased_misses_sleep_without_end() {
    missed!(two, biased_revoker_looks_no_second_time, Kind::Deadlock, small());
    missed!(two, biased_owner_that_backs_out_stays_in, _, small());
}

#[test]
fn model_biased_misses_broken_surrender() {
    let late = small().jumps(1, 1000);
    missed!(two_and_a_timed_one, biased_one_that_gives_up_keeps_the_inner_mutex, _, late);
    missed!(two_and_a_timed_one, biased_lock_is_plain_before_the_owner_has_left, Kind::Race, late);
}

#[test]
fn model_biased_misses_a_touch_after_the_release() {
    missed!(last_frees, biased_release_looks_again, Kind::UseAfterFree, small());
}
