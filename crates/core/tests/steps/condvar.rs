//! What the condition variable does, step by step, on a machine with one
//! thread.

use crate::common::{
    Alone, U32, U64, as_participant, here, lose, script, script_exchange, set, sleeps, time, told,
    unplayed, wakes,
};
use lockstead_core::{
    Atomic32, Atomic64, Awaited, AwaitedUse, Hooks, LockError, LockId, Off, Ordering, RawCondvar,
    RawMutex, WaitBounds, WaitOutcome,
};
use std::cell::RefCell;

fn pair() -> (&'static RawMutex<Alone>, &'static RawCondvar<Alone>) {
    (Box::leak(Box::new(RawMutex::new())), Box::leak(Box::new(RawCondvar::new())))
}

/// Locks, waits, checks that the mutex is held again, unlocks.
fn wait<H: Hooks>(
    mutex: &RawMutex<Alone, H>,
    condvar: &RawCondvar<Alone>,
    how: WaitBounds<'_, Alone>,
) -> Result<(), LockError> {
    mutex.lock(here()).expect("not held");
    // SAFETY: this participant locked the mutex in the line above.
    let result = unsafe { condvar.wait(mutex, &how, here()) };
    assert!(mutex.is_mine(), "the wait returned without the mutex");
    // SAFETY: this participant owns the mutex, as the line above asserts.
    unsafe { mutex.unlock() };
    result
}

#[test]
fn a_notification_that_nobody_waits_for_does_nothing() {
    let (_, condvar) = pair();
    condvar.notify_one();
    condvar.notify_all();
    assert_eq!(wakes(), []);
    assert_eq!(size_of::<RawCondvar<Alone>>(), 8);
}

#[test]
fn a_waiter_lets_go_of_the_mutex_and_is_woken() {
    let (mutex, condvar) = pair();
    for (notify, count) in
        [(RawCondvar::notify_one as fn(&RawCondvar<Alone>), 1), (RawCondvar::notify_all, u32::MAX)]
    {
        script(move || {
            as_participant(2, || {
                assert!(mutex.try_lock(here()), "the waiter kept the mutex");
                // SAFETY: this participant locked the mutex in the line above.
                unsafe { mutex.unlock() };
                notify(condvar);
            });
            assert_eq!(wakes().into_iter().map(|w| w.1).collect::<Vec<_>>(), [count]);
            WaitOutcome::Woken
        });
        assert_eq!(wait(mutex, condvar, WaitBounds::FOREVER), Ok(()));
        assert_eq!(unplayed(), 0);
        condvar.notify_one();
        assert_eq!(wakes(), [], "the notification did not take the waiter off the count");
    }
}

#[test]
fn every_wait_can_end_and_costs_one_idle_wake_up_at_most() {
    let (mutex, condvar) = pair();
    let token: &U32 = Box::leak(Box::new(U32::ZERO));
    let how = WaitBounds {
        deadline: Some(time().after(1_000_000)),
        cancel: Some(token),
        interruptible: true,
    };
    script(|| WaitOutcome::Interrupted);
    assert_eq!(wait(mutex, condvar, how), Err(LockError::Interrupted));
    script(|| WaitOutcome::TimedOut);
    assert_eq!(wait(mutex, condvar, how), Err(LockError::TimedOut));
    token.store(1, Ordering::Relaxed);
    assert_eq!(wait(mutex, condvar, how), Err(LockError::Cancelled));
    // A signal is a return for no reason to those that do not ask for it.
    script(|| WaitOutcome::Interrupted);
    assert_eq!(wait(mutex, condvar, WaitBounds::FOREVER), Ok(()));
    assert_eq!(unplayed(), 0);
    for _ in 0..10 {
        condvar.notify_one();
    }
    assert_eq!(wakes().len(), 4, "one for each that left by itself");
}

#[test]
fn the_mutex_is_taken_again_even_if_it_must_be_waited_for() {
    let (mutex, condvar) = pair();
    script(|| {
        as_participant(2, || assert!(mutex.try_lock(here())));
        WaitOutcome::TimedOut
    });
    script(|| {
        // SAFETY: the same participant locked the mutex above.
        as_participant(2, || unsafe { mutex.unlock() });
        WaitOutcome::Woken
    });
    let how = WaitBounds { deadline: Some(time().after(10)), ..WaitBounds::FOREVER };
    assert_eq!(wait(mutex, condvar, how), Err(LockError::TimedOut));
    assert_eq!(unplayed(), 0);
}

thread_local! {
    static NOTIFIED: RefCell<Option<&'static RawCondvar<Alone>>> = const { RefCell::new(None) };
}

/// Notifies between the waiter's look at the sequence and its sleep.
struct NotifyOnRelease;

impl Hooks for NotifyOnRelease {
    type Waits = lockstead_core::Standard;
    type State = ();
    const NEW: () = ();
    fn releasing((): &(), _lock: LockId) {
        if let Some(condvar) = NOTIFIED.take() {
            condvar.notify_one();
        }
    }
}

#[test]
fn a_notification_before_the_sleep_is_not_lost() {
    let mutex: &RawMutex<Alone, NotifyOnRelease> = Box::leak(Box::new(RawMutex::new()));
    let (_, condvar) = pair();
    NOTIFIED.set(Some(condvar));
    // There is no action: to sleep would fail the test.
    assert_eq!(wait(mutex, condvar, WaitBounds::FOREVER), Ok(()));
    assert_eq!(size_of::<RawMutex<Alone, Off>>(), 8);
}

/// Returns the word of a condition variable.
fn word(condvar: &RawCondvar<Alone>) -> &U64 {
    // SAFETY: it is its word alone (`repr(C)`), an atomic, and `condvar` borrows it.
    unsafe { &*std::ptr::from_ref(condvar).cast() }
}

/// Returns a word: so many wait, and this is the sequence.
fn of(waiting: u64, sequence: u32) -> u64 {
    waiting << 32 | u64::from(sequence)
}

const MANY: u64 = u32::MAX as u64;

#[test]
fn a_notification_counts_those_that_wait_down_and_the_sequence_up() {
    let (_, condvar) = pair();
    for (waiting, sequence) in [(1, 0), (2, 7), (3, u32::MAX), (MANY, 0), (0, 5)] {
        for all in [false, true] {
            word(condvar).store(of(waiting, sequence), Ordering::Relaxed);
            let expected = if all { waiting } else { waiting.min(1) };
            assert_eq!(condvar.notify_counting(all), expected);
            let after = match (waiting, all) {
                (0, _) => of(0, sequence),
                (_, true) => of(0, sequence.wrapping_add(1)),
                (_, false) => of(waiting - 1, sequence.wrapping_add(1)),
            };
            assert_eq!(word(condvar).load(Ordering::Relaxed), after);
            let count = if all { u32::MAX } else { 1 };
            let woken = if waiting == 0 { vec![] } else { vec![count] };
            assert_eq!(wakes().into_iter().map(|it| it.1).collect::<Vec<_>>(), woken);
        }
    }
    // Others come before: one that waits, and one that notifies.
    word(condvar).store(of(1, 0), Ordering::Relaxed);
    script_exchange(move || word(condvar).store(of(2, 0), Ordering::Relaxed));
    assert_eq!(condvar.notify_counting(false), 1);
    assert_eq!(word(condvar).load(Ordering::Relaxed), of(1, 1));
    wakes();
    script_exchange(move || word(condvar).store(of(0, 2), Ordering::Relaxed));
    assert_eq!(condvar.notify_counting(true), 0);
    assert_eq!((word(condvar).load(Ordering::Relaxed), wakes()), (of(0, 2), vec![]));
}

#[test]
fn a_waiter_counts_itself_and_an_observer_is_told_how_its_sleep_ends() {
    let (mutex, condvar) = pair();
    for observed in [false, true] {
        set(|machine| machine.observed = observed);
        for (before, joined) in [(0, 1), (1, 2), (MANY - 1, MANY), (MANY, MANY)] {
            let deadline = Some(time().after(1_000_000));
            let how = WaitBounds { deadline, interruptible: true, ..WaitBounds::FOREVER };
            script(move || {
                assert_eq!(word(condvar).load(Ordering::Relaxed), of(joined, 9));
                WaitOutcome::Interrupted
            });
            // Another one joins or notifies just before. The mutex is taken in between.
            script_exchange(|| {});
            script_exchange(move || word(condvar).store(of(before, 9), Ordering::Relaxed));
            assert_eq!(wait(mutex, condvar, how), Err(LockError::Interrupted));
            let address = std::ptr::from_ref(condvar).addr();
            let wants = AwaitedUse::Notification;
            let awaited = Awaited { address, wants, name: None, deadline };
            let mut all = vec![(awaited, None)];
            all.extend(observed.then_some((awaited, Some(Some(LockError::Interrupted)))));
            assert_eq!(told(), all);
            assert_eq!(sleeps().into_iter().map(|it| it.until).collect::<Vec<_>>(), [deadline]);
            assert_eq!(unplayed(), 0);
        }
    }
}

#[test]
fn a_mutex_that_can_never_be_taken_again_is_told() {
    let (mutex, condvar) = pair();
    lose(5);
    script(move || {
        as_participant(5, || assert!(mutex.try_lock(here())));
        WaitOutcome::Woken
    });
    mutex.lock(here()).expect("not held");
    // SAFETY: this participant locked the mutex in the line above.
    let ended = unsafe { condvar.wait(mutex, &WaitBounds::FOREVER, here()) };
    assert_eq!((ended, unplayed()), (Err(LockError::OwnerLost), 0));
    assert!(!mutex.is_mine());
}
