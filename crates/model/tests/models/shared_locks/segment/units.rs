//! Models of the semaphore.

use super::*;
use lockstead_core::robust::RawSharedSemaphore;
use lockstead_model::{Scenario, guard};

/// What a participant does, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    /// Takes so many units.
    Take(u32),
    /// The same, but may give up.
    Limited(u32),
    /// The same, unless somebody cancels that.
    Cancellable(u32),
    /// Cancels that of others.
    Cancel,
    /// The same, if it need not wait.
    Try(u32),
    /// Gives so many back, if it has them.
    Give(u32),
    /// Uses so many up.
    Consume(u32),
    /// Takes so many and uses them up, if that is one step.
    UseUp(u32),
    /// Adds so many that nobody had.
    Add(u32),
    /// Leaves its slot. It holds nothing.
    Leave,
    /// Takes the first free slot.
    Come,
}

/// A semaphore, and what is noted of it.
#[repr(C)]
pub(crate) struct Units {
    common: Common,
    semaphore: RawSharedSemaphore<Model>,
    /// What each thread has.
    has: [U32; MOST],
    /// What each thread is giving back.
    gives: [U32; MOST],
    /// All that there are.
    total: U32,
    /// What the units stand for.
    data: U32,
    /// What dead ones had and nobody was told of.
    lost: U32,
    /// What cancels a wait.
    cancel: U32,
}

impl Units {
    fn new(lives: usize, units: u32) -> Self {
        let units = Units {
            common: Common::new(),
            semaphore: RawSharedSemaphore::with_units(units),
            has: [const { U32::ZERO }; MOST],
            gives: [const { U32::ZERO }; MOST],
            total: U32::ZERO,
            data: U32::ZERO,
            lost: U32::ZERO,
            cancel: U32::ZERO,
        };
        let (total, _) = units.semaphore.peek();
        units.total.store(total, Ordering::Relaxed);
        units.common.populate(lives);
        units
    }

    /// Says what is touched under the semaphore's mutex only: its five numbers, and the
    /// claims, unless somebody comes who gives back those of a dead one.
    fn guard(&self, claims: bool) {
        let lock = (&raw const self.semaphore).cast::<U32>();
        let numbers = lock.wrapping_add(2).cast::<[U32; 5]>();
        guard(numbers, lock);
        if claims {
            guard(&raw const self.common.claims, lock);
        }
    }

    fn got(&self, units: u32, lost: u32) {
        aside(|| {
            let order = Ordering::Relaxed;
            self.has[thread()].fetch_add(units, order);
            let all = self.has.iter().fold(0, |sum, one| sum + one.load(order));
            assert!(all <= self.total.load(order), "more units than there are");
            let due = self.lost.load(order);
            assert!(lost <= due, "{lost} units reported as lost, of {due}");
            self.lost.store(due - lost, order);
        });
    }

    fn run<'a>(&'a self, mut party: Party<'a, Model>, ops: &[Op]) {
        let semaphore = &self.semaphore;
        let mut held = 0u32;
        for (at, &op) in ops.iter().enumerate() {
            let party = match op {
                Op::Come => {
                    forget((at as u64 + 1) << 8);
                    party = self.common.comes();
                    continue;
                }
                _ => &party,
            };
            forget(u64::from(party.me.bits()) << 32 | (at as u64 + 1) << 8 | u64::from(held));
            let (units, got) = match op {
                Op::Take(units) => {
                    (units, semaphore.acquire(party, 0, units, &WaitBounds::FOREVER))
                }
                Op::Limited(units) => (units, semaphore.acquire(party, 0, units, &limited())),
                Op::Cancellable(units) => {
                    let how = cancelled_by(&self.cancel);
                    (units, semaphore.acquire(party, 0, units, &how))
                }
                Op::Cancel => {
                    cancel(&self.cancel);
                    continue;
                }
                Op::Try(units) => (units, semaphore.try_acquire(party, 0, units)),
                Op::Give(units) | Op::Consume(units) => {
                    if held >= units {
                        held -= units;
                        // A step with the units, at which others would be seen.
                        self.data.load(Ordering::Relaxed);
                        aside(|| {
                            self.has[thread()].fetch_sub(units, Ordering::Relaxed);
                            self.gives[thread()].store(units, Ordering::Relaxed);
                        });
                        let has = if matches!(op, Op::Give(_)) {
                            semaphore.release(party, 0, units)
                        } else {
                            semaphore.consume(party, 0, units)
                        };
                        assert_eq!(has, Ok(true), "it has them");
                        aside(|| self.gives[thread()].store(0, Ordering::Relaxed));
                    }
                    continue;
                }
                Op::Leave => {
                    self.common.leaves(party);
                    continue;
                }
                Op::Come => continue,
                Op::UseUp(units) => {
                    // If it dies in the middle, those are counted as a dead one's.
                    aside(|| self.gives[thread()].store(units, Ordering::Relaxed));
                    let _ = semaphore.try_use_up(party, units);
                    aside(|| self.gives[thread()].store(0, Ordering::Relaxed));
                    continue;
                }
                Op::Add(units) => {
                    aside(|| self.total.fetch_add(units, Ordering::Relaxed));
                    assert_eq!(semaphore.add(party, units), Ok(true), "few");
                    continue;
                }
            };
            match got {
                Ok(got) => {
                    held += units;
                    self.got(units, got.lost);
                }
                Err(error) => {
                    let may = match op {
                        Op::Limited(_) | Op::Try(_) => error == RobustError::TimedOut,
                        _ => matches!(op, Op::Cancellable(_)) && error == RobustError::Cancelled,
                    };
                    assert!(may, "{error:?}");
                }
            }
        }
        forget(0);
    }

    /// Takes note that the participant of this thread has died.
    fn mourn(&self, dead: usize) {
        let order = Ordering::Relaxed;
        // What stands among its claims may be more than it knows of, and less if it was
        // about to give something back.
        let Some((slot, _)) = self.common.dead(dead) else { return };
        let claim = &self.common.claims[slot];
        let claimed = if claim.what.load(order) == 0 { 0 } else { claim.units.load(order) };
        let had = self.has[dead].swap(0, order) + self.gives[dead].swap(0, order);
        self.lost.fetch_add(claimed.max(had), order);
    }
}

/// Makes the scenario of participants that each do one of these with a semaphore of so many units;
/// equal ones must stand together.
pub(crate) fn units(units: u32, programs: &'static [&'static [Op]]) -> Scenario<Units> {
    with_claims(units, programs, true)
}

fn with_claims(units: u32, programs: &'static [&'static [Op]], claims: bool) -> Scenario<Units> {
    let lives = programs.len();
    let make = move || Units::new(lives, units);
    Scenario::new(make).mourn(Units::mourn).programs(programs, move |s: &Units, ops| {
        s.guard(claims);
        s.run(s.common.party(), ops);
    })
}

/// Makes the scenario of these programs, and of what one does that comes in the place of a dead
/// one.
pub(crate) fn units_again(
    number: u32,
    programs: &'static [&'static [Op]],
    again: &'static [Op],
) -> Scenario<Units> {
    with_claims(number, programs, false).again(move |s: &Units| {
        let party = s.common.takes_over();
        s.run(party, again);
    })
}

/// Makes the scenario of participants that each do one of these, and leave their slots and come
/// again, to the first slot that is free then: so no two are alike, and nothing is guarded.
pub(crate) fn come_and_go(number: u32, programs: &'static [&'static [Op]]) -> Scenario<Units> {
    let lives = programs.len();
    let fresh = Scenario::new(move || Units::new(lives, number)).mourn(Units::mourn);
    programs
        .iter()
        .fold(fresh, |scenario, ops| scenario.thread(|s: &Units| s.run(s.common.party(), ops)))
}

/// Takes one and gives it back.
pub(crate) const ONE: &[Op] = &[Op::Take(1), Op::Give(1)];
/// Takes two and gives them back together.
pub(crate) const TWO: &[Op] = &[Op::Take(2), Op::Give(2)];
/// Takes one, unless it takes too long.
pub(crate) const MAYBE: &[Op] = &[Op::Limited(1), Op::Give(1)];
/// Takes one, unless it is cancelled.
pub(crate) const YIELDS: &[Op] = &[Op::Cancellable(1), Op::Give(1)];
/// Takes one and gives it back, and cancels others.
pub(crate) const ONE_AND_CANCELS: &[Op] = &[Op::Take(1), Op::Give(1), Op::Cancel];
/// Takes one, gives it back, and makes another one.
pub(crate) const ONE_AND_ADDS: &[Op] = &[Op::Take(1), Op::Give(1), Op::Add(1)];
/// Takes one, unless it must wait.
pub(crate) const TRIES: &[Op] = &[Op::Try(1), Op::Give(1)];
/// Takes one for good.
pub(crate) const KEEPS: &[Op] = &[Op::Take(1)];
/// Takes part, and no more.
pub(crate) const IDLE: &[Op] = &[];
/// Looks twice whether there are two, then takes one.
pub(crate) const TWO_IF_THERE_ARE: &[Op] =
    &[Op::Try(2), Op::Give(2), Op::Try(2), Op::Give(2), Op::Take(1), Op::Give(1)];
/// A program that makes one unit.
pub(crate) const ADDS: &[Op] = &[Op::Add(1)];
/// Takes one and uses it up.
pub(crate) const USES: &[Op] = &[Op::Take(1), Op::Consume(1)];
/// Takes one and gives it back, leaves, comes again, and takes another.
pub(crate) const LEAVES_BETWEEN: &[Op] =
    &[Op::Take(1), Op::Give(1), Op::Leave, Op::Come, Op::Take(1), Op::Give(1)];
/// Takes one and gives it back, and leaves.
pub(crate) const ONE_AND_LEAVES: &[Op] = &[Op::Take(1), Op::Give(1), Op::Leave];
/// Leaves, and comes to take one.
pub(crate) const COMES: &[Op] = &[Op::Leave, Op::Come, Op::Take(1), Op::Give(1)];
/// Uses one up in one step, if it can.
pub(crate) const USES_AT_ONCE: &[Op] = &[Op::UseUp(1)];
