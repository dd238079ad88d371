//! The queue of spinners: leaving at every step, being passed over, and nodes
//! that serve one lock after the other.

use crate::common::{Leaves, Mixed, Passes, Spins, depth};
use lockstead_core::word::Word;
use lockstead_core::{Nanos, Off, Platform, Policy, RawMutex, Slot, WaitBounds};
use lockstead_model::{Cell, Config, ExecutionEvent, FailureKind, Model, Scenario, Stats};
use std::panic::Location;

type Lock<Y> = RawMutex<Model, Off, Y>;

struct Two<Y: Policy> {
    locks: [(Lock<Y>, Cell<u32>); 2],
}

impl<Y: Policy> Two<Y> {
    fn new() -> Self {
        Two { locks: [const { (Lock::new(), Cell::new(0)) }; 2] }
    }

    fn add(&self, which: usize) {
        self.hold(which, || {});
    }

    /// Adds, and does `meanwhile` while it holds the lock.
    fn hold(&self, which: usize, meanwhile: impl FnOnce()) {
        let (lock, count) = &self.locks[which];
        lock.lock(Location::caller()).expect("not recursive");
        meanwhile();
        count.set(count.get() + 1);
        // SAFETY: this thread has locked it above.
        unsafe { lock.unlock() };
    }

    /// Asserts that nothing is left behind: locks are free, and no queue refers to a node (a slot
    /// can be claimed only then).
    fn clean(&self, threads: u32) {
        for (lock, _) in &self.locks {
            assert_eq!(lock.peek().without_slow_unlocks(), Word::IDLE);
        }
        for number in 1..=threads {
            let slot = Slot::new(number).expect("not zero");
            assert!(Model::participant(slot).claim(1), "the node of slot {number} is in use");
        }
    }
}

/// Counts what happens in the queue of spinners.
fn watch_queue(config: Config) -> Config {
    let config = config.watch("left", |e| e.in_file("spin/queue.rs") && e.exchanged(1, 3));
    let config = config.watch("passed", |e| e.in_file("spin/queue.rs") && e.exchanged(1, 4));
    let config = config.watch("head", |e| e.in_file("spin/queue.rs") && e.exchanged(1, 2));
    let config = config.watch("closed", |e| e.in_file("spin/queue.rs") && e.wrote(u32::MAX.into()));
    config.watch("found closed", |e: &ExecutionEvent| {
        e.in_file("spin/queue.rs") && e.replaced(u32::MAX.into())
    })
}

/// Searches the queue, and shows every path of it that was reached.
fn queue<Y: Policy>(name: &str, threads: usize, config: &Config) -> Stats {
    Scenario::new(Two::<Y>::new)
        .threads(threads, |two| two.add(0))
        .after(move |two| {
            assert_eq!(two.locks[0].1.get(), threads as u32);
            two.clean(threads as u32);
        })
        .verify(name, &watch_queue(config.clone()))
}

fn three() -> Config {
    Config::new().processors(4).spurious(0)
}

#[test]
fn model_queue_leave_at_every_step_3t() {
    let config = three().preemptions(depth(3, 4)).stale_reads(depth(1, 2));
    let stats = queue::<Leaves>("queue, leaving, 3 threads", 3, &config);
    for path in ["left", "head", "closed", "found closed"] {
        assert!(stats.seen(path) > 0, "no execution: {path}");
    }
}

#[test]
fn model_queue_pass_over_the_stale_3t() {
    let config = three().preemptions(depth(2, 3)).stale_reads(depth(0, 1)).jumps(1, 1000);
    let stats = queue::<Passes>("queue, passing, 3 threads", 3, &config);
    for path in ["passed", "head", "closed", "found closed"] {
        assert!(stats.seen(path) > 0, "no execution: {path}");
    }
}

#[test]
fn model_queue_leave_and_pass_4t() {
    let config = three().preemptions(1).stale_reads(0).jumps(1, 1000);
    let stats = queue::<Passes>("queue, passing, 4 threads", 4, &config);
    assert!(stats.seen("passed") > 0);
    let config = three().preemptions(depth(2, 3)).stale_reads(depth(0, 1));
    let stats = queue::<Leaves>("queue, leaving, 4 threads", 4, &config);
    assert!(stats.seen("left") > 0 && stats.seen("found closed") > 0);
}

#[test]
fn model_queue_in_order_3t() {
    let config = three().preemptions(depth(2, 4)).stale_reads(depth(1, 2));
    let stats = queue::<Spins>("queue, spinning, 3 threads", 3, &config);
    assert!(stats.seen("head") > 0 && stats.seen("left") == 0);
}

#[test]
fn model_queue_node_serves_a_second_lock_3t() {
    // A node that left the first lock's queue is still linked there when its
    // thread goes for the second lock.
    let config = three().preemptions(depth(2, 3)).stale_reads(depth(1, 2));
    second_lock().verify("queue, a second lock, 3 threads", &config);
}

/// Makes the scenario in which one of three that use a lock goes on to a second one.
fn second_lock() -> Scenario<Two<Leaves>> {
    Scenario::new(Two::<Leaves>::new)
        .threads(2, |two| two.add(0))
        .thread(|two| {
            two.add(0);
            two.add(1);
        })
        .after(|two| two.clean(3))
}

/// Makes the scenario in which the node of a thread that gave up is linked at the first lock when its
/// thread waits for the second, which is held.
fn gone_on() -> Scenario<Two<Leaves>> {
    Scenario::new(Two::<Leaves>::new)
        .thread(|two| {
            two.hold(1, || {
                two.hold(0, Model::relax);
                Model::relax();
            });
        })
        .thread(|two| two.add(0))
        .thread(|two| {
            let how = WaitBounds { deadline: Some(Nanos(100)), ..WaitBounds::FOREVER };
            let (lock, _) = &two.locks[0];
            if lock.lock_how(&how, 0, Location::caller()).is_ok() {
                // SAFETY: this thread has locked it above.
                unsafe { lock.unlock() };
            }
            two.add(1);
        })
        .after(|two| two.clean(3))
}

/// A node is in use while a queue refers to it, and no longer.
#[test]
fn model_queue_misses_who_mistakes_a_node_3t() {
    let config = three().preemptions(2).stale_reads(0);
    missed!(second_lock(), spinner_keeps_a_node_in_no_queue, FailureKind::Panic(_), config);
    let config = config.preemptions(1).timeouts(1);
    missed!(gone_on(), spinner_uses_a_node_in_a_queue, _, config);
}

#[test]
fn model_queue_node_crosses_two_locks_3t() {
    let config = three().preemptions(depth(2, 3)).stale_reads(depth(1, 2)).jumps(1, 1000);
    Scenario::new(Two::<Mixed>::new)
        .thread(|two| two.add(0))
        .thread(|two| two.add(1))
        .thread(|two| {
            two.add(0);
            two.add(1);
        })
        .after(|two| two.clean(3))
        .verify("queue, across locks, 3 threads", &config);
}

#[test]
fn model_queue_at_random_6t() {
    let config = watch_queue(
        Config::new()
            .random(1991, depth(20_000, 1_000_000))
            .processors(8)
            .jumps(3, 1000)
            .max_steps(20_000),
    );
    let stats = Scenario::new(Two::<Passes>::new)
        .threads(6, |two| {
            two.add(0);
            two.add(1);
        })
        .after(|two| two.clean(6))
        .verify("queue, random, 6 threads", &config);
    for path in ["left", "passed", "head", "closed", "found closed"] {
        assert!(stats.seen(path) > 0, "no execution: {path}");
    }
}
