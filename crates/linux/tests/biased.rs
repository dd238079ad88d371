//! The mutex that belongs to one thread until another one comes, on the real machine:
//! exclusion while the bias is taken away, signal handlers in the middle of the owner's
//! way, ends of threads, forks, kernels that refuse the fence.

#[path = "common/mod.rs"]
mod common;
#[path = "common/filter.rs"]
mod filter;

use common::{Watchdog, gettid, handle, in_child, in_threads, signal, until};
use lockstead_core::biased::{BiasedHold, Fences};
use lockstead_core::{LockError, Plain, Platform, RawBiased, WaitBounds};
use lockstead_linux::{Cell, Linux};
use std::panic::Location;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

struct Counter {
    lock: RawBiased<Linux>,
    value: Cell<u64>,
}

impl Counter {
    const fn new() -> Self {
        Counter { lock: RawBiased::new(), value: Cell::new_const(0) }
    }

    fn lock(&self) -> BiasedHold {
        self.lock.lock(Location::caller()).expect("no reason to fail")
    }

    /// Releases the lock.
    ///
    /// # Safety
    /// The calling thread holds the lock, and got `hold` with it.
    unsafe fn unlock(&self, hold: BiasedHold) {
        // SAFETY: the caller promises that this thread holds the lock.
        unsafe { self.lock.unlock(hold) };
    }

    /// Adds by a load and a store, which other threads can come between unless the lock keeps
    /// them out.
    fn add_held(&self) {
        // SAFETY: this thread holds the lock, which keeps all others out.
        self.value.with_mut(|value| unsafe { value.write_volatile(value.read_volatile() + 1) });
    }

    fn add(&self) {
        let hold = self.lock();
        self.add_held();
        // SAFETY: this thread has taken the lock above, and only the holder releases it.
        unsafe { self.unlock(hold) };
    }

    /// Returns the number, once nobody adds any more.
    fn total(&self) -> u64 {
        // SAFETY: no thread adds any more, so that nobody writes the value while it is read.
        self.value.with(|value| unsafe { value.read() })
    }

    fn is_biased(&self) -> bool {
        self.lock.belongs_to().is_some()
    }

    fn within(&self, time: Duration) -> Result<BiasedHold, LockError> {
        let deadline = Linux::now().after(time.as_nanos() as u64);
        let how = || WaitBounds { deadline: Some(deadline), ..WaitBounds::FOREVER };
        self.lock.lock_lazily(how, 0, Location::caller())
    }
}

/// Tells whether locks are biased on this machine at all; says so if not.
fn biased_here() -> bool {
    let works = Linux::can_fence();
    if !works {
        println!("skipped: the system refuses the membarrier");
    }
    works
}

/// Runs a thread that is in the middle of its way through the fast path again and again, and one
/// that comes at any moment.
#[test]
fn two_threads_never_hold_a_biased_lock_together() {
    let _watchdog = Watchdog::new(120);
    let mut seed = 2005_u64;
    for _ in 0..400 {
        let counter = Counter::new();
        let (mine, theirs) = (AtomicU64::new(0), 300);
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let late = Duration::from_nanos((seed >> 33) % 60_000);
        std::thread::scope(|scope| {
            let owner = scope.spawn(|| {
                let mut turns = 0;
                // On and on until somebody has come, and a little further.
                let mut left = 300;
                while left > 0 {
                    counter.add();
                    turns += 1;
                    left -= i32::from(turns > 1 && !counter.is_biased());
                }
                mine.store(turns, Ordering::Relaxed);
            });
            until("the lock is the owner's", || counter.is_biased() || !Linux::can_fence());
            let began = Instant::now();
            while began.elapsed() < late {}
            (0..theirs).for_each(|_| counter.add());
            owner.join().expect("no panic");
        });
        assert_eq!(counter.total(), mine.load(Ordering::Relaxed) + theirs);
        assert!(!counter.is_biased() && !counter.lock.is_locked());
    }
}

#[test]
fn whoever_comes_waits_for_the_owner_and_may_give_up() {
    let _watchdog = Watchdog::new(60);
    let counter = Counter::new();
    let hold = counter.lock();
    let again = counter.lock.lock(Location::caller());
    assert_eq!(again, Err(LockError::Recursive));
    assert!(counter.lock.try_lock(Location::caller()).is_none());
    in_threads(1, &|| {
        assert!(counter.lock.try_lock(Location::caller()).is_none());
        let began = Instant::now();
        assert_eq!(counter.within(Duration::from_millis(20)), Err(LockError::TimedOut));
        assert!(began.elapsed() >= Duration::from_millis(20));
    });
    counter.add_held();
    // SAFETY: this thread has taken the lock above, and only the holder releases it.
    unsafe { counter.unlock(hold) };
    // Somebody has asked: it is the owner's no more, whoever comes first.
    counter.add();
    in_threads(2, &|| counter.add());
    assert_eq!(counter.total(), 4);
    assert!(!counter.is_biased());
}

#[test]
fn whoever_tries_a_free_lock_gets_it() {
    let _watchdog = Watchdog::new(60);
    let counter = Counter::new();
    counter.add();
    in_threads(1, &|| {
        let hold = counter.lock.try_lock(Location::caller()).expect("free");
        counter.add_held();
        // SAFETY: this thread has taken the lock above, and only the holder releases it.
        unsafe { counter.unlock(hold) };
    });
    counter.add();
    assert_eq!(counter.total(), 3);
}

#[test]
fn a_lock_whose_owner_has_ended_is_taken_over() {
    let _watchdog = Watchdog::new(60);
    let counter = Counter::new();
    in_threads(1, &|| counter.add());
    // Some of these get the slot of the one before.
    for _ in 0..50 {
        in_threads(1, &|| counter.add());
    }
    counter.add();
    assert_eq!(counter.total(), 52);
}

static INTERRUPTED: Counter = Counter::new();
static HANDLED: AtomicU32 = AtomicU32::new(0);

extern "C" fn take_it(_signal: libc::c_int) {
    if let Some(hold) = INTERRUPTED.lock.try_lock(Location::caller()) {
        INTERRUPTED.add_held();
        HANDLED.fetch_add(1, Ordering::Relaxed);
        // SAFETY: this thread has taken the lock above, and only the holder releases it.
        unsafe { INTERRUPTED.unlock(hold) };
    }
}

/// The owner's handler takes the lock between any two instructions of the owner's.
#[test]
fn a_handler_of_the_owner_takes_the_lock_in_between() {
    let _watchdog = Watchdog::new(120);
    handle(libc::SIGUSR1, libc::SA_RESTART, take_it);
    let (tid, rounds) = (AtomicI32::new(0), 60_000_000_u64);
    std::thread::scope(|scope| {
        let owner = scope.spawn(|| {
            tid.store(gettid(), Ordering::Relaxed);
            let began = Instant::now();
            let mut turns = 0;
            while turns < rounds && began.elapsed() < Duration::from_secs(5) {
                (0..1000).for_each(|_| INTERRUPTED.add());
                turns += 1000;
            }
            tid.store(-1, Ordering::Relaxed);
            turns
        });
        while tid.load(Ordering::Relaxed) >= 0 {
            if tid.load(Ordering::Relaxed) > 0 {
                signal(tid.load(Ordering::Relaxed), libc::SIGUSR1);
            }
            std::thread::sleep(Duration::from_micros(20));
        }
        let turns = owner.join().expect("no panic");
        let handled = u64::from(HANDLED.load(Ordering::Relaxed));
        assert!(handled > 0, "no handler got the lock");
        assert_eq!(INTERRUPTED.total(), turns + handled);
    });
}

#[test]
fn the_child_of_a_fork_keeps_its_own_and_loses_what_others_held() {
    let _watchdog = Watchdog::new(60);
    let (mine, free, held) = (Counter::new(), Counter::new(), Counter::new());
    mine.add();
    let hold = mine.lock();
    let (ready, over) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            free.add();
            let hold = held.lock();
            ready.store(1, Ordering::Release);
            until("the child has ended", || over.load(Ordering::Relaxed) == 1);
            // SAFETY: this thread has taken the lock above, and only the holder releases it.
            unsafe { held.unlock(hold) };
        });
        until("the lock is held", || ready.load(Ordering::Acquire) == 1);
        in_child("biased locks after a fork", || {
            // SAFETY: the thread that forked holds the lock, and goes on in the child.
            unsafe { mine.unlock(hold) };
            mine.add();
            free.add();
            let lost = held.within(Duration::from_secs(5));
            mine.is_biased() == Linux::can_fence()
                && free.total() == 2
                && lost == Err(LockError::OwnerLost)
        });
        // SAFETY: this thread, in the parent, holds the lock still.
        unsafe { mine.unlock(hold) };
        over.store(1, Ordering::Relaxed);
    });
    held.add();
    assert_eq!(held.total(), 1);
}

/// Refuses the call from the beginning: such a lock is an ordinary mutex.
#[test]
fn without_the_call_no_lock_is_biased() {
    if Linux::can_fence() {
        // This process has made up its mind; a fresh one has not.
        let program = std::env::current_exe().expect("this program");
        let mut again = std::process::Command::new(program);
        again.args(["--exact", "a_process_that_may_not_fence", "--ignored", "--nocapture"]);
        let output = again.output().expect("started again");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}");
        assert!(text.contains("1 passed"), "{text}");
    }
}

#[test]
#[ignore = "forbids its process a system call: run by the test above"]
fn a_process_that_may_not_fence() {
    let _watchdog = Watchdog::new(60);
    if !filter::refuse(libc::SYS_membarrier, None, libc::EPERM) {
        println!("skipped: no filters here");
        return;
    }
    let counter = Counter::new();
    counter.add();
    assert!(!counter.is_biased());
    in_threads(4, &|| (0..2000).for_each(|_| counter.add()));
    assert_eq!(counter.total(), 8001);
}

/// Refuses the call when the lock is biased already: the owner ends the bias when it comes back.
#[test]
fn a_fence_that_is_forbidden_later_breaks_nothing() {
    let _watchdog = Watchdog::new(60);
    if !biased_here() {
        return;
    }
    in_child("fences forbidden later", || {
        let (counter, asked) = (Counter::new(), AtomicU32::new(0));
        let owner = AtomicI32::new(0);
        in_threads(2, &|| {
            if owner.swap(1, Ordering::Relaxed) == 0 {
                counter.add();
                assert!(counter.is_biased());
                if !filter::refuse(libc::SYS_membarrier, None, libc::EPERM) {
                    println!("skipped: no filters here");
                }
                asked.store(1, Ordering::Release);
                // The other one asks, and waits, since nobody tells it what we did.
                until("it asked", || !counter.is_biased());
                counter.add();
            } else {
                until("the lock is biased", || asked.load(Ordering::Acquire) == 1);
                counter.add();
            }
        });
        counter.total() == 3 && !counter.lock.is_locked()
    });
    // An owner that has ended does not come back.
    in_child("the owner has ended", || {
        let counter = Counter::new();
        in_threads(1, &|| counter.add());
        if filter::refuse(libc::SYS_membarrier, None, libc::EPERM) {
            in_threads(1, &|| counter.add());
            counter.add();
        } else {
            println!("skipped: no filters here");
            (0..2).for_each(|_| counter.add());
        }
        counter.total() == 3
    });
}
