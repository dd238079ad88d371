//! Bounded waiting as a property: the thread that a lock is reserved for, or promised to, is the
//! next that has it.

use super::rounds::Step::{Add, AddSlowly, Try};
use super::rounds::{Rounds, fair_rounds};
use crate::common::{BesideAndInsists, Insists, Mixed, depth};
use lockstead_core::{Off, Platform, Policy, RawRwLock, TunedSemaphore};
use lockstead_model::{Config, ExecutionEvent, FailureKind, Model, Scenario};
use std::cell::Cell;
use std::panic::Location;
use std::rc::Rc;

/// Returns a search in which one timer fires before its time: the waiter whose it is has waited
/// past the bound, and nobody else.
fn one_insists() -> Config {
    Config::new().processors(4).spurious(0).preemptions(depth(2, 3)).stale_reads(0).timeouts(1)
}

/// Shows that nobody who has not waited past the bound takes a mutex after a holder has seen it
/// reserved, and that somebody does wait past the bound.
fn handed_over<Y: Policy>(name: &str, scenario: Scenario<Rounds<Y>>, config: &Config) {
    let config = config.clone().watch("insists", |event| event.in_file("sleep/handoff.rs"));
    let stats = scenario.verify(name, &config);
    assert!(stats.seen("insists") > 0, "{name}: nobody waits past the bound");
}

#[test]
fn model_fair_mutex_goes_to_who_insists_3t() {
    let scenario = || fair_rounds::<Insists>(&[&[AddSlowly, AddSlowly], &[Add], &[Try, Try]]);
    handed_over("mutex, insisting, one tries", scenario(), &one_insists());
    let scenario =
        || fair_rounds::<Insists>(&[&[AddSlowly, AddSlowly], &[AddSlowly], &[AddSlowly]]);
    handed_over("mutex, insisting, all wait", scenario(), &one_insists().preemptions(depth(1, 2)));
}

#[test]
fn model_fair_mutex_goes_past_spinners_3t() {
    let config = one_insists().preemptions(depth(1, 2));
    let programs: &'static [&'static [_]] = &[&[AddSlowly, AddSlowly], &[Add], &[Try]];
    handed_over("mutex, spinning and insisting", fair_rounds::<Mixed>(programs), &config);
    let beside = fair_rounds::<BesideAndInsists>(programs);
    handed_over("mutex, beside the queue and insisting", beside, &config.processors(2));
}

#[test]
fn model_fair_mutex_misses_who_overtakes() {
    let scenario = || fair_rounds::<Insists>(&[&[AddSlowly, AddSlowly], &[Add], &[Try, Try]]);
    let config = one_insists().preemptions(1);
    missed!(scenario(), newcomer_overtakes_the_hand_off_waiter, FailureKind::Panic(_), config);
    missed!(scenario(), ww_release_lets_newcomers_in, FailureKind::Panic(_), config);
}

/// A semaphore of one permit, and whether its last holder saw that permit reserved before it gave it
/// back.
struct Gate<Y: Policy> {
    semaphore: TunedSemaphore<Model, Off, Y>,
    reserved: Cell<bool>,
}

impl<Y: Policy> Gate<Y> {
    /// Holds the permit once, or gives up if it `tries` and there is none.
    fn pass(&self, tries: bool) {
        let came = Model::now();
        if tries && !self.semaphore.try_down(Location::caller()) {
            return;
        }
        if !tries {
            self.semaphore.down(Location::caller());
        }
        if self.reserved.get() {
            let waited = Model::now().since(came);
            assert!(waited >= Y::BOUND, "a newcomer overtakes who waits past the bound");
        }
        if !tries {
            Model::relax();
        }
        let seen = self.semaphore.peek();
        self.reserved.set(seen.handoff() && seen.reserved());
        self.semaphore.up().expect("room for the permit");
    }
}

/// Makes the scenario of two that wait for the permit, one of them twice, and one that tries twice.
fn gate<Y: Policy>() -> Scenario<Gate<Y>> {
    let gate = || Gate {
        semaphore: TunedSemaphore::new(1).expect("few permits"),
        reserved: Cell::new(false),
    };
    let twice = |tries| {
        move |gate: &Gate<Y>| {
            gate.pass(tries);
            gate.pass(tries);
        }
    };
    Scenario::new(gate).thread(twice(false)).thread(|gate| gate.pass(false)).thread(twice(true))
}

#[test]
fn model_fair_semaphore_goes_to_who_insists_3t() {
    let insists = |event: &ExecutionEvent| event.in_file("sleep/handoff.rs");
    let config = one_insists().watch("insists", insists);
    let stats = gate::<Insists>().verify("semaphore, insisting, one tries", &config);
    assert!(stats.seen("insists") > 0, "nobody waits past the bound");
}

#[test]
fn model_fair_semaphore_misses_who_overtakes() {
    let config = one_insists().preemptions(1);
    missed!(
        gate::<Insists>(),
        newcomer_overtakes_the_hand_off_waiter,
        FailureKind::Panic(_),
        config
    );
}

/// A reader-writer lock in which one thread is the guest, and the others the hosts. What the hosts
/// see is noted beside the model.
struct House<Y: Policy> {
    lock: RawRwLock<Model, Off, Y>,
    /// A host has seen the lock promised to the guest.
    promised: Cell<bool>,
    served: Cell<bool>,
    /// How often a host has seen that, in all executions.
    seen: Rc<Cell<u32>>,
}

impl<Y: Policy> House<Y> {
    /// Comes as the guest, to write or to read.
    fn be_guest(&self, writes: bool) {
        let taken = if writes {
            self.lock.write(Location::caller())
        } else {
            self.lock.read(Location::caller())
        };
        taken.expect("not recursive");
        self.served.set(true);
        // SAFETY: this thread has taken it above in this way.
        unsafe { if writes { self.lock.unlock_write() } else { self.lock.unlock_read() } };
    }

    /// Takes the lock as a host, and makes way meanwhile. A host that asks for it when it is known
    /// to be promised gets it after the guest.
    fn be_host(&self, writes: bool) {
        // The look at what is beside the model comes after a step of the model, or it would come
        // when the thread is made.
        let _ = self.lock.is_locked();
        let behind = self.promised.get();
        let taken = if writes {
            self.lock.write(Location::caller())
        } else {
            self.lock.read(Location::caller())
        };
        taken.expect("not recursive");
        assert!(!behind || self.served.get(), "a newcomer overtakes the guest");
        Model::relax();
        let guest = if writes { ":Read promised" } else { ":Write promised" };
        if format!("{:?}", self.lock).contains(guest) {
            self.promised.set(true);
            self.seen.set(self.seen.get() + 1);
        }
        // SAFETY: this thread has taken it above in this way.
        unsafe { if writes { self.lock.unlock_write() } else { self.lock.unlock_read() } };
    }
}

/// Makes the scenario of a guest that writes and two hosts that read, or the other way round.
fn guest<Y: Policy>(writes: bool, seen: &Rc<Cell<u32>>) -> Scenario<House<Y>> {
    let seen = Rc::clone(seen);
    let house = move || House {
        lock: RawRwLock::new(),
        promised: Cell::new(false),
        served: Cell::new(false),
        seen: Rc::clone(&seen),
    };
    Scenario::new(house).thread(move |house| house.be_guest(writes)).threads(2, move |house| {
        for _ in 0..depth(1, 2) {
            house.be_host(!writes);
        }
    })
}

/// Neither readers nor writers starve.
#[test]
fn model_fair_rwlock_goes_to_whom_it_is_promised_3t() {
    for writes in [true, false] {
        let seen = Rc::new(Cell::new(0));
        let name = format!("rwlock, promised to a {}", if writes { "writer" } else { "reader" });
        guest::<Insists>(writes, &seen).verify(&name, &one_insists());
        assert!(seen.get() > 0, "{name}: nobody saw it");
    }
}

/// (To a promised reader the last writer gives the lock as it leaves: there is nothing to overtake.)
#[test]
fn model_fair_rwlock_misses_who_overtakes() {
    missed!(
        guest::<Insists>(true, &Rc::default()),
        rwlock_newcomer_overtakes_the_promised,
        FailureKind::Panic(_),
        one_insists()
    );
}
