//! A signal handler that locks, in the middle of its own thread's acquisition.

use crate::common::{Insists, Leaves, Mixed, Passes, depth};
use lockstead_core::word::Word;
use lockstead_core::{LockError, Off, Platform, Policy, RawMutex, Slot};
use lockstead_model::{Cell, Config, Coverage, Model, Scenario, Stats, with_handler};
use std::panic::Location;

/// One lock that the thread is after, another that its handler takes.
struct Two<Y: Policy> {
    outer: (RawMutex<Model, Off, Y>, Cell<u32>),
    inner: (RawMutex<Model, Off, Y>, Cell<u32>),
}

impl<Y: Policy> Two<Y> {
    fn new() -> Self {
        Two { outer: (RawMutex::new(), Cell::new(0)), inner: (RawMutex::new(), Cell::new(0)) }
    }
}

fn add<Y: Policy>((lock, count): &(RawMutex<Model, Off, Y>, Cell<u32>)) {
    lock.lock(Location::caller()).expect("not recursive");
    count.set(count.get() + 1);
    // SAFETY: this thread has locked it above.
    unsafe { lock.unlock() };
}

/// Checks the scenario in which the first thread is interrupted anywhere in taking `outer`, and its
/// handler takes `inner`; the second thread contends for both.
fn interrupted<Y: Policy>(name: &str, config: &Config) -> Stats {
    let config = config.clone().watch("handled", |e| e.step == lockstead_model::ModelStep::Enter);
    let stats = Scenario::new(Two::<Y>::new)
        .thread(|two| with_handler(|| add(&two.inner), || add(&two.outer)))
        .thread(|two| {
            add(&two.outer);
            add(&two.inner);
        })
        .after(|two| {
            assert_eq!(two.outer.1.get(), 2);
            for lock in [&two.outer.0, &two.inner.0] {
                assert_eq!(lock.peek().without_slow_unlocks(), Word::IDLE);
            }
            for number in 1..=2 {
                let slot = Slot::new(number).expect("not zero");
                assert!(Model::participant(slot).claim(1), "slot {number} is still queued");
            }
        })
        .verify(name, &config);
    assert!(stats.seen("handled") > 0);
    stats
}

#[test]
fn model_handler_locks_while_its_thread_spins_2t() {
    let config = Config::new().stale_reads(depth(1, 2)).spurious(depth(0, 1));
    let stats = interrupted::<Leaves>("handler, leaving", &config);
    assert_eq!(stats.coverage, Coverage::Complete);
}

#[test]
fn model_handler_locks_while_its_thread_is_passed_over_2t() {
    let config = Config::new().stale_reads(depth(0, 1)).spurious(0).jumps(1, 1000);
    let stats = interrupted::<Passes>("handler, passing", &config);
    assert_eq!(stats.coverage, Coverage::Complete);
}

#[test]
fn model_handler_locks_while_its_thread_inherits_2t() {
    let config = Config::new().stale_reads(depth(1, 2)).spurious(depth(0, 1)).timeouts(2);
    let config = config.preemptions(depth(2, 4));
    interrupted::<Insists>("handler, insisting", &config);
    interrupted::<Mixed>("handler, mixed", &config);
}

#[test]
fn model_handler_wants_the_lock_that_its_thread_wants_2t() {
    // Where the thread holds the lock already, the handler is told; elsewhere it
    // gets the lock before its thread does, past the bound if that is the hand-off waiter.
    let config = Config::new().stale_reads(0).spurious(0).timeouts(2).rescue(true);
    let stats = Scenario::new(Two::<Mixed>::new)
        .thread(|two| {
            let (lock, count) = &two.outer;
            let handler = || match lock.lock(Location::caller()) {
                Ok(()) => {
                    count.set(count.get() + 1);
                    // SAFETY: this thread has locked it above.
                    unsafe { lock.unlock() };
                }
                Err(error) => assert_eq!(error, LockError::Recursive),
            };
            with_handler(handler, || add(&two.outer));
        })
        .thread(|two| add(&two.outer))
        .after(|two| {
            assert!((2..=3).contains(&two.outer.1.get()));
            assert_eq!(two.outer.0.peek().without_slow_unlocks(), Word::IDLE);
        })
        .verify("handler, the same lock", &config.preemptions(depth(2, 4)));
    assert!(stats.executions > 100);
}
