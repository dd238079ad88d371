//! Acquisitions that would never end are panics with a message.

use super::{Watchdog, panic_of, tid, until, until_asleep};
use lockstead::TimedOut;
use lockstead::rt::{NamedRtMutex, RtMutex, RtRecursiveMutex, inherits};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

#[test]
fn locking_twice_panics_with_the_places() {
    let mutex = NamedRtMutex::named("gain", 1);
    let guard = mutex.lock();
    let message = panic_of(|| drop(mutex.lock()));
    for part in ["recursive locking", "`gain`", file!(), "RtRecursiveMutex"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(panic_of(|| drop(mutex.lock_timeout(Duration::from_secs(3600)))).contains("recursive"));
    assert!(mutex.try_lock().is_none());
    drop(guard);
    assert_eq!(*mutex.lock(), 1);
}

/// The thread that closes the cycle panics, which releases its lock: the other one gets
/// both.
#[test]
fn a_cycle_panics_in_the_thread_that_would_close_it() {
    if !inherits() {
        eprintln!("skipped: the kernel does not watch these locks here");
        return;
    }
    let _watchdog = Watchdog::new("a_cycle_panics_in_the_thread_that_would_close_it");
    let (left, right) = (RtMutex::new(1), RtMutex::new(2));
    let (both_held, number) = (Barrier::new(2), AtomicU32::new(0));
    std::thread::scope(|s| {
        let other = s.spawn(|| {
            let _right = right.lock();
            both_held.wait();
            number.store(tid(), Relaxed);
            *left.lock()
        });
        let message = panic_of(|| {
            let _left = left.lock();
            both_held.wait();
            until("the other one is there", || number.load(Relaxed) != 0);
            until_asleep(number.load(Relaxed));
            *right.lock()
        });
        assert!(message.contains("deadlock: the real-time mutex of i32"), "{message}");
        assert_eq!(other.join().expect("goes on"), 1);
    });
}

#[test]
fn a_cycle_that_time_opens_is_none() {
    let _watchdog = Watchdog::new("a_cycle_that_time_opens_is_none");
    let (left, right) = (RtMutex::new(1), RtRecursiveMutex::new(2));
    let (both_held, number) = (Barrier::new(2), AtomicU32::new(0));
    std::thread::scope(|s| {
        let other = s.spawn(|| {
            let _right = right.lock();
            both_held.wait();
            number.store(tid(), Relaxed);
            *left.lock()
        });
        let held = left.lock();
        both_held.wait();
        until("the other one is there", || number.load(Relaxed) != 0);
        until_asleep(number.load(Relaxed));
        assert!(matches!(right.lock_timeout(Duration::from_millis(20)), Err(TimedOut)));
        drop(held);
        assert_eq!(*right.lock_timeout(Duration::from_secs(60)).expect("the cycle is open"), 2);
        assert_eq!(other.join().expect("no panic"), 1);
    });
}

#[test]
fn a_leaked_guard_is_told_when_its_thread_has_ended() {
    let _watchdog = Watchdog::new("a_leaked_guard_is_told_when_its_thread_has_ended");
    let mut mutex = NamedRtMutex::named("gain", 7);
    std::thread::scope(|s| {
        s.spawn(|| std::mem::forget(mutex.lock())).join().expect("no panic");
    });
    until("the kernel has forgotten the thread", || mutex.owner().is_some_and(|o| o.is_lost()));
    assert!(mutex.try_lock().is_none());
    let message = panic_of(|| drop(mutex.lock()));
    for part in ["lost owner", "`gain`", file!(), "has ended"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(mutex.is_lost());
    assert!(panic_of(|| drop(mutex.lock_timeout(Duration::ZERO))).contains("lost owner"));
    assert!(mutex.try_lock().is_none());
    assert_eq!(*mutex.get_mut(), 7);
}

#[test]
fn those_who_wait_for_a_thread_that_ends_are_told() {
    let _watchdog = Watchdog::new("those_who_wait_for_a_thread_that_ends_are_told");
    let mutex = RtRecursiveMutex::new(7);
    let (held, numbers) = (Barrier::new(3), [const { AtomicU32::new(0) }; 2]);
    std::thread::scope(|s| {
        s.spawn(|| {
            std::mem::forget((mutex.lock(), mutex.lock()));
            held.wait();
            for number in &numbers {
                until("the waiter is there", || number.load(Relaxed) != 0);
                until_asleep(number.load(Relaxed));
            }
        });
        let waiters = numbers.each_ref().map(|number| {
            let (held, mutex) = (&held, &mutex);
            s.spawn(move || {
                held.wait();
                number.store(tid(), Relaxed);
                panic_of(|| drop(mutex.lock()))
            })
        });
        for waiter in waiters {
            assert!(waiter.join().expect("the panic was caught").contains("lost owner"));
        }
    });
    assert!(mutex.is_lost() && !mutex.is_locked());
}
