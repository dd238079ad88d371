//! What ends a wait: time, signals, cancellation; and what does not.

mod common;

use common::{Watchdog, gettid, handle, signal, until};
use core::panic::Location;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering::Relaxed};
use lockstead_core::{Atomic32, LockError, Nanos, Platform, RawMutex, WaitBounds, WaitOutcome};
use lockstead_linux::futex::{self, Scope, SleepUntil};
use lockstead_linux::{Linux, U32};
use std::sync::Mutex;

/// The switch that refuses `futex_waitv` is global.
static WAITV: Mutex<()> = Mutex::new(());

const SECOND: u64 = 1_000_000_000;

fn in_future(ns: u64) -> Option<Nanos> {
    Some(Linux::now().after(ns))
}

/// A lock held by the main thread of a test while others wait for it.
struct Held(RawMutex<Linux>);

impl Held {
    fn new() -> Self {
        let lock = RawMutex::new();
        lock.lock(Location::caller()).expect("new");
        Held(lock)
    }

    fn wait(&self, how: &WaitBounds<'_, Linux>) -> Result<(), LockError> {
        self.0.lock_how(how, 0, Location::caller())
    }

    /// Asserts that another thread can still have it.
    fn still_works(&self) {
        // SAFETY: this thread holds the lock since `new`.
        unsafe { self.0.unlock() };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                self.wait(&WaitBounds::FOREVER).expect("free");
                // SAFETY: this thread has taken the lock above, and only the holder releases it.
                unsafe { self.0.unlock() };
            });
        });
        assert!(!self.0.is_locked());
    }
}

#[test]
fn a_deadline_ends_the_wait_and_not_too_early() {
    let _watchdog = Watchdog::new(60);
    let held = Held::new();
    for ns in [0, 1, 100_000, 20_000_000] {
        let deadline = in_future(ns);
        let result = std::thread::scope(|scope| {
            let how = WaitBounds { deadline, ..WaitBounds::FOREVER };
            let held = &held;
            scope.spawn(move || held.wait(&how)).join().unwrap()
        });
        assert_eq!(result, Err(LockError::TimedOut));
        assert!(Some(Linux::now()) >= deadline);
    }
    let past = WaitBounds { deadline: Some(Nanos(0)), ..WaitBounds::FOREVER };
    assert_eq!(
        std::thread::scope(|scope| scope.spawn(|| held.wait(&past)).join().unwrap()),
        Err(LockError::TimedOut)
    );
    held.still_works();
}

extern "C" fn nothing(_number: libc::c_int) {}

/// Signals a waiter again and again until it gives up. Returns what it said.
fn interrupt(number: libc::c_int, how: &WaitBounds<'_, Linux>) -> Result<(), LockError> {
    let held = Held::new();
    let tid = AtomicI32::new(0);
    let result = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            tid.store(gettid(), Relaxed);
            held.wait(how)
        });
        until("the waiter gives up", || {
            signal(tid.load(Relaxed), number);
            waiter.is_finished()
        });
        waiter.join().unwrap()
    });
    held.still_works();
    result
}

#[test]
fn signals_interrupt_whether_or_not_calls_are_restarted() {
    let _watchdog = Watchdog::new(60);
    let _alone = WAITV.lock().unwrap_or_else(|e| e.into_inner());
    handle(libc::SIGUSR1, 0, nothing);
    handle(libc::SIGUSR2, libc::SA_RESTART, nothing);
    let never = U32::new(0);
    for number in [libc::SIGUSR1, libc::SIGUSR2] {
        for deadline in [None, in_future(100 * SECOND)] {
            for cancel in [None, Some(&never)] {
                let how = WaitBounds { deadline, cancel, interruptible: true };
                assert_eq!(
                    interrupt(number, &how),
                    Err(LockError::Interrupted),
                    "signal {number}, deadline {deadline:?}, cancel {}",
                    cancel.is_some()
                );
            }
        }
    }
}

/// Sleeps once on a bare futex, where the kernel's answer is not filtered by a lock: an SA_RESTART
/// handler must end it too.
#[test]
fn an_interruptible_sleep_without_a_deadline_ends_at_a_restarting_handler() {
    let _watchdog = Watchdog::new(60);
    handle(libc::SIGUSR2, libc::SA_RESTART, nothing);
    let word = AtomicU32::new(5);
    let tid = AtomicI32::new(0);
    let until_signal = SleepUntil { interruptible: true, ..SleepUntil::WOKEN };
    let outcome = std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            tid.store(gettid(), Relaxed);
            futex::wait(&word, 5, &until_signal, Scope::Private)
        });
        until("the sleeper ends", || {
            signal(tid.load(Relaxed), libc::SIGUSR2);
            sleeper.is_finished()
        });
        sleeper.join().unwrap()
    });
    assert_eq!(outcome, WaitOutcome::Interrupted);
}

#[test]
fn signals_do_not_end_an_uninterruptible_wait() {
    let _watchdog = Watchdog::new(60);
    handle(libc::SIGUSR1, 0, nothing);
    let held = Held::new();
    let (tid, done) = (AtomicI32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            tid.store(gettid(), Relaxed);
            held.wait(&WaitBounds::FOREVER).expect("uninterruptible");
            done.store(true, Relaxed);
            // SAFETY: this thread has taken the lock above, and only the holder releases it.
            unsafe { held.0.unlock() };
        });
        until("the waiter is there", || tid.load(Relaxed) != 0);
        for _ in 0..50 {
            common::until_thread_sleeps(tid.load(Relaxed));
            signal(tid.load(Relaxed), libc::SIGUSR1);
        }
        assert!(!done.load(Relaxed));
        // SAFETY: this thread holds the lock since `new`.
        unsafe { held.0.unlock() };
    });
    assert!(!held.0.is_locked());
}

fn cancel_many(rounds: usize) {
    let held = Held::new();
    for round in 0..rounds {
        let cancel = U32::new(0);
        let result = std::thread::scope(|scope| {
            let waiter = scope
                .spawn(|| held.wait(&WaitBounds { cancel: Some(&cancel), ..WaitBounds::FOREVER }));
            // Sometimes before it sleeps, sometimes after.
            std::thread::sleep(std::time::Duration::from_micros(100 * (round as u64 % 20)));
            cancel.store(1, Relaxed);
            Linux::wake(Linux::address32(&cancel), u32::MAX);
            waiter.join().unwrap()
        });
        assert_eq!(result, Err(LockError::Cancelled));
    }
    held.still_works();
}

#[test]
fn cancellation_ends_the_wait() {
    let _watchdog = Watchdog::new(60);
    let _alone = WAITV.lock().unwrap_or_else(|e| e.into_inner());
    cancel_many(100);
}

#[test]
fn cancellation_ends_the_wait_where_two_words_cannot_be_watched() {
    let _watchdog = Watchdog::new(60);
    let _alone = WAITV.lock().unwrap_or_else(|e| e.into_inner());
    futex::refuse_waitv(true);
    cancel_many(50);
    let held = Held::new();
    let never = U32::new(0);
    let deadline = in_future(30_000_000);
    let how = WaitBounds { deadline, cancel: Some(&never), interruptible: false };
    let result = std::thread::scope(|scope| scope.spawn(|| held.wait(&how)).join().unwrap());
    futex::refuse_waitv(false);
    assert_eq!(result, Err(LockError::TimedOut));
    assert!(Some(Linux::now()) >= deadline);
    held.still_works();
}

/// A cancellable waiter sleeps in one call that watches both words, and a
/// release reaches it there.
#[test]
fn a_cancellable_waiter_watches_both_words() {
    let _watchdog = Watchdog::new(60);
    let _alone = WAITV.lock().unwrap_or_else(|e| e.into_inner());
    let offered = lockstead_linux::features::probe()
        .facilities
        .iter()
        .any(|facility| facility.name == "futex_waitv" && facility.offered);
    if !offered {
        println!("skipped: this kernel does not offer futex_waitv");
        return;
    }
    let held = Held::new();
    let tid = AtomicI32::new(0);
    let never = U32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            tid.store(gettid(), Relaxed);
            held.wait(&WaitBounds { cancel: Some(&never), ..WaitBounds::FOREVER })
                .expect("released");
            // SAFETY: this thread has taken the lock above, and only the holder releases it.
            unsafe { held.0.unlock() };
        });
        let call = || {
            let path = format!("/proc/self/task/{}/syscall", tid.load(Relaxed));
            std::fs::read_to_string(path).unwrap_or_default()
        };
        until("the waiter sleeps in futex_waitv", || {
            call().starts_with(&format!("{} ", libc::SYS_futex_waitv))
        });
        // SAFETY: this thread holds the lock since `new`.
        unsafe { held.0.unlock() };
    });
    assert!(!held.0.is_locked());
}

#[test]
fn the_bare_calls_say_what_happened() {
    let word = AtomicU32::new(1);
    let set = AtomicU32::new(1);
    let soon = SleepUntil { deadline: in_future(1_000_000), ..SleepUntil::WOKEN };
    for scope in [Scope::Private, Scope::Shared] {
        assert_eq!(futex::wait(&word, 0, &SleepUntil::WOKEN, scope), WaitOutcome::Changed);
        assert_eq!(futex::wait(&word, 1, &soon, scope), WaitOutcome::TimedOut);
        let cancelled = SleepUntil { cancel: Some(&set), ..SleepUntil::WOKEN };
        assert_eq!(futex::wait(&word, 1, &cancelled, scope), WaitOutcome::Cancelled);
        assert_eq!(futex::wake(word.as_ptr().addr(), u32::MAX, scope), 0);
        // No memory there: nobody is woken and nothing is touched.
        assert_eq!(futex::wake(64, 1, scope), 0);
        assert_eq!(futex::wake(3, 1, scope), 0);
    }
}

/// Locks are taken in signal handlers and allocators, whose callers are about
/// to look at `errno`.
#[test]
fn errno_survives() {
    const MARK: libc::c_int = 12_345;
    let _watchdog = Watchdog::new(60);
    let held = Held::new();
    let set = U32::new(1);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: the libc keeps the location valid for the life of the thread.
            let errno = unsafe { libc::__errno_location() };
            let check = |what: &str, act: &dyn Fn()| {
                // SAFETY: this thread's `errno` lives as long as the thread, which is the only one
                // to use it.
                unsafe { *errno = MARK };
                act();
                // SAFETY: this thread's `errno` lives as long as the thread, which is the only one
                // to use it.
                assert_eq!(unsafe { *errno }, MARK, "changed by {what}");
            };
            check("joining", &|| assert!(Linux::me().get() > 0));
            check("a wait that times out", &|| {
                let how = WaitBounds { deadline: in_future(2_000_000), ..WaitBounds::FOREVER };
                assert_eq!(held.wait(&how), Err(LockError::TimedOut));
            });
            check("a cancelled wait", &|| {
                let how = WaitBounds { cancel: Some(&set), ..WaitBounds::FOREVER };
                assert_eq!(held.wait(&how), Err(LockError::Cancelled));
            });
            check("a word that changed", &|| {
                let how = WaitBounds { interruptible: true, ..WaitBounds::FOREVER };
                assert_eq!(Linux::wait32(&set, 0, &how), WaitOutcome::Changed);
            });
            check("a wake-up of nobody", &|| {
                assert_eq!(futex::wake(3, 1, Scope::Shared), 0);
            });
        });
    });
    held.still_works();
}
