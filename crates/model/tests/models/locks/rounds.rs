//! The mutex over several rounds: each thread does a program of steps, so that hand-off waiters
//! come after hand-off waiters, and locks that were fought over are fought over again.

use lockstead_core::{Nanos, Off, Platform, Policy, RawMutex, WaitBounds};
use lockstead_model::{Cell, Model, Scenario};
use std::panic::Location;

/// One step of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Adds under the lock.
    Add,
    /// The same, and makes way to others while it holds the lock.
    AddSlowly,
    /// Adds under the lock, or gives up by time.
    AddInTime,
    /// Adds under the lock, if it is free.
    Try,
}

/// A mutex and what it guards. What is beside the model follows from the order of acquisitions.
pub(super) struct Rounds<Y: Policy> {
    lock: RawMutex<Model, Off, Y>,
    count: Cell<u32>,
    /// Whether nobody may overtake a hand-off waiter. To know that, threads look at the clock, and
    /// so there are more states.
    fair: bool,
    /// How often somebody went without the lock.
    went_without: std::cell::Cell<u32>,
    /// The last holder saw the lock reserved before it released it. Every release that comes after
    /// such a look finds *reserved*.
    reserved: std::cell::Cell<bool>,
}

impl<Y: Policy> Rounds<Y> {
    fn new(fair: bool) -> Self {
        Rounds {
            lock: RawMutex::new(),
            count: Cell::new(0),
            fair,
            went_without: std::cell::Cell::new(0),
            reserved: std::cell::Cell::new(false),
        }
    }

    fn step(&self, step: Step) {
        let deadline = (step == Step::AddInTime).then_some(Nanos(100));
        let how = WaitBounds { deadline, ..WaitBounds::FOREVER };
        let came = self.fair.then(Model::now);
        let taken = match step {
            Step::Try => self.lock.try_lock(Location::caller()),
            _ => self.lock.lock_how(&how, 0, Location::caller()).is_ok(),
        };
        if !taken {
            // It may be the one for which the lock was reserved.
            self.reserved.set(self.reserved.get() && step == Step::Try);
            self.went_without.set(self.went_without.get() + 1);
            return;
        }
        if let Some(came) = came.filter(|_| self.reserved.get()) {
            let waited = Model::now().since(came);
            assert!(waited >= Y::BOUND, "a newcomer overtakes who waits past the bound");
        }
        if step == Step::AddSlowly {
            Model::relax();
        }
        self.count.set(self.count.get() + 1);
        if self.fair {
            let seen = self.lock.peek();
            self.reserved.set(seen.handoff() && seen.reserved());
        }
        // SAFETY: this thread has locked it above.
        unsafe { self.lock.unlock() };
    }
}

/// Makes the scenario of a thread for each program. Nothing is left behind in the lock.
pub(super) fn rounds<Y: Policy>(programs: &'static [&'static [Step]]) -> Scenario<Rounds<Y>> {
    scenario(programs, false)
}

/// Makes the same scenario, in which nobody may overtake a hand-off waiter.
pub(super) fn fair_rounds<Y: Policy>(programs: &'static [&'static [Step]]) -> Scenario<Rounds<Y>> {
    scenario(programs, true)
}

fn scenario<Y: Policy>(programs: &'static [&'static [Step]], fair: bool) -> Scenario<Rounds<Y>> {
    let steps = programs.iter().map(|program| program.len() as u32).sum::<u32>();
    Scenario::new(move || Rounds::new(fair))
        .programs(programs, |rounds, program| {
            for step in program {
                rounds.step(*step);
            }
        })
        .after(move |rounds| {
            assert_eq!(rounds.count.get() + rounds.went_without.get(), steps);
            assert_eq!(rounds.lock.peek().without_slow_unlocks().0, 0);
        })
}
