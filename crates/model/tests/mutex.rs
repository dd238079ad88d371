//! The mutex: exclusion, no lost wake-up, under every policy.

mod common;

use common::{Insists, Leaves, Mixed, Passes, Sleeps, Spins, depth};
use lockstead_core::{Off, Policy, RawMutex};
use lockstead_model::{Cell, Config, Coverage, Model, Scenario, Stats};
use std::panic::Location;

type Mutex<Y> = RawMutex<Model, Off, Y>;

/// A counter under a lock.
struct Guarded<Y: Policy> {
    lock: Mutex<Y>,
    count: Cell<u32>,
}

impl<Y: Policy> Guarded<Y> {
    fn new() -> Self {
        Guarded { lock: Mutex::new(), count: Cell::new(0) }
    }

    fn add(&self) {
        self.lock.lock(Location::caller()).expect("not recursive");
        self.count.set(self.count.get() + 1);
        // SAFETY: locked above.
        unsafe { self.lock.unlock() };
    }
}

/// Each of `threads` adds `rounds` times; no execution races, loses an
/// addition or a wake-up, or leaves anything behind in the lock.
fn adds<Y: Policy>(name: &str, threads: usize, rounds: u32, config: &Config) -> Stats {
    Scenario::new(Guarded::<Y>::new)
        .threads(threads, move |g| {
            for _ in 0..rounds {
                g.add();
            }
        })
        .after(move |g| {
            assert_eq!(g.count.get(), threads as u32 * rounds);
            let word = g.lock.peek();
            assert!(word.owner().is_none() && !word.heir() && word.tail().is_none());
        })
        .verify(name, config)
}

#[test]
fn model_mutex_excludes_sleeping_2t() {
    let stats = adds::<Sleeps>("mutex, sleeping, 2 threads", 2, 2, &Config::new());
    assert_eq!(stats.coverage, Coverage::Complete);
}

#[test]
fn model_mutex_excludes_spinning_2t() {
    let config = Config::new().jumps(1, 1000);
    let stats = adds::<Spins>("mutex, spinning, 2 threads", 2, 1, &config);
    assert_eq!(stats.coverage, Coverage::Complete);
}

#[test]
fn model_mutex_excludes_leaving_2t() {
    let stats = adds::<Leaves>("mutex, leaving, 2 threads", 2, 1, &Config::new());
    assert_eq!(stats.coverage, Coverage::Complete);
}

#[test]
fn model_mutex_excludes_insisting_2t() {
    let config = Config::new().timeouts(1);
    let stats = adds::<Insists>("mutex, insisting, 2 threads", 2, 1, &config);
    assert_eq!(stats.coverage, Coverage::Complete);
}

#[test]
fn model_mutex_excludes_sleeping_3t() {
    let stats = adds::<Sleeps>("mutex, sleeping, 3 threads", 3, 1, &Config::new());
    assert_eq!(stats.coverage, Coverage::Complete);
}

#[test]
fn model_mutex_excludes_passing_3t() {
    let config = Config::new().jumps(1, 1000).processors(4).preemptions(depth(2, 4));
    adds::<Passes>("mutex, passing, 3 threads", 3, 1, &config);
}

#[test]
fn model_mutex_excludes_mixed_3t() {
    let config = Config::new().jumps(1, 1000).timeouts(1).processors(4).preemptions(depth(2, 3));
    adds::<Mixed>("mutex, mixed, 3 threads", 3, 1, &config);
}
