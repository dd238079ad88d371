//! How a participant sleeps for units of the semaphore between processes, step by step, on a machine with
//! one thread.

use crate::common::segment::{Segment, get, life, name, rings, segment, set};
use crate::common::shared::{
    Call, Watch, acts, answer, asked, at, calls, deeds, heard, named, script_sleep, unslept,
};
use crate::common::shared_semaphore::{Numbers, SOME, numbers, parts, what, write};
use crate::common::{Alone, U32, pass, script_access, script_exchange32, time, unplayed};
use lockstead_core::robust::semaphore::GLANCE;
use lockstead_core::robust::word::INCONSISTENT;
use lockstead_core::robust::{RobustError, RobustUse, RobustWait, Units, Woken};
use lockstead_core::{Atomic32, Nanos, WaitBounds};

const BRIEFLY: u64 = 10_000_000;

fn channel(segment: &'static Segment) -> usize {
    at(&parts(segment)[7])
}

fn acquire(
    segment: &'static Segment,
    units: u32,
    how: &WaitBounds<'_, Alone>,
) -> Result<Units, RobustError> {
    let got = segment.semaphore.acquire(&segment.party(1), 0, units, how);
    assert_eq!((unplayed(), unslept(), named()), (0, 0, None));
    got
}

fn none_free() -> Numbers {
    Numbers { total: 3, free: 0, ..SOME }
}

/// Has participants 2 to 4 hold a unit each.
fn holders(segment: &'static Segment) {
    (2..5).for_each(|slot| segment.claims(slot, 1, what(segment), 1));
}

#[test]
fn a_sleeper_watches_the_holders() {
    let segment = segment();
    holders(segment);
    segment.claims(1, 1, what(segment), 0);
    segment.lives(5, life(5));
    // Of another lock, and one whose slot says that it has ended.
    segment.claims(5, 0, what(segment) + 1, 1);
    set(&segment.doorbell, 2 << 30);
    let low = |slot: u32| Watch::Low(at(&segment.record(slot).life), life(slot).life());
    let first = Watch::Word(channel(segment), 40);
    let bell = Watch::Word(at(&segment.doorbell), 2 << 30);
    let last = Watch::Seen(channel(segment), 40);
    for (units, asleep, left) in [(1, 0, 1), (2, 0, 2), (3, 1, 2), (1, 2, 2), (1, 1, 1)] {
        holders(segment);
        segment.lives(3, life(3));
        write(segment, Numbers { asleep, on_their_way: 7, ..none_free() });
        let expected = vec![first, bell, low(2), low(3), low(4), last];
        script_sleep(move || {
            assert_eq!(numbers(segment), Numbers { asleep: left, ..none_free() });
            assert_eq!(acts().pop(), Some(Call::Sleep(expected, None)));
            assert_eq!(named(), Some(at(&segment.doorbell)));
            segment.dies(3);
            Woken::Changed
        });
        let expected = vec![first, bell, low(2), low(4), last];
        if units > 1 {
            script_sleep(move || {
                assert_eq!(acts().pop(), Some(Call::Sleep(expected, None)));
                (2..5).for_each(|slot| set(&segment.claim(slot, 1).what, 0));
                Woken::Changed
            });
        }
        assert!(acquire(segment, units, &WaitBounds::FOREVER).is_ok());
        set(&segment.claim(1, 0).what, 0);
        set(&segment.claim(1, 0).units, 0);
    }
}

/// More holders than a sleeper can watch: it looks again soon, and asks about one slot each time.
#[test]
fn a_sleeper_that_cannot_watch_all_looks_again() {
    let segment = segment();
    holders(segment);
    segment.lives(5, life(5));
    segment.claims(5, 0, what(segment), 1);
    let number = Numbers { total: 4, ..none_free() };
    let low = |slot: u32| Watch::Low(at(&segment.record(slot).life), life(slot).life());
    for (deadline, glances) in [(None, true), (Some(GLANCE), false), (Some(GLANCE + 1), true)] {
        answer(|answers| (answers.trust, answers.ended) = (None, 0));
        write(segment, number);
        let deadline = deadline.map(|after| time().after(after));
        let until = if glances { Some(time().after(GLANCE)) } else { deadline };
        let expected = vec![
            Watch::Word(channel(segment), 40),
            Watch::Word(at(&segment.doorbell), 0),
            low(2),
            low(3),
            low(4),
            Watch::Seen(channel(segment), 40),
        ];
        script_sleep(move || {
            assert_eq!(acts().pop(), Some(Call::Sleep(expected, until)));
            Woken::TimedOut
        });
        if glances {
            script_sleep(move || {
                set(&segment.claim(5, 0).what, 0);
                Woken::Changed
            });
        }
        let how = WaitBounds { deadline, ..WaitBounds::FOREVER };
        let got = acquire(segment, 1, &how);
        assert_eq!(got.is_ok(), glances);
        segment.claims(5, 0, what(segment), 1);
        set(&segment.claim(1, 0).what, 0);
        set(&segment.claim(1, 0).units, 0);
    }
    // By the clock it asks about the slots in turn, however the sleep ends but in a copy.
    segment.dies(4);
    segment.claims(2, 0, what(segment), 1);
    segment.lives(4, life(4));
    for (turn, asks, woken) in [
        (0, None, Woken::Cancelled),
        (1, Some(1), Woken::Cancelled),
        (2, Some(2), Woken::Cancelled),
        (5, Some(5), Woken::Cancelled),
        (8, Some(2), Woken::Cancelled),
        (9, None, Woken::Copied),
    ] {
        answer(|answers| answers.trust = Some(1 << 20));
        write(segment, number);
        let round = 6 * GLANCE;
        let goal = (time().0 / round + 2) * round + turn * GLANCE;
        pass(goal - time().0 - GLANCE);
        set(&segment.record(1).asked, 0);
        script_sleep(move || woken);
        assert!(acquire(segment, 1, &WaitBounds::FOREVER).is_err());
        let asked = asked();
        let expected = asks.map(|slot| Call::Ask(slot, life(slot)));
        assert_eq!(asked, Vec::from_iter(expected), "{turn}");
    }
    // About nobody where nobody sits, and not so soon again.
    for sits in [false, true] {
        let goal = (time().0 / (6 * GLANCE) + 2) * 6 * GLANCE + GLANCE;
        pass(goal - time().0 - GLANCE);
        segment.lives(1, if sits { life(1) } else { life(1).free() });
        set(&segment.record(1).asked, if sits { (time().0 >> 20) as u32 | 1 } else { 0 });
        set(&segment.record(1).asked_about, 1);
        answer(|answers| answers.trust = Some(1 << 40));
        write(segment, number);
        script_sleep(|| Woken::Cancelled);
        assert!(acquire(segment, 1, &WaitBounds::FOREVER).is_err());
        assert_eq!(asked(), []);
    }
}

#[test]
fn a_sleep_ends_as_the_machine_says() {
    let segment = segment();
    holders(segment);

    let later = || WaitBounds { deadline: Some(time().after(100)), ..WaitBounds::FOREVER };
    let signals = WaitBounds { interruptible: true, ..WaitBounds::FOREVER };
    // The number on their way that it finds, and that it leaves; what it does besides.
    for (woken, found, left, everybody, missed) in [
        (Woken::At(0), 3, 2, false, false),
        (Woken::At(0), 0, 0, false, false),
        (Woken::At(1), 3, 0, true, false),
        (Woken::At(2), 3, 0, true, false),
        (Woken::Changed, 3, 3, false, false),
        (Woken::Interrupted, 3, 3, false, false),
        (Woken::Unsure, 3, 3, false, true),
    ] {
        write(segment, none_free());
        script_sleep(move || {
            calls();
            set(&parts(segment)[3], 1);
            set(&parts(segment)[6], found);
            set(&parts(segment)[5], 0);
            woken
        });
        assert!(acquire(segment, 1, &WaitBounds::FOREVER).is_ok());
        let expected = Numbers { on_their_way: left, ..none_free() };
        assert_eq!(numbers(segment), expected, "{woken:?}");
        let rung = everybody.then(|| rings(segment));
        let said = missed.then_some(Call::Missed);
        assert_eq!(deeds(), rung.into_iter().chain(said).collect::<Vec<_>>(), "{woken:?}");
        set(&segment.claim(1, 0).what, 0);
        set(&segment.claim(1, 0).units, 0);
    }
    // Nobody woke it, and nothing is there: nothing was missed.
    write(segment, none_free());
    script_sleep(|| Woken::Unsure);
    script_sleep(move || {
        assert!(!calls().contains(&Call::Missed));
        Woken::Cancelled
    });
    assert_eq!(acquire(segment, 1, &WaitBounds::FOREVER), Err(RobustError::Cancelled));
    for (how, woken, error) in [
        (later(), Woken::TimedOut, RobustError::TimedOut),
        (signals, Woken::Interrupted, RobustError::Interrupted),
        (WaitBounds::FOREVER, Woken::Cancelled, RobustError::Cancelled),
    ] {
        for (asleep, count) in [(0, None), (1, Some(1)), (2, Some(u32::MAX))] {
            write(segment, none_free());
            let how = if woken == Woken::TimedOut { later() } else { how };
            script_sleep(move || {
                set(&parts(segment)[5], asleep);
                calls();
                woken
            });
            assert_eq!(acquire(segment, 1, &how), Err(error));
            let call = count.map(|count| Call::Wake(channel(segment), count));
            assert_eq!(deeds(), Vec::from_iter(call), "{error:?} {asleep}");
            let left = Numbers { channel: 40 + u32::from(asleep != 0), ..none_free() };
            assert_eq!(numbers(segment), left);
        }
        // It takes what there is, also then.
        write(segment, none_free());
        script_sleep(move || {
            set(&parts(segment)[3], 1);
            woken
        });
        let how = if woken == Woken::TimedOut { later() } else { how };
        assert!(acquire(segment, 1, &how).is_ok());
        set(&segment.claim(1, 0).what, 0);
        set(&segment.claim(1, 0).units, 0);
    }
    // A copy takes and tells nothing.
    write(segment, none_free());
    script_sleep(move || {
        calls();
        set(&parts(segment)[3], 1);
        Woken::Copied
    });
    assert_eq!(acquire(segment, 1, &WaitBounds::FOREVER), Err(RobustError::Copied));
    assert_eq!((deeds(), get(&parts(segment)[3])), (vec![], 1));
}

#[test]
fn a_sleeper_goes_on_until_its_time_is_up() {
    let segment = segment();
    holders(segment);
    let token: &U32 = Box::leak(Box::new(U32::ZERO));
    let cancel = WaitBounds { cancel: Some(token), ..WaitBounds::FOREVER };
    // At once, before any sleep, and nobody is woken for it.
    token.write(1);
    write(segment, Numbers { asleep: 1, ..none_free() });
    assert_eq!(acquire(segment, 1, &cancel), Err(RobustError::Cancelled));
    assert_eq!(deeds(), []);
    assert_eq!(numbers(segment), Numbers { asleep: 1, ..none_free() });
    for (after, ends) in [(10, true), (9, false)] {
        write(segment, none_free());
        let how = WaitBounds { deadline: Some(time().after(10)), ..WaitBounds::FOREVER };
        script_sleep(move || {
            pass(after);
            token.write(1);
            Woken::Changed
        });
        if !ends {
            script_sleep(|| Woken::TimedOut);
        }
        assert_eq!(acquire(segment, 1, &how), Err(RobustError::TimedOut));
    }
    token.write(0);
    write(segment, none_free());
    script_sleep(move || {
        token.write(1);
        Woken::Changed
    });
    assert_eq!(acquire(segment, 1, &cancel), Err(RobustError::Cancelled));
    // A holder dies between the count and the choice of whom to watch: it counts anew.
    token.write(0);
    write(segment, none_free());
    let life2 = &segment.record(2).life;
    script_access(life2, || {});
    script_access(life2, move || segment.dies(2));
    assert_eq!(acquire(segment, 1, &WaitBounds::FOREVER), Ok(Units { lost: 1 }));
    assert!(!calls().iter().any(|call| matches!(call, Call::Sleep(..))));
}

/// Who gives up asks whether one of the holders has ended unnoticed.
#[test]
fn who_gives_up_asks_about_the_holders() {
    let segment = segment();
    holders(segment);
    for (trust, ended, error, asks) in [
        (Some(1000), 1 << 3, RobustError::TimedOut, 3),
        (Some(1000), 0, RobustError::TimedOut, 3),
        (None, 1 << 3, RobustError::TimedOut, 0),
    ] {
        answer(|answers| (answers.trust, answers.ended) = (trust, ended));
        (2..5).for_each(|slot| segment.lives(slot, life(slot)));
        set(&segment.claim(1, 0).what, 0);
        set(&segment.claim(1, 0).units, 0);
        set(&segment.record(1).asked, 0);
        write(segment, none_free());
        let got = segment.semaphore.try_acquire(&segment.party(1), 0, 1);
        let dead = trust.is_some() && ended != 0;
        assert_eq!(got, if dead { Ok(Units { lost: 1 }) } else { Err(error) });
        let asked: Vec<_> = asked();
        assert_eq!(
            asked,
            (2..2 + asks).map(|slot| Call::Ask(slot, life(slot))).collect::<Vec<_>>()
        );
    }
    // Not so soon again, and not for another reason.
    answer(|answers| (answers.trust, answers.ended) = (Some(1 << 40), 1 << 3));
    segment.lives(3, life(3));
    set(&segment.claim(1, 0).what, 0);
    set(&segment.claim(1, 0).units, 0);
    set(&segment.record(1).asked, 0);
    set(&segment.record(1).asked_about, 2);
    write(segment, none_free());
    let token: &U32 = Box::leak(Box::new(U32::ZERO));
    token.write(1);
    let cancel = WaitBounds { cancel: Some(token), ..WaitBounds::FOREVER };
    assert_eq!(acquire(segment, 1, &cancel), Err(RobustError::Cancelled));
    assert_eq!(asked(), []);
    set(&segment.record(1).asked, (time().0 >> 20) as u32 | 1);
    let got = segment.semaphore.try_acquire(&segment.party(1), 0, 1);
    assert_eq!(got, Err(RobustError::TimedOut));
    assert_eq!(asked(), []);
    // Another lock's holders are not asked about.
    (2..5).for_each(|slot| set(&segment.claim(slot, 1).what, what(segment) + 1));
    set(&segment.record(1).asked, 0);
    let got = segment.semaphore.try_acquire(&segment.party(1), 0, 4);
    assert_eq!(got, Err(RobustError::TimedOut));
    assert_eq!(asked(), []);
}

/// The caller waits for the mutex as well, and for a while even if it only tries.
#[test]
fn who_cannot_enter_in_time_passes_its_wake_up_on() {
    let segment = segment();
    let word = &parts(segment)[0];
    for (after, until) in [(5, BRIEFLY), (BRIEFLY + 7, BRIEFLY + 7)] {
        write(segment, SOME);
        set(word, name(2).bits());
        let began = time();
        let how = WaitBounds { deadline: Some(began.after(after)), ..WaitBounds::FOREVER };
        script_sleep(move || {
            let Some(Call::Sleep(_, deadline)) = acts().pop() else { panic!() };
            assert_eq!(deadline, Some(began.after(until)));
            Woken::TimedOut
        });
        assert_eq!(acquire(segment, 1, &how), Err(RobustError::TimedOut));
        assert_eq!(deeds().pop(), Some(Call::Wake(channel(segment), u32::MAX)));
    }
    for (woken, error, is_told) in [
        (Woken::Cancelled, RobustError::Cancelled, true),
        (Woken::Copied, RobustError::Copied, false),
    ] {
        write(segment, SOME);
        set(word, name(2).bits());
        script_sleep(move || {
            calls();
            woken
        });
        assert_eq!(acquire(segment, 1, &WaitBounds::FOREVER), Err(error));
        // Before that, the wait for the mutex has passed on.
        let told =
            [Call::Wake(at(&parts(segment)[0]) + 4, 1), Call::Wake(channel(segment), u32::MAX)];
        assert_eq!(deeds(), if is_told { told.to_vec() } else { vec![] });
    }
    // A try waits for the mutex, too.
    write(segment, SOME);
    set(word, name(2).bits());
    script_sleep(move || {
        set(word, INCONSISTENT);
        Woken::At(0)
    });
    let got = segment.semaphore.try_acquire(&segment.party(1), 0, 1);
    assert_eq!((got, get(word)), (Ok(Units { lost: 7 }), 0));
    script_exchange32(|| {});
    assert!(segment.semaphore.release(&segment.party(1), 0, 1).is_ok());
}

#[test]
fn an_observer_hears_of_a_wait_at_its_first_sleep() {
    let segment = segment();
    holders(segment);
    for observed in [true, false] {
        let ends: Nanos = time().after(70);
        let how = WaitBounds { deadline: Some(ends), ..WaitBounds::FOREVER };
        let address = at(&segment.semaphore);
        let wait = RobustWait { address, wants: RobustUse::Units, deadline: Some(ends) };
        crate::common::set(|machine| machine.observed = observed);
        write(segment, none_free());
        script_sleep(move || {
            assert_eq!(get(&parts(segment)[0]), 0);
            Woken::Changed
        });
        script_sleep(|| Woken::TimedOut);
        let expected = match observed {
            true => vec![Call::Begin(wait), Call::End(wait, Some(RobustError::TimedOut))],
            false => vec![Call::Begin(wait); 2],
        };
        assert_eq!(acquire(segment, 1, &how), Err(RobustError::TimedOut));
        assert_eq!(heard(), expected);
    }
    crate::common::set(|machine| machine.observed = true);
    write(segment, SOME);
    assert!(acquire(segment, 1, &WaitBounds::FOREVER).is_ok());
    assert_eq!(heard(), []);
}
