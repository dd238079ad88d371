//! The condition variable: a store with room for two, in which each worker puts something and
//! takes something out.

use crate::frame::{Hasty, Scene, Worker, storms};
use lockstead_core::{Off, Plain, RawCondvar, RawMutex};
use lockstead_linux::{Cell, Linux};
use std::panic::Location;

const ROOM: u64 = 2;

#[derive(Clone, Copy, PartialEq, Debug)]
struct Store {
    inside: u64,
    put: u64,
    taken: u64,
}

struct Condvar {
    lock: RawMutex<Linux, Off, Hasty>,
    store: Cell<Store>,
    filled: RawCondvar<Linux>,
    emptied: RawCondvar<Linux>,
}

impl Condvar {
    fn new() -> Self {
        Condvar {
            lock: RawMutex::new(),
            store: Cell::new(Store { inside: 0, put: 0, taken: 0 }),
            filled: RawCondvar::new(),
            emptied: RawCondvar::new(),
        }
    }

    /// Waits for `ready`, makes the change, and tells one that waits for it.
    fn change(
        &self,
        worker: &mut Worker<'_>,
        [awaits, tells]: [&RawCondvar<Linux>; 2],
        ready: impl Fn(&Store) -> bool,
        change: impl Fn(&mut Store),
    ) {
        let here = Location::caller();
        worker.insist(|how| self.lock.lock_how(how, 0, here));
        // SAFETY: this thread holds the lock whenever it looks, which keeps all others out.
        while !self.store.with(|store| ready(unsafe { &*store })) {
            // SAFETY: this thread holds the lock, before the call and after it.
            if let Err(error) = unsafe { awaits.wait(&self.lock, &worker.bounds(), here) } {
                worker.gave_up(error);
            }
        }
        // SAFETY: this thread holds the lock, which keeps all others out.
        self.store.with_mut(|store| change(unsafe { &mut *store }));
        worker.linger();
        let (inside, all) = (worker.dice.one_in(2), worker.dice.one_in(32));
        let tell = || if all { tells.notify_all() } else { tells.notify_one() };
        if inside {
            tell();
        }
        // SAFETY: this thread holds the lock, and releases it once.
        unsafe { self.lock.unlock() };
        if !inside {
            tell();
        }
    }
}

impl Scene for Condvar {
    fn turn(&self, worker: &mut Worker<'_>) {
        let room = [&self.emptied, &self.filled];
        self.change(
            worker,
            room,
            |store| store.inside < ROOM,
            |store| {
                store.inside += 1;
                store.put += 1;
            },
        );
        let thing = [&self.filled, &self.emptied];
        self.change(
            worker,
            thing,
            |store| store.inside > 0,
            |store| {
                store.inside -= 1;
                store.taken += 1;
            },
        );
    }

    fn still(&self, turns: u64) {
        // SAFETY: nobody makes a turn, so that nobody writes the store.
        let store = self.store.with(|store| unsafe { *store });
        assert_eq!(store, Store { inside: 0, put: turns, taken: turns });
        assert!(!self.lock.is_locked());
    }

    fn describe(&self) -> String {
        format!("{:?}, filled {:?}, emptied {:?}", self.lock, self.filled, self.emptied)
    }
}

storms!("condition variable", Condvar::new(), 40_000, 20_000_000);
