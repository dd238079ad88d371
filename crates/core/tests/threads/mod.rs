//! Real threads under a watchdog, for the stress tests.

#![allow(dead_code, reason = "each test file uses its part")]

use lockstead_core::{Address, Atomic32, LockError, Ordering, Platform, Site, WaitBounds};
use lockstead_linux::Linux;
use std::cell::UnsafeCell;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

pub(crate) const THREADS: u32 = 8;
pub(crate) const ROUNDS: u32 = 10_000;

pub(crate) type U32 = <Linux as Platform>::U32;

#[track_caller]
pub(crate) fn here() -> Site {
    Location::caller()
}

/// Returns a wait of at most this many microseconds.
pub(crate) fn within(microseconds: u64) -> WaitBounds<'static, Linux> {
    let deadline = Linux::now().after(microseconds * 1000);
    WaitBounds { deadline: Some(deadline), ..WaitBounds::FOREVER }
}

/// Runs `f`; ends the process if that takes a minute.
pub(crate) fn watched(f: impl FnOnce()) {
    let test = thread::current().name().unwrap_or("a test").to_owned();
    let (done, watch) = mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        if watch.recv_timeout(Duration::from_secs(60)) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("{test}: hangs");
            std::process::abort();
        }
    });
    f();
    drop(done);
    watchdog.join().expect("the watchdog does not panic");
}

/// Runs `f` in `count` threads, numbered from 0.
pub(crate) fn threads(count: u32, f: impl Fn(u32) + Sync) {
    thread::scope(|scope| {
        for number in 0..count {
            let f = &f;
            scope.spawn(move || f(number));
        }
    });
}

/// Two numbers that are equal whenever nobody writes.
pub(crate) struct Twins(UnsafeCell<[u64; 2]>);

// SAFETY: the tests reach it only under the lock that they test.
unsafe impl Sync for Twins {}

impl Twins {
    pub(crate) const fn new() -> Self {
        Twins(UnsafeCell::new([0; 2]))
    }

    /// Writes the next value.
    ///
    /// # Safety
    /// Nobody else reads or writes.
    pub(crate) unsafe fn write(&self) {
        // SAFETY: the caller promises that nobody else reads or writes.
        let twins = unsafe { &mut *self.0.get() };
        twins[0] += 1;
        std::hint::black_box(&mut *twins);
        twins[1] += 1;
    }

    /// Reads the value.
    ///
    /// # Safety
    /// Nobody writes.
    pub(crate) unsafe fn read(&self) -> u64 {
        // SAFETY: the caller promises that nobody writes.
        let twins = unsafe { &*self.0.get() };
        assert_eq!(twins[0], twins[1], "somebody writes");
        twins[0]
    }
}

/// Has `acquire` wait in several threads, cancels, and checks what they say.
pub(crate) fn all_are_cancelled(
    acquire: impl Fn(&WaitBounds<'_, Linux>) -> Result<(), LockError> + Sync,
) {
    let token = U32::ZERO;
    let waiting = std::sync::Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let me = std::fs::read_link("/proc/thread-self").expect("a thread is shown");
                waiting.lock().expect("no panic").push(me);
                let how = WaitBounds { cancel: Some(&token), ..WaitBounds::FOREVER };
                assert_eq!(acquire(&how), Err(LockError::Cancelled));
            });
        }
        // Some sleep by now, some may not: all must hear of it.
        let asleep = |task: &PathBuf| {
            let stat = std::fs::read_to_string(Path::new("/proc").join(task).join("stat"));
            stat.is_ok_and(|text| {
                text.rsplit(") ").next().is_some_and(|state| state.starts_with('S'))
            })
        };
        let most_sleep = || {
            let tasks = waiting.lock().expect("no panic");
            tasks.iter().filter(|task| asleep(task)).count() > THREADS as usize / 2
        };
        while !most_sleep() {
            thread::yield_now();
        }
        let address: Address = Linux::address32(&token);
        token.store(1, Ordering::Relaxed);
        Linux::wake(address, u32::MAX);
    });
}
