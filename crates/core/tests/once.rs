//! What `RawOnce` does, step by step, on a machine with one thread.

mod common;

use common::{Alone, as_participant, here, lose, script, time, unplayed, wakes};
use lockstead_core::{LockError, OnceError, OnceState, RawOnce, Slot, WaitBounds, WaitOutcome};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn once() -> &'static RawOnce<Alone> {
    Box::leak(Box::new(RawOnce::new()))
}

/// Panics in the initialiser.
fn poison(once: &RawOnce<Alone>) {
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _ = once.call_once(&WaitBounds::FOREVER, || panic!("a test of poisoning"));
    }));
    assert!(panicked.is_err());
}

#[test]
fn it_is_done_once() {
    let once = once();
    let runs = Cell::new(0);
    assert_eq!(once.state(), OnceState::Incomplete);
    for _ in 0..3 {
        let done = once.call_once(&WaitBounds::FOREVER, || {
            assert_eq!(once.state(), OnceState::Running(Slot::new(1).expect("a slot")));
            runs.set(runs.get() + 1);
        });
        assert_eq!(done, Ok(()));
        assert!(once.is_completed());
    }
    assert_eq!(runs.get(), 1);
    assert_eq!(wakes(), []);
    assert_eq!(size_of::<RawOnce<Alone>>(), 4);
}

#[test]
fn an_initialiser_that_needs_itself_is_told() {
    let once = once();
    let done = once.call_once(&WaitBounds::FOREVER, || {
        let inner = once.call_once(&WaitBounds::FOREVER, || unreachable!());
        assert_eq!(inner, Err(OnceError::NotAwaited(LockError::Recursive)));
    });
    assert_eq!(done, Ok(()));
}

#[test]
fn a_panic_poisons_and_force_repairs() {
    let once = once();
    poison(once);
    assert_eq!(once.state(), OnceState::Poisoned);
    assert_eq!(once.call_once(&WaitBounds::FOREVER, || unreachable!()), Err(OnceError::Poisoned));
    let told = Cell::new(None);
    let done = once.call_once_force(&WaitBounds::FOREVER, |poisoned| told.set(Some(poisoned)));
    assert_eq!((done, told.get()), (Ok(()), Some(true)));
    assert!(once.is_completed());
    assert_eq!(once.call_once(&WaitBounds::FOREVER, || unreachable!()), Ok(()));
}

#[test]
fn others_sleep_until_it_is_done() {
    let once = once();
    let turn = as_participant(2, || once.begin(false, &WaitBounds::FOREVER));
    let turn = turn.expect("nothing in the way").expect("not done");
    assert!(!turn.after_poisoning());
    script(move || {
        as_participant(2, || turn.complete());
        assert_eq!(wakes().into_iter().map(|w| w.1).collect::<Vec<_>>(), [u32::MAX]);
        WaitOutcome::Woken
    });
    assert_eq!(once.call_once(&WaitBounds::FOREVER, || unreachable!()), Ok(()));
    assert_eq!(unplayed(), 0);
}

#[test]
fn others_that_sleep_learn_of_a_panic() {
    let once = once();
    for force in [false, true] {
        let turn = as_participant(2, || once.begin(true, &WaitBounds::FOREVER));
        let turn = turn.expect("nothing in the way").expect("not done");
        script(move || {
            as_participant(2, || drop(turn));
            assert_eq!(wakes().len(), 1);
            WaitOutcome::Woken
        });
        match once.begin(force, &WaitBounds::FOREVER) {
            Err(error) => assert_eq!((error, force), (OnceError::Poisoned, false)),
            Ok(turn) => {
                let turn = turn.expect("not done");
                assert!(force && turn.after_poisoning());
                turn.complete();
            }
        }
        assert_eq!(unplayed(), 0);
    }
    assert!(once.is_completed());
}

#[test]
fn a_wait_for_the_initialiser_can_end() {
    let once = once();
    let turn = as_participant(2, || once.begin(false, &WaitBounds::FOREVER));
    let how = WaitBounds {
        deadline: Some(time().after(1000)),
        interruptible: true,
        ..WaitBounds::FOREVER
    };
    script(|| WaitOutcome::Interrupted);
    script(|| WaitOutcome::TimedOut);
    for error in [LockError::Interrupted, LockError::TimedOut] {
        let result = once.call_once(&how, || unreachable!());
        assert_eq!(result, Err(OnceError::NotAwaited(error)));
    }
    turn.expect("nothing in the way").expect("not done").complete();
    assert_eq!(once.call_once(&how, || unreachable!()), Ok(()));
}

#[test]
fn an_initialiser_left_behind_by_fork_is_told_and_not_waited_for() {
    let once = once();
    let turn = as_participant(6, || once.begin(false, &WaitBounds::FOREVER));
    lose(6);
    let result = once.call_once(&WaitBounds::FOREVER, || unreachable!());
    assert_eq!(result, Err(OnceError::NotAwaited(LockError::OwnerLost)), "{}", here());
    std::mem::forget(turn);
}
