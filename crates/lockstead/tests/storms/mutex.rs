//! The mutex.

use crate::frame::{Hasty, Patient, Scene, Worker, storms};
use lockstead_core::policy::Fair;
use lockstead_core::{Off, Plain, Policy, RawMutex};
use lockstead_linux::{Cell, Linux};
use std::panic::Location;

struct Mutex<Y: Policy> {
    lock: RawMutex<Linux, Off, Y>,
    count: Cell<u64>,
}

impl<Y: Policy> Mutex<Y> {
    fn new() -> Self {
        Mutex { lock: RawMutex::new(), count: Cell::new(0) }
    }
}

impl<Y: Policy> Scene for Mutex<Y> {
    fn turn(&self, worker: &mut Worker<'_>) {
        let here = Location::caller();
        if !(worker.dice.one_in(16) && self.lock.try_lock(here)) {
            worker.insist(|how| self.lock.lock_how(how, 0, here));
        }
        // SAFETY: this thread holds the lock, which keeps all others out.
        self.count.with_mut(|count| unsafe { count.write_volatile(count.read_volatile() + 1) });
        worker.linger();
        // SAFETY: this thread has taken the lock above, and only the holder releases it.
        unsafe { self.lock.unlock() };
    }

    fn still(&self, turns: u64) {
        // SAFETY: nobody makes a turn, so that nobody writes the count.
        assert_eq!(self.count.with(|count| unsafe { count.read() }), turns);
        assert!(!self.lock.is_locked());
    }

    fn describe(&self) -> String {
        format!("{:?}", self.lock)
    }
}

mod hasty {
    use super::*;
    storms!("mutex", Mutex::<Hasty>::new(), 100_000, 100_000_000);
}

/// The policy of short waits with a bound of 10 µs, and batches that end at every release that
/// somebody waits for.
struct Turns;

impl Policy for Turns {
    type Base = Fair;
    const BOUND: u64 = 10_000;
    const BATCH: u64 = 1;
}

mod taking_turns {
    use super::*;
    storms!("mutex with short waits", Mutex::<Turns>::new(), 100_000, 50_000_000);
}

mod patient {
    use super::*;
    storms!("mutex without a bound", Mutex::<Patient>::new(), 100_000, 50_000_000);
}
