//! The reader-writer lock: pairs of numbers that readers never see differ, and writers that go on
//! as readers.

use crate::frame::{Hasty, Patient, Scene, Worker, storms};
use lockstead_core::{Off, Plain, Policy, RawRwLock};
use lockstead_linux::{Cell, Linux};
use std::panic::Location;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

struct RwLock<Y: Policy> {
    lock: RawRwLock<Linux, Off, Y>,
    pair: Cell<[u64; 2]>,
    /// The number of readers inside, as they count themselves.
    readers: AtomicU32,
    /// The number of turns that wrote.
    writes: AtomicU64,
}

impl<Y: Policy> RwLock<Y> {
    fn new() -> Self {
        let (readers, writes) = (AtomicU32::new(0), AtomicU64::new(0));
        RwLock { lock: RawRwLock::new(), pair: Cell::new([0; 2]), readers, writes }
    }

    /// Looks at the pair twice, as a reader, and lets go of the lock.
    fn reads(&self, worker: &mut Worker<'_>) {
        self.readers.fetch_add(1, Relaxed);
        // SAFETY: this thread holds the lock for reading, which keeps writers out.
        let look = || self.pair.with(|pair| unsafe { pair.read_volatile() });
        let before = look();
        worker.linger();
        assert_eq!(before[0], before[1], "a reader sees half of what was written");
        assert_eq!(before, look(), "somebody writes while others read");
        self.readers.fetch_sub(1, Relaxed);
        // SAFETY: this thread holds the lock for reading, and releases it once.
        unsafe { self.lock.unlock_read() };
    }
}

impl<Y: Policy> Scene for RwLock<Y> {
    fn turn(&self, worker: &mut Worker<'_>) {
        let (here, lock) = (Location::caller(), &self.lock);
        let tries = worker.dice.one_in(16);
        if !worker.dice.one_in(3) {
            if !(tries && lock.try_read(here)) {
                worker.insist(|how| lock.read_lazily(|| *how, 0, here));
            }
            return self.reads(worker);
        }
        if !(tries && lock.try_write(here)) {
            worker.insist(|how| lock.write_lazily(|| *how, 0, here));
        }
        assert_eq!(self.readers.load(Relaxed), 0, "readers beside a writer");
        let add = |half: usize| {
            // SAFETY: this thread holds the lock for writing, which keeps all others out.
            self.pair.with_mut(|pair| unsafe {
                let mut now = pair.read_volatile();
                now[half] += 1;
                pair.write_volatile(now);
            });
        };
        add(0);
        worker.linger();
        add(1);
        self.writes.fetch_add(1, Relaxed);
        if worker.dice.one_in(8) {
            // SAFETY: this thread holds the lock for writing, and from here on for reading.
            unsafe { lock.downgrade() };
            return self.reads(worker);
        }
        // SAFETY: this thread holds the lock for writing, and releases it once.
        unsafe { lock.unlock_write() };
    }

    fn still(&self, turns: u64) {
        let writes = self.writes.load(Relaxed);
        // SAFETY: nobody makes a turn, so that nobody writes the pair.
        assert_eq!(self.pair.with(|pair| unsafe { pair.read() }), [writes; 2]);
        assert!(writes > 0 && writes < turns, "{writes} of {turns} turns wrote");
        assert!(!self.lock.is_locked());
        assert_eq!(self.lock.readers(), 0);
    }

    fn describe(&self) -> String {
        format!("{:?}, {} readers inside", self.lock, self.readers.load(Relaxed))
    }
}

mod hasty {
    use super::*;
    storms!("reader-writer lock", RwLock::<Hasty>::new(), 60_000, 50_000_000);
}

mod patient {
    use super::*;
    storms!("reader-writer lock without a bound", RwLock::<Patient>::new(), 60_000, 20_000_000);
}
