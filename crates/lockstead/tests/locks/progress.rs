//! Nobody starves.

use crate::support::Watchdog;
use lockstead::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// 16 threads hammer one mutex, each with a section long enough that the
/// releaser, left alone, would always take it again: all get in many times.
#[test]
fn sixteen_threads_all_make_progress() {
    let _watchdog = Watchdog::new("sixteen_threads_all_make_progress");
    const TURNS: u32 = 20;
    let mutex = Mutex::new(());
    let still_short = AtomicU32::new(16);
    thread::scope(|s| {
        for _ in 0..16 {
            s.spawn(|| {
                // Goes on until everybody has had their turns, so that the
                // others never find the mutex abandoned.
                let mut turns = 0;
                while still_short.load(Ordering::Relaxed) > 0 {
                    let guard = mutex.lock();
                    let began = Instant::now();
                    while began.elapsed() < Duration::from_micros(20) {
                        std::hint::spin_loop();
                    }
                    drop(guard);
                    turns += 1;
                    if turns == TURNS {
                        still_short.fetch_sub(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
}

/// Runs one thread that releases and takes again at once, with no gap for others.
#[test]
fn a_greedy_holder_cannot_keep_a_waiter_out() {
    let _watchdog = Watchdog::new("a_greedy_holder_cannot_keep_a_waiter_out");
    let mutex = Mutex::new(());
    let over = AtomicBool::new(false);
    thread::scope(|s| {
        s.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let guard = mutex.lock();
                let began = Instant::now();
                while began.elapsed() < Duration::from_micros(200) {
                    std::hint::spin_loop();
                }
                drop(guard);
            }
        });
        for _ in 0..50 {
            drop(mutex.lock());
        }
        over.store(true, Ordering::Relaxed);
    });
}
