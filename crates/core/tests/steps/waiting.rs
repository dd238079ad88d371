//! What a waiter of the mutex does between its sleeps, step by step, on a machine with one thread:
//! what it writes, when it restarts releases, how long it sleeps, and what it leaves behind.

use crate::common::mutexes::{bits::*, change, force, mutex, release, release_blindly};
use crate::common::{
    Alone, Channel, Sleep, U32, as_participant, here, lose, machine, pass, script, script_exchange,
    script_restart, set, sleeps, time, unplayed, wakes,
};
use lockstead_core::policy::NoSpin;
use lockstead_core::word::Word;
use lockstead_core::{
    Atomic32, LockError, Nanos, Off, Ordering, Policy, RawMutex, Standard, TunedSemaphore,
    WaitBounds, WaitOutcome,
};

type Backs = lockstead_core::policy::Without<lockstead_core::policy::Spinning>;

/// Makes a lock whose waiters sleep at once, on a machine on which no time passes but in sleeps.
fn still() -> &'static RawMutex<Alone, Off, NoSpin> {
    set(|machine| machine.tick = 0);
    mutex()
}

fn until(deadline: Nanos) -> WaitBounds<'static, Alone> {
    WaitBounds { deadline: Some(deadline), ..WaitBounds::FOREVER }
}

/// Returns the least time after which a waiter insists, where so many sleep.
fn bound(sleepers: u64) -> u64 {
    Standard::BOUND + sleepers * Standard::SHARE
}

fn channels() -> Vec<(Channel, Option<Nanos>)> {
    sleeps().into_iter().map(|it| (it.channel, it.until)).collect()
}

#[test]
fn a_waiter_announces_itself_and_passes_the_wake_up_on() {
    let lock = still();
    force(lock, Word::held(2));
    let began = time();
    script(move || {
        assert_eq!(lock.peek(), Word(2 | WAITERS | SLOW));
        assert_eq!(machine().asleep, 1);
        release(lock, 2);
        assert_eq!(wakes().into_iter().map(|it| it.1).collect::<Vec<_>>(), [1]);
        WaitOutcome::Woken
    });
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!(lock.peek(), Word(1 | WAITERS | SLOW), "others may sleep");
    let [Sleep { channel, until, counted, restarts, .. }] = sleeps()[..] else { panic!() };
    assert_eq!((channel, until), (Channel::Low, Some(began.after(bound(1)))));
    assert_eq!((counted, restarts), (true, 1));
    assert_eq!((machine().asleep, wakes()), (0, vec![]), "a mutex is not free for another one");
}

/// Each word, and whether a waiter that finds it writes, and restarts releases, before it sleeps.
#[test]
fn a_waiter_writes_and_restarts_only_where_it_must() {
    for (word, asleep, restarts) in [
        (2, 2 | WAITERS | SLOW, 1),
        (2 | WAITERS, 2 | WAITERS | SLOW, 1),
        (2 | ONE_SLOW, 2 | WAITERS | SLOW, 0),
        (2 | WAITERS | ONE_SLOW, 2 | WAITERS | SLOW, 0),
        (2 | WAITERS | SLOW, 2 | WAITERS | SLOW, 0),
        // The hand-off waiter covers those that sleep.
        (2 | HANDOFF | RESERVED, 2 | REGISTERED | COVERED | PREPARING, 0),
        (2 | REGISTERED | COVERED | PREPARING, 2 | REGISTERED | COVERED | PREPARING, 0),
    ] {
        let lock = still();
        force(lock, Word(word));
        set(|machine| (machine.restarts, machine.exchanges) = (0, 0));
        script(move || {
            assert_eq!(lock.peek(), Word(asleep));
            assert_eq!(machine().exchanges, u32::from(word != asleep), "{:?}", Word(word));
            assert_eq!(machine().restarts, restarts, "{:?}", Word(word));
            force(lock, Word(0));
            WaitOutcome::Woken
        });
        assert_eq!(lock.lock(here()), Ok(()));
        assert_eq!(sleeps().len(), 1);
        assert_eq!(machine().restarts, restarts);
    }
}

#[test]
fn a_waiter_that_others_come_before_looks_again() {
    let lock = still();
    force(lock, Word::held(2));
    script_exchange(move || release(lock, 2));
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!((lock.peek(), machine().restarts, sleeps().len()), (Word::held(1), 0, 0));
    // The exchange by which it takes the lock may fail as well.
    force(lock, Word::held(2));
    script(move || {
        release(lock, 2);
        script_exchange(move || force(lock, Word::held(3)));
        WaitOutcome::Woken
    });
    script(move || {
        assert_eq!(lock.peek(), Word(3 | WAITERS | SLOW));
        force(lock, Word(0));
        WaitOutcome::Interrupted
    });
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!((lock.peek(), unplayed()), (Word::held(1), 0), "it has announced the others since");
}

#[test]
fn a_flag_that_a_release_has_lost_is_set_again() {
    let lock = still();
    for (found, taken) in [
        // Others may sleep because of the flag.
        (0, 1 | WAITERS | SLOW),
        (COVERED | tail(4), 1 | COVERED | tail(4)),
        (WAITERS, 1 | WAITERS | SLOW),
    ] {
        force(lock, Word::held(2));
        script_restart(move || force(lock, Word(found)));
        assert_eq!(lock.lock(here()), Ok(()));
        assert_eq!((lock.peek(), sleeps().len()), (Word(taken), 0), "{:?}", Word(found));
    }
    force(lock, Word::held(2));
    script_restart(move || {
        release_blindly(lock);
        change(lock, |word| word.with_subject(3));
    });
    let before = machine().restarts;
    script(move || {
        assert_eq!(lock.peek(), Word(3 | WAITERS | SLOW));
        assert_eq!(machine().restarts, before + 2);
        WaitOutcome::TimedOut
    });
    // What it has made to stand it has not to pass on, and not to look after again.
    let exchanges = move || machine().exchanges;
    let deadline = time().after(10);
    assert_eq!(lock.lock_how(&until(deadline), 0, here()), Err(LockError::TimedOut));
    assert_eq!((exchanges(), machine().restarts), (exchanges(), before + 2));
    assert_eq!(sleeps().len(), 1);
}

#[test]
fn a_waiter_that_was_not_woken_leaves_without_a_step() {
    let lock = still();
    force(lock, Word::held(2));
    script(move || {
        // Released, and taken by somebody near whom nobody sleeps.
        force(lock, Word::held(3));
        set(|machine| machine.exchanges = 0);
        WaitOutcome::TimedOut
    });
    assert_eq!(lock.lock_how(&until(time().after(10)), 0, here()), Err(LockError::TimedOut));
    assert_eq!((lock.peek(), machine().exchanges), (Word::held(3), 0));
    // The same where its flag stands.
    force(lock, Word::held(2));
    script(|| {
        set(|machine| machine.exchanges = 0);
        WaitOutcome::TimedOut
    });
    assert_eq!(lock.lock_how(&until(time().after(10)), 0, here()), Err(LockError::TimedOut));
    assert_eq!((lock.peek(), machine().exchanges), (Word(2 | WAITERS | SLOW), 0));
    // One that was woken once has paid when it sleeps again.
    force(lock, Word::held(2));
    script(move || {
        force(lock, Word(3 | SLOW));
        WaitOutcome::Woken
    });
    script(|| {
        set(|machine| machine.exchanges = 0);
        WaitOutcome::TimedOut
    });
    assert_eq!(lock.lock_how(&until(time().after(10)), 0, here()), Err(LockError::TimedOut));
    assert_eq!((lock.peek(), machine().exchanges), (Word(3 | WAITERS | SLOW), 0));
    assert_eq!(unplayed(), 0);
}

/// The flag that a woken waiter finds may be older than its wake-up: it pays by an exchange only.
#[test]
fn a_waiter_that_finds_a_flag_owes_one_still() {
    let lock = still();
    force(lock, Word::held(2));
    script(move || {
        force(lock, Word(3 | WAITERS | SLOW));
        WaitOutcome::Woken
    });
    script(move || {
        force(lock, Word(0));
        WaitOutcome::Interrupted
    });
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!((lock.peek(), unplayed()), (Word(1 | WAITERS | SLOW), 0));
}

/// Has participant 1 be woken, find the word `found`, and give up because its time is up. Returns
/// the restarts that it then makes.
fn gives_up_woken(
    lock: &'static RawMutex<Alone, Off, NoSpin>,
    found: u64,
    expected: Result<(), LockError>,
) -> u32 {
    force(lock, Word::held(2));
    script(move || {
        force(lock, Word(found));
        pass(20);
        set(|machine| machine.restarts = 0);
        WaitOutcome::Woken
    });
    assert_eq!(lock.lock_how(&until(time().after(10)), 0, here()), expected);
    assert_eq!(unplayed(), 0);
    machine().restarts
}

const LATE: Result<(), LockError> = Err(LockError::TimedOut);

#[test]
fn a_waiter_that_gives_up_passes_its_wake_up_on() {
    let lock = still();
    for (found, left, restarts) in [
        (3, 3 | WAITERS | SLOW, 1),
        (3 | WAITERS, 3 | WAITERS | SLOW, 1),
        (3 | ONE_SLOW, 3 | WAITERS | SLOW, 0),
        (3 | COVERED | HANDOFF | RESERVED, 3 | COVERED | PREPARING | REGISTERED, 0),
        (3 | COVERED | REGISTERED, 3 | COVERED | PREPARING | REGISTERED, 0),
    ] {
        assert_eq!(gives_up_woken(lock, found, LATE), restarts, "{:?}", Word(found));
        assert_eq!(lock.peek(), Word(left), "{:?}", Word(found));
    }
    // It takes a free lock, whatever the time.
    gives_up_woken(lock, 0, Ok(()));
    assert_eq!(lock.peek(), Word(1 | WAITERS | SLOW));
}

#[test]
fn a_waiter_that_gives_up_waits_until_a_release_is_certain_to_see_it() {
    // Each: what the restart of releases shows, the word in the end, and the restarts.
    for (found, left, restarts) in [
        (4, 4 | WAITERS | SLOW, 2),
        (4 | SLOW, 4 | WAITERS | SLOW, 1),
        (4 | WAITERS, 4 | WAITERS, 1),
        (4 | COVERED | tail(5), 4 | COVERED | tail(5), 1),
    ] {
        let lock = still();
        script_restart(|| {});
        script_restart(move || force(lock, Word(found)));
        assert_eq!(gives_up_woken(lock, 3, LATE), restarts, "{:?}", Word(found));
        assert_eq!(lock.peek(), Word(left), "{:?}", Word(found));
    }
    // The restart shows it a free lock.
    let lock = still();
    script_restart(|| {});
    script_restart(move || force(lock, Word(ONE_SLOW)));
    assert_eq!(gives_up_woken(lock, 3, Ok(())), 1);
    assert_eq!(lock.peek(), Word(1 | WAITERS | SLOW));
}

#[test]
fn a_waiter_that_gives_up_takes_what_comes_free() {
    let lock = still();
    script_exchange(|| {});
    script_exchange(move || release(lock, 3));
    gives_up_woken(lock, 3, Ok(()));
    assert_eq!(lock.peek(), Word(1 | WAITERS | SLOW));
}

#[test]
fn the_bound_grows_with_the_sleepers_and_patience_doubles() {
    let lock = still();
    set(|machine| machine.sleepers = 3);
    // Another one is the hand-off waiter.
    force(lock, Word(2 | REGISTERED));
    let began = time();
    let mut expected = vec![began.after(bound(1)), began.after(bound(3))];
    for patience in [1, 2, 4, 8, 16, 32, 64, 64, 64] {
        let last = *expected.last().expect("two");
        expected.push(last.after(patience * bound(3)));
    }
    for _ in 1..expected.len() {
        script(|| WaitOutcome::TimedOut);
    }
    script(move || {
        assert_eq!(lock.peek(), Word(2 | REGISTERED | COVERED | PREPARING));
        // Still reserved, and nobody comes for it.
        force(lock, Word(REGISTERED | COVERED));
        WaitOutcome::Interrupted
    });
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!(lock.peek(), Word(1 | WAITERS | SLOW));
    let slept: Vec<_> = expected.into_iter().map(|at| (Channel::Low, Some(at))).collect();
    assert_eq!(channels(), slept);
}

#[test]
fn a_waiter_past_the_bound_takes_a_reserved_lock_and_passes_its_wake_up_on() {
    let lock = still();
    force(lock, Word(2 | REGISTERED));
    script(|| {
        pass(bound(1));
        WaitOutcome::Woken
    });
    script_exchange(|| {});
    script_exchange(move || change(lock, |word| Word(word.0 | COVERED)));
    script(move || {
        force(lock, Word(REGISTERED));
        WaitOutcome::Woken
    });
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!(lock.peek(), Word(1 | WAITERS | SLOW));
    // Before the bound it leaves the lock to the hand-off waiter.
    force(lock, Word(REGISTERED));
    script(move || {
        assert_eq!(lock.peek(), Word(REGISTERED | COVERED | PREPARING));
        force(lock, Word(0));
        WaitOutcome::Interrupted
    });
    assert_eq!(lock.lock(here()), Ok(()));
}

#[test]
fn a_sleep_ends_at_the_deadline_or_when_the_waiter_may_insist() {
    let lock = still();
    for (after, slept) in [(bound(1) - 1, bound(1) - 1), (bound(1) + 1, bound(1))] {
        force(lock, Word(2 | REGISTERED));
        let began = time();
        script(|| {
            pass(2 * bound(1));
            WaitOutcome::Interrupted
        });
        assert_eq!(lock.lock_how(&until(began.after(after)), 0, here()), LATE);
        assert_eq!(channels(), [(Channel::Low, Some(began.after(slept)))]);
    }
    // At the deadline to the nanosecond.
    script(|| WaitOutcome::TimedOut);
    assert_eq!(lock.lock_how(&until(time().after(10)), 0, here()), LATE);
    assert_eq!(sleeps().len(), 1);
}

#[test]
fn an_owner_left_behind_by_fork_is_not_waited_for() {
    let lock = still();
    lose(2);
    force(lock, Word::held(2));
    assert_eq!(lock.lock(here()), Err(LockError::OwnerLost));
    assert_eq!((lock.peek(), sleeps().len()), (Word::held(2), 0));
    // One that was woken passes that on.
    force(lock, Word::held(3));
    script(move || {
        force(lock, Word::held(2));
        WaitOutcome::Woken
    });
    assert_eq!(lock.lock(here()), Err(LockError::OwnerLost));
    assert_eq!(lock.peek(), Word(2 | WAITERS | SLOW));
}

#[test]
fn a_wait_ends_for_its_own_reasons_only() {
    let lock = still();
    let token: &U32 = Box::leak(Box::new(U32::ZERO));
    let cancellable = WaitBounds { cancel: Some(token), ..WaitBounds::FOREVER };
    let interruptible = WaitBounds { interruptible: true, ..WaitBounds::FOREVER };
    force(lock, Word::held(2));
    script(|| WaitOutcome::Interrupted);
    assert_eq!(lock.lock_how(&interruptible, 0, here()), Err(LockError::Interrupted));
    // What has ended a sleep is not forgotten, although the word is zero again.
    script(|| WaitOutcome::Cancelled);
    assert_eq!(lock.lock_how(&cancellable, 0, here()), Err(LockError::Cancelled));
    // The word alone is enough.
    script(|| {
        token.store(7, Ordering::Relaxed);
        WaitOutcome::Interrupted
    });
    assert_eq!(lock.lock_how(&cancellable, 0, here()), Err(LockError::Cancelled));
    sleeps();
    assert_eq!(lock.lock_how(&cancellable, 0, here()), Err(LockError::Cancelled));
    assert_eq!(sleeps().len(), 0, "cancelled before it slept");
    for outcome in [WaitOutcome::Interrupted, WaitOutcome::Changed] {
        script(move || outcome);
    }
    script(move || {
        force(lock, Word(0));
        WaitOutcome::Interrupted
    });
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!((unplayed(), lock.peek()), (0, Word::held(1)), "it was never woken");
}

#[test]
fn a_waiter_for_units_restarts_nothing_and_never_backs_off() {
    type Semaphore = TunedSemaphore<Alone, Off, Backs>;
    let semaphore: &'static Semaphore = Box::leak(Box::new(Semaphore::new(0).expect("none")));
    for _ in 0..3 {
        script(move || {
            as_participant(2, || {
                semaphore.up().expect("room");
                assert!(semaphore.try_down(here()));
            });
            WaitOutcome::Woken
        });
    }
    script(|| {
        pass(20_000_000);
        WaitOutcome::Woken
    });
    let how = until(time().after(19_000_000));
    assert_eq!(semaphore.down_how(&how, here()), LATE);
    assert!(semaphore.peek().waiters(), "it has passed its wake-up on");
    assert!(!semaphore.peek().unlocks_slowly(), "no release of units loses anything");
    assert!(sleeps().into_iter().all(|it| it.channel == Channel::Low));
    assert_eq!((machine().restarts, unplayed()), (0, 0));
}

/// Units that are left wake one more sleeper, if there may be one.
#[test]
fn who_takes_a_unit_wakes_the_next_for_those_left() {
    let semaphore: &'static TunedSemaphore<Alone, Off, NoSpin> =
        Box::leak(Box::new(TunedSemaphore::new(0).expect("none")));
    for (outcome, expected) in [(WaitOutcome::Woken, &[1][..]), (WaitOutcome::Interrupted, &[])] {
        script(move || {
            as_participant(2, || {
                semaphore.up().expect("room");
                semaphore.up().expect("room");
            });
            wakes();
            outcome
        });
        semaphore.down(here());
        let counts: Vec<u32> = wakes().into_iter().map(|it| it.1).collect();
        assert_eq!((counts, semaphore.permits()), (expected.to_vec(), 1), "{outcome:?}");
        assert!(semaphore.try_down(here()));
        // Nobody sleeps: the flag of the one that was woken is gone with the next unit.
        semaphore.up().expect("room");
        assert!(semaphore.try_down(here()));
        wakes();
    }
}
