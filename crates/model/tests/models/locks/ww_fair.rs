//! Bounded waiting for the wait/wound mutex as a property: the oldest context never backs off, no
//! younger one that comes is served before it, and nobody at all when it has waited past the bound.

use super::wait_wound::Two;
use crate::common::{Insists, Sleeps, depth};
use lockstead_core::ww::{Context, Scheme};
use lockstead_core::{Platform, Policy, WaitBounds};
use lockstead_model::{Config, FailureKind, Model, Scenario};
use std::cell::Cell;
use std::panic::Location;

const SCHEMES: [Scheme; 2] = [Scheme::WaitDie, Scheme::WoundWait];

/// Locks that one context, the guest, is to have before the others, the hosts. What the hosts see
/// is noted beside the model.
struct House<Y: Policy> {
    two: Two<Y>,
    /// The guest's stamp, once it has begun.
    guest: Cell<Option<u64>>,
    /// Whether a holder of each lock has seen the guest first in the line for it.
    known: [Cell<bool>; 2],
    /// Whether the guest has had each lock.
    served: [Cell<bool>; 2],
    /// Whether the last holder saw the lock reserved for one that has waited past the bound.
    reserved: Cell<bool>,
}

impl<Y: Policy> House<Y> {
    fn new(scheme: Scheme) -> Self {
        House {
            two: Two::new(scheme),
            guest: Cell::new(None),
            known: [const { Cell::new(false) }; 2],
            served: [const { Cell::new(false) }; 2],
            reserved: Cell::new(false),
        }
    }

    fn served(&self, which: usize) {
        self.served[which].set(true);
        self.reserved.set(false);
    }

    /// Takes a lock as the guest, and the other one inside if it wants `both`. Nobody is older, so
    /// it is never told to back off.
    fn be_guest(&self, both: bool) {
        let context = Context::begin(&self.two.class).expect("room");
        self.guest.set(Some(context.stamp()));
        self.two.take(0, &context);
        self.served(0);
        if both {
            let taken = self.two.locks[1].lock(&context, Location::caller());
            assert_eq!(taken, Ok(()), "the oldest backs off");
            self.served(1);
            self.two.leave(1, &context);
        }
        self.two.leave(0, &context);
        context.finish();
    }

    /// Tells whether the guest is known to be first. The look at what is beside the model comes
    /// after a step of the model, or it would come when the thread is made.
    fn knows(&self, which: usize) -> bool {
        let _ = self.two.locks[which].is_locked();
        self.known[which].get()
    }

    /// Checks that a host that came when the guest was known to be first, or not, may have this
    /// lock, and looks who is first now.
    fn entered(&self, which: usize, behind: bool) {
        assert!(!behind || self.served[which].get(), "a younger context overtakes the oldest");
        Model::relax();
        let Some(guest) = self.guest.get() else { return };
        let lock = &self.two.locks[which];
        if lock.peek().contexts() && lock.first_stamp() == Some(guest) {
            self.known[which].set(true);
        }
    }

    /// Takes a lock as a host, in a context younger than the guest's, and the other one inside if it
    /// wants `both`. Does nothing if the guest has not begun.
    fn be_host(&self, both: bool) {
        let behind = self.knows(0);
        if self.guest.get().is_none() {
            return;
        }
        let context = Context::begin(&self.two.class).expect("room");
        if both {
            let behind = self.knows(1);
            self.two.take(1, &context);
            self.entered(1, behind);
            let behind = self.knows(0);
            if self.two.locks[0].lock(&context, Location::caller()).is_ok() {
                self.entered(0, behind);
                self.two.leave(0, &context);
            }
            self.two.leave(1, &context);
        } else {
            self.two.take(0, &context);
            self.entered(0, behind);
            self.two.leave(0, &context);
        }
        context.finish();
    }

    /// Takes a lock without a context, or gives up if it `tries` and the lock is held. Who has not
    /// waited past the bound does not overtake the guest, for which the lock is reserved.
    fn be_alone(&self, tries: bool) {
        let came = Model::now();
        let lock = &self.two.locks[0];
        if tries && !lock.try_lock(None, Location::caller()) {
            return;
        }
        if !tries {
            assert_eq!(lock.lock_alone(&WaitBounds::FOREVER, Location::caller()), Ok(()));
        }
        if self.reserved.get() {
            let waited = Model::now().since(came);
            assert!(waited >= Y::BOUND, "a newcomer overtakes who waits past the bound");
        }
        if !tries {
            Model::relax();
        }
        let seen = lock.peek();
        self.reserved.set(seen.handoff() && seen.reserved());
        // SAFETY: this thread has taken it above, without a context.
        unsafe { lock.unlock(None) };
    }
}

fn house<Y: Policy>(scheme: Scheme, both: bool) -> Scenario<House<Y>> {
    Scenario::new(move || House::new(scheme)).thread(move |house| house.be_guest(both))
}

/// Makes the scenario of a guest and two hosts, one of which comes twice. With `both`, each wants
/// two locks, the hosts in the other order than the guest.
fn hosts<Y: Policy>(scheme: Scheme, both: bool) -> Scenario<House<Y>> {
    house(scheme, both).thread(move |house| house.be_host(both)).thread(move |house| {
        house.be_host(both);
        house.be_host(both);
    })
}

/// Makes the scenario of a guest, one that waits for its lock without a context, twice, and one
/// that tries twice.
fn strangers<Y: Policy>(scheme: Scheme) -> Scenario<House<Y>> {
    let twice = |tries| {
        move |house: &House<Y>| {
            house.be_alone(tries);
            house.be_alone(tries);
        }
    };
    house(scheme, false).thread(twice(false)).thread(twice(true))
}

fn small() -> Config {
    Config::new().processors(4).spurious(0).preemptions(depth(2, 3)).stale_reads(0)
}

#[test]
fn model_fair_ww_goes_to_the_oldest_3t() {
    for scheme in SCHEMES {
        let name = format!("ww, the oldest first, {scheme:?}");
        hosts::<Sleeps>(scheme, false).verify(&name, &small());
        let name = format!("ww, the oldest first, two locks, {scheme:?}");
        hosts::<Sleeps>(scheme, true).verify(&name, &small().preemptions(depth(1, 2)));
    }
}

#[test]
fn model_fair_ww_goes_to_who_insists_3t() {
    let config = small().preemptions(depth(1, 2)).timeouts(1);
    for scheme in SCHEMES {
        let name = format!("ww, insisting, others alone, {scheme:?}");
        strangers::<Insists>(scheme).verify(&name, &config);
    }
}

#[test]
fn model_fair_ww_misses_who_overtakes() {
    for scheme in SCHEMES {
        let config = small().preemptions(1);
        missed!(
            hosts::<Sleeps>(scheme, false),
            ww_younger_stands_beside_an_older,
            FailureKind::Panic(_),
            config
        );
        missed!(
            hosts::<Sleeps>(scheme, false),
            ww_release_lets_newcomers_in,
            FailureKind::Panic(_),
            config
        );
        missed!(
            strangers::<Insists>(scheme),
            newcomer_overtakes_the_hand_off_waiter,
            FailureKind::Panic(_),
            config.timeouts(1)
        );
    }
}
