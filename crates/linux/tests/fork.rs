//! Fork: the child keeps what its one thread holds, and is told about locks
//! that nobody can release any more.

mod common;

use common::{Counter, Watchdog, gettid, in_child, in_threads, my_slot, until};
use core::panic::Location;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use lockstead_core::{LockError, Platform, RawMutex, Slot, WaitBounds};
use lockstead_linux::Linux;
use std::sync::Mutex;
use std::time::Duration;

/// The tests of this file fork, and count what exists: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn lock(lock: &RawMutex<Linux>) -> Result<(), LockError> {
    lock.lock(Location::caller())
}

fn lock_within(lock: &RawMutex<Linux>, ns: u64) -> Result<(), LockError> {
    let how = WaitBounds { deadline: Some(Linux::now().after(ns)), ..WaitBounds::FOREVER };
    lock.lock_how(&how, 0, Location::caller())
}

#[test]
fn the_child_keeps_the_locks_of_its_thread() {
    let _watchdog = Watchdog::new(60);
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let held = RawMutex::<Linux>::new();
    lock(&held).expect("new");
    let slot = my_slot();
    in_child("keeps its lock", || {
        let kept = held.is_mine() && my_slot() == slot;
        let me = Slot::new(slot).expect("a slot");
        let renamed = Linux::participant(me).tid() == Some(gettid() as u32);
        let recursive = lock(&held) == Err(LockError::Recursive);
        // SAFETY: the thread that forked, which is this one, holds the lock.
        unsafe { held.unlock() };
        let again = lock(&held).is_ok() && held.is_mine();
        kept && renamed && recursive && again
    });
    // Nothing of that happened here.
    assert!(held.is_mine());
    // SAFETY: this thread still holds the lock.
    unsafe { held.unlock() };
}

#[test]
fn a_lock_of_a_thread_that_did_not_survive_is_an_error() {
    let _watchdog = Watchdog::new(60);
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let theirs = RawMutex::<Linux>::new();
    let (taken, release) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            lock(&theirs).expect("new");
            taken.store(true, Relaxed);
            until("the test is over", || release.load(Relaxed));
            // SAFETY: this thread has taken the lock above, and only the holder releases it.
            unsafe { theirs.unlock() };
        });
        until("the other thread has the lock", || taken.load(Relaxed));
        in_child("a lost owner", || {
            theirs.is_locked()
                && !theirs.try_lock(Location::caller())
                && lock(&theirs) == Err(LockError::OwnerLost)
                && lock_within(&theirs, 5_000_000_000) == Err(LockError::OwnerLost)
                // Also for threads of the child that have joined after.
                && {
                    let told = AtomicBool::new(false);
                    in_threads(1, &|| {
                        told.store(lock(&theirs) == Err(LockError::OwnerLost), Relaxed);
                    });
                    told.load(Relaxed)
                }
        });
        release.store(true, Relaxed);
    });
    // The parent's thread has released it.
    lock(&theirs).expect("free");
    // SAFETY: this thread has taken the lock above, and only the holder releases it.
    unsafe { theirs.unlock() };
}

#[test]
fn the_child_starts_threads_that_lock() {
    let _watchdog = Watchdog::new(60);
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    in_child("threads of a child", || {
        common::count_with(8, 5_000);
        true
    });
}

/// The word of the forked lock names spinners, a hand-off waiter and sleepers that the
/// child does not have.
#[test]
fn a_lock_in_demand_works_on_in_the_child() {
    let _watchdog = Watchdog::new(60);
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    static COUNTER: Counter = Counter::new();
    static STOP: AtomicBool = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while !STOP.load(Relaxed) {
                    COUNTER.add();
                }
            });
        }
        for round in 0..40 {
            lock(&COUNTER.lock).expect("fair enough");
            // Sometimes they still spin, sometimes one has become the hand-off waiter.
            std::thread::sleep(Duration::from_micros(300 * (round % 10)));
            in_child("a lock in demand", || {
                // SAFETY: the thread that forked holds the lock, and goes on in the child.
                unsafe { COUNTER.lock.unlock() };
                let before = COUNTER.total();
                in_threads(4, &|| (0..100).for_each(|_| COUNTER.add()));
                COUNTER.total() == before + 400
            });
            // SAFETY: this thread has taken the lock above, and only the holder releases it.
            unsafe { COUNTER.lock.unlock() };
        }
        STOP.store(true, Relaxed);
    });
}

/// Forks fall into the middle of other threads' joining and leaving.
#[test]
fn forks_among_threads_that_come_and_go() {
    let _watchdog = Watchdog::new(100);
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    static COUNTER: Counter = Counter::new();
    static STOP: AtomicBool = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !STOP.load(Relaxed) {
                std::thread::spawn(|| COUNTER.add()).join().unwrap();
            }
        });
        for _ in 0..100 {
            in_child("among threads that come and go", || {
                let own = Counter::new();
                own.add();
                in_threads(1, &|| own.add());
                // Either free, or held by the thread that was adding.
                let shared = lock_within(&COUNTER.lock, 10_000_000_000);
                if shared.is_ok() {
                    // SAFETY: this thread has just taken the lock.
                    unsafe { COUNTER.lock.unlock() };
                }
                matches!(shared, Ok(()) | Err(LockError::OwnerLost)) && own.total() == 2
            });
        }
        STOP.store(true, Relaxed);
    });
}
