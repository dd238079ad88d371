//! A model of etcd, of a network that loses, repeats and delays, and of clients that come, wait, give up,
//! are paused and die; in it the protocol that ships is explored by seeds. Tests only.
//!
//! What is asserted is in [`world`]; [`Broken`] lists the wrong steps that must be caught.

mod etcd;
mod parts;
mod world;

use crate::wrong::{Broken, with};
use parts::{Mix, Seen};
use world::World;

/// Explores so many seeds; returns the first violation, with its seed.
fn explore(mix: Mix, seeds: u64) -> Result<Seen, String> {
    let mut seen = Seen::default();
    for seed in 0..seeds {
        let mut world = World::new(mix, seed);
        world.run().map_err(|why| format!("{mix:?}, seed {seed}: {why}"))?;
        seen.add(&world.seen);
    }
    Ok(seen)
}

/// Asserts that the wrong step leads to a violation that says `what`.
fn caught(step: Broken, mix: Mix, what: &str) {
    let outcome = with(step, || explore(mix, 20_000));
    match outcome {
        Err(why) => assert!(why.contains(what), "{step:?} was caught otherwise: {why}"),
        Ok(seen) => panic!("{step:?} was not caught: {seen:?}"),
    }
}

#[test]
fn the_protocol_holds_under_losses_copies_pauses_and_deaths() {
    for mix in [Mix::Mutex, Mix::Readers, Mix::Permits] {
        let seen = explore(mix, 6_000).unwrap_or_else(|why| panic!("{why}"));
        // What was not seen was not tried.
        let all = [seen.entered, seen.copies, seen.expired, seen.given_up];
        assert!(all.iter().all(|number| *number > 1_000), "{mix:?}: {seen:?}");
        if mix != Mix::Permits {
            assert!(seen.told_of_death > 300, "{mix:?}: {seen:?}");
        }
    }
}

#[test]
fn a_wrong_end_of_a_range_is_caught() {
    caught(Broken::WrongRangeEnd, Mix::Mutex, "not first");
}

#[test]
fn a_waiter_that_does_not_look_again_is_caught() {
    caught(Broken::NoLookAfterWait, Mix::Mutex, "");
}

#[test]
fn a_claim_without_its_place_is_caught() {
    caught(Broken::NoConfirmation, Mix::Mutex, "no place");
}

#[test]
fn an_own_mark_taken_for_a_dead_owners_is_caught() {
    caught(Broken::OwnMarkForDead, Mix::Mutex, "nobody died");
}

#[test]
fn a_late_copy_that_takes_a_place_is_caught() {
    caught(Broken::NoVoid, Mix::Mutex, "");
}

#[test]
fn a_release_in_two_steps_is_caught() {
    caught(Broken::HeldSeparately, Mix::Mutex, "");
}

#[test]
fn a_repeated_release_taken_for_a_loss_is_caught() {
    caught(Broken::RetriedReleaseLost, Mix::Mutex, "told that it was lost");
}

#[test]
fn a_holder_that_does_not_look_at_the_clock_is_caught() {
    caught(Broken::NoClock, Mix::Mutex, "believe");
}

#[test]
fn a_deadline_from_the_answer_is_caught() {
    caught(Broken::DeadlineFromAnswer, Mix::Mutex, "believe");
}
