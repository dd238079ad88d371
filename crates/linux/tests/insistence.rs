//! Waiters that ask to be handed the mutex after 10 µs, many of them, for long: hand-off
//! waiters come and go at nearly every release. No waiter is lost, the count is right.
//!
//! The usual test is short. The long one takes some minutes:
//! `cargo test --release -p lockstead-linux --test insistence -- --ignored --nocapture`,
//! with `LOCKSTEAD_STRESS_OPS` for another number of acquisitions.

mod common;

use lockstead_core::{LockError, Off, Plain, Platform, Policy, RawMutex, Standard, WaitBounds};
use lockstead_linux::{Cell, Linux};
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The shipped policy with a bound of 10 µs, however many wait.
struct Hasty;

impl Policy for Hasty {
    type Base = Standard;
    const BOUND: u64 = 10_000;
    const SHARE: u64 = 0;
}

struct Shared {
    lock: RawMutex<Linux, Off, Hasty>,
    count: Cell<u64>,
    /// Acquisitions that threads have set out for.
    taken: AtomicU64,
    /// Acquisitions so far, in lots.
    done: AtomicU64,
    late: AtomicU64,
    longest: AtomicU64,
}

/// Acquisitions that a thread sets out for at a time.
const LOT: u64 = 1000;
/// The time without any progress after which the test has failed.
const PATIENCE: Duration = Duration::from_secs(60);

impl Shared {
    fn section(&self, number: u64) {
        // SAFETY: this thread holds the lock, which keeps all others out.
        self.count.with_mut(|count| unsafe { count.write_volatile(count.read_volatile() + 1) });
        // One in 64 sections is long enough for the others to be past the bound.
        if number.is_multiple_of(64) {
            let began = Linux::now();
            while Linux::now().since(began) < 12_000 {}
        }
        // SAFETY: the caller has taken the lock, and only the holder releases it.
        unsafe { self.lock.unlock() };
    }

    /// Acquires by one of three ways, again until it is acquired.
    fn acquire(&self, number: u64) {
        let began = Linux::now();
        match number % 16 {
            0 => {
                let soon = || WaitBounds {
                    deadline: Some(Linux::now().after(15_000)),
                    ..WaitBounds::FOREVER
                };
                while let Err(error) = self.lock.lock_how(&soon(), 0, Location::caller()) {
                    assert_eq!(error, LockError::TimedOut);
                    self.late.fetch_add(1, Relaxed);
                }
            }
            1 if self.lock.try_lock(Location::caller()) => {}
            _ => self.lock.lock(Location::caller()).expect("not recursive"),
        }
        let waited = Linux::now().since(began);
        if waited > self.longest.load(Relaxed) {
            self.longest.fetch_max(waited, Relaxed);
        }
        self.section(number);
    }

    fn work(&self, total: u64) {
        loop {
            let first = self.taken.fetch_add(LOT, Relaxed);
            if first >= total {
                return;
            }
            (first..total.min(first + LOT)).for_each(|number| self.acquire(number));
            self.done.fetch_add(LOT.min(total - first), Relaxed);
        }
    }
}

/// Makes so many acquisitions by so many threads, under a watchdog that ends the program when
/// nothing moves.
fn storm(threads: usize, total: u64) {
    let shared = Shared {
        lock: RawMutex::new(),
        count: Cell::new(0),
        taken: AtomicU64::new(0),
        done: AtomicU64::new(0),
        late: AtomicU64::new(0),
        longest: AtomicU64::new(0),
    };
    let (over, began) = (AtomicBool::new(false), Instant::now());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut last = (0, Instant::now());
            while !over.load(Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
                let done = shared.done.load(Relaxed);
                if done != last.0 {
                    last = (done, Instant::now());
                } else if last.1.elapsed() > PATIENCE {
                    let message = format!("nothing moves after {done}: {:?}\n", shared.lock);
                    // Not by `eprintln`, which the test harness would keep.
                    // SAFETY: the kernel reads a buffer that lives as long as the call.
                    unsafe { libc::write(2, message.as_ptr().cast(), message.len()) };
                    std::process::abort();
                }
            }
        });
        std::thread::scope(|workers| {
            for _ in 0..threads {
                workers.spawn(|| shared.work(total));
            }
        });
        over.store(true, Relaxed);
    });
    // SAFETY: all threads that add have been joined, so that nobody writes the count.
    assert_eq!(shared.count.with(|count| unsafe { count.read() }), total);
    assert!(!shared.lock.is_locked());
    println!(
        "{threads} threads, {total} acquisitions in {:.1} s, {} gave up and came again, longest \
         wait {:.1} ms",
        began.elapsed().as_secs_f64(),
        shared.late.load(Relaxed),
        shared.longest.load(Relaxed) as f64 / 1e6
    );
}

#[test]
fn impatient_waiters_lose_nobody() {
    for threads in [2, 4, 16] {
        storm(threads, 100_000);
    }
}

#[test]
#[ignore = "takes minutes"]
fn impatient_waiters_lose_nobody_in_a_hundred_million() {
    let total = std::env::var("LOCKSTEAD_STRESS_OPS").ok().and_then(|text| text.parse().ok());
    storm(8, total.unwrap_or(100_000_000));
}
