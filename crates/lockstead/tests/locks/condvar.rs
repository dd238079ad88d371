//! Condition variables.

use crate::support::{Watchdog, eventually};
use lockstead::{CancelToken, Cancelled, Condvar, Mutex, NamedMutex, TimedOut};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn producers_and_consumers_lose_nothing() {
    let _watchdog = Watchdog::new("producers_and_consumers_lose_nothing");
    const EACH: u64 = 2_000;
    const ROOM: usize = 4;
    let queue = Mutex::new(VecDeque::new());
    let (filled, emptied) = (Condvar::new(), Condvar::new());
    let sum = thread::scope(|s| {
        for producer in 0..3 {
            let (queue, filled, emptied) = (&queue, &filled, &emptied);
            s.spawn(move || {
                for i in 0..EACH {
                    let mut queue = queue.lock();
                    emptied.wait_while(&mut queue, |queue| queue.len() == ROOM);
                    queue.push_back(producer * EACH + i);
                    drop(queue);
                    filled.notify_one();
                }
            });
        }
        let consumers: Vec<_> = (0..3)
            .map(|_| {
                s.spawn(|| {
                    let mut sum = 0;
                    for _ in 0..EACH {
                        let mut queue = queue.lock();
                        filled.wait_while(&mut queue, |queue| queue.is_empty());
                        sum += queue.pop_front().expect("not empty");
                        emptied.notify_one();
                    }
                    sum
                })
            })
            .collect();
        consumers.into_iter().map(|c| c.join().expect("no panic")).sum::<u64>()
    });
    assert_eq!(sum, (0..3 * EACH).sum::<u64>());
}

#[test]
fn notify_all_reaches_all() {
    let _watchdog = Watchdog::new("notify_all_reaches_all");
    for _ in 0..100 {
        let (round, changed) = (NamedMutex::named("round", false), Condvar::new());
        thread::scope(|s| {
            for _ in 0..5 {
                s.spawn(|| changed.wait_while(&mut round.lock(), |over| !*over));
            }
            *round.lock() = true;
            changed.notify_all();
        });
    }
}

#[test]
fn waits_time_out_with_the_mutex_held() {
    let _watchdog = Watchdog::new("waits_time_out_with_the_mutex_held");
    let (mutex, condvar) = (Mutex::new(0), Condvar::new());
    let wait = Duration::from_millis(5);
    let mut guard = mutex.lock();

    let began = Instant::now();
    assert_eq!(condvar.wait_timeout_while(&mut guard, wait, |_| true), Err(TimedOut));
    assert!(began.elapsed() >= wait);
    assert!(mutex.owner().is_some_and(lockstead::Owner::is_current));
    assert_eq!(condvar.wait_timeout_while(&mut guard, wait, |_| false), Ok(()));

    // A wait may end for no reason, so these two may return before the time,
    // but then without an error.
    let began = Instant::now();
    while condvar.wait_timeout(&mut guard, wait).is_ok() {}
    assert!(began.elapsed() >= wait);
    let deadline = Instant::now() + wait;
    while !condvar.wait_until(&mut guard, deadline).timed_out() {}
    assert!(Instant::now() >= deadline);

    *guard += 1;
    drop(guard);
    assert_eq!(*mutex.try_lock().expect("released"), 1);
}

#[test]
fn a_fired_token_ends_the_wait() {
    let _watchdog = Watchdog::new("a_fired_token_ends_the_wait");
    let (mutex, condvar, token) = (Mutex::new(()), Condvar::new(), CancelToken::new());
    let waiting = AtomicBool::new(false);
    thread::scope(|s| {
        let waiter = s.spawn(|| {
            let mut guard = mutex.lock();
            waiting.store(true, Ordering::Relaxed);
            loop {
                if let Err(Cancelled) = condvar.wait_killable(&mut guard, &token) {
                    return mutex.owner().is_some_and(lockstead::Owner::is_current);
                }
            }
        });
        eventually(|| waiting.load(Ordering::Relaxed));
        drop(mutex.lock());
        token.cancel();
        assert!(waiter.join().expect("no panic"), "returned without the mutex");
    });
    assert!(!mutex.is_locked());
}

#[test]
fn waiting_releases_the_mutex() {
    let _watchdog = Watchdog::new("waiting_releases_the_mutex");
    let (mutex, condvar) = (Mutex::new(0), Condvar::default());
    thread::scope(|s| {
        s.spawn(|| condvar.wait_while(&mut mutex.lock(), |steps| *steps < 2));
        for _ in 0..2 {
            *mutex.lock() += 1;
            condvar.notify_one();
        }
    });
    assert_eq!(format!("{condvar:?}"), "Condvar { .. }");
}

/// Threads that give up waiting race with notifications meant for others.
#[test]
fn those_who_give_up_swallow_no_notification() {
    let _watchdog = Watchdog::new("those_who_give_up_swallow_no_notification");
    let (permits, changed) = (Mutex::new(0u32), Condvar::new());
    let taken = AtomicU32::new(0);
    const PATIENT: u32 = 300;
    thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                for _ in 0..PATIENT {
                    let mut permits = permits.lock();
                    changed.wait_while(&mut permits, |permits| *permits == 0);
                    *permits -= 1;
                    taken.fetch_add(1, Ordering::Relaxed);
                }
            });
            s.spawn(|| {
                while taken.load(Ordering::Relaxed) < 2 * PATIENT {
                    let mut permits = permits.lock();
                    let brief = Duration::from_micros(30);
                    if changed.wait_timeout(&mut permits, brief).is_ok() && *permits > 0 {
                        // Notified in the place of a patient one: pass it on.
                        changed.notify_one();
                    }
                }
            });
        }
        for _ in 0..2 * PATIENT {
            *permits.lock() += 1;
            changed.notify_one();
        }
    });
    assert_eq!(permits.into_inner(), 0);
}

#[test]
fn one_condition_variable_serves_two_mutexes() {
    let _watchdog = Watchdog::new("one_condition_variable_serves_two_mutexes");
    let (left, right, changed) = (Mutex::new(false), Mutex::new(false), Condvar::new());
    thread::scope(|s| {
        s.spawn(|| changed.wait_while(&mut left.lock(), |go| !*go));
        s.spawn(|| changed.wait_while(&mut right.lock(), |go| !*go));
        for mutex in [&left, &right] {
            *mutex.lock() = true;
            changed.notify_all();
        }
    });
}
