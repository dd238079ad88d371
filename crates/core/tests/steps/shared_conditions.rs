//! What waits for a condition between processes does, and how sleepers ask whether those have ended
//! that they wait for, step by step, on a machine with one thread.

use crate::common::segment::{Segment, get, life, name, rings, segment, set, words};
use crate::common::shared::{
    Call, Watch, acts, answer, asked, at, calls, deeds, heard, named, script_sleep, unslept,
};
use crate::common::{Alone, U32, pass, script_access, time, unplayed};
use lockstead_core::robust::condvar::ConditionWaited;
use lockstead_core::robust::word::{INCONSISTENT, NOT_RECOVERABLE, WAITERS};
use lockstead_core::robust::{
    Addend, Got, Identity, Life, Party, RawSharedCondvar, RobustError, RobustMachine, RobustUse,
    RobustWait, Woken,
};
use lockstead_core::{Atomic32, WaitBounds};

fn count(segment: &'static Segment) -> &'static U32 {
    &words::<_, 2>(&segment.condvar)[0]
}

fn mutex(segment: &'static Segment) -> &'static U32 {
    &words::<_, 2>(&segment.mutex)[0]
}

/// Waits for the condition with the mutex held. Returns the same and what it names then.
fn wait(
    segment: &'static Segment,
    how: &WaitBounds<'_, Alone>,
) -> Result<ConditionWaited<Alone>, RobustError> {
    set(mutex(segment), name(1).bits());
    calls();
    let waited = segment.condvar.wait(&segment.party(1), &segment.mutex, how);
    assert_eq!((unplayed(), unslept()), (0, 0));
    waited
}

#[test]
fn a_waiter_sleeps_on_the_count_and_names_the_doorbell_until_the_caller_unnames_it() {
    let segment = segment();
    set(count(segment), 12);
    set(&segment.doorbell, 1 << 30);
    // Doorbell, count, release, in this order.
    script_access(&segment.doorbell, move || {
        assert_eq!(named(), Some(at(&segment.doorbell)));
    });
    script_access(count(segment), move || assert_eq!(get(mutex(segment)), name(1).bits()));
    let other = &segment.claim(1, 1).units;
    Alone::at_death_wake(Some(other.into()));
    script_sleep(move || {
        assert_eq!((get(mutex(segment)), named()), (0, Some(at(&segment.doorbell))));
        let expected = vec![
            Watch::Word(at(count(segment)), 12),
            Watch::Word(at(&segment.doorbell), 1 << 30),
            Watch::Seen(at(count(segment)), 12),
        ];
        assert_eq!(acts().pop(), Some(Call::Sleep(expected, None)));
        Woken::At(0)
    });
    let waited = wait(segment, &WaitBounds::FOREVER).expect("it waits");
    assert_eq!((waited.mutex, waited.ended), (Ok(Got::Clean), None));
    assert_eq!(waited.named.map(|word| word.addr().get()), Some(at(other)));
    assert_eq!((get(mutex(segment)), named()), (name(1).bits(), Some(at(&segment.doorbell))));
    assert_eq!(deeds(), []);
    Alone::at_death_wake(waited.named);
}

#[test]
fn a_wait_for_a_condition_ends_as_the_machine_says() {
    let segment = segment();
    let signals = WaitBounds { interruptible: true, ..WaitBounds::FOREVER };
    let late = WaitBounds { deadline: Some(time().after(9)), ..WaitBounds::FOREVER };
    let token: &U32 = Box::leak(Box::new(U32::ZERO));
    let cancel = WaitBounds { cancel: Some(token), ..WaitBounds::FOREVER };
    let forever = WaitBounds::FOREVER;
    for (how, woken, rung, ended, everybody) in [
        (forever, Woken::At(0), false, None, false),
        (forever, Woken::At(1), false, None, true),
        (forever, Woken::At(1), true, None, false),
        (forever, Woken::Changed, false, None, false),
        (forever, Woken::Unsure, false, None, false),
        (forever, Woken::Interrupted, false, None, false),
        (signals, Woken::Interrupted, false, Some(RobustError::Interrupted), false),
        (late, Woken::TimedOut, false, Some(RobustError::TimedOut), false),
        (forever, Woken::Cancelled, false, Some(RobustError::Cancelled), false),
        (cancel, Woken::Changed, false, Some(RobustError::Cancelled), false),
        (cancel, Woken::Unsure, false, None, false),
    ] {
        token.write(0);
        script_sleep(move || {
            calls();
            token.write(1);
            if rung {
                set(&segment.doorbell, get(&segment.doorbell).wrapping_add(1 << 30));
            }
            woken
        });
        let waited = wait(segment, &how).expect("it waits");
        assert_eq!((waited.mutex, waited.ended), (Ok(Got::Clean), ended), "{woken:?}");
        assert_eq!(deeds(), Vec::from_iter(everybody.then(|| rings(segment))), "{woken:?}");
        assert!(waited.named.is_none() && named().is_some());
        Alone::at_death_wake(None);
    }
    script_sleep(|| Woken::Copied);
    assert_eq!(wait(segment, &forever).err(), Some(RobustError::Copied));
    assert_eq!(get(mutex(segment)), 0);
    Alone::at_death_wake(None);
    // It waits for the mutex without an end.
    token.write(0);
    script_sleep(move || {
        set(mutex(segment), name(2).bits());
        Woken::Cancelled
    });
    script_sleep(move || {
        set(mutex(segment), INCONSISTENT);
        Woken::At(0)
    });
    let waited = wait(segment, &cancel).expect("it waits");
    assert_eq!((waited.mutex, waited.ended), (Ok(Got::OwnerDied), Some(RobustError::Cancelled)));
    script_sleep(move || {
        set(mutex(segment), NOT_RECOVERABLE);
        Woken::At(0)
    });
    let waited = wait(segment, &forever).expect("it waits");
    assert_eq!((waited.mutex, waited.ended), (Err(RobustError::NotRecoverable), None));
    Alone::at_death_wake(None);
    // Who does not hold the mutex waits for nothing.
    for word in [0, name(2).bits(), NOT_RECOVERABLE] {
        set(mutex(segment), word);
        let waited = segment.condvar.wait(&segment.party(1), &segment.mutex, &forever);
        assert_eq!(waited.err(), Some(RobustError::NotRecoverable));
        assert_eq!((get(mutex(segment)), named()), (word, None));
    }
}

#[test]
fn a_notification_counts_and_wakes_in_one_step() {
    let segment = segment();
    segment.condvar.notify_one();
    segment.condvar.notify_all();
    let wakes = |wanted| Call::AddAndWake(at(count(segment)), Addend::One, wanted);
    assert_eq!((calls(), get(count(segment))), (vec![wakes(1), wakes(u32::MAX)], 2));
    let fresh = RawSharedCondvar::<Alone>::default();
    assert_eq!(get(&words::<_, 2>(&fresh)[0]), 0);
    // The same to a release that somebody waits for.
    script_sleep(move || {
        set(mutex(segment), 0);
        Woken::At(0)
    });
    assert!(wait(segment, &WaitBounds::FOREVER).is_ok());
}

#[test]
fn an_observer_hears_which_mutex_is_given_back_meanwhile() {
    let segment = segment();
    let late = Some(time().after(9));
    let how = WaitBounds { deadline: late, ..WaitBounds::FOREVER };
    let wants = RobustUse::Notification { mutex: at(&segment.mutex) };
    let told = RobustWait { address: at(&segment.condvar), wants, deadline: late };
    for (observed, woken, error) in [
        (true, Woken::TimedOut, Some(RobustError::TimedOut)),
        (true, Woken::At(0), None),
        (true, Woken::Copied, Some(RobustError::Copied)),
        (false, Woken::At(0), None),
    ] {
        crate::common::set(|machine| machine.observed = observed);
        script_sleep(move || woken);
        let _ = wait(segment, &how);
        let mut expected = vec![Call::Begin(told)];
        expected.extend(observed.then_some(Call::End(told, error)));
        assert_eq!(heard(), expected);
        Alone::at_death_wake(None);
    }
}

/// What a checker is told of a wait is how the sleep has ended.
#[test]
fn a_checker_is_told_how_a_sleep_for_a_condition_ended() {
    let segment = segment();
    answer(|answers| answers.checked = true);
    for (woken, kept) in [(Woken::At(0), 0), (Woken::Cancelled, 1 + RobustError::Cancelled as u64)]
    {
        script_sleep(move || woken);
        let _ = wait(segment, &WaitBounds::FOREVER);
        let turns: Vec<_> = calls().into_iter().filter(|it| matches!(it, Call::Turn(..))).collect();
        let [Call::Turn(_, told)] = turns[..] else { panic!("{turns:?}") };
        assert_eq!(told, kept);
        Alone::at_death_wake(None);
    }
}

const TRUST: u64 = 1000 << 20;

/// A sleep of so long at most in which a machine is trusted: how it ends for the caller, and whether it
/// asks about participant 2, about which it has just asked, or not.
#[test]
fn a_sleeper_trusts_the_machine_for_a_while_and_then_asks() {
    let segment = segment();
    let word = mutex(segment);
    /// Deadline and what passes; how the sleep ends; whether it asked a moment ago; whether the other
    /// one has ended; whether it asks; whether its wait goes on.
    type Case = (Option<u64>, u64, Woken, bool, bool, bool, bool);
    const CASES: [Case; 16] = [
        (None, TRUST, Woken::TimedOut, true, false, true, true),
        (None, TRUST, Woken::TimedOut, true, true, true, true),
        (None, TRUST, Woken::TimedOut, false, false, true, true),
        (Some(TRUST + 1), TRUST, Woken::TimedOut, true, false, true, true),
        (Some(TRUST), TRUST, Woken::TimedOut, true, false, true, false),
        (Some(TRUST), TRUST, Woken::TimedOut, true, true, true, false),
        (Some(9), 9, Woken::TimedOut, true, true, true, false),
        (Some(9), 9, Woken::TimedOut, false, false, true, false),
        (Some(0), 0, Woken::TimedOut, true, false, false, false),
        (Some(0), 0, Woken::TimedOut, true, true, false, false),
        (Some(0), 0, Woken::TimedOut, false, true, true, true),
        (Some(0), 0, Woken::TimedOut, false, false, true, false),
        (None, 5, Woken::Changed, true, true, false, true),
        (None, 5, Woken::Changed, false, true, true, true),
        (None, 5, Woken::Cancelled, false, true, true, false),
        (None, 5, Woken::Copied, false, true, false, false),
    ];
    for (index, (deadline, passes, woken, asked, ended, asks, goes_on)) in
        CASES.into_iter().enumerate()
    {
        answer(|answers| (answers.trust, answers.ended) = (Some(TRUST), u32::from(ended) << 2));
        segment.lives(2, life(2));
        set(word, name(2).bits());
        pass(50 * TRUST);
        let began = time();
        let now = (began.0 >> 20) as u32 | 1;
        let record = segment.record(1);
        set(&record.asked, if asked { now } else { 0 });
        set(&record.asked_about, 2);
        let until = deadline.map(|after| began.after(after));
        let how = WaitBounds { deadline: until, ..WaitBounds::FOREVER };
        let last = until.filter(|it| *it <= began.after(TRUST)).unwrap_or(began.after(TRUST));
        script_sleep(move || {
            let Some(Call::Sleep(_, slept)) = acts().pop() else { panic!() };
            assert_eq!(slept, Some(last), "{index}");
            pass(passes);
            woken
        });
        // What goes on takes the lock, be it of a dead one or not.
        if goes_on {
            let next = move || {
                set(word, 0);
                Woken::Unsure
            };
            let dies = asks && ended;
            if woken == Woken::Changed {
                // It rests first, unless it finds a dead one.
                if !dies {
                    script_sleep(|| Woken::Changed);
                }
            }
            let over = until.is_some_and(|it| it <= began.after(passes));
            if !dies && !over {
                script_sleep(next);
            }
        }
        let got = segment.mutex.lock(&segment.party(1), &how);
        let had = calls().contains(&Call::Ask(2, life(2)));
        assert_eq!(had, asks, "{index}");
        let over = until.is_some_and(|it| it <= began.after(passes));
        assert_eq!(got.is_ok(), goes_on && !over, "{index} {got:?}");
        let dead = Life(segment.record(2).life.silently()) == life(2).dead();
        assert_eq!(dead, asks && ended, "{index}");
        assert_eq!((unslept(), unplayed()), (0, 0), "{index}");
        set(&record.waits_for, 0);
    }
    // Without trust it asks nothing, and sleeps as it was told.
    answer(|answers| (answers.trust, answers.ended) = (None, 1 << 2));
    segment.lives(2, life(2));
    set(word, name(2).bits());
    script_sleep(move || {
        assert!(matches!(calls().last(), Some(Call::Sleep(_, None))));
        set(word, 0);
        Woken::At(0)
    });
    assert!(segment.mutex.lock(&segment.party(1), &WaitBounds::FOREVER).is_ok());
    assert_eq!(asked(), []);
}

/// A wait for a condition watches nobody: it looks again when it has slept for long.
#[test]
fn who_watches_nobody_looks_again_after_a_while() {
    let segment = segment();
    answer(|answers| answers.trust = Some(TRUST));
    let began = time();
    script_sleep(move || {
        assert!(
            matches!(calls().last(), Some(Call::Sleep(_, until)) if *until == Some(began.after(TRUST)))
        );
        Woken::TimedOut
    });
    let waited = wait(segment, &WaitBounds::FOREVER).expect("it waits");
    assert_eq!(waited.ended, None);
    let late = WaitBounds { deadline: Some(time().after(TRUST)), ..WaitBounds::FOREVER };
    script_sleep(|| Woken::TimedOut);
    let waited = wait(segment, &late).expect("it waits");
    assert_eq!(waited.ended, Some(RobustError::TimedOut));
}

/// How long ago a participant asked, about whom, and whether it asks now.
#[test]
fn a_participant_asks_about_the_same_one_now_and_then_and_about_another_sooner() {
    let segment = segment();
    let word = mutex(segment);
    let record = segment.record(1);
    let tick = 1 << 20;
    pass(1_000_000 * tick);
    for (trust, about, ago, asks) in [
        (Some(64), 2, 62, false),
        (Some(64), 2, 64, true),
        (Some(64), 2, 66, true),
        (Some(64), 4, 0, false),
        (Some(64), 4, 2, true),
        (Some(640), 4, 18, false),
        (Some(640), 4, 20, true),
        (Some(0), 2, 0, true),
        (None, 2, 2000, false),
        // The clock has gone round since.
        (Some(64), 2, u32::MAX - 63, true),
    ] {
        answer(|answers| answers.trust = trust.map(|it: u64| it * tick));
        let now = (time().0 >> 20) as u32 | 1;
        let asked = now.wrapping_sub(ago);
        set(&record.asked, asked);
        set(&record.asked_about, about);
        set(word, name(2).bits());
        calls();
        let got = segment.mutex.try_lock(&segment.party(1));
        assert_eq!(got, Err(RobustError::TimedOut));
        let expected = asks.then_some(Call::Ask(2, life(2)));
        assert_eq!(calls(), Vec::from_iter(expected), "{trust:?} {about} {ago}");
        let noted = if asks { (now, 2) } else { (asked, about) };
        assert_eq!((get(&record.asked), get(&record.asked_about)), noted);
    }
    // One that has never asked asks at once.
    answer(|answers| answers.trust = Some(1 << 60));
    set(&record.asked, 0);
    set(&record.asked_about, 2);
    assert!(segment.mutex.try_lock(&segment.party(1)).is_err());
    assert_eq!(calls(), [Call::Ask(2, life(2))]);
    // A participant that the table does not have asks nothing.
    let nobody = Identity::new(9, 1).expect("in range");
    let party = Party { me: nobody, ..segment.party(1) };
    set(&record.asked, 0);
    assert!(segment.mutex.try_lock(&party).is_err());
    assert_eq!((calls(), party.record().is_none()), (vec![], true));
    assert_eq!(get(word) & WAITERS, 0);
}
