//! What a waiter for the mutex between processes does, step by step, on a machine with one thread:
//! what it sleeps on, whom it wakes, and what it leaves behind.

use crate::common::segment::{Segment, get, name, rings, segment, set};
use crate::common::shared::{
    Call, REST, Watch, answer, at, calls, deeds, heard, named, script_sleep,
};
use crate::common::shared_mutex::{forever, lock, lock_any, parts, watches};
use crate::common::{
    Alone, U32, machine, pass, script_access, script_exchange32, script_pause, time,
};
use lockstead_core::robust::word::{INCONSISTENT, NOT_RECOVERABLE, RESERVED, UNTOUCHED, WAITERS};
use lockstead_core::robust::{Got, RobustError, RobustMachine, RobustUse, RobustWait, Woken};
use lockstead_core::{Atomic32, Nanos, WaitBounds};

fn until(deadline: Nanos) -> WaitBounds<'static, Alone> {
    WaitBounds { deadline: Some(deadline), ..WaitBounds::FOREVER }
}

fn interruptible() -> WaitBounds<'static, Alone> {
    WaitBounds { interruptible: true, ..WaitBounds::FOREVER }
}

fn wait(segment: &'static Segment, deadline: Option<Nanos>) -> RobustWait {
    RobustWait { address: at(&segment.mutex), wants: RobustUse::Mutex, deadline }
}

#[test]
fn a_waiter_sleeps_on_five_words_and_passes_its_wake_up_on_before_it_unnames_the_doorbell() {
    let segment = segment();
    let (word, reserved_for) = parts(segment);
    set(word, name(2).bits());
    set(reserved_for, 78);
    set(&segment.doorbell, 3 << 30);
    script_sleep(move || {
        assert_eq!((get(word), named()), (name(2).bits() | WAITERS, Some(at(&segment.doorbell))));
        assert_eq!(get(&segment.record(1).waits_for), segment.offset(&segment.mutex));
        let [Call::Begin(begins), Call::Name(_), Call::Sleep(slept, None)] = &calls()[..] else {
            panic!("names, then sleeps")
        };
        assert_eq!(*slept, watches(segment, 2, false, name(2).bits() | WAITERS));
        assert_eq!(*begins, wait(segment, None));
        set(word, 0);
        Woken::At(0)
    });
    assert_eq!(forever(segment), Ok(Got::Clean));
    assert_eq!(get(word), name(1).bits());
    let [Call::Defer(bell), passes, unnames] = &calls()[..] else { panic!() };
    assert_eq!(*bell, at(&segment.doorbell));
    assert_eq!(*passes, Call::Wake(at(reserved_for), 1));
    assert_eq!((unnames, named()), (&Call::Name(None), None));
}

/// What was named before is named again.
#[test]
fn a_waiter_names_again_what_was_named_before() {
    let segment = segment();
    let (word, _) = parts(segment);
    let other = std::ptr::NonNull::from(&segment.claim(1, 1).units);
    Alone::at_death_wake(Some(other));
    set(word, name(2).bits());
    script_sleep(|| Woken::Cancelled);
    assert_eq!(forever(segment), Err(RobustError::Cancelled));
    assert_eq!(named(), Some(at(&segment.claim(1, 1).units)));
    Alone::at_death_wake(None);
}

#[test]
fn a_taker_may_leave_its_wake_up_to_its_release() {
    let segment = segment();
    let (word, _) = parts(segment);
    for flags in [0, WAITERS] {
        answer(|answers| answers.defers = true);
        set(word, name(2).bits());
        script_sleep(move || {
            set(word, flags);
            Woken::At(0)
        });
        assert_eq!(forever(segment), Ok(Got::Clean));
        assert_eq!(get(word), name(1).bits() | WAITERS);
        let calls = deeds();
        assert_eq!(calls.len(), 1, "{calls:?}");
    }
    // It has nothing to defer that was not woken.
    set(word, name(2).bits());
    script_sleep(move || {
        set(word, 0);
        Woken::Unsure
    });
    assert_eq!(forever(segment), Ok(Got::Clean));
    assert_eq!(get(word), name(1).bits());
    assert!(!calls().iter().any(|call| matches!(call, Call::Defer(_) | Call::Wake(..))));
    // One that has deferred, and then finds that somebody was quicker, owes it still.
    set(word, name(2).bits());
    script_sleep(move || {
        set(word, 0);
        script_exchange32(move || set(word, name(2).bits()));
        Woken::At(0)
    });
    script_sleep(|| Woken::Changed);
    script_sleep(|| Woken::Cancelled);
    assert_eq!(forever(segment), Err(RobustError::Cancelled));
    let (_, reserved_for) = parts(segment);
    assert_eq!(deeds().last(), Some(&Call::Wake(at(reserved_for), 1)));
}

#[test]
fn a_waiter_that_a_death_woke_wakes_everybody() {
    let segment = segment();
    let (word, reserved_for) = parts(segment);
    for (index, rung, everybody) in
        [(0, false, false), (1, false, true), (1, true, false), (2, false, true), (2, true, true)]
    {
        set(word, name(2).bits());
        script_sleep(move || {
            set(word, 0);
            if rung {
                set(&segment.doorbell, get(&segment.doorbell).wrapping_add(1 << 30));
            }
            deeds();
            Woken::At(index)
        });
        assert_eq!(forever(segment), Ok(Got::Clean));
        let mut expected = vec![];
        expected.extend(everybody.then(|| rings(segment)));
        expected.push(Call::Wake(at(reserved_for), 1));
        assert_eq!(deeds(), expected, "{index} {rung}");
    }
}

#[test]
fn who_gives_up_passes_on_whether_it_was_woken_or_not() {
    let segment = segment();
    let (word, reserved_for) = parts(segment);
    let begun = time();
    let deadline = begun.after(1000);
    let token: &U32 = Box::leak(Box::new(U32::ZERO));
    let cancel = WaitBounds { cancel: Some(token), ..WaitBounds::FOREVER };
    for (how, woken, expected) in [
        (until(deadline), Woken::TimedOut, RobustError::TimedOut),
        (WaitBounds::FOREVER, Woken::Cancelled, RobustError::Cancelled),
        (interruptible(), Woken::Interrupted, RobustError::Interrupted),
    ] {
        set(word, name(2).bits());
        script_sleep(move || woken);
        assert_eq!(lock_any(segment, &how), Err(expected));
        assert_eq!(deeds().last(), Some(&Call::Wake(at(reserved_for), 1)), "{expected:?}");
        assert_eq!(get(word), name(2).bits() | WAITERS);
        set(&segment.record(1).waits_for, 0);
    }
    // Nobody gets it any more: all are told.
    set(word, name(2).bits());
    script_sleep(move || {
        set(word, NOT_RECOVERABLE);
        Woken::At(0)
    });
    assert_eq!(forever(segment), Err(RobustError::NotRecoverable));
    assert_eq!(deeds().last(), Some(&Call::Wake(at(reserved_for), u32::MAX)));
    // Who owns it does not wait, but passes on what it may have taken.
    set(word, name(1).bits() | WAITERS);
    assert_eq!(forever(segment), Err(RobustError::Recursive));
    // A signal is no reason for who did not ask.
    set(word, name(2).bits());
    script_sleep(|| Woken::Interrupted);
    script_sleep(move || {
        set(word, 0);
        Woken::Unsure
    });
    assert_eq!(forever(segment), Ok(Got::Clean));
    // What changes all the time does not keep it for ever.
    for (how, expected) in
        [(until(time()), RobustError::TimedOut), (cancel, RobustError::Cancelled)]
    {
        token.write(1);
        set(word, name(2).bits());
        calls();
        if how.deadline.is_some() {
            script_sleep(|| Woken::Changed);
        }
        assert_eq!(lock_any(segment, &how), Err(expected));
        assert_eq!(get(word), name(2).bits() | WAITERS);
    }
    token.write(0);
    set(word, name(2).bits());
    script_sleep(move || {
        token.write(1);
        Woken::Changed
    });
    assert_eq!(lock_any(segment, &cancel), Err(RobustError::Cancelled));
    for (passes, ends) in [(9, false), (10, true)] {
        set(word, name(2).bits());
        let deadline = time().after(10);
        script_sleep(move || {
            pass(passes);
            Woken::Unsure
        });
        if !ends {
            script_sleep(|| Woken::TimedOut);
        }
        assert_eq!(lock_any(segment, &until(deadline)), Err(RobustError::TimedOut));
    }
}

#[test]
fn a_waiter_rests_where_it_is_hot() {
    let segment = segment();
    let (word, _) = parts(segment);
    // A release woke it, or the word changed before it slept: each time it rests once.
    for (woken, rests) in [
        (Woken::At(0), true),
        (Woken::Changed, true),
        (Woken::At(1), false),
        (Woken::At(2), false),
        (Woken::Unsure, false),
        (Woken::Interrupted, false),
    ] {
        set(word, name(2).bits());
        let others = move || {
            set(word, name(4).bits());
            woken
        };
        script_sleep(others);
        calls();
        if rests {
            script_sleep(move || {
                assert_eq!(get(word), name(4).bits(), "it leaves no flag meanwhile");
                assert_eq!(calls().last(), Some(&Call::Rest(REST)));
                Woken::Changed
            });
        }
        script_sleep(move || {
            assert!(matches!(calls().last(), Some(Call::Sleep(..))));
            set(word, 0);
            Woken::Unsure
        });
        assert_eq!(forever(segment), Ok(Got::Clean));
    }
    // Not where it can be interrupted, nor near its deadline.
    for (deadline, signals, rests) in [
        (None, true, false),
        (None, false, true),
        (Some(REST), false, false),
        (Some(REST + 1), false, true),
    ] {
        set(word, name(2).bits());
        let deadline = deadline.map(|after| time().after(after));
        let how = WaitBounds { deadline, interruptible: signals, ..WaitBounds::FOREVER };
        script_sleep(|| Woken::Changed);
        if rests {
            script_sleep(|| Woken::Changed);
        }
        script_sleep(move || {
            set(word, 0);
            Woken::Unsure
        });
        calls();
        assert_eq!(lock(segment, &how), Ok(Got::Clean));
        let rested = calls().iter().any(|call| matches!(call, Call::Rest(_)));
        assert_eq!(rested, rests, "{how:?}", how = (deadline, signals));
    }
    // A rest in which it is copied ends all.
    set(word, name(2).bits());
    script_sleep(|| Woken::Changed);
    script_sleep(|| Woken::Copied);
    assert_eq!(lock_any(segment, &WaitBounds::FOREVER), Err(RobustError::Copied));
}

#[test]
fn a_flag_that_others_come_before_is_not_slept_on() {
    let segment = segment();
    let (word, _) = parts(segment);
    set(word, name(2).bits());
    script_exchange32(|| {});
    script_exchange32(move || set(word, 0));
    assert_eq!(forever(segment), Ok(Got::Clean));
    assert_eq!(get(word), name(1).bits());
    // Where the flag stands it exchanges nothing.
    set(word, name(2).bits() | WAITERS | INCONSISTENT);
    script_exchange32(|| {});
    script_sleep(move || {
        assert_eq!(get(word), name(2).bits() | WAITERS | INCONSISTENT);
        script_exchange32(move || assert_eq!(get(word), INCONSISTENT));
        set(word, INCONSISTENT);
        Woken::Unsure
    });
    assert_eq!(forever(segment), Ok(Got::OwnerDied));
}

#[test]
fn a_spinner_takes_what_comes_free_and_leaves_where_somebody_sleeps() {
    let segment = segment();
    let (word, reserved_for) = parts(segment);
    let spun = || machine().pauses;
    for after in 1..4 {
        set(word, name(2).bits());
        let before = spun();
        (1..after).for_each(|_| script_pause(|| {}));
        script_pause(move || set(word, 0));
        calls();
        assert_eq!(forever(segment), Ok(Got::Clean));
        assert_eq!(spun() - before, after);
        // The third pause is its last: it comes for the lock as a waiter.
        let names = calls().iter().filter(|call| matches!(call, Call::Name(_))).count();
        assert_eq!(names, if after < 3 { 0 } else { 2 });
    }
    for (found, pauses) in [
        (name(2).bits(), 3),
        (name(2).bits() | WAITERS, 0),
        (RESERVED | WAITERS, 0),
        (RESERVED, 3),
        (name(2).bits() | INCONSISTENT | UNTOUCHED, 3),
    ] {
        set(reserved_for, name(2).bits());
        set(word, found);
        let before = spun();
        script_sleep(move || {
            set(word, 0);
            Woken::Unsure
        });
        assert_eq!(forever(segment), Ok(Got::Clean));
        assert_eq!(spun() - before, pauses, "{found:x}");
    }
    set(reserved_for, 0);
    // It gets a free lock that has flags, and goes on where somebody comes before.
    set(word, WAITERS | INCONSISTENT);
    let before = spun();
    assert_eq!(forever(segment), Ok(Got::OwnerDied));
    assert_eq!((spun() - before, get(word)), (0, name(1).bits() | WAITERS | INCONSISTENT));
    set(word, INCONSISTENT);
    script_exchange32(|| {});
    script_exchange32(move || set(word, 0));
    assert_eq!(forever(segment), Ok(Got::Clean));
    set(word, INCONSISTENT);
    script_exchange32(|| {});
    script_exchange32(move || set(word, NOT_RECOVERABLE));
    assert_eq!(forever(segment), Err(RobustError::NotRecoverable));
    // Free for the first look, all ones for the second.
    set(word, WAITERS);
    script_access(word, || {});
    script_access(word, || {});
    script_access(word, move || set(word, NOT_RECOVERABLE));
    calls();
    assert_eq!(forever(segment), Err(RobustError::NotRecoverable));
    assert!(!calls().iter().any(|call| matches!(call, Call::Name(_))));
}

#[test]
fn a_doorbell_that_somebody_wrote_over_is_mended() {
    let segment = segment();
    let (word, _) = parts(segment);
    for (found, mended) in [(1, 0), (5 | 2 << 30, 2 << 30), (1 << 29, 0), (3 << 30, 3 << 30)] {
        set(&segment.doorbell, found);
        set(word, name(2).bits());
        script_sleep(move || {
            let Some(Call::Sleep(slept, None)) = calls().pop() else { panic!() };
            assert_eq!(slept[1], Watch::Word(at(&segment.doorbell), mended));
            assert_eq!(get(&segment.doorbell), mended);
            set(word, 0);
            Woken::Unsure
        });
        assert_eq!(forever(segment), Ok(Got::Clean));
    }
}

/// A sleeper that nobody woke and that finds the lock free tells the machine.
#[test]
fn a_wake_up_that_went_nowhere_is_noticed() {
    let segment = segment();
    let (word, _) = parts(segment);
    for (woken, left, missed) in [
        (Woken::Unsure, 0, true),
        (Woken::Unsure, INCONSISTENT, false),
        (Woken::At(0), 0, false),
        (Woken::Changed, 0, false),
    ] {
        set(word, name(2).bits());
        script_sleep(move || {
            set(word, left);
            woken
        });
        calls();
        assert!(forever(segment).is_ok());
        assert_eq!(calls().contains(&Call::Missed), missed, "{woken:?}");
    }
    // It is over with the next sleep.
    set(word, name(2).bits());
    script_sleep(|| Woken::Unsure);
    script_sleep(move || {
        set(word, 0);
        Woken::At(0)
    });
    assert_eq!(forever(segment), Ok(Got::Clean));
    assert!(!calls().contains(&Call::Missed));
}

#[test]
fn an_observer_hears_of_a_wait_and_its_end() {
    let segment = segment();
    let (word, _) = parts(segment);
    for observed in [false, true] {
        crate::common::set(|machine| machine.observed = observed);
        let ends = time().after(70);
        let told = wait(segment, Some(ends));
        set(word, name(2).bits());
        script_sleep(|| Woken::TimedOut);
        calls();
        assert_eq!(lock(segment, &until(ends)), Err(RobustError::TimedOut));
        let late = Some(Call::End(told, Some(RobustError::TimedOut)));
        let expected: Vec<_> =
            [Some(Call::Begin(told)), late.filter(|_| observed)].into_iter().flatten().collect();
        assert_eq!(heard(), expected);
        set(word, name(2).bits());
        script_sleep(move || {
            set(word, 0);
            Woken::At(0)
        });
        assert_eq!(forever(segment), Ok(Got::Clean));
        let told = wait(segment, None);
        let expected = if observed {
            vec![Call::Begin(told), Call::End(told, None)]
        } else {
            vec![Call::Begin(told)]
        };
        assert_eq!(heard(), expected);
    }
    set(word, 0);
    assert_eq!(forever(segment), Ok(Got::Clean));
    assert_eq!(heard(), []);
}
