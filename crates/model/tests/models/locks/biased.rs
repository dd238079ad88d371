//! The mutex that belongs to one thread until another one comes: by loads and plain stores
//! of its owner, under weak memory, against whoever takes it away.
//!
//! Whoever waits for the owner looks again by a timer, which is why these models let the
//! earliest timer fire when nothing else can happen. (The policies give the inner mutex no
//! timers that fire, but to insist.)

use crate::common::{Leaves, Sleeps, depth};
use lockstead_core::{LockError, Nanos, Off, Policy, RawBiased, Slot, WaitBounds};
use lockstead_model::{
    Cell, Config, Coverage, FailureKind, Fault, Membarrier, Model, Ordering, Scenario, Stats, U32,
    freed, with_handler,
};
use std::panic::Location;

struct Guarded<Y: Policy> {
    lock: RawBiased<Model, Off, Y>,
    count: Cell<u32>,
    /// The word that is looked at in the middle of a section, so that others may go on there.
    pulse: U32,
}

impl<Y: Policy> Guarded<Y> {
    fn new() -> Self {
        Guarded { lock: RawBiased::new(), count: Cell::new(0), pulse: U32::ZERO }
    }

    fn section(&self) {
        let before = self.count.get();
        self.pulse.load(Ordering::Relaxed);
        self.count.set(before + 1);
    }

    fn add(&self) {
        let hold = self.lock.lock(Location::caller()).expect("not recursive");
        self.section();
        // SAFETY: this thread locked it above, in the way that the hold says, and releases it once.
        unsafe { self.lock.unlock(hold) };
    }

    /// Adds unless its time is up first.
    fn add_in_time(&self) -> bool {
        let how = || WaitBounds { deadline: Some(Nanos(100)), ..WaitBounds::FOREVER };
        match self.lock.lock_lazily(how, 0, Location::caller()) {
            Ok(hold) => {
                self.section();
                // SAFETY: this thread locked it above, in the way that the hold says, and releases
                // it once.
                unsafe { self.lock.unlock(hold) };
                true
            }
            Err(error) => {
                assert_eq!(error, LockError::TimedOut);
                false
            }
        }
    }

    fn try_add(&self) -> bool {
        let Some(hold) = self.lock.try_lock(Location::caller()) else { return false };
        self.section();
        // SAFETY: this thread locked it above, in the way that the hold says, and releases it once.
        unsafe { self.lock.unlock(hold) };
        true
    }
}

fn small() -> Config {
    Config::new().rescue(true).spurious(0).slow_unlocks(0)
}

fn three() -> Config {
    small().processors(2).preemptions(depth(2, 3)).stale_reads(depth(1, 2))
}

/// Makes the scenario in which one thread takes the lock so many times, others once each.
fn adds<Y: Policy>(rounds: u32, others: usize) -> Scenario<Guarded<Y>> {
    Scenario::new(Guarded::<Y>::new)
        .thread(move |g| (0..rounds).for_each(|_| g.add()))
        .threads(others, Guarded::add)
        .after(move |g| {
            assert_eq!(g.count.get(), rounds + others as u32);
            assert!(!g.lock.is_locked());
        })
}

fn complete(stats: &Stats) {
    assert_eq!(stats.coverage, Coverage::Complete);
}

#[test]
fn model_biased_excludes_2t() {
    complete(&adds::<Sleeps>(2, 1).verify("biased, sleeping, 2 threads", &small()));
    let bounded = small().spurious(1).preemptions(depth(3, 5));
    adds::<Leaves>(2, 1).verify("biased, leaving, 2 threads", &bounded);
    let both = Scenario::new(Guarded::<Sleeps>::new)
        .threads(2, |g| (0..2).for_each(|_| g.add()))
        .after(|g| assert_eq!(g.count.get(), 4));
    both.verify("biased, two rounds each", &small().preemptions(depth(2, 4)));
}

#[test]
fn model_biased_excludes_3t() {
    adds::<Sleeps>(2, 2).verify("biased, sleeping, 3 threads", &three());
    adds::<Leaves>(2, 2).verify("biased, leaving, 3 threads", &three().stale_reads(0));
}

/// Shows a machine that cannot fence: the lock is nobody's from the beginning.
#[test]
fn model_biased_is_plain_without_fences_2t() {
    let config = small().membarrier(Membarrier::Absent);
    let scenario = adds::<Sleeps>(2, 1).after(|g| {
        assert_eq!(g.count.get(), 3);
        assert_eq!(g.lock.belongs_to(), None);
    });
    complete(&scenario.verify("biased, no fences, 2 threads", &config));
}

/// Shows a machine that could fence, and does not any more: the owner ends the bias itself.
#[test]
fn model_biased_waits_for_the_owner_where_fences_are_denied_2t() {
    let relax = <Model as lockstead_core::Platform>::relax;
    let scenario = Scenario::new(Guarded::<Sleeps>::new)
        .thread(move |g| {
            g.add();
            // The owner comes back when the other one has asked.
            while g.lock.belongs_to().is_some() {
                relax();
            }
            g.add();
        })
        .thread(move |g| {
            while g.lock.belongs_to().is_none() {
                relax();
            }
            g.add();
        })
        .after(|g| assert_eq!(g.count.get(), 3));
    let config = small().membarrier(Membarrier::Denied).preemptions(depth(2, 4));
    scenario.verify("biased, fences denied, 2 threads", &config);
}

#[test]
fn model_biased_timed_and_tried_3t() {
    let scenario = Scenario::new(Guarded::<Sleeps>::new)
        .thread(|g| (0..2).for_each(|_| g.add()))
        .thread(|g| _ = g.add_in_time())
        .thread(|g| g.add())
        .after(|g| assert!((3..=4).contains(&g.count.get())));
    scenario.verify("biased, one gives up, 3 threads", &three().jumps(1, 1000));
    let scenario = Scenario::new(Guarded::<Sleeps>::new)
        .thread(|g| (0..2).for_each(|_| g.add()))
        .thread(|g| _ = g.try_add())
        .thread(|g| g.add())
        .after(|g| assert!((3..=4).contains(&g.count.get())));
    scenario.verify("biased, one tries, 3 threads", &three());
}

/// Whoever drops the last reference frees the lock, while the release of the one before
/// may be under way.
#[test]
fn model_biased_release_then_free_2t() {
    let scenario = Scenario::new(|| (Guarded::<Sleeps>::new(), Cell::new(3_u32)));
    let drop_one = |(g, references): &(Guarded<Sleeps>, Cell<u32>)| {
        let hold = g.lock.lock(Location::caller()).expect("not recursive");
        let left = references.get() - 1;
        references.set(left);
        // SAFETY: this thread locked it above, in the way that the hold says, and releases it once.
        unsafe { g.lock.unlock(hold) };
        if left == 0 {
            freed(g);
        }
    };
    let scenario = scenario
        .thread(move |shared| {
            drop_one(shared);
            drop_one(shared);
        })
        .thread(drop_one);
    complete(&scenario.verify("biased, free, 2 threads", &small()));
}

/// The owner's handler takes the lock anywhere in its thread's acquisition or release.
#[test]
fn model_biased_handler_takes_the_same_lock_2t() {
    let scenario = Scenario::new(Guarded::<Sleeps>::new)
        .thread(|g| {
            g.add();
            // Where its thread holds the lock, or all but holds it, it is told.
            let handler = || match g.lock.lock(Location::caller()) {
                Ok(hold) => {
                    g.section();
                    // SAFETY: this thread locked it above, in the way that the hold says, and
                    // releases it once.
                    unsafe { g.lock.unlock(hold) };
                }
                Err(error) => assert_eq!(error, LockError::Recursive),
            };
            with_handler(handler, || g.add());
        })
        .thread(|g| g.add())
        .after(|g| assert!((3..=4).contains(&g.count.get())));
    let config = small().watch("handled", |e| e.step == lockstead_model::ModelStep::Enter);
    let config = config.preemptions(depth(3, 4)).stale_reads(depth(1, 3));
    let stats = scenario.verify("biased, handler, 2 threads", &config);
    assert!(stats.seen("handled") > 0);
}

/// A thread that has the lock alone changes whose it is.
#[test]
fn model_biased_is_given_to_another_thread_1t() {
    let scenario = Scenario::new(|| ()).thread(|()| {
        let mut lock = RawBiased::<Model, Off, Sleeps>::new();
        for _ in 0..2 {
            let hold = lock.lock(Location::caller()).expect("free");
            assert_eq!(lock.holder(), Slot::new(1));
            // SAFETY: this thread locked it above, in the way that the hold says, and releases it
            // once.
            unsafe { lock.unlock(hold) };
            assert_eq!(lock.belongs_to(), Slot::new(1));
            lock.rebias();
            assert_eq!(lock.belongs_to(), None);
        }
        let _forgotten = lock.lock(Location::caller()).expect("free");
        lock.rebias();
        assert!(lock.is_locked());
        assert_eq!(lock.lock(Location::caller()), Err(LockError::Recursive));
    });
    scenario.verify("biased, rebias", &small());
}

#[test]
fn model_biased_needs_the_fence() {
    let failure =
        adds::<Sleeps>(2, 1).check(&small().fault(Fault::NoFence)).expect_err("both are in");
    assert!(matches!(failure.kind, FailureKind::Race | FailureKind::Panic(_)), "{failure}");
}
