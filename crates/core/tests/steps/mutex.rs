//! What the mutex does apart from waiting, step by step, on a machine with one thread: over all
//! words, and what hooks, observers and the platform hear of it.

use crate::common::heard::{Heard, STATE, heard};
use crate::common::mutexes::{bits, change, force, mutex, release, slot};
use crate::common::{
    Alone, TICK, as_participant, here, machine, script, script_exchange, set, sleeps, time, told,
    unplayed, wakes,
};
use lockstead_core::policy::NoSpin;
use lockstead_core::word::{Exclusive, Subject, Word};
use lockstead_core::{
    Awaited, AwaitedUse, LockError, Off, RawMutex, ShownSleep, WaitBounds, WaitOutcome,
};

/// Returns words of every flag beside every other, with `subject`, that keep WORD-RESERVED.
fn words(subject: u64) -> Vec<Word> {
    let flags = [
        bits::WAITERS,
        bits::PREPARING,
        bits::HANDOFF_ASLEEP,
        bits::UNRELEASED,
        bits::COVERED,
        bits::HANDOFF | bits::RESERVED,
        bits::CONTEXTS | bits::RESERVED,
        bits::ONE_SLOW,
        5 * bits::ONE_SLOW,
        bits::tail(3),
    ];
    let all = 0..1_u32 << flags.len();
    let of = |set: u32| (0..flags.len()).filter(move |bit| set >> bit & 1 == 1);
    all.map(|set| Word(of(set).map(|bit| flags[bit]).fold(subject, |word, flag| word | flag)))
        .collect()
}

#[test]
fn a_try_takes_a_free_lock_whatever_is_near_and_no_other() {
    let lock = mutex::<NoSpin>();
    for subject in [0, 1, 2] {
        for word in words(subject) {
            force(lock, word);
            let free = Exclusive::free(word);
            assert_eq!(lock.try_lock(here()), free, "{word:?}");
            let taken = Exclusive::written(Exclusive::take(word, slot(1)), 127);
            assert_eq!(lock.peek(), if free { taken } else { word }, "{word:?}");
        }
    }
    assert_eq!((wakes(), sleeps()), (vec![], vec![]));
}

#[test]
fn a_lock_that_is_free_is_taken_at_once_whatever_is_near() {
    let lock = mutex::<NoSpin>();
    for word in words(0).into_iter().filter(|word| Exclusive::free(*word)) {
        force(lock, word);
        set(|machine| machine.holds = 0);
        assert_eq!(lock.lock(here()), Ok(()), "{word:?}");
        let taken = Exclusive::written(Exclusive::take(word, slot(1)), 127);
        assert_eq!(lock.peek(), taken, "{word:?}");
        let slowly = word.low() != 0 && taken.unlocks_slowly();
        assert_eq!(machine().holds, u32::from(slowly), "{word:?}");
    }
    assert_eq!((wakes(), sleeps()), (vec![], vec![]));
}

#[test]
fn a_release_leaves_what_must_outlive_it_and_wakes_who_is_asleep() {
    let lock = mutex::<NoSpin>();
    for word in words(1) {
        force(lock, word);
        set(|machine| machine.lets_go = 0);
        release(lock, 1);
        assert_eq!(lock.peek(), word.erased(), "{word:?}");
        assert_eq!(machine().lets_go, u32::from(word.low() != 1), "{word:?}");
        let mut counts = vec![];
        counts.extend(word.handoff_asleep().then_some(u32::MAX));
        counts.extend(word.waiters().then_some(1));
        let at = lock.id().0;
        let woken: Vec<(usize, u32)> = wakes().into_iter().map(|(of, n)| (of.0, n)).collect();
        assert_eq!(woken, counts.into_iter().map(|n| (at, n)).collect::<Vec<_>>(), "{word:?}");
    }
}

#[test]
fn the_owner_is_named_and_no_other() {
    let lock = mutex::<NoSpin>();
    for subject in [0, 1, 2] {
        for word in words(subject) {
            force(lock, word);
            assert_eq!(lock.owner().map_or(0, |owner| u64::from(owner.get())), subject);
            assert_eq!(lock.is_locked(), subject != 0);
            assert_eq!(lock.is_mine(), subject == 1);
        }
    }
}

#[test]
fn a_thread_that_has_not_joined_owns_nothing_and_joins_to_lock() {
    let lock = mutex::<NoSpin>();
    set(|machine| machine.stranger = true);
    assert!(!lock.is_mine());
    assert!(machine().stranger);
    assert_eq!(lock.lock(here()), Ok(()));
    assert!(lock.is_mine() && !machine().stranger);
    release(lock, 1);
    set(|machine| machine.stranger = true);
    assert!(lock.try_lock(here()));
    assert_eq!(lock.peek(), Word::held(1));
}

#[test]
fn a_try_that_others_come_before_looks_again() {
    let lock = mutex::<NoSpin>();
    // Somebody makes the lock free with a queue beside it, just as this one comes.
    force(lock, Word(bits::ONE_SLOW));
    script_exchange(move || change(lock, |word| Word(word.0 | bits::tail(3))));
    assert!(lock.try_lock(here()));
    assert_eq!(lock.peek(), Word(bits::ONE_SLOW | bits::tail(3)).with_subject(1));
    assert_eq!(unplayed(), 0);
    // Somebody takes it.
    force(lock, Word(bits::ONE_SLOW));
    script_exchange(move || change(lock, |word| word.with_subject(2)));
    assert!(!lock.try_lock(here()));
    assert_eq!((lock.peek().subject(), unplayed()), (2, 0));
}

#[test]
fn who_holds_it_is_told_and_not_hung() {
    let lock = mutex::<NoSpin>();
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!(lock.lock(here()), Err(LockError::Recursive));
    assert_eq!(lock.peek(), Word::held(1));
}

#[test]
fn a_lazy_wait_asks_how_to_wait_only_where_it_waits() {
    let lock = mutex::<NoSpin>();
    assert_eq!(lock.lock_lazily(|| unreachable!("the lock is free"), 0, here()), Ok(()));
    assert!(lock.is_mine());
    let deadline = time().after(1000);
    script(|| WaitOutcome::TimedOut);
    let how = move || WaitBounds { deadline: Some(deadline), ..WaitBounds::FOREVER };
    as_participant(2, || {
        assert_eq!(lock.lock_lazily(how, 0, here()), Err(LockError::TimedOut));
    });
    assert_eq!(sleeps().into_iter().map(|it| it.until).collect::<Vec<_>>(), [Some(deadline)]);
    script(move || {
        release(lock, 1);
        WaitOutcome::Woken
    });
    as_participant(2, || {
        assert_eq!(lock.lock_lazily(|| WaitBounds::FOREVER, 0, here()), Ok(()));
        assert!(lock.is_mine());
    });
    assert_eq!(unplayed(), 0);
}

fn watched() -> &'static RawMutex<Alone, Heard, NoSpin> {
    Box::leak(Box::new(RawMutex::new()))
}

#[test]
fn a_watcher_hears_of_every_acquisition_and_release_once() {
    let lock = watched();
    assert_eq!(*lock.state(), STATE);
    let site = here();
    let line = site.line();
    assert_eq!(lock.lock(site), Ok(()));
    let fast = format!("acquired Alone Fast {line}");
    assert_eq!(heard(), [format!("will acquire Alone 0 {line}"), fast.clone()]);
    assert!(!as_participant(2, || lock.try_lock(site)));
    assert_eq!(heard(), [""; 0], "a try that fails is no acquisition");
    release(lock, 1);
    assert_eq!(heard(), ["releasing"]);
    assert!(lock.try_lock(site));
    assert_eq!(heard(), std::slice::from_ref(&fast));
    release(lock, 1);
    heard();
    assert_eq!(lock.lock_how(&WaitBounds::FOREVER, 3, site), Ok(()));
    assert_eq!(heard(), [format!("will acquire Alone 3 {line}"), fast.clone()]);
    release(lock, 1);
    heard();
    assert_eq!(lock.lock_lazily(|| WaitBounds::FOREVER, 4, site), Ok(()));
    assert_eq!(heard(), [format!("will acquire Alone 4 {line}"), fast]);
}

#[test]
fn a_watcher_hears_of_every_wait_and_how_it_ends() {
    let lock = watched();
    let site = here();
    let line = site.line();
    let deadline = Some(time().after(1000));
    let timed = WaitBounds { deadline, ..WaitBounds::FOREVER };
    let call = |lazily: bool, how: &WaitBounds<'_, Alone>| match lazily {
        false => lock.lock_how(how, 5, site),
        true => lock.lock_lazily(|| *how, 5, site),
    };
    for lazily in [false, true] {
        force(lock, Word::held(2));
        script(|| WaitOutcome::TimedOut);
        assert_eq!(call(lazily, &timed), Err(LockError::TimedOut));
        let begins = format!("will acquire Alone 5 {line}");
        let abandoned = format!("abandoned {line}");
        assert_eq!(heard(), [begins.clone(), "will wait false".into(), abandoned]);
        force(lock, Word::held(2));
        script(move || {
            release(lock, 2);
            heard();
            WaitOutcome::Woken
        });
        assert_eq!(call(lazily, &WaitBounds::FOREVER), Ok(()));
        assert_eq!(heard(), [format!("acquired Alone Slow {line}")]);
        assert!(lock.is_mine());
        assert_eq!(call(lazily, &WaitBounds::FOREVER), Err(LockError::Recursive));
        assert_eq!(heard(), [begins, "will wait true".into(), format!("abandoned {line}")]);
    }
}

#[test]
fn an_observer_is_told_what_a_thread_waits_for_and_how_that_ends() {
    let lock = watched();
    for observed in [false, true] {
        set(|machine| machine.observed = observed);
        for deadline in [None, Some(time().after(1_000_000))] {
            let how = WaitBounds { deadline, ..WaitBounds::FOREVER };
            let address = lock.id().0;
            let wants = AwaitedUse::Mutex;
            let awaited = Awaited { address, wants, name: Some("hall"), deadline };
            let expected = |error| {
                let ends = observed.then_some((awaited, Some(error)));
                [(awaited, None)].into_iter().chain(ends).collect::<Vec<_>>()
            };
            let shown = ShownSleep { lock: address, wants, is_endless: deadline.is_none() };
            force(lock, Word::held(2));
            script(move || {
                release(lock, 2);
                WaitOutcome::Woken
            });
            assert_eq!(lock.lock_how(&how, 0, here()), Ok(()));
            assert_eq!(told(), expected(None));
            assert_eq!(sleeps().into_iter().map(|it| it.shown).collect::<Vec<_>>(), [Some(shown)]);
            force(lock, Word::held(2));
            if deadline.is_some() {
                script(|| WaitOutcome::TimedOut);
                assert_eq!(lock.lock_how(&how, 0, here()), Err(LockError::TimedOut));
                assert_eq!(told(), expected(Some(LockError::TimedOut)));
            }
            sleeps();
        }
    }
}

/// A thread that got the lock after a fight tells the platform that it holds it, and lets go once.
#[test]
fn the_platform_hears_of_a_holder_that_was_fought_with() {
    let lock = mutex::<NoSpin>();
    for slow_unlocks in [0, 127] {
        set(|machine| {
            (machine.slow_unlocks, machine.holds, machine.lets_go) = (slow_unlocks, 0, 0);
        });
        force(lock, Word::held(2));
        script(move || {
            release(lock, 2);
            WaitOutcome::Woken
        });
        assert_eq!(lock.lock(here()), Ok(()));
        // The waiter was woken, so that there may be others.
        assert!(lock.peek().waiters());
        assert_eq!(machine().holds, u32::from(slow_unlocks != 0));
        assert_eq!(machine().holds_at, if slow_unlocks == 0 { 0 } else { lock.id().0 });
        release(lock, 1);
        assert_eq!(machine().lets_go, 2, "once for each of the two releases");
        assert_eq!(machine().lets_go_at, lock.id().0);
    }
    // One that is refused holds nothing.
    set(|machine| (machine.holds, machine.slow_unlocks) = (0, 127));
    force(lock, Word::held(2));
    script(|| WaitOutcome::TimedOut);
    let how = WaitBounds { deadline: Some(time().after(TICK)), ..WaitBounds::FOREVER };
    assert_eq!(lock.lock_how(&how, 0, here()), Err(LockError::TimedOut));
    assert_eq!(machine().holds, 0);
}

#[test]
fn a_mutex_is_eight_bytes_and_begins_free() {
    assert_eq!(size_of::<RawMutex<Alone, Off>>(), 8);
    assert_eq!(RawMutex::<Alone>::default().peek(), Word::IDLE);
}

/// The fast paths of a platform without steps on half a word take others' changes of the high half
/// for no reason to fail.
#[test]
fn the_high_half_does_not_hold_up_a_fast_path() {
    let lock = watched();
    for _ in 0..2 {
        script_exchange(move || change(lock, |word| Word(word.0 ^ bits::tail(3))));
    }
    assert_eq!(lock.lock(here()), Ok(()));
    assert!(heard().last().is_some_and(|last| last.starts_with("acquired Alone Fast")));
    script_exchange(move || change(lock, |word| Word(word.0 | bits::tail(4))));
    set(|machine| machine.lets_go = 0);
    release(lock, 1);
    assert_eq!((lock.peek(), machine().lets_go), (Word(bits::tail(4)), 0));
    force(lock, Word(1 | bits::WAITERS));
    script_exchange(move || {
        change(lock, |word| Word(word.0 | bits::HANDOFF_ASLEEP | bits::tail(4)))
    });
    release(lock, 1);
    assert_eq!((lock.peek(), wakes().len(), unplayed()), (Word(bits::tail(4)), 2, 0));
}
