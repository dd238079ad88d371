//! The locks that can be simulated: those of the core, unchanged, and those of the past.

mod counter;
mod crowd;
mod semaphore;
pub(crate) mod spin;

use crate::engine::Kind;
use crate::engine::calls::{at, note, now};
use crate::engine::world::{Place, World, with};
use crate::platform::Sim;
use counter::{CounterMutex, Steps};
use crowd::Crowd;
use lockstead_core::{NoSpin, Off, RawMutex, Standard};
use semaphore::Semaphore2005;
use std::panic::Location;

/// A lock's name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LockName {
    /// The semaphore of 2005.
    Semaphore2005,
    /// The counter mutex of 2006.
    Counter2006,
    /// The mutex of 2013, whose spinners stand in no queue: "without patch".
    Spinning2013,
    /// The same, reading before each exchange: patch 2.
    ReadFirst2013,
    /// The same with a queue of spinners: patches 2 and 3.
    Queued2013,
    /// lockstead's mutex.
    Lockstead,
    /// lockstead's mutex without a queue of spinners.
    LocksteadCrowd,
    /// lockstead's mutex without spinning.
    LocksteadSleeping,
}

/// All of them, with their names.
pub const LOCKS: [(LockName, &str, &str); 8] = [
    (LockName::Semaphore2005, "semaphore-2005", "the kernel's semaphore of 2005"),
    (LockName::Counter2006, "counter-2006", "the kernel's mutex of 2006, which does not spin"),
    (LockName::Spinning2013, "spinning-2013", "the kernel's mutex of 2013, spinners in no queue"),
    (LockName::ReadFirst2013, "read-first-2013", "the same, reading before each exchange"),
    (LockName::Queued2013, "queued-2013", "the same, with a queue of spinners"),
    (LockName::Lockstead, "lockstead", "lockstead's mutex"),
    (LockName::LocksteadCrowd, "lockstead-crowd", "lockstead's mutex, spinners in no queue"),
    (LockName::LocksteadSleeping, "lockstead-sleeping", "lockstead's mutex without spinning"),
];

impl LockName {
    /// The name that users write.
    #[must_use]
    pub fn name(self) -> &'static str {
        LOCKS.iter().find(|&&(lock, ..)| lock == self).map_or("", |&(_, name, _)| name)
    }

    /// The lock with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<LockName> {
        LOCKS.iter().find(|&&(_, known, _)| known == name).map(|&(lock, ..)| lock)
    }
}

/// A lock on a simulated machine.
#[derive(Clone, Copy)]
pub(crate) enum Lock {
    Semaphore(&'static Semaphore2005),
    Counter(&'static CounterMutex),
    Core(&'static RawMutex<Sim, Off, Standard>),
    Crowd(&'static RawMutex<Sim, Off, Crowd>),
    Sleeping(&'static RawMutex<Sim, Off, NoSpin>),
}

impl Lock {
    pub(crate) fn place(w: &mut World, name: LockName) -> Lock {
        let counter = |w: &mut World, spins, reads_first, queues| {
            Lock::Counter(CounterMutex::place(w, Steps { spins, reads_first, queues }))
        };
        match name {
            LockName::Semaphore2005 => Lock::Semaphore(Semaphore2005::place(w)),
            LockName::Counter2006 => counter(w, false, false, false),
            LockName::Spinning2013 => counter(w, true, false, false),
            LockName::ReadFirst2013 => counter(w, true, true, false),
            LockName::Queued2013 => counter(w, true, true, true),
            LockName::Lockstead => Lock::Core(w.arena.place(RawMutex::new())),
            LockName::LocksteadCrowd => Lock::Crowd(w.arena.place(RawMutex::new())),
            LockName::LocksteadSleeping => Lock::Sleeping(w.arena.place(RawMutex::new())),
        }
    }

    fn lock(self) {
        let site = Location::caller();
        match self {
            Lock::Semaphore(semaphore) => semaphore.down(),
            Lock::Counter(mutex) => mutex.lock(),
            Lock::Core(mutex) => mutex.lock(site).expect("a task takes one lock at a time"),
            Lock::Crowd(mutex) => mutex.lock(site).expect("a task takes one lock at a time"),
            Lock::Sleeping(mutex) => mutex.lock(site).expect("a task takes one lock at a time"),
        }
    }

    fn unlock(self) {
        match self {
            Lock::Semaphore(semaphore) => semaphore.up(),
            Lock::Counter(mutex) => mutex.unlock(),
            // SAFETY: `Held` is called by the task that has the lock, once.
            Lock::Core(mutex) => unsafe { mutex.unlock() },
            // SAFETY: as above.
            Lock::Crowd(mutex) => unsafe { mutex.unlock() },
            // SAFETY: as above.
            Lock::Sleeping(mutex) => unsafe { mutex.unlock() },
        }
    }

    /// Runs `section` with the lock; `number`: the lock's, for its figures.
    pub(crate) fn with(self, number: usize, section: impl FnOnce()) {
        note(Kind::Ask, number);
        let asked = now();
        at(Place::Lock, || self.lock());
        let taken = now();
        note(Kind::Take, number);
        with(|w| w.tally.taken(number, w.current, asked, taken));
        at(Place::Section, section);
        note(Kind::Release, number);
        let released = now();
        with(|w| w.tally.released(number, w.current, taken, released));
        at(Place::Lock, || self.unlock());
    }
}
