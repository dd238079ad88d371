//! Waits that a signal handler ends.

use crate::support::Watchdog;
use lockstead::{Interrupted, Mutex};
use std::os::unix::thread::JoinHandleExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

static HANDLED: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_signal: libc::c_int) {
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

fn install(signal: libc::c_int, flags: libc::c_int) {
    // SAFETY: a zeroed sigaction is valid; the handler is async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = count as *const () as usize;
        action.sa_flags = flags;
        assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
    }
}

/// Sends `signal` to the thread every now and then until it has ended: a
/// signal that arrives before the thread sleeps does not count.
fn pester<T>(thread: &JoinHandle<T>, signal: libc::c_int) {
    while !thread.is_finished() {
        // SAFETY: the handle has not been joined, so the id is valid.
        unsafe { libc::pthread_kill(thread.as_pthread_t(), signal) };
        thread::sleep(Duration::from_micros(300));
    }
}

fn ends_the_wait(signal: libc::c_int, flags: libc::c_int, delay: Duration) {
    install(signal, flags);
    let mutex = Arc::new(Mutex::new(0));
    let held = mutex.lock();
    let waiter = {
        let mutex = Arc::clone(&mutex);
        thread::spawn(move || mutex.lock_interruptible().map(|_| ()))
    };
    thread::sleep(delay);
    pester(&waiter, signal);
    assert_eq!(waiter.join().expect("no panic"), Err(Interrupted));
    drop(held);
    *mutex.lock_interruptible().expect("nobody sends a signal now") += 1;
    assert_eq!(*mutex.lock(), 1);
}

#[test]
fn a_handler_ends_an_interruptible_wait() {
    let _watchdog = Watchdog::new("a_handler_ends_an_interruptible_wait");
    ends_the_wait(libc::SIGUSR1, 0, Duration::ZERO);
    // Past the bound the waiter sleeps elsewhere, as the heir.
    ends_the_wait(libc::SIGUSR1, 0, Duration::from_millis(20));
}

#[test]
fn a_handler_with_sa_restart_ends_it_too() {
    let _watchdog = Watchdog::new("a_handler_with_sa_restart_ends_it_too");
    ends_the_wait(libc::SIGUSR2, libc::SA_RESTART, Duration::ZERO);
    ends_the_wait(libc::SIGUSR2, libc::SA_RESTART, Duration::from_millis(20));
}

#[test]
fn handlers_do_not_end_the_other_waits() {
    let _watchdog = Watchdog::new("handlers_do_not_end_the_other_waits");
    install(libc::SIGURG, 0);
    let before = HANDLED.load(Ordering::Relaxed);
    let mutex = Arc::new(Mutex::new(0));
    let held = mutex.lock();
    let forms: [fn(&Mutex<i32>); 2] = [
        |m| *m.lock() += 1,
        |m| *m.lock_timeout(Duration::from_secs(3600)).expect("not for an hour") += 1,
    ];
    let waiters: Vec<_> = forms
        .into_iter()
        .map(|form| {
            let mutex = Arc::clone(&mutex);
            thread::spawn(move || form(&mutex))
        })
        .collect();
    for _ in 0..20 {
        for waiter in &waiters {
            // SAFETY: the handle has not been joined, so the id is valid.
            unsafe { libc::pthread_kill(waiter.as_pthread_t(), libc::SIGURG) };
        }
        thread::sleep(Duration::from_micros(500));
    }
    assert!(waiters.iter().all(|w| !w.is_finished()));
    drop(held);
    for waiter in waiters {
        waiter.join().expect("no panic");
    }
    assert!(HANDLED.load(Ordering::Relaxed) > before, "no handler ran");
    assert_eq!(*mutex.lock(), 2);
}
