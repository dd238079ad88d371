//! The reader-writer lock on real threads: exclusion, and nobody starves.
//!
//! Nothing here asserts a speed. Every test has a watchdog, for the failure
//! that matters most is a hang.

mod threads;

use lockstead_core::{Ordering, RawRwLock};
use lockstead_linux::Linux;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::thread;
use std::time::Duration;
use threads::{ROUNDS, THREADS, Twins, all_are_cancelled, here, threads, watched, within};

#[test]
fn stress_rwlock_readers_never_meet_a_writer() {
    watched(|| {
        let lock = RawRwLock::<Linux>::new();
        let twins = Twins::new();
        let writes = AtomicU32::new(0);
        threads(THREADS, |number| {
            for round in 0..ROUNDS {
                let turn = number + round;
                if turn.is_multiple_of(3) {
                    let granted = match turn % 4 {
                        0 => lock.try_write(here()),
                        1 => lock.write_lazily(|| within(20), 0, here()).is_ok(),
                        _ => lock.write(here()).is_ok(),
                    };
                    if !granted {
                        continue;
                    }
                    // SAFETY: this thread holds the lock for writing.
                    unsafe { twins.write() };
                    writes.fetch_add(1, Ordering::Relaxed);
                    if turn.is_multiple_of(5) {
                        // SAFETY: this thread holds the lock for writing, then for reading.
                        unsafe {
                            lock.downgrade();
                            twins.read();
                            lock.unlock_read();
                        }
                    } else {
                        // SAFETY: this thread holds the lock for writing.
                        unsafe { lock.unlock_write() };
                    }
                } else {
                    let granted = match turn % 4 {
                        0 => lock.try_read(here()),
                        1 => lock.read_lazily(|| within(20), 0, here()).is_ok(),
                        _ => lock.read(here()).is_ok(),
                    };
                    if granted {
                        // SAFETY: this thread holds the lock for reading.
                        unsafe {
                            twins.read();
                            lock.unlock_read();
                        }
                    }
                }
            }
        });
        assert!(!lock.is_locked(), "{lock:?}");
        // SAFETY: the threads that wrote have ended.
        assert_eq!(unsafe { twins.read() }, u64::from(writes.into_inner()));
        assert!(lock.try_write(here()));
    });
}

/// Keeps `lock` busy with `others` until `wanted` has been granted a few times.
fn gets_its_turn(others: impl Fn(&RawRwLock<Linux>) + Sync, wanted: impl Fn(&RawRwLock<Linux>)) {
    let lock = RawRwLock::<Linux>::new();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    others(&lock);
                }
            });
        }
        for _ in 0..20 {
            while !lock.is_locked() {
                thread::yield_now();
            }
            wanted(&lock);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(!lock.is_locked(), "{lock:?}");
}

/// Holds the lock for a while, without need of a processor: four that do so
/// always overlap.
fn linger() {
    thread::sleep(Duration::from_micros(300));
}

#[test]
fn starve_rwlock_a_writer_gets_in_among_readers_without_pause() {
    watched(|| {
        gets_its_turn(
            |lock| {
                lock.read(here()).expect("not written by this thread");
                linger();
                // SAFETY: this thread locked it in this way above, and releases it once.
                unsafe { lock.unlock_read() };
            },
            |lock| {
                lock.write(here()).expect("not held");
                // SAFETY: this thread locked it in this way above, and releases it once.
                unsafe { lock.unlock_write() };
            },
        );
    });
}

#[test]
fn starve_rwlock_a_reader_gets_in_among_writers_without_pause() {
    watched(|| {
        gets_its_turn(
            |lock| {
                lock.write(here()).expect("not held");
                linger();
                // SAFETY: this thread locked it in this way above, and releases it once.
                unsafe { lock.unlock_write() };
            },
            |lock| {
                lock.read(here()).expect("not written by this thread");
                // SAFETY: this thread locked it in this way above, and releases it once.
                unsafe { lock.unlock_read() };
            },
        );
    });
}

#[test]
fn stress_rwlock_a_cancellation_reaches_every_sleeper() {
    watched(|| {
        let lock = RawRwLock::<Linux>::new();
        assert!(lock.try_write(here()));
        let turn = AtomicU32::new(0);
        all_are_cancelled(|how| {
            if turn.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
                lock.read_lazily(|| *how, 0, here())
            } else {
                lock.write_lazily(|| *how, 0, here())
            }
        });
        // SAFETY: this thread locked it in this way above, and releases it once.
        unsafe { lock.unlock_write() };
        assert!(lock.try_write(here()), "those that gave up left something behind: {lock:?}");
    });
}
