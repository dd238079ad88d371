//! Policies that leave an ingredient of spinning out, for those who measure what
//! it is worth: the locks hold without it, too.

use crate::common::{Leaves, Mixed, Spins, depth};
use lockstead_core::policy::{Cover, Policy, Queue, ReadFirst, Without};
use lockstead_core::word::Word;
use lockstead_core::{Off, RawMutex, TunedSemaphore};
use lockstead_model::{Cell, Config, Coverage, Model, Scenario};
use std::panic::Location;

/// Shows that nothing races, is lost or left behind where each thread adds once.
fn mutex<Y: Policy>(name: &str, threads: usize, config: &Config) -> Coverage {
    Scenario::new(|| (RawMutex::<Model, Off, Y>::new(), Cell::new(0)))
        .threads(threads, |(lock, count)| {
            lock.lock(Location::caller()).expect("not held by this thread");
            count.set(count.get() + 1);
            // SAFETY: this thread has locked it above.
            unsafe { lock.unlock() };
        })
        .after(move |(lock, count)| {
            assert_eq!(count.get(), threads as u32);
            assert_eq!(lock.peek().without_slow_unlocks(), Word::IDLE);
        })
        .verify(name, config)
        .coverage
}

/// Does the same with a semaphore of one permit.
fn semaphore<Y: Policy>(name: &str, threads: usize, config: &Config) -> Coverage {
    let new = || (TunedSemaphore::<Model, Off, Y>::new(1).expect("a permit"), Cell::new(0));
    Scenario::new(new)
        .threads(threads, |(lock, count)| {
            lock.down(Location::caller());
            count.set(count.get() + 1);
            lock.up().expect("room for a permit");
        })
        .after(move |(lock, count)| {
            assert_eq!(count.get(), threads as u32);
            assert_eq!(lock.permits(), 1);
        })
        .verify(name, config)
        .coverage
}

/// Checks both kinds: two threads in full, three as far as is quick.
fn both<Y: Policy>(name: &str) {
    let two = Config::new().jumps(1, 1000);
    assert_eq!(mutex::<Y>(&format!("mutex, {name}, 2 threads"), 2, &two), Coverage::Complete);
    let coverage = semaphore::<Y>(&format!("semaphore, {name}, 2 threads"), 2, &two);
    assert_eq!(coverage, Coverage::Complete);
    let three = Config::new().processors(4).preemptions(depth(1, 2)).stale_reads(depth(1, 2));
    mutex::<Y>(&format!("mutex, {name}, 3 threads"), 3, &three);
    semaphore::<Y>(&format!("semaphore, {name}, 3 threads"), 3, &three);
}

#[test]
fn model_spinning_in_a_crowd() {
    both::<Without<Queue, Spins>>("in a crowd, spinning");
    both::<Without<Queue, Leaves>>("in a crowd, leaving");
}

#[test]
fn model_looking_by_exchange() {
    both::<Without<ReadFirst, Spins>>("looking by exchange, spinning");
}

#[test]
fn model_spinners_cover_nobody() {
    both::<Without<Cover, Leaves>>("covering nobody, leaving");
    both::<Without<Cover, Mixed>>("covering nobody, mixed");
}

#[test]
fn model_without_all_three() {
    both::<Without<Queue, Without<ReadFirst, Without<Cover, Leaves>>>>(
        "without all three, leaving",
    );
}
