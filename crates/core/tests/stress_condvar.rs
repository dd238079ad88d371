//! The condition variable on real threads: no notification is lost.
//!
//! Nothing here asserts a speed. Every test has a watchdog, for the failure
//! that matters most is a hang.

mod threads;

use lockstead_core::{LockError, Ordering, RawCondvar, RawMutex, WaitBounds};
use lockstead_linux::Linux;
use std::cell::UnsafeCell;
use std::sync::atomic::AtomicU32;
use std::thread;
use threads::{ROUNDS, THREADS, all_are_cancelled, here, threads, watched, within};

/// A queue of at most one number, by the book: one mutex, two conditions.
struct Cell {
    mutex: RawMutex<Linux>,
    filled: RawCondvar<Linux>,
    emptied: RawCondvar<Linux>,
    number: UnsafeCell<Option<u32>>,
}

// SAFETY: only the owner of `mutex` reaches `number`.
unsafe impl Sync for Cell {}

impl Cell {
    const fn new() -> Self {
        Cell {
            mutex: RawMutex::new(),
            filled: RawCondvar::new(),
            emptied: RawCondvar::new(),
            number: UnsafeCell::new(None),
        }
    }

    /// Waits on `condvar` until `step` succeeds, patiently or with many short
    /// waits; notifies `other`, in the section or after it.
    fn until<R>(
        &self,
        condvar: &RawCondvar<Linux>,
        other: &RawCondvar<Linux>,
        hasty: bool,
        step: impl Fn(&mut Option<u32>) -> Option<R>,
    ) -> R {
        self.mutex.lock(here()).expect("not held");
        loop {
            // SAFETY: this thread owns the mutex, which guards `number`.
            if let Some(result) = step(unsafe { &mut *self.number.get() }) {
                if hasty {
                    other.notify_one();
                }
                // SAFETY: this thread locked the mutex above, or by a wait.
                unsafe { self.mutex.unlock() };
                if !hasty {
                    other.notify_one();
                }
                return result;
            }
            let how = if hasty { within(10) } else { WaitBounds::FOREVER };
            // SAFETY: this thread locked the mutex above, or by a wait.
            match unsafe { condvar.wait(&self.mutex, &how, here()) } {
                Ok(()) => {}
                Err(error) => assert_eq!((error, hasty), (LockError::TimedOut, true)),
            }
            assert!(self.mutex.is_mine());
        }
    }

    fn put(&self, number: u32, hasty: bool) {
        self.until(&self.emptied, &self.filled, hasty, |cell| {
            cell.is_none().then(|| *cell = Some(number))
        });
    }

    fn take(&self, hasty: bool) -> u32 {
        self.until(&self.filled, &self.emptied, hasty, Option::take)
    }
}

#[test]
fn stress_condvar_loses_no_notification() {
    watched(|| {
        let cell = Cell::new();
        let sum = AtomicU32::new(0);
        threads(THREADS, |number| {
            for round in 0..ROUNDS / 4 {
                if number % 2 == 0 {
                    cell.put(round, false);
                } else {
                    sum.fetch_add(cell.take(false), Ordering::Relaxed);
                }
            }
        });
        let each: u32 = (0..ROUNDS / 4).sum();
        assert_eq!(sum.into_inner(), each * (THREADS / 2));
    });
}

#[test]
fn stress_condvar_with_waiters_that_give_up_loses_no_notification() {
    watched(|| {
        let cell = Cell::new();
        let sum = AtomicU32::new(0);
        // One of each kind is patient, and relies on being told.
        threads(THREADS, |number| {
            for round in 0..ROUNDS / 4 {
                if number % 2 == 0 {
                    cell.put(round, number > 0);
                } else {
                    sum.fetch_add(cell.take(number > 1), Ordering::Relaxed);
                }
            }
        });
        let each: u32 = (0..ROUNDS / 4).sum();
        assert_eq!(sum.into_inner(), each * (THREADS / 2));
    });
}

#[test]
fn stress_condvar_notify_all_releases_everybody() {
    watched(|| {
        let mutex = RawMutex::<Linux>::new();
        let condvar = RawCondvar::<Linux>::new();
        let open = AtomicU32::new(0);
        let waiting = AtomicU32::new(0);
        threads(THREADS, |number| {
            for round in 1..=ROUNDS / 40 {
                if number == 0 {
                    // Some rounds open while all sleep, some while they come.
                    while round % 2 == 0 && waiting.load(Ordering::Relaxed) < THREADS - 1 {
                        thread::yield_now();
                    }
                }
                mutex.lock(here()).expect("not held");
                if number == 0 {
                    open.store(round, Ordering::Relaxed);
                    condvar.notify_all();
                } else {
                    waiting.fetch_add(1, Ordering::Relaxed);
                    while open.load(Ordering::Relaxed) < round {
                        // SAFETY: this thread locked the mutex above, or by a wait.
                        unsafe { condvar.wait(&mutex, &WaitBounds::FOREVER, here()) }
                            .expect("no end");
                    }
                    waiting.fetch_sub(1, Ordering::Relaxed);
                }
                // SAFETY: this thread locked the mutex above, or by a wait.
                unsafe { mutex.unlock() };
            }
        });
    });
}

#[test]
fn stress_condvar_a_cancellation_reaches_every_waiter() {
    watched(|| {
        let mutex = RawMutex::<Linux>::new();
        let condvar = RawCondvar::<Linux>::new();
        all_are_cancelled(|how| {
            mutex.lock(here()).expect("not held");
            let result = loop {
                // SAFETY: this thread locked the mutex above, or by a wait.
                match unsafe { condvar.wait(&mutex, how, here()) } {
                    Ok(()) => {}
                    Err(error) => break Err(error),
                }
            };
            // SAFETY: this thread locked the mutex above, or by a wait.
            unsafe { mutex.unlock() };
            result
        });
        assert!(!mutex.is_locked());
    });
}
