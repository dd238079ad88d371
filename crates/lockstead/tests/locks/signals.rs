//! Waits that a signal handler ends.

use crate::support::{Watchdog, Watched};
use lockstead::{Condvar, Interrupted, Mutex, Once, RwLock, Semaphore, classic};
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
    // SAFETY: a zeroed sigaction is valid, and the handler is async-signal-safe.
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

/// Runs `wait`, which waits for something that does not come, until a handler runs; it is left
/// alone for `delay`, so that it may have gone to sleep in another place.
fn ends(
    signal: libc::c_int,
    delay: Duration,
    wait: impl FnOnce() -> Result<(), Interrupted> + Send + 'static,
) {
    let waiter = thread::spawn(wait);
    thread::sleep(delay);
    pester(&waiter, signal);
    assert_eq!(waiter.join().expect("no panic"), Err(Interrupted));
}

fn handler_ends_every_interruptible_wait(signal: libc::c_int, flags: libc::c_int) {
    static MUTEX: Mutex<u32> = Mutex::new(0);
    static LOCK: RwLock<u32> = RwLock::new(0);
    static TUNED: Semaphore = Semaphore::new(0);
    static CLASSIC: classic::Semaphore = classic::Semaphore::new(0);
    // The statics serve two tests.
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().expect("no panic");

    install(signal, flags);
    let held = (MUTEX.lock(), LOCK.write());
    // Past the bound a waiter sleeps elsewhere: as the hand-off waiter, or in the waiting
    // room of the reader-writer lock.
    for delay in [Duration::ZERO, Duration::from_millis(20)] {
        ends(signal, delay, || MUTEX.lock_interruptible().map(drop));
        ends(signal, delay, || MUTEX.lock_interruptible_nested(1).map(drop));
        ends(signal, delay, || LOCK.read_interruptible().map(drop));
        ends(signal, delay, || LOCK.write_interruptible().map(drop));
        ends(signal, delay, || TUNED.down_interruptible());
        ends(signal, delay, || CLASSIC.down_interruptible());
        ends(signal, delay, || {
            let (mutex, condvar) = (Mutex::new(()), Condvar::new());
            let mut guard = mutex.lock();
            loop {
                condvar.wait_interruptible(&mut guard)?;
            }
        });
    }
    let once = Arc::new(Once::new());
    once.call_once(|| {
        let once = Arc::clone(&once);
        ends(signal, Duration::ZERO, move || once.call_once_interruptible(|| unreachable!("ran")));
    });
    drop(held);

    // Nobody sends a signal now, and everything works.
    *MUTEX.lock_interruptible().expect("free") += 1;
    *LOCK.write_interruptible().expect("free") += 1;
    for up in [|| TUNED.up(), || CLASSIC.up()] {
        up();
    }
    assert_eq!(TUNED.down_interruptible(), Ok(()));
    assert_eq!(CLASSIC.down_interruptible(), Ok(()));
    assert_eq!((TUNED.permits(), CLASSIC.permits()), (0, 0));
}

#[test]
fn a_handler_ends_an_interruptible_wait() {
    let _watchdog = Watchdog::new("a_handler_ends_an_interruptible_wait");
    handler_ends_every_interruptible_wait(libc::SIGUSR1, 0);
}

#[test]
fn a_handler_with_sa_restart_ends_it_too() {
    let _watchdog = Watchdog::new("a_handler_with_sa_restart_ends_it_too");
    handler_ends_every_interruptible_wait(libc::SIGUSR2, libc::SA_RESTART);
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
            let (mutex, watched) = (Arc::clone(&mutex), Arc::new(Watched::default()));
            let begins = Arc::clone(&watched);
            let waiter = thread::spawn(move || {
                begins.begins();
                form(&mutex);
            });
            (waiter, watched)
        })
        .collect();
    for _ in 0..20 {
        for (waiter, watched) in &waiters {
            watched.sleeps();
            // SAFETY: the handle has not been joined, so the id is valid.
            unsafe { libc::pthread_kill(waiter.as_pthread_t(), libc::SIGURG) };
        }
    }
    assert!(waiters.iter().all(|(waiter, _)| !waiter.is_finished()));
    drop(held);
    for (waiter, _) in waiters {
        waiter.join().expect("no panic");
    }
    assert!(HANDLED.load(Ordering::Relaxed) > before, "no handler ran");
    assert_eq!(*mutex.lock(), 2);
}
