//! The family on real threads: what it counts, what it guards, who waits.
//!
//! Nothing here asserts a speed. Every test has a watchdog, for the failure
//! that matters most is a hang.

use lockstead_core::{
    Address, Atomic32, ClassicSemaphore, LockError, Nanos, OnceError, Ordering, Platform,
    RawCondvar, RawMutex, RawOnce, RawRwLock, Site, TunedSemaphore, Wait,
};
use lockstead_linux::Linux;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const THREADS: u32 = 8;
const ROUNDS: u32 = 10_000;

type U32 = <Linux as Platform>::U32;

#[track_caller]
fn here() -> Site {
    Location::caller()
}

/// A wait of at most this many microseconds.
fn within(microseconds: u64) -> Wait<'static, Linux> {
    let deadline = Linux::now().after(microseconds * 1000);
    Wait { deadline: Some(deadline), ..Wait::FOREVER }
}

/// Runs `f`; ends the process if that takes a minute.
fn watched(f: impl FnOnce()) {
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
fn threads(count: u32, f: impl Fn(u32) + Sync) {
    thread::scope(|scope| {
        for number in 0..count {
            let f = &f;
            scope.spawn(move || f(number));
        }
    });
}

/// Two numbers that are equal whenever nobody writes.
struct Twins(UnsafeCell<[u64; 2]>);

// SAFETY: the tests reach it only under the lock that they test.
unsafe impl Sync for Twins {}

impl Twins {
    const fn new() -> Self {
        Twins(UnsafeCell::new([0; 2]))
    }

    /// # Safety
    /// Nobody else reads or writes.
    unsafe fn write(&self) {
        // SAFETY: the caller's promise.
        let twins = unsafe { &mut *self.0.get() };
        twins[0] += 1;
        std::hint::black_box(&mut *twins);
        twins[1] += 1;
    }

    /// # Safety
    /// Nobody writes.
    unsafe fn read(&self) -> u64 {
        // SAFETY: the caller's promise.
        let twins = unsafe { &*self.0.get() };
        assert_eq!(twins[0], twins[1], "somebody writes");
        twins[0]
    }
}

macro_rules! for_both_semaphores {
    ($($test:ident),* $(,)?) => {
        mod classic {
            $(#[test] fn $test() {
                super::watched(|| super::$test!(super::ClassicSemaphore::<super::Linux>))
            })*
        }
        mod tuned {
            $(#[test] fn $test() {
                super::watched(|| super::$test!(super::TunedSemaphore::<super::Linux>))
            })*
        }
    };
}

macro_rules! stress_permits_are_neither_lost_nor_made {
    ($semaphore:ty) => {{
        use super::*;
        let semaphore = <$semaphore>::new(3).expect("few permits");
        let inside = AtomicU32::new(0);
        threads(THREADS, |number| {
            let mut taken = 0;
            while taken < ROUNDS {
                let granted = match (number + taken) % 4 {
                    0 => semaphore.try_down(here()),
                    1 => semaphore.down_how(&within(20), here()).is_ok(),
                    _ => {
                        semaphore.down(here());
                        true
                    }
                };
                if !granted {
                    thread::yield_now();
                    continue;
                }
                taken += 1;
                assert!(inside.fetch_add(1, Ordering::SeqCst) < 3, "more inside than permits");
                if taken % 64 == 0 {
                    thread::yield_now();
                }
                inside.fetch_sub(1, Ordering::SeqCst);
                semaphore.up().expect("what was taken has room");
            }
        });
        assert_eq!(semaphore.permits(), 3);
        for _ in 0..3 {
            assert!(semaphore.try_down(here()));
        }
        assert!(!semaphore.try_down(here()));
    }};
}
use stress_permits_are_neither_lost_nor_made;

macro_rules! stress_two_threads_pass_the_turn {
    ($semaphore:ty) => {{
        use super::*;
        let turns = [
            <$semaphore>::new(1).expect("few permits"),
            <$semaphore>::new(0).expect("few permits"),
        ];
        let twins = Twins::new();
        threads(2, |number| {
            for _ in 0..ROUNDS {
                turns[number as usize].down(here());
                // SAFETY: one turn in the world, and this thread has it.
                unsafe { twins.write() };
                turns[1 - number as usize].up().expect("one turn in the world");
            }
        });
        // SAFETY: the threads have ended.
        assert_eq!(unsafe { twins.read() }, 2 * u64::from(ROUNDS));
    }};
}
use stress_two_threads_pass_the_turn;

macro_rules! stress_every_sleeper_of_a_crowd_gets_its_permit {
    ($semaphore:ty) => {{
        use super::*;
        let semaphore = <$semaphore>::new(0).expect("few permits");
        let through = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..ROUNDS / 10 {
                        semaphore.down(here());
                        through.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            scope.spawn(|| {
                // All at once, in bursts: a release may find that the thread
                // that the one before it woke is still on its way.
                for burst in 0..ROUNDS / 10 {
                    for _ in 0..THREADS {
                        semaphore.up().expect("few permits");
                    }
                    if burst % 4 == 0 {
                        thread::sleep(Duration::from_micros(50));
                    }
                }
            });
        });
        assert_eq!(through.into_inner(), THREADS * (ROUNDS / 10));
        assert_eq!(semaphore.permits(), 0);
    }};
}
use stress_every_sleeper_of_a_crowd_gets_its_permit;

macro_rules! stress_a_cancellation_reaches_every_sleeper {
    ($semaphore:ty) => {{
        use super::*;
        let semaphore = <$semaphore>::new(0).expect("few permits");
        all_are_cancelled(|how| semaphore.down_how(how, here()));
        semaphore.up().expect("few permits");
        assert!(semaphore.try_down(here()), "those that gave up took a permit along");
    }};
}
use stress_a_cancellation_reaches_every_sleeper;

for_both_semaphores! {
    stress_permits_are_neither_lost_nor_made,
    stress_two_threads_pass_the_turn,
    stress_every_sleeper_of_a_crowd_gets_its_permit,
    stress_a_cancellation_reaches_every_sleeper,
}

/// Has `acquire` wait in several threads, cancels, and checks what they say.
fn all_are_cancelled(acquire: impl Fn(&Wait<'_, Linux>) -> Result<(), LockError> + Sync) {
    let token = U32::ZERO;
    let waiting = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                waiting.fetch_add(1, Ordering::Relaxed);
                let how = Wait { cancel: Some(&token), ..Wait::FOREVER };
                assert_eq!(acquire(&how), Err(LockError::Cancelled));
            });
        }
        while waiting.load(Ordering::Relaxed) < THREADS {
            thread::yield_now();
        }
        // Some sleep by now, some do not: all must hear of it.
        thread::sleep(Duration::from_millis(20));
        let address: Address = Linux::address32(&token);
        token.store(1, Ordering::Relaxed);
        Linux::wake(address, u32::MAX);
    });
}

/// A queue of at most one number, by the book: one mutex, two conditions.
struct Cell {
    mutex: RawMutex<Linux>,
    filled: RawCondvar<Linux>,
    emptied: RawCondvar<Linux>,
    number: UnsafeCell<Option<u32>>,
}

// SAFETY: `number` is reached under `mutex` only.
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
            // SAFETY: under the mutex.
            if let Some(result) = step(unsafe { &mut *self.number.get() }) {
                if hasty {
                    other.notify_one();
                }
                // SAFETY: locked above.
                unsafe { self.mutex.unlock() };
                if !hasty {
                    other.notify_one();
                }
                return result;
            }
            let how = if hasty { within(10) } else { Wait::FOREVER };
            // SAFETY: locked above.
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
        threads(THREADS, |number| {
            for round in 1..=ROUNDS / 40 {
                mutex.lock(here()).expect("not held");
                if number == 0 {
                    open.store(round, Ordering::Relaxed);
                    condvar.notify_all();
                } else {
                    while open.load(Ordering::Relaxed) < round {
                        // SAFETY: locked above, and by each wait.
                        unsafe { condvar.wait(&mutex, &Wait::FOREVER, here()) }.expect("no end");
                    }
                }
                // SAFETY: as above.
                unsafe { mutex.unlock() };
                thread::yield_now();
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
                // SAFETY: locked above, and by each wait.
                match unsafe { condvar.wait(&mutex, how, here()) } {
                    Ok(()) => {}
                    Err(error) => break Err(error),
                }
            };
            // SAFETY: as above.
            unsafe { mutex.unlock() };
            result
        });
        assert!(!mutex.is_locked());
    });
}

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
                    // SAFETY: locked for writing.
                    unsafe { twins.write() };
                    writes.fetch_add(1, Ordering::Relaxed);
                    if turn.is_multiple_of(5) {
                        // SAFETY: locked for writing, then for reading.
                        unsafe {
                            lock.downgrade();
                            twins.read();
                            lock.unlock_read();
                        }
                    } else {
                        // SAFETY: locked for writing.
                        unsafe { lock.unlock_write() };
                    }
                } else {
                    let granted = match turn % 4 {
                        0 => lock.try_read(here()),
                        1 => lock.read_lazily(|| within(20), 0, here()).is_ok(),
                        _ => lock.read(here()).is_ok(),
                    };
                    if granted {
                        // SAFETY: locked for reading.
                        unsafe {
                            twins.read();
                            lock.unlock_read();
                        }
                    }
                }
            }
        });
        assert!(!lock.is_locked(), "{lock:?}");
        // SAFETY: the threads have ended.
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
            wanted(&lock);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(!lock.is_locked(), "{lock:?}");
}

fn busy(microseconds: u64) {
    let end: Nanos = Linux::now().after(microseconds * 1000);
    while Linux::now() < end {
        std::hint::spin_loop();
    }
}

#[test]
fn starve_rwlock_a_writer_gets_in_among_readers_without_pause() {
    watched(|| {
        gets_its_turn(
            |lock| {
                lock.read(here()).expect("not written by this thread");
                busy(100);
                // SAFETY: locked above.
                unsafe { lock.unlock_read() };
            },
            |lock| {
                lock.write(here()).expect("not held");
                // SAFETY: locked above.
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
                busy(100);
                // SAFETY: locked above.
                unsafe { lock.unlock_write() };
            },
            |lock| {
                lock.read(here()).expect("not written by this thread");
                // SAFETY: locked above.
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
        // SAFETY: locked above.
        unsafe { lock.unlock_write() };
        assert!(lock.try_write(here()), "those that gave up left something behind: {lock:?}");
    });
}

#[test]
fn stress_once_runs_once_among_many() {
    watched(|| {
        for round in 0..ROUNDS / 10 {
            let once = RawOnce::<Linux>::new();
            let twins = Twins::new();
            threads(4, |_| {
                let done = once.call_once(&Wait::FOREVER, || {
                    if round % 4 == 0 {
                        thread::yield_now();
                    }
                    // SAFETY: the only one that runs, before all that read.
                    unsafe { twins.write() };
                });
                assert_eq!(done, Ok(()));
                // SAFETY: what is done once is done.
                assert_eq!(unsafe { twins.read() }, 1);
            });
        }
    });
}

#[test]
fn stress_once_all_learn_of_a_panic_and_one_repairs() {
    watched(|| {
        for _ in 0..ROUNDS / 100 {
            let once = RawOnce::<Linux>::new();
            let repaired = AtomicU32::new(0);
            threads(4, |number| {
                if number == 0 {
                    let quiet = AssertUnwindSafe(|| {
                        let turn = once.begin(false, &Wait::FOREVER);
                        std::panic::resume_unwind(Box::new(turn.is_ok()));
                    });
                    let _ = catch_unwind(quiet);
                } else if number == 1 {
                    let done = once.call_once_force(&Wait::FOREVER, |_| {
                        repaired.fetch_add(1, Ordering::Relaxed);
                    });
                    assert_eq!(done, Ok(()));
                } else {
                    let done = once.call_once(&Wait::FOREVER, || {
                        repaired.fetch_add(1, Ordering::Relaxed);
                    });
                    assert!(matches!(done, Ok(()) | Err(OnceError::Poisoned)), "{done:?}");
                }
            });
            assert!(once.is_completed());
            assert_eq!(repaired.into_inner(), 1);
        }
    });
}
