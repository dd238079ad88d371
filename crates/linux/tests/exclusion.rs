//! The mutex on real threads: exclusion, and threads that come and go.

use core::panic::Location;
use lockstead_core::Plain;
use lockstead_core::RawMutex;
use lockstead_linux::{Cell, Linux};
use std::sync::Arc;

struct Counter {
    lock: RawMutex<Linux>,
    value: Cell<u64>,
}

impl Counter {
    fn new() -> Arc<Self> {
        Arc::new(Counter { lock: RawMutex::new(), value: Cell::new(0) })
    }

    /// Adds one by a load and a store that other threads can come between
    /// unless the lock keeps them out.
    fn add(&self) {
        self.lock.lock(Location::caller()).expect("no reason to fail");
        // SAFETY: the lock is held.
        self.value.with_mut(|value| unsafe { value.write_volatile(value.read_volatile() + 1) });
        // SAFETY: taken above.
        unsafe { self.lock.unlock() };
    }

    fn total(&self) -> u64 {
        // SAFETY: called when all other threads have been joined.
        self.value.with(|value| unsafe { value.read() })
    }
}

#[test]
fn many_threads_exclude_each_other() {
    const THREADS: u64 = 16;
    const ADDS: u64 = 50_000;
    let counter = Counter::new();
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let counter = counter.clone();
            std::thread::spawn(move || (0..ADDS).for_each(|_| counter.add()))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(counter.total(), THREADS * ADDS);
    assert!(!counter.lock.is_locked());
}
