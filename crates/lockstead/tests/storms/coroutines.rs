//! Stackful coroutines that begin on one thread of the operating system and go on on another.
//!
//! A lock belongs to the thread that took it. A coroutine that holds none when it moves may use all
//! locks wherever it is; a permit of a semaphore has no owner and moves with it.

use corosensei::{Coroutine, CoroutineResult, Yielder};
use lockstead::{Mutex, RwLock, Semaphore};
use lockstead_core::{LockError, Platform, RawMutex, Slot, WaitBounds};
use lockstead_linux::Linux;
use std::collections::VecDeque;
use std::panic::Location;
use std::sync::Mutex as Queue;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

/// A coroutine on its way between threads.
struct Moves(Coroutine<(), (), ()>);

// SAFETY: each test's coroutine borrows nothing of the thread that made it, and keeps no guard of
// a lock, and nothing else of one thread, while it is suspended.
unsafe impl Send for Moves {}

impl Moves {
    fn new(body: impl FnOnce(&Yielder<(), ()>) + Send + 'static) -> Self {
        Moves(Coroutine::new(move |yielder, ()| body(yielder)))
    }

    /// Goes on to the next point at which it moves. Returns false at its end.
    fn goes_on(&mut self) -> bool {
        matches!(self.0.resume(()), CoroutineResult::Yield(()))
    }
}

/// Has coroutines go round among threads until all have ended.
fn carry(coroutines: Vec<Moves>, threads: usize) {
    let left = AtomicUsize::new(coroutines.len());
    let queues: Vec<_> = (0..threads).map(|_| Queue::new(VecDeque::new())).collect();
    for (number, coroutine) in coroutines.into_iter().enumerate() {
        queues[number % threads].lock().expect("no panic").push_back(coroutine);
    }
    let carries = |number: usize| {
        while left.load(Relaxed) > 0 {
            let Some(mut coroutine) = queues[number].lock().expect("no panic").pop_front() else {
                thread::yield_now();
                continue;
            };
            if coroutine.goes_on() {
                let next = &queues[(number + 1) % threads];
                next.lock().expect("no panic").push_back(coroutine);
            } else {
                left.fetch_sub(1, Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        let carries = &carries;
        (0..threads).for_each(|number| drop(scope.spawn(move || carries(number))));
    });
}

/// Returns who the calling thread is, by a call that nothing is remembered across.
#[inline(never)]
fn me() -> Slot {
    std::hint::black_box(Linux::me())
}

const COROUTINES: u64 = 12;
const ROUNDS: u64 = 300;

/// The compiler knows nothing of moves: were it to keep the place of a thread's own variables
/// across one, the lock would be taken in the name of another thread.
#[test]
fn locks_are_taken_and_released_between_moves() {
    static RAW: RawMutex<Linux> = RawMutex::new();
    static COUNT: Mutex<u64> = Mutex::new(0);
    static READ: RwLock<u64> = RwLock::new(0);
    let coroutine = || {
        Moves::new(|yielder| {
            for round in 0..ROUNDS {
                RAW.lock(Location::caller()).expect("no thread has it");
                assert_eq!(RAW.owner(), Some(me()), "in another thread's name");
                // SAFETY: this thread has taken it above, and releases it once.
                unsafe { RAW.unlock() };
                yielder.suspend(());
                *COUNT.lock() += 1;
                if round % 4 == 0 {
                    *READ.write() += 1;
                } else {
                    assert!(*READ.read() <= COROUTINES * ROUNDS);
                }
                yielder.suspend(());
            }
        })
    };
    carry((0..COROUTINES).map(|_| coroutine()).collect(), 3);
    assert_eq!((*COUNT.lock(), *READ.read()), (COROUTINES * ROUNDS, COROUTINES * ROUNDS / 4));
    assert!(!RAW.is_locked());
}

#[test]
fn permits_move_with_their_coroutine() {
    static FEW: Semaphore = Semaphore::new(3);
    static INSIDE: AtomicUsize = AtomicUsize::new(0);
    let coroutine = || {
        Moves::new(|yielder| {
            for _ in 0..ROUNDS {
                // Not by waiting: that would wait for a coroutine that this thread is to go on with.
                while !FEW.try_down() {
                    yielder.suspend(());
                }
                assert!(INSIDE.fetch_add(1, Relaxed) < 3, "more than permits");
                yielder.suspend(());
                INSIDE.fetch_sub(1, Relaxed);
                FEW.up();
            }
        })
    };
    carry((0..COROUTINES).map(|_| coroutine()).collect(), 3);
    assert_eq!(FEW.permits(), 3);
}

/// What a lock says when its coroutine has moved, which only `unsafe` code brings about: it stays
/// that of the thread that took it.
#[test]
fn a_mutex_held_across_a_move_stays_that_of_its_thread() {
    static LOCK: RawMutex<Linux> = RawMutex::new();
    let mut coroutine = Moves::new(|yielder| {
        LOCK.lock(Location::caller()).expect("it is free");
        yielder.suspend(());
        // SAFETY: the coroutine holds it. That another thread took it breaks the rule of `unlock`;
        // what comes of it is what is tested.
        unsafe { LOCK.unlock() };
    });
    assert!(coroutine.goes_on());
    assert!(LOCK.is_mine());
    let again = LOCK.lock(Location::caller());
    assert_eq!(again, Err(LockError::Recursive), "the thread is told, and does not hang");
    thread::scope(|scope| {
        scope.spawn(move || {
            assert!(!LOCK.is_mine());
            let soon = Linux::now().after(1_000_000);
            let soon = WaitBounds { deadline: Some(soon), ..WaitBounds::FOREVER };
            assert_eq!(LOCK.lock_how(&soon, 0, Location::caller()), Err(LockError::TimedOut));
            assert!(!coroutine.goes_on());
        });
    });
    assert!(!LOCK.is_locked());
    LOCK.lock(Location::caller()).expect("it is free again");
    // SAFETY: this thread has taken it above, and releases it once.
    unsafe { LOCK.unlock() };
}
