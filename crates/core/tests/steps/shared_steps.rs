//! What locks between processes ask of their machine where the outcome tells nothing of it, step by step,
//! on a machine with one thread: whom they ask about, whom they tell, and what a checker hears.

use crate::common::segment::{get, life, name, segment, set, words};
use crate::common::shared::{
    Call, Watch, acts, answer, asked, at, calls, heard, script_sleep, unslept,
};
use crate::common::{U32, pass, script_access, script_exchange32, script_pause, time, unplayed};
use lockstead_core::WaitBounds;
use lockstead_core::robust::semaphore::GLANCE;
use lockstead_core::robust::slot::AWAITED;
use lockstead_core::robust::word::{INCONSISTENT, NOT_RECOVERABLE, RESERVED, UNTOUCHED, WAITERS};
use lockstead_core::robust::{
    Domain, Got, Party, ReadHold, RobustError, RobustUse, RobustWait, Units, Woken,
};

fn word<L>(lock: &L) -> &U32 {
    &words::<_, 2>(lock)[0]
}

/// Returns what a checker was told since the last time.
fn told() -> Vec<u64> {
    let kept = |call| if let Call::Turn(_, kept) = call { Some(kept) } else { None };
    calls().into_iter().filter_map(kept).collect()
}

/// The bits beside a name are the owner's flags, and no others, whoever it is.
#[test]
fn every_participant_owns_a_lock_by_its_name_alone() {
    let segment = segment();
    let lock = &segment.mutex;
    for slot in [1, 2, 4] {
        let (me, bits) = (segment.party(slot), name(slot).bits());
        set(word(lock), WAITERS);
        assert_eq!(lock.try_lock(&me), Ok(Got::Clean));
        assert_eq!(get(word(lock)), bits | WAITERS);
        set(word(lock), WAITERS);
        assert_eq!(lock.lock(&me, &WaitBounds::FOREVER), Ok(Got::Clean));
        assert_eq!(get(word(lock)), bits | WAITERS);
        let rwlock = &segment.rwlock;
        set(word(rwlock), WAITERS);
        assert_eq!(rwlock.write(&me, &WaitBounds::FOREVER), Ok(Got::Clean));
        assert_eq!(get(word(rwlock)), bits | WAITERS);
        set(word(rwlock), WAITERS);
        assert_eq!(rwlock.read(&me, None, &WaitBounds::FOREVER), Ok(ReadHold::Alone));
        assert_eq!(get(word(rwlock)), bits | WAITERS | UNTOUCHED);
        // The mutex in a semaphore is free again, and was not lost.
        let semaphore = &segment.semaphore;
        set(word(semaphore), WAITERS);
        assert_eq!(semaphore.add(&me, 1), Ok(true));
        assert_eq!(semaphore.try_acquire(&me, 0, 1), Ok(Units { lost: 0 }));
        assert_eq!(get(word(semaphore)), 0);
        // So is the mutex of a condition taken back.
        set(word(lock), bits);
        script_sleep(move || {
            set(word(lock), WAITERS);
            Woken::At(0)
        });
        let waited = segment.condvar.wait(&me, lock, &WaitBounds::FOREVER).expect("it waits");
        assert_eq!((waited.mutex, get(word(lock))), (Ok(Got::Clean), bits | WAITERS));
    }
}

/// Who has trusted for long asks about all that it watches.
#[test]
fn a_sleeper_asks_about_all_holders() {
    const TRUST: u64 = 1000 << 20;
    let segment = segment();
    let semaphore = &segment.semaphore;
    let what = segment.offset(semaphore);
    (2..5).for_each(|slot| segment.claims(slot, 1, what, 1));
    let numbers = words::<_, 8>(semaphore);
    set(&numbers[2], 3);
    for ended in [0, 1 << 3, 1 << 4] {
        answer(|answers| (answers.trust, answers.ended) = (Some(TRUST), ended));
        script_sleep(|| Woken::TimedOut);
        if ended == 0 {
            script_sleep(|| Woken::Cancelled);
        }
        calls();
        pass(10 * TRUST);
        let got = semaphore.acquire(&segment.party(1), 0, 1, &WaitBounds::FOREVER);
        assert_eq!(got.is_ok(), ended != 0);
        let expected: Vec<_> = (2..5).map(|slot| Call::Ask(slot, life(slot))).collect();
        assert_eq!(asked()[..3], expected);
        assert_eq!(unslept(), 0);
        (2..5).for_each(|slot| segment.lives(slot, life(slot)));
        set(&segment.claim(1, 0).what, 0);
        set(&segment.claim(1, 0).units, 0);
    }
}

#[test]
fn who_may_not_write_neither_takes_the_lock_nor_tells_anybody() {
    let segment = segment();
    let lock = &segment.rwlock;
    let me = segment.party(1);
    segment.claims(1, 0, segment.offset(lock), 0);
    script_access(word(lock), || panic!("it looks at the lock"));
    assert_eq!(lock.write(&me, &WaitBounds::FOREVER), Err(RobustError::Recursive));
    assert_eq!(lock.try_write(&me), Err(RobustError::Recursive));
    assert_eq!((calls(), unplayed()), (vec![], 1));
}

#[test]
fn a_reader_tells_of_a_wait_where_it_did_not_come_at_once_and_of_none_where_it_did() {
    let segment = segment();
    let lock = &segment.rwlock;
    let me = segment.party(1);
    crate::common::set(|machine| machine.observed = true);
    for flags in [0, WAITERS, UNTOUCHED, WAITERS | UNTOUCHED] {
        set(word(lock), flags);
        let how = WaitBounds::FOREVER;
        assert_eq!(lock.read(&me, Some(0), &how), Ok(ReadHold::Claim(0)));
        assert_eq!(heard(), []);
        assert!(lock.unread(&me, ReadHold::Claim(0)));
    }
    let wait = RobustWait { address: at(lock), wants: RobustUse::Read, deadline: None };
    let both = [Call::Begin(wait), Call::End(wait, None)];
    set(word(lock), name(2).bits());
    script_access(word(lock), || {});
    script_access(word(lock), move || set(word(lock), 0));
    assert_eq!(lock.read(&me, Some(0), &WaitBounds::FOREVER), Ok(ReadHold::Claim(0)));
    assert_eq!(heard(), both);
    assert!(lock.unread(&me, ReadHold::Claim(0)));
    // Who has no claim has not tried yet where nothing stands in the word.
    set(word(lock), WAITERS);
    assert_eq!(lock.read(&me, None, &WaitBounds::FOREVER), Ok(ReadHold::Alone));
    assert_eq!(heard(), both);
}

/// A reader that is the heir of a lock reads before it lets others in.
#[test]
fn an_heir_claims_before_it_gives_its_right_up() {
    let segment = segment();
    let lock = &segment.rwlock;
    let me = segment.party(1);
    let what = segment.offset(lock);
    set(word(lock), name(2).bits());
    script_sleep(|| {
        pass(5_000_000);
        Woken::Unsure
    });
    script_sleep(move || {
        set(word(lock), RESERVED);
        script_exchange32(move || assert_eq!(get(&segment.claim(1, 0).what), what));
        Woken::At(0)
    });
    assert_eq!(lock.read(&me, Some(0), &WaitBounds::FOREVER), Ok(ReadHold::Claim(0)));
    assert_eq!((get(word(lock)), unplayed(), unslept()), (0, 0, 0));
}

/// An heir that has the lock has no right any more that it could take from the next one.
#[test]
fn an_heir_that_has_the_lock_looks_at_its_word_no_more() {
    let segment = segment();
    let lock = &segment.mutex;
    let me = name(1).bits();
    set(word(lock), name(2).bits());
    script_sleep(|| {
        // More than it has to have waited.
        pass(5_000_001);
        Woken::Unsure
    });
    script_sleep(move || {
        assert_eq!(get(word(lock)), name(2).bits() | WAITERS | RESERVED);
        Woken::Unsure
    });
    script_sleep(move || {
        assert_eq!(get(word(lock)), name(2).bits() | WAITERS | RESERVED, "it stands");
        set(word(lock), RESERVED);
        // The look, and the exchange.
        (0..2).for_each(|_| script_access(word(lock), || {}));
        script_access(word(lock), || panic!("it looks again"));
        Woken::At(0)
    });
    let got = lock.lock(&segment.party(1), &WaitBounds::FOREVER);
    assert_eq!((got, unplayed(), unslept()), (Ok(Got::Clean), 1, 0));
    assert_eq!((get(word(lock)), get(&words::<_, 2>(lock)[1])), (me, 0));
}

#[test]
fn a_waiter_exchanges_and_sleeps_only_where_it_must() {
    let segment = segment();
    let lock = &segment.mutex;
    let me = segment.party(1);
    // The flag stands: after the fast path it exchanges nothing before it sleeps.
    set(word(lock), name(2).bits() | WAITERS);
    script_exchange32(|| {});
    script_exchange32(|| {});
    script_sleep(move || {
        assert_eq!(unplayed(), 1);
        set(word(lock), 0);
        Woken::Unsure
    });
    assert_eq!(lock.lock(&me, &WaitBounds::FOREVER), Ok(Got::Clean));
    // The flag could not be set: it does not sleep.
    set(word(lock), name(2).bits());
    script_exchange32(|| {});
    script_exchange32(move || set(word(lock), 0));
    calls();
    assert_eq!(lock.lock(&me, &WaitBounds::FOREVER), Ok(Got::Clean));
    assert!(!calls().iter().any(|call| matches!(call, Call::Sleep(..))));
    // Its time is up since long, and nothing says so but the clock.
    set(word(lock), name(2).bits());
    let how = WaitBounds { deadline: Some(time().after(10)), ..WaitBounds::FOREVER };
    script_sleep(|| {
        pass(11);
        Woken::Unsure
    });
    assert_eq!(lock.lock(&me, &how), Err(RobustError::TimedOut));
    assert_eq!((unplayed(), unslept()), (0, 0));
    // A report says nothing of a lock that no number names.
    let domain = Domain { base: usize::MAX, ..segment.domain() };
    let far = Party { domain, me: name(1) };
    set(&segment.record(1).waits_for, 5);
    script_sleep(move || {
        assert_eq!(get(&segment.record(1).waits_for), 0);
        Woken::Cancelled
    });
    assert_eq!(lock.lock(&far, &WaitBounds::FOREVER), Err(RobustError::Cancelled));
}

/// What comes free after the last turn of a spinner has missed nobody.
#[test]
fn who_has_not_slept_has_missed_nothing() {
    let segment = segment();
    let lock = &segment.mutex;
    set(word(lock), name(2).bits());
    (0..2).for_each(|_| script_pause(|| {}));
    script_pause(move || set(word(lock), 0));
    calls();
    assert_eq!(lock.lock(&segment.party(1), &WaitBounds::FOREVER), Ok(Got::Clean));
    assert_eq!(unplayed(), 0);
    assert!(!calls().contains(&Call::Missed));
}

/// The first lock of a segment is one as all others.
#[test]
fn a_claim_on_the_first_lock_of_a_segment_counts() {
    let segment = segment();
    let lock = &segment.rwlock;
    let domain = Domain { base: at(lock) - 8, ..segment.domain() };
    let me = Party { domain, me: name(1) };
    assert_eq!(lock.try_read(&me, Some(0)), Ok(ReadHold::Claim(0)));
    assert_eq!(get(&segment.claim(1, 0).what), 1);
    assert_eq!(lock.try_write(&me), Err(RobustError::Recursive));
    assert!(lock.unread(&me, ReadHold::Claim(0)));
    assert_eq!(lock.try_write(&me), Ok(Got::Clean));
}

#[test]
fn a_writer_gives_up_at_its_deadline_and_does_not_sleep_for_who_has_gone() {
    let segment = segment();
    let lock = &segment.rwlock;
    let me = segment.party(1);
    let what = segment.offset(lock);
    let claim = &segment.claim(2, 0).what;
    segment.claims(2, 0, what, 0);
    script_sleep(|| {
        pass(7);
        Woken::Changed
    });
    let how = WaitBounds { deadline: Some(time().after(7)), ..WaitBounds::FOREVER };
    assert_eq!(lock.write(&me, &how), Err(RobustError::TimedOut));
    assert_eq!((get(word(lock)), unslept()), (0, 0));
    set(claim, what);
    script_exchange32(|| {});
    script_exchange32(move || set(claim, 0));
    calls();
    assert_eq!(lock.write(&me, &WaitBounds::FOREVER), Ok(Got::Clean));
    assert!(!calls().iter().any(|call| matches!(call, Call::Sleep(..))));
}

/// One reader that has ended unnoticed does not speak for the others.
#[test]
fn a_try_to_write_asks_about_one_reader_after_the_other() {
    let segment = segment();
    let lock = &segment.rwlock;
    let what = segment.offset(lock);
    segment.claims(2, 0, what, 0);
    segment.claims(3, 0, what, 0);
    answer(|answers| (answers.trust, answers.ended) = (Some(0), 1 << 2));
    assert_eq!(lock.try_write(&segment.party(1)), Err(RobustError::TimedOut));
    assert_eq!((get(word(lock)), asked().len()), (0, 2));
    // So does who tries for units; a mark that a peer has set on a claim hides nobody.
    let semaphore = &segment.semaphore;
    let numbers: &'static [U32; 8] = words(semaphore);
    set(&numbers[2], 2);
    segment.claims(4, 0, segment.offset(semaphore) | AWAITED, 2);
    answer(|answers| answers.ended = 1 << 4);
    let got = semaphore.try_acquire(&segment.party(1), 0, 1);
    assert_eq!(got, Ok(Units { lost: 2 }));
}

/// A semaphore whose mutex is lost is left as it is.
#[test]
fn nobody_changes_a_semaphore_that_is_lost() {
    let segment = segment();
    let semaphore = &segment.semaphore;
    let me = segment.party(1);
    let numbers: &'static [U32; 8] = words(semaphore);
    segment.claims(1, 0, segment.offset(semaphore), 3);
    set(&numbers[2], 9);
    set(word(semaphore), NOT_RECOVERABLE);
    assert_eq!(semaphore.add(&me, 1), Err(RobustError::NotRecoverable));
    assert_eq!(semaphore.release(&me, 0, 1), Err(RobustError::NotRecoverable));
    assert_eq!(semaphore.consume(&me, 0, 1), Err(RobustError::NotRecoverable));
    assert_eq!(semaphore.peek(), (9, 0));
    assert_eq!(get(&segment.claim(1, 0).units), 3);
}

/// More units than a sleeper wants have come, and nobody woke it. And one that finds a dead holder's,
/// too few for itself, tells those that sleep.
#[test]
fn a_wake_up_that_went_nowhere_and_units_of_a_dead_holder_are_noticed() {
    let segment = segment();
    let semaphore = &segment.semaphore;
    let me = segment.party(1);
    let numbers: &'static [U32; 8] = words(semaphore);
    set(&numbers[2], 5);
    let what = segment.offset(semaphore);
    segment.claims(2, 0, what, 5);
    script_sleep(move || {
        set(&numbers[3], 3);
        Woken::Unsure
    });
    assert!(semaphore.acquire(&me, 0, 1, &WaitBounds::FOREVER).is_ok());
    assert!(calls().contains(&Call::Missed));
    set(&segment.claim(1, 0).what, 0);
    set(&segment.claim(1, 0).units, 0);
    segment.claims(2, 0, what, 4);
    segment.claims(3, 0, what, 1);
    answer(|answers| (answers.trust, answers.ended) = (Some(1000), 1 << 3));
    set(&numbers[3], 0);
    set(&numbers[5], 1);
    assert_eq!(semaphore.try_acquire(&me, 0, 2), Err(RobustError::TimedOut));
    assert_eq!(semaphore.peek(), (5, 1));
    let wakes = Call::Wake(at(&numbers[7]), 1);
    assert_eq!(acts().into_iter().filter(|call| *call == wakes).count(), 1);
}

#[test]
fn a_sleeper_for_units_heeds_every_holder_and_its_deadline() {
    let segment = segment();
    let semaphore = &segment.semaphore;
    let me = segment.party(1);
    let numbers: &'static [U32; 8] = words(semaphore);
    let what = segment.offset(semaphore);
    set(&numbers[2], 4);
    // A mark that a peer has set on a claim hides nobody.
    segment.claims(2, 0, what | AWAITED, 4);
    script_sleep(move || {
        let Some(Call::Sleep(slept, None)) = calls().pop() else { panic!() };
        assert_eq!(slept[2], Watch::Low(at(&segment.record(2).life), life(2).life()));
        Woken::Interrupted
    });
    // A signal is no reason for who did not ask.
    script_sleep(|| Woken::Cancelled);
    let got = semaphore.acquire(&me, 0, 1, &WaitBounds::FOREVER);
    assert_eq!((got, unslept()), (Err(RobustError::Cancelled), 0));
    // A holder of several units dies between the count and the choice of whom to watch.
    set(&numbers[3], 0);
    script_access(&segment.record(2).life, || {});
    script_access(&segment.record(2).life, move || segment.dies(2));
    assert_eq!(semaphore.acquire(&me, 0, 1, &WaitBounds::FOREVER), Ok(Units { lost: 4 }));
    assert_eq!(unplayed(), 0);
    set(&segment.claim(1, 0).what, 0);
    // More holders than it can watch, and a deadline before it would look again.
    (2..6).for_each(|slot| {
        segment.lives(slot, life(slot));
        segment.claims(slot, 0, what, 1);
    });
    set(&numbers[3], 0);
    let deadline = Some(time().after(GLANCE - 1));
    script_sleep(move || {
        assert!(matches!(calls().pop(), Some(Call::Sleep(_, until)) if until == deadline));
        Woken::TimedOut
    });
    let how = WaitBounds { deadline, ..WaitBounds::FOREVER };
    assert_eq!(semaphore.acquire(&me, 0, 1, &how), Err(RobustError::TimedOut));
}

/// A caller tells a checker what it goes on with, of all that it has read.
#[test]
fn a_checker_hears_what_a_caller_goes_on_with() {
    let segment = segment();
    let me = segment.party(1);
    let forever = WaitBounds::FOREVER;
    answer(|answers| answers.checked = true);
    let lock = &segment.rwlock;
    let what = segment.offset(lock);
    for (stands, expected) in [(0, vec![0]), (WAITERS, vec![0]), (INCONSISTENT, vec![1])] {
        set(word(lock), stands);
        told();
        let got = if stands == INCONSISTENT { Got::OwnerDied } else { Got::Clean };
        assert_eq!(lock.write(&me, &forever), Ok(got));
        assert_eq!(told(), expected, "{stands:x}");
    }
    // A writer that has slept for a reader knows nothing of that any more.
    set(word(lock), 0);
    segment.claims(2, 0, what, 0);
    script_sleep(move || {
        set(&segment.claim(2, 0).what, 0);
        Woken::At(0)
    });
    assert_eq!(lock.write(&me, &forever), Ok(Got::Clean));
    assert_eq!(told(), [0, 0]);
    // The semaphore: before it enters, with how it slept; and when it has entered.
    let semaphore = &segment.semaphore;
    let numbers: &'static [U32; 8] = words(semaphore);
    for (woken, kept) in [
        (Woken::At(0), 1),
        (Woken::At(1), 2),
        (Woken::Changed, 3),
        (Woken::Unsure, 3),
        (Woken::Cancelled, 4 + RobustError::Cancelled as u64),
        (Woken::Copied, 4 + RobustError::Copied as u64),
    ] {
        numbers.iter().for_each(|number| set(number, 0));
        set(&segment.claim(1, 1).what, 0);
        set(&segment.claim(1, 1).units, 0);
        script_sleep(move || {
            set(&numbers[2], 1);
            set(&numbers[3], 1);
            woken
        });
        told();
        let got = semaphore.acquire(&me, 1, 1, &forever);
        assert_eq!(got.is_ok(), woken != Woken::Copied);
        assert_eq!(told(), [0, kept], "{woken:?}");
    }
    for (stands, expected) in [(0, vec![]), (WAITERS, vec![0, 2]), (INCONSISTENT, vec![1, 2])] {
        set(word(semaphore), stands);
        assert_eq!(semaphore.add(&me, 1), Ok(true));
        assert_eq!(told(), expected);
    }
    assert_eq!(acts(), []);
}
