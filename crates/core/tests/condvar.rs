//! What the condition variable does, step by step, on a machine with one
//! thread.

mod common;

use common::{Alone, U32, as_participant, here, script, time, unplayed, wakes};
use lockstead_core::{
    Atomic32, Hooks, LockError, LockId, Off, Ordering, RawCondvar, RawMutex, WaitBounds,
    WaitOutcome,
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
