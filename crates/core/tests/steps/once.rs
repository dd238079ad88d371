//! What `RawOnce` does, step by step, on a machine with one thread.

use crate::common::{
    Alone, U32, as_participant, here, lose, script, script_exchange32, set, sleeps, time, told,
    unplayed, wakes,
};
use lockstead_core::{
    Atomic32, Awaited, AwaitedUse, LockError, OnceError, OnceState, Ordering, RawOnce, ShownSleep,
    Slot, WaitBounds, WaitOutcome,
};
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
    assert_eq!((runs.get(), once.state()), (1, OnceState::Complete));
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

/// Returns the word of a once.
fn word(once: &RawOnce<Alone>) -> &U32 {
    // SAFETY: it is its word (`repr(transparent)`), an atomic, and `once` borrows it.
    unsafe { &*std::ptr::from_ref(once).cast() }
}

const WAITERS: u32 = 1 << 20;
const COMPLETE: u32 = 1 << 21;
const POISONED: u32 = 1 << 22;

#[test]
fn an_observer_is_told_of_each_sleep_and_how_it_ends() {
    let once = once();
    let turn = as_participant(2, || once.begin(false, &WaitBounds::FOREVER));
    for observed in [false, true] {
        set(|machine| machine.observed = observed);
        for (outcome, error) in [
            (WaitOutcome::Woken, None),
            (WaitOutcome::Changed, None),
            (WaitOutcome::TimedOut, Some(LockError::TimedOut)),
            (WaitOutcome::Interrupted, Some(LockError::Interrupted)),
            (WaitOutcome::Cancelled, Some(LockError::Cancelled)),
        ] {
            let deadline = Some(time().after(1000));
            let how = WaitBounds { deadline, interruptible: true, ..WaitBounds::FOREVER };
            script(move || {
                assert_eq!(word(once).load(Ordering::Relaxed), 2 | WAITERS);
                outcome
            });
            if error.is_none() {
                script(|| WaitOutcome::TimedOut);
            }
            let ended = once.call_once(&how, || unreachable!());
            let expected = error.unwrap_or(LockError::TimedOut);
            assert_eq!(ended, Err(OnceError::NotAwaited(expected)));
            let address = std::ptr::from_ref(once).addr();
            let wants = AwaitedUse::Turn;
            let awaited = Awaited { address, wants, name: None, deadline };
            let mut all = vec![(awaited, None)];
            all.extend(observed.then_some((awaited, Some(error))));
            let told = told();
            assert_eq!(told[..all.len()], all);
            assert_eq!(told.len(), all.len() * if error.is_none() { 2 } else { 1 });
            let first = sleeps()[0];
            let shown = ShownSleep { lock: address, wants, is_endless: false };
            assert_eq!((first.until, first.shown), (deadline, Some(shown)));
        }
    }
    turn.expect("nothing in the way").expect("not done").complete();
    assert_eq!(word(once).load(Ordering::Relaxed), COMPLETE);
    assert_eq!(wakes().into_iter().map(|it| it.1).collect::<Vec<_>>(), [u32::MAX]);
}

#[test]
fn steps_that_others_come_before_are_made_again() {
    // Another one has the turn by then, and ends it as this one is about to sleep.
    let once = once();
    script_exchange32(move || word(once).store(2, Ordering::Relaxed));
    script_exchange32(move || word(once).store(COMPLETE, Ordering::Relaxed));
    assert_eq!(once.call_once(&WaitBounds::FOREVER, || unreachable!()), Ok(()));
    assert_eq!((unplayed(), sleeps().len()), (0, 0));
    // The one before has panicked by then.
    word(once).store(0, Ordering::Relaxed);
    script_exchange32(move || word(once).store(POISONED, Ordering::Relaxed));
    let ended = once.call_once(&WaitBounds::FOREVER, || unreachable!());
    assert_eq!((ended, unplayed()), (Err(OnceError::Poisoned), 0));
    assert_eq!(once.state(), OnceState::Poisoned);
    // Another one has the turn after a panic, and panics as well.
    script_exchange32(move || word(once).store(2, Ordering::Relaxed));
    script_exchange32(move || word(once).store(POISONED, Ordering::Relaxed));
    let done = once.call_once_force(&WaitBounds::FOREVER, |poisoned| assert!(poisoned));
    assert_eq!((done, unplayed(), sleeps().len()), (Ok(()), 0, 0));
    assert_eq!(once.state(), OnceState::Complete);
}

/// Whoever has the turn is known although others sleep.
#[test]
fn the_runner_is_known_while_others_sleep() {
    let once = once();
    word(once).store(1 | WAITERS, Ordering::Relaxed);
    let own = Err(OnceError::NotAwaited(LockError::Recursive));
    assert_eq!(once.call_once(&WaitBounds::FOREVER, || unreachable!()), own);
    assert_eq!(once.state(), OnceState::Running(Slot::new(1).expect("a slot")));
    lose(6);
    word(once).store(6 | WAITERS, Ordering::Relaxed);
    let lost = Err(OnceError::NotAwaited(LockError::OwnerLost));
    assert_eq!(once.call_once(&WaitBounds::FOREVER, || unreachable!()), lost);
    assert_eq!(sleeps(), []);
}

/// Whoever finds that others sleep already leaves the word as it is, and sleeps.
#[test]
fn a_second_sleeper_writes_nothing() {
    let once = once();
    word(once).store(2 | WAITERS, Ordering::Relaxed);
    script_exchange32(|| unreachable!("there is nothing to write"));
    script(move || {
        word(once).store(COMPLETE, Ordering::Relaxed);
        WaitOutcome::Woken
    });
    assert_eq!(once.call_once_force(&WaitBounds::FOREVER, |_| unreachable!()), Ok(()));
    assert_eq!((unplayed(), once.is_completed()), (1, true));
    // Nobody sleeps: the one that has the turn wakes nobody.
    word(once).store(3, Ordering::Relaxed);
    // SAFETY: the word says that participant 3 has the turn.
    as_participant(3, || unsafe { once.turn() }.complete());
    assert_eq!(wakes(), []);
    word(once).store(3, Ordering::Relaxed);
    // SAFETY: the word says that participant 3 has the turn.
    let turn = as_participant(3, || unsafe { once.turn() });
    assert!(!turn.after_poisoning());
    assert_eq!(once.state(), OnceState::Running(Slot::new(3).expect("a slot")));
    drop(turn);
    assert_eq!((once.state(), wakes()), (OnceState::Poisoned, vec![]));
}
