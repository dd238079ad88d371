//! What the hand-off waiter of a mutex does, step by step, on a machine with one thread: what it
//! writes, whom it wakes, when it restarts releases, and what it leaves behind.

use crate::common::mutexes::{bits::*, change, force, mutex, release, release_blindly};
use crate::common::{
    Alone, Channel, U32, here, machine, pass, script, script_exchange, script_exchanged,
    script_pause, script_restart, set, sleeps, time, unplayed, wakes,
};
use lockstead_core::policy::NoSpin;
use lockstead_core::word::Word;
use lockstead_core::{
    Atomic32, LockError, Nanos, Off, Ordering, Policy, RawMutex, Standard, TunedSemaphore,
    WaitBounds, WaitOutcome,
};

type Lock<Y = NoSpin> = &'static RawMutex<Alone, Off, Y>;

/// What stands in the word beside the owner while the hand-off waiter sleeps.
const ASLEEP: u64 = REGISTERED | HANDOFF_ASLEEP;

/// The least time after which a waiter insists.
const BOUND: u64 = Standard::BOUND + Standard::SHARE;

/// Makes a lock that participant 2 holds, on a machine on which no time passes but in sleeps.
fn held<Y: Policy>() -> Lock<Y> {
    set(|machine| machine.tick = 0);
    let lock = mutex();
    force(lock, Word::held(2));
    lock
}

/// Says that the first sleep ends past the bound, not by a wake-up, with this word in the lock.
fn becomes_due<Y: Policy>(lock: Lock<Y>, word: u64) {
    script(move || {
        force(lock, Word(word));
        pass(BOUND);
        set(|machine| machine.restarts = 0);
        wakes();
        WaitOutcome::Interrupted
    });
}

fn counts() -> Vec<u32> {
    wakes().into_iter().map(|(_, count)| count).collect()
}

#[test]
fn a_hand_off_waiter_registers_sleeps_on_its_own_and_is_woken_first() {
    let lock = held::<NoSpin>();
    script(|| WaitOutcome::TimedOut);
    script(move || {
        // It covers those that sleep, for which it has announced itself before.
        assert_eq!(lock.peek(), Word(2 | ASLEEP | COVERED | PREPARING));
        release(lock, 2);
        assert_eq!(counts(), [u32::MAX]);
        assert!(!lock.try_lock(here()), "kept for the hand-off waiter");
        WaitOutcome::Woken
    });
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!(lock.peek(), Word(1 | WAITERS | SLOW));
    let slept: Vec<_> =
        sleeps().into_iter().map(|it| (it.channel, it.until, it.restarts)).collect();
    let due = Nanos(1).after(BOUND);
    assert_eq!(slept, [(Channel::Low, Some(due), 1), (Channel::HandOff, None, 2)]);
    assert_eq!(wakes(), []);
}

#[test]
fn it_is_shown_what_a_hand_off_waiter_sleeps_for() {
    let lock = held::<NoSpin>();
    becomes_due(lock, 2);
    script(move || {
        release(lock, 2);
        WaitOutcome::Woken
    });
    assert_eq!(lock.lock(here()), Ok(()));
    let shown = sleeps()[1].shown.expect("a lock's name");
    assert_eq!((shown.lock, shown.is_endless), (lock.id().0, true));
}

/// A waiter that was woken owes an announcement when it registers, and owes nothing afterwards.
#[test]
fn a_hand_off_waiter_pays_its_debt_as_it_registers() {
    let lock = held::<NoSpin>();
    script(move || {
        force(lock, Word::held(3));
        pass(BOUND);
        set(|machine| machine.restarts = 0);
        WaitOutcome::Woken
    });
    // The first attempt to register fails.
    script_exchange(|| {});
    script_exchange(move || change(lock, Word::with_unreleased));
    script(move || {
        assert_eq!(lock.peek(), Word(3 | ASLEEP | COVERED | PREPARING | UNRELEASED));
        assert_eq!(machine().restarts, 1);
        // Another waiter past the bound takes it, and releases it again; the next one has it, near
        // whom nobody sleeps.
        force(lock, Word::held(4));
        wakes();
        WaitOutcome::Interrupted
    });
    script(move || {
        assert_eq!(lock.peek(), Word(4 | ASLEEP));
        // Both flags are its own, and it has made them stand.
        assert_eq!((machine().restarts, counts()), (2, vec![]));
        force(lock, Word(REGISTERED));
        WaitOutcome::Interrupted
    });
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!((lock.peek(), unplayed()), (Word(1 | (126 * ONE_SLOW)), 0));
}

#[test]
fn a_hand_off_waiter_makes_what_it_relies_on_stand() {
    // The word that it finds as it registers, and the restarts before it sleeps. *Reserved* is its
    // own even where another one has set *hand-off asleep*.
    for found in [2, 2 | HANDOFF_ASLEEP, 2 | SLOW, 2 | WAITERS | SLOW] {
        let lock = held::<NoSpin>();
        becomes_due(lock, found);
        script(move || {
            let covered = if found & WAITERS == 0 { 0 } else { COVERED | PREPARING };
            assert_eq!(lock.peek(), Word(2 | ASLEEP | covered));
            assert_eq!((machine().restarts, counts()), (1, vec![]), "{:?}", Word(found));
            release(lock, 2);
            WaitOutcome::Interrupted
        });
        assert_eq!(lock.lock(here()), Ok(()));
        assert_eq!(sleeps().len(), 2);
    }
}

#[test]
fn what_stood_once_and_is_set_again_is_made_to_stand_again() {
    for (found, restarts, exchanges) in [
        // Another one past the bound took the lock in its place, and *hand-off asleep* stayed.
        (3 | HANDOFF_ASLEEP, 1, 1),
        // A release erased *reserved* unseen.
        (3 | HANDOFF, 1, 2),
        (3 | HANDOFF | HANDOFF_ASLEEP, 1, 1),
        // A third has registered since, and this one sets *hand-off asleep* again.
        (3 | HANDOFF | RESERVED, 1, 1),
        // The lock is kept for contexts by now.
        (3 | CONTEXTS | RESERVED | SLOW, 1, 2),
        // All is as it was.
        (3 | ASLEEP, 0, 0),
    ] {
        let lock = held::<NoSpin>();
        becomes_due(lock, 2);
        script(move || {
            force(lock, Word(found));
            set(|machine| (machine.restarts, machine.exchanges) = (0, 0));
            WaitOutcome::Interrupted
        });
        script(move || {
            assert_eq!(lock.peek(), Word(3 | ASLEEP | found & CONTEXTS), "{:?}", Word(found));
            assert_eq!(machine().exchanges, exchanges, "{:?}", Word(found));
            assert_eq!((machine().restarts, counts()), (restarts, vec![]), "{:?}", Word(found));
            force(lock, Word(REGISTERED));
            WaitOutcome::Interrupted
        });
        assert_eq!(lock.lock(here()), Ok(()));
        assert_eq!((lock.peek().subject(), unplayed()), (1, 0));
    }
}

/// Another hand-off waiter may sleep because of a flag that this one has set and that a release
/// has erased unseen.
#[test]
fn who_sets_hand_off_asleep_answers_for_all_that_sleep_because_of_it() {
    // It takes the lock at once.
    let lock = held::<NoSpin>();
    becomes_due(lock, 2);
    script_restart(|| {});
    script_restart(move || release_blindly(lock));
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!((counts(), sleeps().len()), (vec![u32::MAX], 1));
    // Somebody else has it.
    let lock = held::<NoSpin>();
    becomes_due(lock, 2);
    script_restart(|| {});
    script_restart(move || {
        release_blindly(lock);
        change(lock, |word| word.with_subject(3));
    });
    script(move || {
        assert_eq!((counts(), machine().restarts), (vec![u32::MAX], 2), "once");
        assert_eq!(lock.peek(), Word(3 | ASLEEP));
        // A release wakes all that sleep because of it.
        release(lock, 3);
        assert_eq!(counts(), [u32::MAX]);
        WaitOutcome::Woken
    });
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!((counts(), unplayed()), (vec![], 0), "the release that erased it saw it");
    // The flag that it could not set is not its own.
    let lock = held::<NoSpin>();
    becomes_due(lock, 2);
    script_exchange(|| {});
    script_exchange(|| {});
    script_exchange(move || release(lock, 2));
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!((counts(), unplayed()), (vec![], 0));
}

#[test]
fn a_hand_off_waiter_that_others_come_before_looks_again() {
    // As it takes the lock.
    let lock = held::<NoSpin>();
    becomes_due(lock, 2);
    script(move || {
        force(lock, Word(REGISTERED));
        script_exchange(move || force(lock, Word(3 | SLOW)));
        WaitOutcome::Interrupted
    });
    script(move || {
        assert_eq!(lock.peek(), Word(3 | ASLEEP));
        force(lock, Word(REGISTERED | tail(4)));
        WaitOutcome::Woken
    });
    assert_eq!(lock.lock(here()), Ok(()));
    // It was woken: there may be others, for whom no queue answers that was not seen to run.
    assert_eq!(lock.peek(), Word(1 | WAITERS | SLOW | tail(4)));
    assert_eq!((unplayed(), wakes()), (0, vec![]));
}

/// Has the hand-off waiter give up as `outcome` says, after its sleep has left this word. Returns
/// the restarts and the wake-ups that it then makes.
fn gives_up<Y: Policy>(
    lock: Lock<Y>,
    registers: u64,
    left: u64,
    expected: Result<(), LockError>,
) -> (u32, Vec<u32>) {
    becomes_due(lock, registers);
    script(move || {
        assert_eq!(sleeps().last().map(|it| it.channel), Some(Channel::HandOff));
        force(lock, Word(left));
        set(|machine| machine.restarts = 0);
        wakes();
        WaitOutcome::TimedOut
    });
    let how = WaitBounds { deadline: Some(time().after(2 * BOUND)), ..WaitBounds::FOREVER };
    assert_eq!(lock.lock_how(&how, 0, here()), expected);
    assert_eq!(unplayed(), 0);
    (machine().restarts, counts())
}

const LATE: Result<(), LockError> = Err(LockError::TimedOut);

#[test]
fn a_hand_off_waiter_that_gives_up_withdraws() {
    for (found, left, restarts, woken) in [
        (3 | ASLEEP, 3 | SLOW, 0, &[u32::MAX][..]),
        (3 | REGISTERED, 3 | SLOW, 0, &[]),
        (3 | ASLEEP | COVERED | PREPARING, 3 | WAITERS | SLOW, 0, &[u32::MAX]),
        // No slow unlocks to come: a release may lose *waiters*.
        (3 | HANDOFF | RESERVED | COVERED, 3 | WAITERS | SLOW, 1, &[]),
        (3 | HANDOFF | RESERVED, 3, 0, &[]),
        // A queue covers the sleepers from now on.
        (3 | ASLEEP | COVERED | tail(4), 3 | SLOW | COVERED | tail(4), 0, &[u32::MAX]),
    ] {
        let lock = held::<NoSpin>();
        let of = Word(found);
        assert_eq!(gives_up(lock, 2, found, LATE), (restarts, woken.to_vec()), "{of:?}");
        assert_eq!(lock.peek(), Word(left), "{of:?}");
    }
    // Nobody covers the sleepers of a lock that was taken from it, and their flag is another's.
    let lock = held::<NoSpin>();
    assert_eq!(gives_up(lock, 2, 3 | WAITERS | SLOW, LATE), (0, vec![]));
    assert_eq!(lock.peek(), Word(3 | WAITERS | SLOW));
    // It takes what is free.
    assert_eq!(gives_up(held::<NoSpin>(), 2, REGISTERED, Ok(())), (0, vec![]));
}

#[test]
fn a_hand_off_waiter_that_cannot_withdraw_looks_again() {
    let lock = held::<NoSpin>();
    for _ in 0..3 {
        script_exchange(|| {});
    }
    script_exchange(move || release(lock, 3));
    assert_eq!(gives_up(lock, 2, 3 | ASLEEP, Ok(())), (0, vec![u32::MAX]), "by the release");
    assert_eq!(lock.peek(), Word(1 | (126 * ONE_SLOW)));
}

/// The restart that follows a withdrawal shows that the flag is gone: it is set again.
#[test]
fn a_hand_off_waiter_that_gives_up_waits_until_its_flag_stands() {
    let lock = held::<NoSpin>();
    script_restart(|| {});
    script_restart(|| {});
    script_restart(move || force(lock, Word::held(4)));
    let found = 3 | HANDOFF | RESERVED | COVERED;
    assert_eq!(gives_up(lock, 2, found, LATE), (2, vec![]));
    assert_eq!(lock.peek(), Word(4 | WAITERS | SLOW));
}

/// Spins for the lock before it sleeps as the hand-off waiter.
struct Turns;

impl Policy for Turns {
    type Base = NoSpin;
    const TURNS: u32 = 4;
    const HANDOFF_SPIN: u64 = 1000;
}

/// Slow unlocks that do not stand yet are the hand-off waiter's own, and so is what relies on them.
#[test]
fn a_hand_off_waiter_that_gives_up_early_does_not_trust_its_own_flags() {
    let token: &U32 = Box::leak(Box::new(U32::ZERO));
    let cancellable = WaitBounds { cancel: Some(token), ..WaitBounds::FOREVER };
    for (found, left, restarts) in [
        (2 | WAITERS, 2 | WAITERS | SLOW, 1),
        (2 | WAITERS | SLOW, 2 | WAITERS | SLOW, 1),
        (2, 2 | SLOW, 0),
    ] {
        let lock = held::<Turns>();
        token.store(0, Ordering::Relaxed);
        becomes_due(lock, found);
        script_pause(|| token.store(1, Ordering::Relaxed));
        assert_eq!(lock.lock_how(&cancellable, 0, here()), Err(LockError::Cancelled));
        assert_eq!((lock.peek(), machine().restarts), (Word(left), restarts), "{:?}", Word(found));
        assert_eq!((wakes(), unplayed()), (vec![], 0));
    }
}

#[test]
fn a_hand_off_waiter_spins_for_its_time_and_looks_at_the_clock_now_and_then() {
    let lock = held::<Turns>();
    // So much time passes at each look at the clock: the third finds the end of the spinning.
    set(|machine| machine.tick = 400);
    becomes_due(lock, 2);
    set(|machine| machine.pauses = 0);
    script(move || {
        assert_eq!(machine().pauses, 4 + 4 + 3, "in the turns before a look and between two");
        // Another one takes the lock in its place: it does not spin a second time.
        force(lock, Word::held(3));
        WaitOutcome::Interrupted
    });
    script(move || {
        assert_eq!(machine().pauses, 4 + 4 + 3);
        release(lock, 3);
        WaitOutcome::Woken
    });
    assert_eq!(lock.lock(here()), Ok(()));
    // To the nanosecond: the time is over when it is reached.
    let lock = held::<Turns>();
    becomes_due(lock, 2);
    set(|machine| machine.pauses = 0);
    for _ in 0..3 {
        script_pause(|| {});
    }
    script_pause(|| pass(Turns::HANDOFF_SPIN));
    script(move || {
        assert_eq!(machine().pauses, 7);
        release(lock, 2);
        WaitOutcome::Woken
    });
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!(unplayed(), 0);
}

#[test]
fn a_hand_off_waiter_that_spins_takes_the_lock_as_it_comes_free() {
    let lock = held::<Turns>();
    becomes_due(lock, 2);
    script_pause(|| {});
    script_pause(move || release(lock, 2));
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!((sleeps().len(), counts()), (1, vec![]), "it never slept as one");
    assert_eq!(machine().pauses, 2);
}

#[test]
fn a_hand_off_waiter_for_units_restarts_nothing() {
    type Semaphore = TunedSemaphore<Alone, Off, NoSpin>;
    let semaphore: &'static Semaphore = Box::leak(Box::new(Semaphore::new(0).expect("none")));
    set(|machine| machine.tick = 0);
    for outcome in [WaitOutcome::TimedOut, WaitOutcome::Interrupted] {
        let how = WaitBounds { interruptible: true, ..WaitBounds::FOREVER };
        script(|| WaitOutcome::TimedOut);
        script(move || {
            let word = semaphore.peek();
            assert!(word.handoff() && word.handoff_asleep() && word.covered());
            assert!(!word.unlocks_slowly(), "no release of units loses anything");
            if outcome == WaitOutcome::TimedOut {
                semaphore.up().expect("room");
                return WaitOutcome::Woken;
            }
            set(|machine| machine.exchanges = 0);
            outcome
        });
        sleeps();
        let expected = match outcome {
            WaitOutcome::TimedOut => Ok(()),
            _ => Err(LockError::Interrupted),
        };
        assert_eq!(semaphore.down_how(&how, here()), expected);
        assert_eq!((semaphore.permits(), unplayed(), machine().restarts), (0, 0, 0));
        assert!(semaphore.peek().waiters() && !semaphore.peek().handoff());
        assert_eq!((counts().len(), sleeps().len()), (1, 2));
        if outcome == WaitOutcome::Interrupted {
            assert_eq!(machine().exchanges, 1, "it withdraws in one step");
        }
    }
}

#[test]
fn a_hand_off_waiter_for_units_wakes_nobody_itself() {
    type Semaphore = TunedSemaphore<Alone, Off, NoSpin>;
    let semaphore: &'static Semaphore = Box::leak(Box::new(Semaphore::new(0).expect("none")));
    set(|machine| machine.tick = 0);
    script(move || {
        // It registers, and sets its flag, which a release then finds.
        script_exchanged(|| {});
        script_exchanged(move || {
            assert!(semaphore.peek().handoff_asleep());
            semaphore.up().expect("room");
        });
        WaitOutcome::TimedOut
    });
    semaphore.down(here());
    assert_eq!((counts(), semaphore.permits(), unplayed()), (vec![u32::MAX], 0, 0));
}
