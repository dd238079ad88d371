//! Cancellation by a token that another thread fires.

use crate::support::{Watchdog, eventually};
use lockstead::{CancelToken, Cancelled, Mutex};
use std::os::unix::thread::JoinHandleExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

#[test]
fn one_token_ends_the_waits_of_many_threads_on_many_mutexes() {
    let _watchdog = Watchdog::new("one_token_ends_the_waits");
    let mutexes = [Mutex::new(0), Mutex::new(0)];
    // From waiters that still spin to waiters that asked for the handoff.
    for delay in [Duration::ZERO, Duration::from_micros(100), Duration::from_millis(10)] {
        let token = CancelToken::new();
        let about_to_wait = AtomicU32::new(0);
        let held = (mutexes[0].lock(), mutexes[1].lock());
        thread::scope(|s| {
            let waiters: Vec<_> = (0..6)
                .map(|i| {
                    let (mutex, token, about_to_wait) = (&mutexes[i % 2], &token, &about_to_wait);
                    s.spawn(move || {
                        about_to_wait.fetch_add(1, Ordering::Relaxed);
                        mutex.lock_killable(token).map(|_| ())
                    })
                })
                .collect();
            eventually(|| about_to_wait.load(Ordering::Relaxed) == 6);
            thread::sleep(delay);
            assert!(!token.is_cancelled());
            token.cancel();
            for waiter in waiters {
                assert_eq!(waiter.join().expect("no panic"), Err(Cancelled));
            }
        });
        assert!(token.is_cancelled());
        drop(held);
        for mutex in &mutexes {
            *mutex.lock() += 1;
        }
    }
    assert_eq!(mutexes.map(Mutex::into_inner), [3, 3]);
}

/// A cancelled waiter may have consumed the wake-up of the release; then it
/// must pass it on.
#[test]
fn cancelling_races_with_releasing() {
    let _watchdog = Watchdog::new("cancelling_races_with_releasing");
    let mutex = Mutex::new(());
    for round in 0..400 {
        let token = CancelToken::new();
        let held = mutex.lock();
        thread::scope(|s| {
            s.spawn(|| drop(mutex.lock_killable(&token)));
            s.spawn(|| drop(mutex.lock()));
            s.spawn(|| {
                thread::sleep(Duration::from_micros(round % 80));
                token.cancel();
            });
            thread::sleep(Duration::from_micros(40));
            drop(held);
        });
    }
    assert!(!mutex.is_locked());
}

#[test]
fn a_token_shows_whether_it_was_fired() {
    let token = CancelToken::default();
    assert_eq!(format!("{token:?}"), "CancelToken { cancelled: false }");
    token.cancel();
    token.cancel();
    assert_eq!(format!("{token:?}"), "CancelToken { cancelled: true }");
}

/// The signal is sent once, perhaps before the thread sleeps: a handler that
/// fires a token leaves no gap to miss.
#[test]
fn a_token_may_be_fired_by_a_signal_handler_at_any_moment() {
    static TOKEN: CancelToken = CancelToken::new();
    extern "C" fn fire(_signal: libc::c_int) {
        TOKEN.cancel();
    }
    let _watchdog = Watchdog::new("a_token_may_be_fired_by_a_signal_handler");
    // SAFETY: a zeroed sigaction is valid, and the handler is async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = fire as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGWINCH, &action, std::ptr::null_mut()), 0);
    }
    let mutex = Arc::new(Mutex::new(()));
    let held = mutex.lock();
    let waiter = {
        let mutex = Arc::clone(&mutex);
        thread::spawn(move || mutex.lock_killable(&TOKEN).map(drop))
    };
    // SAFETY: the handle has not been joined, so the id is valid.
    unsafe { libc::pthread_kill(waiter.as_pthread_t(), libc::SIGWINCH) };
    assert_eq!(waiter.join().expect("no panic"), Err(Cancelled));
    drop(held);
}
