//! Every labelled ordering of the mutex, the spin queue and the slots: the
//! models notice when it is weaker, or it is shown not to matter.

use crate::common::{Leaves, Passes, Sleeps};
use crate::labels::{Part, panics, races, weaker};
use crate::weakened::missed;
use lockstead_core::{LockError, Nanos};
use lockstead_core::{Off, Platform, Policy, RawMutex, Slot, TableEntry, WaitBounds};
use lockstead_model::{Cell, Config, Model, Scenario};
use std::panic::Location;

type Lock<Y> = RawMutex<Model, Off, Y>;

/// Two locks and what they guard.
struct Two<Y: Policy> {
    locks: [Lock<Y>; 2],
    count: Cell<u32>,
}

impl<Y: Policy> Two<Y> {
    fn new() -> Self {
        Two { locks: [const { Lock::new() }; 2], count: Cell::new(0) }
    }

    /// Makes two locks, both held by a thread that never releases them.
    fn held() -> Self {
        let two = Self::new();
        for lock in &two.locks {
            lock.lock(Location::caller()).expect("free");
        }
        two
    }

    fn add(&self) {
        self.locks[0].lock(Location::caller()).expect("not recursive");
        self.count.set(self.count.get() + 1);
        // SAFETY: this thread has locked it above.
        unsafe { self.locks[0].unlock() };
    }

    /// Spins for a lock that does not come free, and gives up.
    fn give_up(&self, which: usize) {
        let how = WaitBounds { deadline: Some(Nanos(1)), ..WaitBounds::FOREVER };
        let result = self.locks[which].lock_how(&how, 0, Location::caller());
        assert_eq!(result, Err(LockError::TimedOut));
    }

    /// Asserts that no queue is left and no node in use.
    fn unqueued(&self, threads: u32) {
        assert!(self.locks.iter().all(|lock| lock.peek().tail().is_none()), "a queue is left");
        for number in 1..=threads {
            let slot = Slot::new(number).expect("not zero");
            assert!(Model::participant(slot).claim(1), "the node of slot {number} is in use");
        }
    }
}

fn adds<Y: Policy>(threads: usize) -> Scenario<Two<Y>> {
    Scenario::new(Two::new).threads(threads, Two::add).after(move |two| {
        assert_eq!(two.count.get(), threads as u32);
        two.unqueued(threads as u32);
    })
}

/// Makes the scenario in which two threads queue for one lock after the other. Their nodes have
/// been in a queue before.
fn two_queues() -> Scenario<Two<Leaves>> {
    Scenario::new(Two::held)
        .threads(2, |two| {
            two.give_up(0);
            two.give_up(1);
        })
        .after(|two| two.unqueued(2))
}

/// Makes the scenario in which three threads queue for one lock: walks go over nodes in the middle.
fn one_queue<Y: Policy>() -> Scenario<Two<Y>> {
    Scenario::new(Two::held).threads(3, |two| two.give_up(0)).after(|two| two.unqueued(3))
}

fn small() -> Config {
    Config::new().processors(4).spurious(0).preemptions(2).stale_reads(1)
}

/// Returns the limits where all give up: they may do so when nothing else can happen.
fn given_up() -> Config {
    small().rescue(true)
}

#[test]
fn model_mutex_misses_each_ordering() {
    let word = adds::<Sleeps>(2);
    let taken = [
        ("mutex.rs", "WORD-1", Part::All),
        ("mutex.rs", "WORD-2", Part::All),
        ("exchange.rs", "WORD-1", Part::Acquire),
    ];
    missed(&word, &small(), &taken, races);
    // The releasing half publishes a spinner's node.
    missed(&two_queues(), &given_up(), &[("exchange.rs", "WORD-1", Part::Release)], panics);
}

#[test]
fn model_queue_misses_each_ordering() {
    const QUEUE: &str = "spin/queue.rs";
    let two = [
        ("attached.rs", "OSQ-1", Part::All),
        ("attached.rs", "OSQ-2", Part::All),
        (QUEUE, "OSQ-3", Part::Release),
        (QUEUE, "OSQ-4", Part::All),
        (QUEUE, "OSQ-5", Part::Acquire),
    ];
    missed(&two_queues(), &given_up(), &two, panics);
    let closed = [(QUEUE, "OSQ-3", Part::Acquire), (QUEUE, "OSQ-5", Part::Release)];
    missed(&one_queue::<Leaves>(), &given_up(), &closed, panics);
}

/// A new head decides nothing that an exchange of the word does not confirm, so
/// it needs not know what the former head knew.
#[test]
fn model_queue_passes_headship_without_ordering_3t() {
    let without =
        |config| weaker(&config, "spin/queue.rs", &["OSQ-6", "OSQ-7", "OSQ-8"], Part::All);
    two_queues().verify("headship unordered, two queues", &without(given_up()));
    one_queue::<Leaves>().verify("headship unordered, one queue", &without(given_up()));
    adds::<Leaves>(3).verify("headship unordered, leaving", &without(small()));
    let jumping = small().jumps(1, 1000).preemptions(1);
    adds::<Passes>(3).verify("headship unordered, passing", &without(jumping));
}

/// A slot and data that belong to the thread that has it.
struct Taken {
    slot: &'static TableEntry<Model>,
    own: Cell<u32>,
}

#[test]
fn model_slot_misses_each_ordering() {
    let taken = Scenario::new(|| Taken {
        slot: Model::participant(Slot::new(7).expect("not zero")),
        own: Cell::new(0),
    })
    .threads(3, |taken| {
        if taken.slot.claim(1) {
            taken.own.set(taken.own.get() + 1);
            let _ = taken.slot.vacate();
        }
    })
    .after(|taken| assert!((1..=3).contains(&taken.own.get())));
    let labels = ["SLOT-1", "SLOT-2"].map(|label| ("participant.rs", label, Part::All));
    missed(&taken, &small(), &labels, races);
}
