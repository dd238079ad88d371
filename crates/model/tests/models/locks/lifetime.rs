//! Release, then free: after the releasing atomic nobody touches the lock.
//!
//! The reference-count pattern: whoever drops the last reference, under the
//! lock, frees the lock, while the unlock of the one before it may still be
//! under way. Wake-ups go by address, and are no access.

use crate::common::{Insists, Leaves, Mixed, Passes, Sleeps, depth};
use lockstead_core::{Off, Policy, RawMutex};
use lockstead_model::{Cell, Config, Model, Scenario, Stats, freed};
use std::panic::Location;

struct Counted<Y: Policy> {
    lock: RawMutex<Model, Off, Y>,
    references: Cell<usize>,
}

fn released<Y: Policy>(name: &str, threads: usize, config: &Config) -> Stats {
    Scenario::new(move || Counted::<Y> { lock: RawMutex::new(), references: Cell::new(threads) })
        .threads(threads, |counted| {
            counted.lock.lock(Location::caller()).expect("not recursive");
            let left = counted.references.get() - 1;
            counted.references.set(left);
            // SAFETY: this thread has locked it above.
            unsafe { counted.lock.unlock() };
            if left == 0 {
                freed(counted);
            }
        })
        .verify(name, config)
}

#[test]
fn model_release_then_free_2t() {
    let stats = [
        released::<Sleeps>("free, sleeping, 2 threads", 2, &Config::new()),
        released::<Leaves>("free, leaving, 2 threads", 2, &Config::new()),
        released::<Insists>("free, insisting, 2 threads", 2, &Config::new().timeouts(2)),
        released::<Mixed>("free, mixed, 2 threads", 2, &Config::new().timeouts(1).jumps(1, 1000)),
    ];
    for stats in stats {
        stats.must_be_complete();
    }
}

#[test]
fn model_release_then_free_3t() {
    let config = Config::new().processors(4).preemptions(depth(2, 3)).stale_reads(depth(1, 2));
    released::<Sleeps>("free, sleeping, 3 threads", 3, &config);
    released::<Leaves>("free, leaving, 3 threads", 3, &config);
    released::<Insists>("free, insisting, 3 threads", 3, &config.clone().timeouts(1));
    let jumping = config.jumps(1, 1000).stale_reads(depth(0, 1)).spurious(0);
    released::<Passes>("free, passing, 3 threads", 3, &jumping);
}
