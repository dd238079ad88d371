//! Once: runs once, everyone sees the result, waiters are woken, a failed run
//! is made good by another.

use crate::common::depth;
use lockstead_core::{LockError, Nanos, OnceError, OnceState, Platform, RawOnce, WaitBounds};
use lockstead_model::{Cell, Config, Coverage, FutexModel, Model, Ordering, Scenario, U32, freed};
use std::cell::Cell as Count;

const FOREVER: WaitBounds<'static, Model> = WaitBounds::FOREVER;

struct Shared {
    once: RawOnce<Model>,
    /// What the initialiser makes.
    made: Cell<u32>,
    /// What a failed initialiser leaves behind.
    debris: Cell<u32>,
    cancel: U32,
    runs: Count<u32>,
    /// How many gave up.
    gone: Count<u32>,
}

impl Shared {
    fn new() -> Self {
        Shared {
            once: RawOnce::new(),
            made: Cell::new(0),
            debris: Cell::new(0),
            cancel: U32::ZERO,
            runs: Count::new(0),
            gone: Count::new(0),
        }
    }

    fn make(&self) {
        self.runs.set(self.runs.get() + 1);
        self.made.set(self.made.get() + 7);
    }

    fn see(&self) {
        assert_eq!(self.made.get(), 7);
    }

    fn call(&self) {
        assert_eq!(self.once.call_once(&FOREVER, || self.make()), Ok(()));
        self.see();
    }

    /// Calls, but gives up as `how` says, with this error.
    fn call_or(&self, how: &WaitBounds<'_, Model>, error: LockError) {
        match self.once.call_once(how, || self.make()) {
            Ok(()) => self.see(),
            Err(given) => {
                assert_eq!(given, OnceError::NotAwaited(error));
                self.gone.set(self.gone.get() + 1);
            }
        }
    }

    /// Looks, without waiting.
    fn look(&self) {
        if self.once.is_completed() {
            self.see();
        }
    }

    /// Runs an initialiser that fails, unless another was quicker; with `force`
    /// also after one that failed.
    fn fail(&self, force: bool) {
        match self.once.begin(force, &FOREVER) {
            Ok(Some(turn)) => {
                self.debris.set(self.debris.get() + 1);
                drop(turn);
            }
            Ok(None) => self.see(),
            Err(error) => assert_eq!(error, OnceError::Poisoned),
        }
    }

    /// Makes good what failed.
    fn repair(&self) {
        let repaired = self.once.call_once_force(&FOREVER, |failed| {
            assert_eq!(self.debris.get() > 0, failed);
            self.make();
        });
        assert_eq!(repaired, Ok(()));
        self.see();
    }
}

fn scenario() -> Scenario<Shared> {
    Scenario::new(Shared::new).after(|s| {
        assert_eq!(s.runs.get(), 1);
        assert!(s.once.is_completed());
    })
}

#[test]
fn model_once_runs_once_2t() {
    let stats = scenario()
        .threads(2, |s| {
            s.look();
            s.call();
            s.call();
        })
        .verify("once, 2 threads", &Config::new().spurious(2));
    assert_eq!(stats.coverage, Coverage::Complete);
}

#[test]
fn model_once_runs_once_3t() {
    let three = scenario().threads(2, Shared::call).thread(|s| {
        s.look();
        s.call();
    });
    let stats = three.verify("once, 3 threads", &Config::new());
    assert_eq!(stats.coverage, Coverage::Complete);
    let cheap = Config::new().futex(FutexModel::Cheap).preemptions(depth(2, 4));
    three.verify("once, cheap futex, 3 threads", &cheap);
}

#[test]
fn model_once_wakes_all_4t() {
    let config = Config::new().preemptions(depth(2, 3)).stale_reads(depth(1, 2));
    scenario().threads(4, Shared::call).verify("once, 4 threads", &config);
}

#[test]
fn model_once_timed_3t() {
    let config = Config::new().timeouts(1).preemptions(depth(3, 5));
    scenario()
        .threads(2, Shared::call)
        .thread(|s| {
            let how = WaitBounds { deadline: Some(Nanos(100)), ..FOREVER };
            s.call_or(&how, LockError::TimedOut);
        })
        .verify("once, one timed, 3 threads", &config);
}

#[test]
fn model_once_interrupted_3t() {
    let stats = scenario()
        .threads(2, Shared::call)
        .thread(|s| {
            let how = WaitBounds { interruptible: true, ..FOREVER };
            s.call_or(&how, LockError::Interrupted);
        })
        .verify("once, one interrupted, 3 threads", &Config::new().interrupts(1).spurious(0));
    assert_eq!(stats.coverage, Coverage::Complete);
}

#[test]
fn model_once_cancelled_3t() {
    let stats = scenario()
        .thread(Shared::call)
        .thread(|s| {
            let how = WaitBounds { cancel: Some(&s.cancel), ..FOREVER };
            s.call_or(&how, LockError::Cancelled);
        })
        .thread(|s| {
            s.cancel.store(1, Ordering::Release);
            Model::wake(Model::address32(&s.cancel), u32::MAX);
            s.call();
        })
        .verify("once, one cancelled, 3 threads", &Config::new().spurious(0));
    assert_eq!(stats.coverage, Coverage::Complete);
}

#[test]
fn model_once_is_repaired_3t() {
    let stats = scenario()
        .thread(|s| s.fail(false))
        .threads(2, Shared::repair)
        .verify("once, poisoned and repaired, 3 threads", &Config::new().spurious(depth(0, 1)));
    assert_eq!(stats.coverage, Coverage::Complete);
}

/// Without `force` a failed run is final: told to whoever waited for it.
#[test]
fn model_once_tells_of_poisoning_2t() {
    let stats = Scenario::new(Shared::new)
        .threads(2, |s| s.fail(false))
        .after(|s| {
            assert_eq!(s.debris.get(), 1);
            assert_eq!(s.once.call_once(&FOREVER, || s.make()), Err(OnceError::Poisoned));
        })
        .verify("once, poisoned, 2 threads", &Config::new());
    assert_eq!(stats.coverage, Coverage::Complete);
}

/// Whoever finds that another thread has done it may free it: the runner
/// touches it for the last time as it says so.
#[test]
fn model_once_is_freed_when_done_2t() {
    let stats = Scenario::new(Shared::new)
        .thread(|s| {
            if let Ok(Some(turn)) = s.once.begin(false, &FOREVER) {
                turn.complete();
            }
        })
        .thread(|s| {
            let waited = s.once.begin(false, &FOREVER);
            match waited {
                Ok(None) => freed(&s.once),
                Ok(Some(turn)) => turn.complete(),
                Err(error) => panic!("{error:?}"),
            }
        })
        .verify("once, freed, 2 threads", &Config::new());
    assert_eq!(stats.coverage, Coverage::Complete);
}

/// Whoever is told that it is complete sees what the initialiser wrote.
#[test]
fn model_once_publishes_by_its_state_2t() {
    let asks = |s: &Shared| {
        if s.once.state() == OnceState::Complete {
            s.see();
        }
    };
    let stats = scenario().thread(Shared::call).thread(asks);
    let stats = stats.verify("once, asked for its state, 2 threads", &Config::new());
    assert_eq!(stats.coverage, Coverage::Complete);
}
