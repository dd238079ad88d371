//! Waits that end early: whoever gives up loses nobody's wake-up.

use crate::common::{Insists, Leaves, Mixed, Sleeps, depth};
use lockstead_core::word::Word;
use lockstead_core::{LockError, Nanos, Off, Platform, Policy, RawMutex, WaitBounds};
use lockstead_model::{Cell, Config, Coverage, Model, Ordering, Scenario, Stats, U32};
use std::panic::Location;

/// A lock whose patient takers must all succeed.
struct Room<Y: Policy> {
    lock: RawMutex<Model, Off, Y>,
    count: Cell<u32>,
    cancel: U32,
    gave_up: std::cell::Cell<u32>,
}

impl<Y: Policy> Room<Y> {
    fn new() -> Self {
        Room {
            lock: RawMutex::new(),
            count: Cell::new(0),
            cancel: U32::ZERO,
            gave_up: std::cell::Cell::new(0),
        }
    }

    /// Adds under the lock, or gives up for `reason`.
    fn add(&self, how: &WaitBounds<'_, Model>, reason: Option<LockError>) {
        match self.lock.lock_how(how, 0, Location::caller()) {
            Ok(()) => {
                self.count.set(self.count.get() + 1);
                // SAFETY: this thread has locked it above.
                unsafe { self.lock.unlock() };
            }
            Err(error) => {
                assert_eq!(Some(error), reason);
                self.gave_up.set(self.gave_up.get() + 1);
            }
        }
    }

    fn patient(&self) {
        self.add(&WaitBounds::FOREVER, None);
    }

    fn timed(&self) {
        let how = WaitBounds { deadline: Some(Nanos(100)), ..WaitBounds::FOREVER };
        self.add(&how, Some(LockError::TimedOut));
    }

    fn interruptible(&self) {
        let how = WaitBounds { interruptible: true, ..WaitBounds::FOREVER };
        self.add(&how, Some(LockError::Interrupted));
    }

    fn killable(&self) {
        let how = WaitBounds { cancel: Some(&self.cancel), ..WaitBounds::FOREVER };
        self.add(&how, Some(LockError::Cancelled));
    }

    fn kill(&self) {
        self.cancel.store(1, Ordering::Relaxed);
        Model::wake(Model::address32(&self.cancel), 1);
    }
}

/// Shows that `patient` threads and one that runs `hasty` all come to an end, and that giving up
/// does happen.
fn ends<Y: Policy>(name: &str, patient: usize, hasty: fn(&Room<Y>), config: &Config) -> Stats {
    let gave_up = std::rc::Rc::new(std::cell::Cell::new(0));
    let counter = std::rc::Rc::clone(&gave_up);
    let stats = Scenario::new(Room::<Y>::new)
        .threads(patient, Room::patient)
        .thread(hasty)
        .after(move |room| {
            assert_eq!(room.count.get() + room.gave_up.get(), patient as u32 + 1);
            assert_eq!(room.lock.peek().without_slow_unlocks(), Word::IDLE);
            counter.set(counter.get() + room.gave_up.get());
        })
        .verify(name, config);
    assert!(gave_up.get() > 0, "{name}: nobody gave up");
    stats
}

/// Returns the search for two patient threads and one in a hurry.
fn three() -> Config {
    Config::new().preemptions(depth(2, 3)).stale_reads(depth(1, 2))
}

#[test]
fn model_wait_timed_sleeping_2t() {
    let config = Config::new().timeouts(1);
    let stats = ends::<Sleeps>("timed, sleeping", 1, Room::timed, &config);
    assert_eq!(stats.coverage, Coverage::Complete);
}

#[test]
fn model_wait_timed_sleeping_3t() {
    ends::<Sleeps>("timed, sleeping", 2, Room::timed, &three().timeouts(1));
}

#[test]
fn model_wait_timed_insisting_2t() {
    let config = Config::new().timeouts(2);
    let stats = ends::<Insists>("timed, insisting", 1, Room::timed, &config);
    assert_eq!(stats.coverage, Coverage::Complete);
}

#[test]
fn model_wait_timed_insisting_3t() {
    ends::<Insists>("timed, insisting", 2, Room::timed, &three().timeouts(2));
}

#[test]
fn model_wait_timed_mixed_2t() {
    let config = Config::new().timeouts(2).jumps(1, 1000);
    let stats = ends::<Mixed>("timed, mixed", 1, Room::timed, &config);
    assert_eq!(stats.coverage, Coverage::Complete);
}

#[test]
fn model_wait_interrupted_sleeping_3t() {
    let config = three().interrupts(1);
    ends::<Sleeps>("interruptible, sleeping", 2, Room::interruptible, &config);
}

#[test]
fn model_wait_interrupted_insisting_3t() {
    let config = three().interrupts(1).timeouts(2);
    ends::<Insists>("interruptible, insisting", 2, Room::interruptible, &config);
}

#[test]
fn model_wait_interrupted_leaving_2t() {
    let config = Config::new().interrupts(2);
    let stats = ends::<Leaves>("interruptible, leaving", 1, Room::interruptible, &config);
    assert_eq!(stats.coverage, Coverage::Complete);
}

/// Adds to `ends` one more thread that cancels the hasty one's wait.
fn cancelled<Y: Policy>(name: &str, patient: usize, config: &Config) -> Stats {
    let stats = Scenario::new(Room::<Y>::new)
        .threads(patient, Room::patient)
        .thread(Room::killable)
        .thread(Room::kill)
        .after(move |room| {
            assert_eq!(room.count.get() + room.gave_up.get(), patient as u32 + 1);
            assert_eq!(room.lock.peek().without_slow_unlocks(), Word::IDLE);
        })
        .verify(
            name,
            &config.clone().watch("cancelled", |e| {
                e.step == lockstead_model::ModelStep::Wait(lockstead_core::WaitOutcome::Cancelled)
            }),
        );
    assert!(stats.seen("cancelled") > 0, "{name}: no sleep was cancelled");
    stats
}

#[test]
fn model_wait_cancelled_sleeping_3t() {
    let stats = cancelled::<Sleeps>("cancelled, sleeping", 1, &Config::new().stale_reads(2));
    assert_eq!(stats.coverage, Coverage::Complete);
}

#[test]
fn model_wait_cancelled_insisting_3t() {
    cancelled::<Insists>("cancelled, insisting", 1, &three().timeouts(2));
}

#[test]
fn model_wait_cancelled_sleeping_4t() {
    cancelled::<Sleeps>("cancelled, sleeping", 2, &three().preemptions(depth(1, 2)));
}

#[test]
fn model_wait_all_at_random_5t() {
    let config = Config::new()
        .random(6, depth(20_000, 1_000_000))
        .processors(4)
        .spurious(2)
        .timeouts(3)
        .interrupts(2)
        .jumps(1, 1000)
        .max_steps(20_000);
    Scenario::new(Room::<Mixed>::new)
        .thread(Room::patient)
        .thread(Room::timed)
        .thread(Room::interruptible)
        .thread(Room::killable)
        .thread(|room| {
            room.patient();
            room.kill();
        })
        .after(|room| {
            assert_eq!(room.count.get() + room.gave_up.get(), 5);
            assert_eq!(room.lock.peek().without_slow_unlocks(), Word::IDLE);
        })
        .verify("all ends, mixed, random, 5 threads", &config);
}
