//! How a waiter of the mutex that was barged past backs off, step by step, on a machine with one
//! thread: when it does, for how long, and what it writes before.

use crate::common::mutexes::{bits::*, force, mutex, release, release_blindly};
use crate::common::{
    Alone, Channel, here, lose, machine, pass, script, script_exchange, script_pause,
    script_restart, set, sleeps, time, unplayed,
};
use lockstead_core::policy::{BackOff, Spinning, Without};
use lockstead_core::word::Word;
use lockstead_core::{
    LockError, Nanos, Off, Policy, RawMutex, Standard, TunedSemaphore, WaitBounds, WaitOutcome,
};

/// A policy that sleeps at once, and backs off when it was barged past once.
type Backs = Without<Spinning>;

/// A number of processors with which a waiter backs off that is refused a sleep.
const MANY: u32 = 3;

type Lock = &'static RawMutex<Alone, Off, Backs>;

/// Makes a lock that participant 2 holds, on a machine on which no time passes but in sleeps.
fn held() -> Lock {
    set(|machine| machine.tick = 0);
    let lock = mutex();
    force(lock, Word::held(2));
    lock
}

/// Says that the next sleep ends as `outcome` says, with this word in the lock.
fn then(lock: Lock, outcome: WaitOutcome, word: u64) {
    script(move || {
        force(lock, Word(word));
        outcome
    });
}

/// Ends the waits of participant 1: the next sleep finds the lock free, and nobody woke it.
fn at_last(lock: Lock) {
    then(lock, WaitOutcome::Interrupted, 0);
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!((unplayed(), machine().asleep), (0, 0));
}

/// Returns the least time after which a waiter insists, where so many sleep.
fn bound(sleepers: u64) -> u64 {
    Standard::BOUND + sleepers * Standard::SHARE
}

fn until(deadline: Nanos) -> WaitBounds<'static, Alone> {
    WaitBounds { deadline: Some(deadline), ..WaitBounds::FOREVER }
}

fn channels() -> Vec<Channel> {
    sleeps().into_iter().map(|it| it.channel).collect()
}

#[test]
fn who_is_woken_in_vain_backs_off_and_passes_the_wake_up_on_before() {
    let lock = held();
    then(lock, WaitOutcome::Woken, 3);
    script(move || {
        assert_eq!(lock.peek(), Word(3 | WAITERS | UNRELEASED | SLOW));
        assert_eq!((machine().restarts, machine().asleep), (2, 1));
        WaitOutcome::TimedOut
    });
    at_last(lock);
    let [first, second, third] = sleeps()[..] else { panic!() };
    assert_eq!([first, second, third].map(|it| it.counted), [true; 3]);
    assert_eq!(first.channel, Channel::Low);
    assert_eq!((second.channel, second.restarts), (Channel::Sequence, 2));
    assert_eq!(second.until, Some(Nanos(1 + Standard::BACKOFF_SLEEP)));
    assert!(second.shown.is_some());
    // The lock was not released meanwhile.
    assert_eq!(third.channel, Channel::Low);
}

#[test]
fn who_is_not_woken_or_gets_the_lock_does_not_back_off() {
    let lock = held();
    then(lock, WaitOutcome::Interrupted, 3);
    then(lock, WaitOutcome::Interrupted, 4);
    at_last(lock);
    assert_eq!(channels(), [Channel::Low; 3]);
    // Being barged past once is one sleep's matter: the next that ends otherwise does not count.
    let lock = held();
    then(lock, WaitOutcome::Woken, 3);
    script(|| WaitOutcome::TimedOut);
    then(lock, WaitOutcome::Interrupted, 4);
    at_last(lock);
    assert_eq!(channels(), [Channel::Low, Channel::Sequence, Channel::Low, Channel::Low]);
}

#[test]
fn who_is_refused_a_sleep_backs_off_once_and_asks_for_a_wake_up_again() {
    set(|machine| machine.processors = MANY);
    let lock = held();
    then(lock, WaitOutcome::Changed, 3);
    // The owner is another one again after the back-off sleep, which counts as being barged past.
    then(lock, WaitOutcome::TimedOut, 4);
    // Not released meanwhile: the section is long.
    script(|| WaitOutcome::TimedOut);
    then(lock, WaitOutcome::Interrupted, 4);
    at_last(lock);
    let [low, nap] = [Channel::Low, Channel::Sequence];
    let slept = sleeps();
    assert_eq!(slept[1].until, Some(Nanos(1 + Standard::BACKOFF_SLEEP)));
    assert_eq!(slept.iter().map(|it| it.channel).collect::<Vec<_>>(), [low, nap, nap, low, low]);
    // A sleep that is not refused ends what one before it was.
    let lock = held();
    then(lock, WaitOutcome::Changed, 3);
    script(|| WaitOutcome::TimedOut);
    then(lock, WaitOutcome::Interrupted, 4);
    at_last(lock);
    assert_eq!(channels(), [low, nap, low, low]);
    // A lock that is free then is taken.
    let lock = held();
    then(lock, WaitOutcome::Changed, 0);
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!((channels(), unplayed()), (vec![low], 0));
}

#[test]
fn who_waits_for_a_unit_or_on_two_processors_asks_again_when_it_is_refused() {
    let lock = held();
    set(|machine| machine.processors = 2);
    then(lock, WaitOutcome::Changed, 3);
    then(lock, WaitOutcome::Changed, 4);
    at_last(lock);
    assert_eq!(channels(), [Channel::Low; 3]);
    set(|machine| machine.processors = MANY);
    let lock: &'static RawMutex<Alone, Off, Without<BackOff, Backs>> = mutex();
    force(lock, Word::held(2));
    for owner in [3, 4, 5] {
        script(move || {
            force(lock, Word(owner));
            WaitOutcome::Changed
        });
    }
    script(move || {
        force(lock, Word(0));
        WaitOutcome::Changed
    });
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!((channels(), unplayed()), (vec![Channel::Low; 4], 0));
    let semaphore = TunedSemaphore::<Alone, Off, Backs>::new(0).expect("none");
    let semaphore: &'static TunedSemaphore<Alone, Off, Backs> = Box::leak(Box::new(semaphore));
    script(|| WaitOutcome::Changed);
    script(|| WaitOutcome::Changed);
    script(move || {
        semaphore.up().expect("room");
        WaitOutcome::Changed
    });
    semaphore.down(here());
    assert_eq!((channels(), unplayed()), (vec![Channel::Low; 3], 0));
}

#[test]
fn back_off_sleeps_double_and_grow_with_the_sleepers() {
    let lock = held();
    set(|machine| machine.sleepers = 2);
    then(lock, WaitOutcome::Woken, 3);
    // Each finds another owner, or the same one again who has released meanwhile.
    for word in [4, 4, 5 | UNRELEASED, 6, 6] {
        then(lock, WaitOutcome::TimedOut, word);
    }
    at_last(lock);
    let naps = [1, 2, 4, 4, 4, 4].map(|times| 2 * times * Standard::BACKOFF_SLEEP);
    let mut at = Nanos(1);
    let ends = naps.map(|nap| {
        at = at.after(nap);
        (Channel::Sequence, Some(at))
    });
    let slept: Vec<_> = sleeps().into_iter().map(|it| (it.channel, it.until)).collect();
    assert_eq!(slept[0].0, Channel::Low);
    assert_eq!(slept[1..], ends);
}

/// A back-off sleep ends at the deadline, or when the waiter may insist, if that is earlier.
#[test]
fn a_back_off_sleep_is_never_too_long() {
    for (deadline, slept) in [
        (Standard::BACKOFF_SLEEP - 1, Standard::BACKOFF_SLEEP - 1),
        (Standard::BACKOFF_SLEEP + 1, Standard::BACKOFF_SLEEP),
    ] {
        let lock = held();
        let began = time();
        then(lock, WaitOutcome::Woken, 3);
        script(|| {
            pass(Standard::BACKOFF_SLEEP * 2);
            WaitOutcome::Interrupted
        });
        let how = until(began.after(deadline));
        assert_eq!(lock.lock_how(&how, 0, here()), Err(LockError::TimedOut));
        let nap = sleeps()[1];
        assert_eq!((nap.channel, nap.until), (Channel::Sequence, Some(began.after(slept))));
    }
    let lock = held();
    let began = time();
    script(move || {
        pass(bound(1) - 1);
        force(lock, Word(3 | REGISTERED));
        WaitOutcome::Woken
    });
    // Past the bound it waits for its turn, however often it was barged past.
    then(lock, WaitOutcome::TimedOut, 4 | REGISTERED);
    then(lock, WaitOutcome::TimedOut, 5 | REGISTERED);
    at_last(lock);
    let slept: Vec<_> = sleeps().into_iter().map(|it| (it.channel, it.until)).collect();
    let due = began.after(bound(1));
    assert_eq!(slept[1], (Channel::Sequence, Some(due)));
    assert_eq!(slept[2], (Channel::Low, Some(due.after(bound(1)))));
    assert_eq!(slept[3], (Channel::Low, Some(due.after(3 * bound(1)))));
}

#[test]
fn a_waiter_does_not_back_off_from_a_lock_that_is_kept_for_another_one() {
    let lock = held();
    then(lock, WaitOutcome::Woken, REGISTERED);
    script(move || {
        assert_eq!(lock.peek(), Word(REGISTERED | COVERED | PREPARING));
        WaitOutcome::Interrupted
    });
    at_last(lock);
    assert_eq!(channels(), [Channel::Low; 3]);
}

/// Who backs off and owes nothing leaves the others' flag as it is.
#[test]
fn who_owes_nothing_restarts_nothing_before_it_backs_off() {
    let lock = held();
    then(lock, WaitOutcome::Woken, 3);
    for (found, marked) in [
        (4 | WAITERS, 4 | WAITERS | UNRELEASED | SLOW),
        (5, 5 | UNRELEASED),
        (6 | WAITERS | SLOW, 6 | WAITERS | UNRELEASED | SLOW),
    ] {
        script(move || {
            force(lock, Word(found));
            set(|machine| machine.restarts = 0);
            WaitOutcome::TimedOut
        });
        script_exchange(|| {});
        script_exchange(|| {});
        script_exchange(|| {});
        script(move || {
            assert_eq!((lock.peek(), machine().restarts), (Word(marked), 0));
            // Somebody else has it by then.
            force(lock, Word(7));
            WaitOutcome::TimedOut
        });
    }
    at_last(lock);
    assert!(channels()[1..].iter().all(|channel| *channel == Channel::Sequence));
}

#[test]
fn a_wake_up_is_passed_on_before_a_back_off_even_where_the_word_says_so_already() {
    let lock = held();
    let standing = 3 | WAITERS | UNRELEASED | SLOW;
    script(move || {
        force(lock, Word(standing));
        set(|machine| (machine.exchanges, machine.restarts) = (0, 0));
        WaitOutcome::Woken
    });
    script(move || {
        assert_eq!(lock.peek(), Word(standing));
        assert_eq!((machine().exchanges, machine().restarts), (1, 0));
        WaitOutcome::TimedOut
    });
    at_last(lock);
    assert_eq!(channels(), [Channel::Low, Channel::Sequence, Channel::Low]);
}

/// A waiter whose flag was lost owes it again, and does not back off with that debt.
#[test]
fn a_flag_that_was_lost_before_a_back_off_is_set_again() {
    let lock = held();
    then(lock, WaitOutcome::Woken, 3);
    script_restart(|| {});
    script_restart(move || {
        release_blindly(lock);
        force(lock, Word::held(4));
    });
    script(move || {
        assert_eq!(lock.peek(), Word(4 | WAITERS | UNRELEASED | SLOW));
        assert_eq!(machine().restarts, 3);
        WaitOutcome::TimedOut
    });
    at_last(lock);
    assert_eq!(channels(), [Channel::Low, Channel::Sequence, Channel::Low]);
    // An exchange that fails before a back-off sleep has written nothing.
    let lock = held();
    then(lock, WaitOutcome::Woken, 3);
    script_exchange(|| {});
    script_exchange(move || release(lock, 3));
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!((lock.peek(), channels()), (Word(1 | WAITERS | SLOW), vec![Channel::Low]));
}

#[test]
fn who_backs_off_notices_an_owner_left_behind_by_fork_and_a_signal() {
    let lock = held();
    let how = WaitBounds { interruptible: true, ..WaitBounds::FOREVER };
    then(lock, WaitOutcome::Woken, 3);
    then(lock, WaitOutcome::Interrupted, 4);
    assert_eq!(lock.lock_how(&how, 0, here()), Err(LockError::Interrupted));
    assert_eq!(lock.peek(), Word::held(4), "it owes nothing");
    lose(5);
    then(lock, WaitOutcome::Woken, 3);
    then(lock, WaitOutcome::TimedOut, 5);
    assert_eq!(lock.lock(here()), Err(LockError::OwnerLost));
    // Called by another thread, it owes that to the next.
    force(lock, Word::held(2));
    then(lock, WaitOutcome::Woken, 3);
    then(lock, WaitOutcome::Woken, 5);
    assert_eq!(lock.lock(here()), Err(LockError::OwnerLost));
    assert_eq!(lock.peek(), Word(5 | WAITERS | SLOW));
}

/// Looks at the lock after each turn, marks it from the third look on, and backs off when it was
/// barged past twice.
struct Marks;

impl Policy for Marks {
    type Base = Standard;
    const SPIN: u64 = 1 << 40;
    const TURNS: u32 = 1;
    const PARTS: u32 = u32::MAX;
    const LOOKS_BEFORE_MARK: u32 = 2;
    const BACKOFF_AFTER: u32 = 2;
}

/// Makes a lock that participant 2 holds, for a spinner.
fn spun_for<Y: Policy>() -> &'static RawMutex<Alone, Off, Y> {
    set(|machine| (machine.tick, machine.processors, machine.pauses) = (0, 2, 0));
    let lock = mutex();
    force(lock, Word::held(2));
    lock
}

/// Asserts in the next pause that the word is `seen`, beside the spinner's place in the queue, and
/// leaves `left` there.
fn pause<Y: Policy>(lock: &'static RawMutex<Alone, Off, Y>, seen: u64, left: u64) {
    script_pause(move || {
        assert_eq!(lock.peek(), Word(seen | tail(1)));
        force(lock, Word(left | tail(1)));
    });
}

#[test]
fn a_spinner_marks_the_lock_and_leaves_when_it_was_barged_past() {
    let lock = spun_for::<Marks>();
    pause(lock, 2, 2);
    pause(lock, 2, 2);
    pause(lock, 2 | UNRELEASED, 2 | UNRELEASED);
    // Held all the while.
    script_pause(move || assert_eq!(lock.peek(), Word(2 | UNRELEASED | tail(1))));
    // Kept for another one, and so not to be had.
    pause(lock, 2 | UNRELEASED, REGISTERED);
    pause(lock, REGISTERED, 3);
    // Once, by another one; and by the same one again, who has released it.
    pause(lock, 3 | UNRELEASED, 3);
    script(move || {
        assert_eq!(lock.peek(), Word(3 | UNRELEASED), "it marks what it backs off from");
        force(lock, Word(3));
        WaitOutcome::TimedOut
    });
    script(move || {
        force(lock, Word(0));
        WaitOutcome::TimedOut
    });
    assert_eq!(lock.lock(here()), Ok(()));
    let naps: Vec<_> = sleeps().into_iter().map(|it| (it.channel, it.until)).collect();
    let sleep = Standard::BACKOFF_SLEEP;
    assert_eq!(naps[0], (Channel::Sequence, Some(Nanos(1 + sleep))));
    assert_eq!(naps[1], (Channel::Sequence, Some(Nanos(1 + sleep + 2 * sleep))));
    assert_eq!(unplayed(), 0);
}

#[test]
fn another_ones_mark_says_nothing_of_ones_own_time() {
    let lock = spun_for::<Marks>();
    pause(lock, 2, 2);
    pause(lock, 2, 2);
    pause(lock, 2 | UNRELEASED, 3 | UNRELEASED);
    pause(lock, 3 | UNRELEASED, 3);
    script(move || {
        force(lock, Word(0));
        WaitOutcome::TimedOut
    });
    assert_eq!(lock.lock(here()), Ok(()));
    let channels: Vec<_> = sleeps().into_iter().map(|it| it.channel).collect();
    assert_eq!((channels, machine().pauses, unplayed()), (vec![Channel::Sequence], 4, 0));
}

#[test]
fn a_mark_that_was_not_set_counts_for_nothing() {
    let lock = spun_for::<Marks>();
    script_exchange(|| {});
    // The mark fails twice, because somebody else has just taken the lock.
    for owner in [3, 4] {
        script_exchange(move || force(lock, Word(owner | tail(1))));
    }
    pause(lock, 2, 2);
    pause(lock, 2, 2);
    pause(lock, 3, 3);
    pause(lock, 4, 4);
    pause(lock, 4 | UNRELEASED, 5);
    pause(lock, 5 | UNRELEASED, 6);
    script(move || {
        force(lock, Word(0));
        WaitOutcome::TimedOut
    });
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!((machine().pauses, unplayed(), sleeps().len()), (6, 0, 1));
}

/// Marks the lock at the first look, and backs off when it was barged past once.
struct Once;

impl Policy for Once {
    type Base = Marks;
    const LOOKS_BEFORE_MARK: u32 = 0;
    const BACKOFF_AFTER: u32 = 1;
}

/// The last spinner leaves the sleepers to the owner, and backs off only when a release is certain
/// to see that.
#[test]
fn the_last_spinner_answers_for_the_sleepers_before_it_backs_off() {
    let lock = spun_for::<Once>();
    force(lock, Word(2 | WAITERS));
    script_pause(move || force(lock, Word(3 | COVERED | tail(1))));
    script(move || {
        assert_eq!((lock.peek(), machine().restarts), (Word(3 | WAITERS | UNRELEASED | SLOW), 1));
        force(lock, Word(0));
        WaitOutcome::TimedOut
    });
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!((sleeps()[0].channel, unplayed()), (Channel::Sequence, 0));
}

/// Beside the queue a spinner counts as well.
#[test]
fn a_spinner_beside_the_queue_leaves_when_it_was_barged_past() {
    let lock = spun_for::<Once>();
    force(lock, Word(2 | tail(3)));
    script_pause(move || {
        assert_eq!(lock.peek(), Word(2 | UNRELEASED | tail(3)));
        force(lock, Word(4 | tail(3)));
    });
    script(move || {
        force(lock, Word(0));
        WaitOutcome::TimedOut
    });
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!((machine().pauses, unplayed()), (1, 0));
    assert_eq!(sleeps()[0].channel, Channel::Sequence);
}

#[test]
fn nobody_marks_a_lock_who_would_not_back_off() {
    type Patient = Without<BackOff, Marks>;
    let lock = spun_for::<Patient>();
    for owner in [3, 4, 5, 6] {
        pause(lock, owner - 1, owner);
    }
    script_pause(move || force(lock, Word(tail(1))));
    assert_eq!(lock.lock(here()), Ok(()));
    assert_eq!((machine().pauses, sleeps().len()), (5, 0));
    // Units have no owner that could release the lock.
    let semaphore = TunedSemaphore::<Alone, Off, Marks>::new(0).expect("none");
    let semaphore: &'static TunedSemaphore<Alone, Off, Marks> = Box::leak(Box::new(semaphore));
    set(|machine| machine.pauses = 0);
    for _ in 0..5 {
        script_pause(move || assert!(!semaphore.peek().unreleased()));
    }
    script_pause(move || semaphore.up().expect("room"));
    semaphore.down(here());
    assert_eq!((machine().pauses, sleeps().len()), (6, 0));
}
