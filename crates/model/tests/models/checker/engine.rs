//! The checker checked: what it must find it finds, what is correct passes, and
//! the reductions change nothing.

use lockstead_core::{Nanos, Platform, WaitBounds, WaitOutcome};
use lockstead_model::{
    Cell, Config, Coverage, FailureKind, Fault, FutexModel, Model, Ordering, Scenario, Schedule,
    SearchFailure, U32, freed, thread, with_handler,
};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use Ordering::{Acquire, Relaxed, Release};

const FOREVER: WaitBounds<'static, Model> = WaitBounds::FOREVER;

/// The textbook futex mutex: 0 free, 1 held, 2 held with waiters.
struct Textbook {
    word: U32,
    count: Cell<u32>,
    order: RefCell<Vec<usize>>,
}

impl Textbook {
    fn new() -> Self {
        Textbook { word: U32::ZERO, count: Cell::new(0), order: RefCell::default() }
    }

    fn lock(&self) {
        if self.word.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
            return;
        }
        while self.word.swap(2, Acquire) != 0 {
            Model::wait32(&self.word, 2, &FOREVER);
        }
    }

    /// Spins, never sleeps.
    fn lock_spinning(&self) {
        while self.word.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            Model::relax();
        }
    }

    fn unlock(&self) {
        if self.word.swap(0, Release) == 2 {
            Model::wake(Model::address32(&self.word), 1);
        }
    }

    fn section(&self) {
        self.count.set(self.count.get() + 1);
        self.order.borrow_mut().push(thread());
    }
}

fn textbook() -> Scenario<Textbook> {
    Scenario::new(Textbook::new).threads(2, |t| {
        t.lock();
        t.section();
        t.unlock();
    })
}

/// Returns all orders of entering, with and without the reductions.
fn orders(body: fn(&Textbook), config: &Config) -> [BTreeSet<Vec<usize>>; 2] {
    [true, false].map(|reduce| {
        let orders = Rc::new(RefCell::new(BTreeSet::new()));
        let into = Rc::clone(&orders);
        let mut scenario = Scenario::new(Textbook::new);
        for _ in 0..3 {
            // One by one: to count as different.
            scenario = scenario.thread(body);
        }
        scenario
            .after(move |t| {
                into.borrow_mut().insert(t.order.borrow().clone());
            })
            .check(&config.clone().reduce(reduce))
            .expect("correct");
        orders.take()
    })
}

fn failure<S: 'static>(scenario: &Scenario<S>, config: &Config) -> SearchFailure {
    *scenario.check(config).expect_err("something is wrong here")
}

#[test]
fn a_correct_lock_passes_with_every_futex() {
    for futex in [FutexModel::Exact, FutexModel::Cheap] {
        let stats = textbook()
            .after(|t| assert_eq!(t.count.get(), 2))
            .check(&Config::new().futex(futex).spurious(2))
            .expect("correct");
        assert_eq!(stats.coverage, Coverage::Complete);
    }
}

#[test]
fn the_reductions_lose_no_outcome() {
    let config = Config::new().preemptions(1).stale_reads(1).spurious(0);
    let sleeping: fn(&Textbook) = |t| {
        t.lock();
        t.section();
        t.unlock();
    };
    let spinning: fn(&Textbook) = |t| {
        t.lock_spinning();
        t.section();
        t.unlock();
    };
    for body in [sleeping, spinning] {
        let [reduced, full] = orders(body, &config);
        assert_eq!(reduced, full);
        assert_eq!(full.len(), 6);
    }
}

#[test]
fn of_equal_threads_the_second_may_overtake_the_first() {
    let orders = Rc::new(RefCell::new(BTreeSet::new()));
    let into = Rc::clone(&orders);
    Scenario::new(Textbook::new)
        .threads(2, |t| {
            t.word.load(Relaxed);
            t.lock();
            t.section();
            t.unlock();
        })
        .after(move |t| {
            into.borrow_mut().insert(t.order.borrow().clone());
        })
        .check(&Config::new())
        .expect("correct");
    // Though it never begins first.
    assert_eq!(orders.take(), BTreeSet::from([vec![0, 1], vec![1, 0]]));
}

#[test]
fn a_lost_wake_up_is_found_as_a_deadlock() {
    let scenario = Scenario::new(Textbook::new)
        .thread(|t| {
            t.word.store(1, Release);
            // Wakes too early: the waiter may not sleep yet, and the word does
            // not tell it.
            Model::wake(Model::address32(&t.word), 1);
        })
        .thread(|t| {
            if t.word.load(Acquire) == 0 {
                let other = U32::ZERO;
                Model::wait32(&other, 0, &FOREVER);
            }
        });
    let found = failure(&scenario, &Config::new());
    assert_eq!(found.kind, FailureKind::Deadlock);
    assert!(found.threads[1].starts_with("sleeps"), "{found}");
}

#[test]
fn crossed_locks_are_found_as_a_deadlock() {
    let scenario = Scenario::new(|| (Textbook::new(), Textbook::new()))
        .thread(|(a, b)| {
            a.lock();
            b.lock();
            b.unlock();
            a.unlock();
        })
        .thread(|(a, b)| {
            b.lock();
            a.lock();
            a.unlock();
            b.unlock();
        });
    assert_eq!(failure(&scenario, &Config::new().spurious(0)).kind, FailureKind::Deadlock);
}

#[test]
fn every_rule_of_waiting_is_missed_when_broken() {
    textbook().check(&Config::new()).expect("correct on a correct platform");
    for fault in [Fault::SplitWait, Fault::NoWake] {
        let found = failure(&textbook(), &Config::new().fault(fault));
        assert_eq!(found.kind, FailureKind::Deadlock, "{fault:?}");
    }
    // PLATFORM-WOKEN: the waiter that was woken says that its time is up and goes; the
    // other one sleeps on.
    let timed = Scenario::new(Textbook::new)
        .threads(2, |t| {
            t.lock();
            t.section();
            t.unlock();
        })
        .thread(|t| {
            let how = WaitBounds { deadline: Some(Nanos(100)), ..FOREVER };
            if t.word.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
                while t.word.swap(2, Acquire) != 0 {
                    if Model::wait32(&t.word, 2, &how) == WaitOutcome::TimedOut {
                        return;
                    }
                }
            }
            t.unlock();
        });
    let config = Config::new().timeouts(1).spurious(0);
    timed.check(&config).expect("correct on a correct platform");
    let found = failure(&timed, &config.fault(Fault::SwallowedWake));
    assert_eq!(found.kind, FailureKind::Deadlock);
}

#[test]
fn a_spurious_wake_up_comes_on_any_wait() {
    let scenario = Scenario::new(Textbook::new)
        .thread(|t| {
            Model::wait32(&t.word, 0, &FOREVER);
            assert_eq!(t.word.load(Acquire), 1, "woken, so it must be set");
        })
        .thread(|t| {
            t.word.store(1, Release);
            Model::wake(Model::address32(&t.word), 1);
        });
    assert!(matches!(failure(&scenario, &Config::new()).kind, FailureKind::Panic(_)));
    // Without, the wait ends by the wake-up or did not begin; only a stale
    // read is left to fail.
    scenario.check(&Config::new().spurious(0).stale_reads(0)).expect("correct without");
}

#[test]
fn timers_fire_early_or_only_when_nothing_else_can_happen() {
    let outcomes = Rc::new(RefCell::new(BTreeSet::new()));
    let into = Rc::clone(&outcomes);
    let scenario = Scenario::new(|| (U32::ZERO, RefCell::new(String::new())))
        .thread(|(word, said)| {
            let how = WaitBounds { deadline: Some(Nanos(50)), ..FOREVER };
            let outcome = Model::wait32(word, 0, &how);
            if outcome == WaitOutcome::TimedOut {
                assert!(Model::now() >= Nanos(50));
            }
            said.replace(format!("{outcome:?}"));
        })
        .thread(|(word, _)| {
            word.store(1, Release);
            Model::wake(Model::address32(word), 1);
        })
        .after(move |(_, said)| {
            into.borrow_mut().insert(said.borrow().clone());
        });
    scenario.check(&Config::new().spurious(0)).expect("correct");
    let never: BTreeSet<String> = ["Changed", "Woken"].map(str::to_owned).into();
    assert_eq!(outcomes.take(), never);
    scenario.check(&Config::new().spurious(0).timeouts(1)).expect("correct");
    let early: BTreeSet<String> = ["Changed", "TimedOut", "Woken"].map(str::to_owned).into();
    assert_eq!(outcomes.take(), early);

    let alone = Scenario::new(|| U32::ZERO).thread(|word| {
        let how = WaitBounds { deadline: Some(Nanos(50)), ..FOREVER };
        assert_eq!(Model::wait32(word, 0, &how), WaitOutcome::TimedOut);
    });
    let plain = Config::new().spurious(0);
    assert_eq!(failure(&alone, &plain).kind, FailureKind::Deadlock);
    alone.check(&plain.rescue(true)).expect("the timer comes to the rescue");
}

#[test]
fn interruption_and_cancellation_end_a_wait() {
    let outcomes = Rc::new(RefCell::new(BTreeSet::new()));
    let into = Rc::clone(&outcomes);
    Scenario::new(|| (U32::ZERO, U32::ZERO, RefCell::new(String::new())))
        .thread(|(word, cancel, said)| {
            let how = WaitBounds { cancel: Some(cancel), interruptible: true, ..FOREVER };
            said.replace(format!("{:?}", Model::wait32(word, 0, &how)));
        })
        .thread(|(_, cancel, _)| {
            cancel.store(1, Release);
            Model::wake(Model::address32(cancel), 1);
        })
        .after(move |(_, _, said)| {
            into.borrow_mut().insert(said.borrow().clone());
        })
        .check(&Config::new().spurious(0).interrupts(1))
        .expect("correct");
    let expected: BTreeSet<String> = ["Cancelled", "Interrupted"].map(str::to_owned).into();
    assert_eq!(outcomes.take(), expected);
}

#[test]
fn spinning_for_something_that_never_comes_is_found() {
    let scenario = Scenario::new(|| U32::ZERO).threads(2, |word| {
        while word.load(Acquire) == 0 {
            Model::relax();
        }
    });
    assert_eq!(failure(&scenario, &Config::new()).kind, FailureKind::Livelock);
    let endless = Scenario::new(|| U32::ZERO).thread(|word| {
        loop {
            word.fetch_add(1, Relaxed);
        }
    });
    assert_eq!(failure(&endless, &Config::new()).kind, FailureKind::TooLong);
}

#[test]
fn a_spinner_may_stop_spinning_before_anything_changes() {
    let seen = Rc::new(RefCell::new(BTreeSet::new()));
    let into = Rc::clone(&seen);
    Scenario::new(|| (U32::ZERO, std::cell::Cell::new(9)))
        .thread(|(word, _)| word.store(1, Release))
        .thread(|(word, result)| {
            word.load(Relaxed);
            Model::relax();
            result.set(word.load(Relaxed));
        })
        .after(move |(_, result)| {
            into.borrow_mut().insert(result.get());
        })
        .check(&Config::new())
        .expect("correct");
    assert_eq!(seen.take(), BTreeSet::from([0, 1]));
}

#[test]
fn freed_memory_is_not_touched_but_may_be_woken() {
    let scenario = |late: bool| {
        Scenario::new(Textbook::new).thread(move |t| {
            let address = Model::address32(&t.word);
            freed(t);
            Model::wake(address, 1);
            if late {
                t.word.load(Relaxed);
            }
        })
    };
    scenario(false).check(&Config::new()).expect("a wake-up is no access");
    assert_eq!(failure(&scenario(true), &Config::new()).kind, FailureKind::UseAfterFree);
}

#[test]
fn a_handler_runs_before_every_step_and_during_sleep() {
    let places = Rc::new(RefCell::new(BTreeSet::new()));
    let into = Rc::clone(&places);
    Scenario::new(|| (U32::ZERO, std::cell::Cell::new(0), std::cell::Cell::new(9)))
        .thread(|(word, steps, at)| {
            with_handler(
                || at.set(steps.get()),
                || {
                    word.load(Relaxed);
                    steps.set(1);
                    word.load(Relaxed);
                    steps.set(2);
                    while word.load(Acquire) == 0 {
                        Model::wait32(word, 0, &FOREVER);
                    }
                },
            );
        })
        .thread(|(word, ..)| {
            word.store(1, Release);
            Model::wake(Model::address32(word), 1);
        })
        .after(move |(_, _, at)| {
            into.borrow_mut().insert(at.get());
        })
        .check(&Config::new().spurious(0))
        .expect("correct");
    assert_eq!(places.take(), BTreeSet::from([0, 1, 2, 9]));
}

/// Fails only where the second thread is preempted in its two places.
fn needs_two_preemptions() -> Scenario<U32> {
    Scenario::new(|| U32::ZERO)
        .thread(|word| {
            let _ = word.compare_exchange(1, 2, Relaxed, Relaxed);
            let _ = word.compare_exchange(3, 4, Relaxed, Relaxed);
        })
        .thread(|word| {
            word.store(1, Relaxed);
            let _ = word.compare_exchange(2, 3, Relaxed, Relaxed);
            assert_ne!(word.load(Relaxed), 4);
        })
}

#[test]
fn a_bound_on_preemptions_is_a_bound() {
    let config = Config::new().stale_reads(0);
    let one = needs_two_preemptions().check(&config.clone().preemptions(1)).expect("not found");
    assert_eq!(one.coverage, Coverage::Bounded(1));
    assert!(needs_two_preemptions().check(&config.clone().preemptions(3)).is_err());
    assert!(needs_two_preemptions().check(&config).is_err());
}

#[test]
fn a_failure_replays_from_its_printed_schedule() {
    for config in [Config::new(), Config::new().random(7, 10_000)] {
        let found = failure(&needs_two_preemptions(), &config);
        let schedule: Schedule = found.schedule.to_string().parse().expect("as printed");
        assert_eq!(schedule, found.schedule);
        let again = needs_two_preemptions().replay(&config, &schedule).expect_err("as before");
        assert_eq!(again.kind, found.kind);
        assert_eq!(again.story, found.story);
    }
    assert!("1.2".parse::<Schedule>().is_err());
    assert!("1.x/".parse::<Schedule>().is_err());
}

#[test]
fn random_searches_repeat() {
    let config = Config::new().random(1, 500);
    assert_eq!(textbook().check(&config).ok(), textbook().check(&config).ok());
}

#[test]
fn a_search_that_is_too_large_fails_rather_than_stops() {
    let config = Config::new().max_executions(3);
    assert_eq!(failure(&textbook(), &config).kind, FailureKind::TooMany);
}

#[test]
fn memory_that_may_move_is_refused() {
    let scenario = Scenario::new(|| Box::new(U32::ZERO)).thread(|word| {
        word.load(Relaxed);
    });
    assert!(matches!(failure(&scenario, &Config::new()).kind, FailureKind::Misuse(_)));
}

#[test]
fn threads_that_share_something_else_are_noticed() {
    let outside = std::cell::Cell::new(0);
    let scenario = Scenario::new(|| U32::ZERO)
        .thread(move |word| {
            // Does something in every other execution.
            outside.set(outside.get() + 1);
            if outside.get() % 2 == 0 {
                word.load(Relaxed);
            }
        })
        .thread(|word| word.store(1, Relaxed))
        .thread(|word| word.store(2, Relaxed));
    assert!(matches!(failure(&scenario, &Config::new()).kind, FailureKind::Misuse(_)));
}
