//! The locks that can be simulated: those of the core, unchanged, and those of the past.
//!
//! # Invariants
//! - **HELD-ONCE** `SimLock::with` releases the lock on the task that has just taken it, once.

mod adaptive;
mod clh;
mod cohort;
mod counter;
mod futex;
mod list;
mod lot;
mod plain;
mod semaphore;
pub(crate) mod shared;
pub(crate) mod spin;
mod std_mutex;
mod turns;

use crate::engine::StepKind;
use crate::engine::calls::{at, note, now};
use crate::engine::task::Activity;
use crate::engine::words::{QueueLock, Sim, TicketLock};
use crate::engine::world::{SimWorld, with};
use adaptive::AdaptiveMutex;
use clh::ClhMutex;
use cohort::SpinMutex;
use counter::{CounterMutex, HistorySteps};
use futex::FutexMutex;
use lockstead_core::policy::{BackOff, Bound, Fair, Queue, Spinning, Standard, Without};
use lockstead_core::{ClassicSemaphore, Off, RawMutex, TunedSemaphore};
use lot::LotMutex;
use plain::PlainLock;
use semaphore::Semaphore2005;
use std::panic::Location;
use std_mutex::StdMutex;
use turns::BackOffMutex;

/// The name of a lock that can be simulated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SimLockName {
    /// The semaphore of 2005.
    Semaphore2005,
    /// The counter mutex of 2006.
    Counter2006,
    /// The mutex of 2009, whose spinners stay when the owner changes.
    Spinning2009,
    /// The mutex of 2013, whose spinners stand in no queue: "without patch".
    Spinning2013,
    /// The mutex of 2013, reading before each exchange: patch 2.
    ReadFirst2013,
    /// The mutex of 2013 with a queue of spinners: patches 2 and 3.
    Queued2013,
    /// The mutex of this project.
    Lockstead,
    /// lockstead's mutex whose waits are short.
    LocksteadFair,
    /// lockstead's mutex without a queue of spinners.
    LocksteadCrowd,
    /// lockstead's mutex without spinning.
    LocksteadSleeping,
    /// lockstead's mutex, whose spinners do not know whether the owner runs.
    LocksteadBlind,
    /// lockstead's mutex without a bound on waiting.
    LocksteadUnbounded,
    /// lockstead's mutex, whose waiters take no back-off sleeps.
    LocksteadRestless,
    /// lockstead's mutex, which forgets at once that it was contended: no slow unlocks to come.
    LocksteadCold,
    /// lockstead's semaphore of 2005, with one permit.
    SemaphoreClassic,
    /// lockstead's semaphore with all that the mutex has, with one permit.
    SemaphoreTuned,
    /// A word that one sleeps on: the C library's mutex.
    Futex,
    /// A mutex for which nobody sleeps, and whose spinners queue in the order of their coming.
    SpinQueue,
    /// A mutex that only spins, in a queue for each memory node.
    SpinQueueNuma,
    /// A lock by ticket.
    Ticket,
    /// A word that is tried when it looks free, with back-off.
    BackOff,
    /// The queue of Mellor-Crummey and Scott, which nobody passes.
    Mcs,
    /// The queue of Craig, Landin and Hagersten.
    Clh,
    /// The C library's adaptive mutex.
    FutexAdaptive,
    /// The mutex of parking_lot.
    ParkingLot,
    /// The mutex of Rust's standard library.
    RustStd,
}

/// The locks, each with its name and what it is.
pub const LOCKS: [(SimLockName, &str, &str); 26] = [
    (SimLockName::Semaphore2005, "semaphore-2005", "the kernel's semaphore of 2005"),
    (SimLockName::Counter2006, "counter-2006", "the kernel's mutex of 2006, which does not spin"),
    (
        SimLockName::Spinning2009,
        "spinning-2009",
        "the kernel's mutex of 2009, spinners stay when the owner changes",
    ),
    (
        SimLockName::Spinning2013,
        "spinning-2013",
        "the kernel's mutex of 2013, spinners in no queue",
    ),
    (SimLockName::ReadFirst2013, "read-first-2013", "the same, reading before each exchange"),
    (SimLockName::Queued2013, "queued-2013", "the same, with a queue of spinners"),
    (SimLockName::Lockstead, "lockstead", "lockstead's mutex"),
    (SimLockName::LocksteadFair, "lockstead-fair", "lockstead's mutex whose waits are short"),
    (SimLockName::LocksteadCrowd, "lockstead-crowd", "lockstead's mutex, spinners in no queue"),
    (SimLockName::LocksteadSleeping, "lockstead-sleeping", "lockstead's mutex without spinning"),
    (
        SimLockName::LocksteadBlind,
        "lockstead-blind",
        "lockstead's mutex, spinners do not know whether its owner runs",
    ),
    (
        SimLockName::LocksteadUnbounded,
        "lockstead-unbounded",
        "lockstead's mutex, waits have no bound",
    ),
    (
        SimLockName::LocksteadRestless,
        "lockstead-restless",
        "lockstead's mutex, waiters take no back-off sleeps",
    ),
    (SimLockName::LocksteadCold, "lockstead-cold", "lockstead's mutex, all unlocks fast"),
    (
        SimLockName::SemaphoreClassic,
        "semaphore-classic",
        "lockstead's semaphore of 2005, one permit",
    ),
    (SimLockName::SemaphoreTuned, "semaphore-tuned", "lockstead's tuned semaphore, one permit"),
    (SimLockName::Futex, "futex", "a word that one sleeps on: the C library's mutex"),
    (SimLockName::SpinQueue, "spin-queue", "a mutex that only spins, in a queue"),
    (SimLockName::SpinQueueNuma, "spin-queue-numa", "the same, its queue goes by memory node"),
    (SimLockName::Ticket, "ticket", "a spin lock that takes turns by number"),
    (SimLockName::BackOff, "back-off", "a spin lock that is read, then tried, with back-off"),
    (SimLockName::Mcs, "mcs", "the queue of Mellor-Crummey and Scott; nobody passes it"),
    (SimLockName::Clh, "clh", "the queue of Craig, Landin and Hagersten; nobody passes it"),
    (SimLockName::FutexAdaptive, "futex-adaptive", "the C library's adaptive mutex"),
    (SimLockName::ParkingLot, "parking-lot", "parking_lot's mutex"),
    (SimLockName::RustStd, "rust-std", "the mutex of Rust's standard library"),
];

/// The ingredients of lockstead's mutex, each with the lock that lacks it; the first lacks none.
pub const INGREDIENTS: [(SimLockName, &str); 7] = [
    (SimLockName::Lockstead, "none"),
    (SimLockName::LocksteadSleeping, "spinning"),
    (SimLockName::LocksteadCrowd, "queue of spinners"),
    (SimLockName::LocksteadBlind, "owner's state"),
    (SimLockName::LocksteadUnbounded, "bound on waiting"),
    (SimLockName::LocksteadRestless, "back-off sleeps"),
    (SimLockName::LocksteadCold, "slow unlocks"),
];

impl SimLockName {
    /// Returns the name that users write.
    #[must_use]
    pub fn name(self) -> &'static str {
        LOCKS.iter().find(|&&(lock, ..)| lock == self).map_or("", |&(_, name, _)| name)
    }

    /// Tells whether it is a mutex of this project, with or without an ingredient.
    #[must_use]
    pub fn is_own(self) -> bool {
        self.name().starts_with("lockstead")
    }

    /// Returns the lock with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<SimLockName> {
        LOCKS.iter().find(|&&(_, known, _)| known == name).map(|&(lock, ..)| lock)
    }
}

/// A lock on a simulated machine.
#[derive(Clone, Copy)]
pub(crate) enum SimLock {
    Semaphore(&'static Semaphore2005),
    Counter(&'static CounterMutex),
    Core(&'static RawMutex<Sim, Off, Standard>),
    Fair(&'static RawMutex<Sim, Off, Fair>),
    Crowd(&'static RawMutex<Sim, Off, Without<Queue>>),
    Unbounded(&'static RawMutex<Sim, Off, Without<Bound>>),
    Restless(&'static RawMutex<Sim, Off, Without<BackOff>>),
    Sleeping(&'static RawMutex<Sim, Off, Without<Spinning>>),
    Classic(&'static ClassicSemaphore<Sim>),
    Tuned(&'static TunedSemaphore<Sim>),
    Plain(&'static dyn PlainLock),
}

impl SimLock {
    pub(crate) fn place(w: &mut SimWorld, name: SimLockName) -> SimLock {
        let counter = |w: &mut SimWorld, spins, reads_first, queues| {
            SimLock::Counter(CounterMutex::place(
                w,
                HistorySteps { spins, stays: false, reads_first, queues },
            ))
        };
        match name {
            SimLockName::Semaphore2005 => SimLock::Semaphore(Semaphore2005::place(w)),
            SimLockName::Counter2006 => counter(w, false, false, false),
            SimLockName::Spinning2009 => SimLock::Counter(CounterMutex::place(
                w,
                HistorySteps { spins: true, stays: true, reads_first: false, queues: false },
            )),
            SimLockName::Spinning2013 => counter(w, true, false, false),
            SimLockName::ReadFirst2013 => counter(w, true, true, false),
            SimLockName::Queued2013 => counter(w, true, true, true),
            SimLockName::Lockstead | SimLockName::LocksteadBlind | SimLockName::LocksteadCold => {
                w.blind |= name == SimLockName::LocksteadBlind;
                w.cold |= name == SimLockName::LocksteadCold;
                SimLock::Core(w.arena.place(RawMutex::new()))
            }
            SimLockName::LocksteadFair => SimLock::Fair(w.arena.place(RawMutex::new())),
            SimLockName::LocksteadUnbounded => SimLock::Unbounded(w.arena.place(RawMutex::new())),
            SimLockName::LocksteadRestless => SimLock::Restless(w.arena.place(RawMutex::new())),
            SimLockName::LocksteadCrowd => SimLock::Crowd(w.arena.place(RawMutex::new())),
            SimLockName::LocksteadSleeping => SimLock::Sleeping(w.arena.place(RawMutex::new())),
            SimLockName::SemaphoreClassic => {
                SimLock::Classic(w.arena.place(ClassicSemaphore::new(1).expect("one permit")))
            }
            SimLockName::SemaphoreTuned => {
                SimLock::Tuned(w.arena.place(TunedSemaphore::new(1).expect("one permit")))
            }
            SimLockName::Futex => SimLock::Plain(w.arena.place(FutexMutex::new())),
            SimLockName::SpinQueue => SimLock::Plain(SpinMutex::place(w, false)),
            SimLockName::SpinQueueNuma => SimLock::Plain(SpinMutex::place(w, true)),
            SimLockName::Ticket => SimLock::Plain(w.arena.place(TicketLock::new())),
            SimLockName::BackOff => SimLock::Plain(w.arena.place(BackOffMutex::new())),
            SimLockName::Mcs => SimLock::Plain(w.arena.place(QueueLock::new())),
            SimLockName::Clh => SimLock::Plain(ClhMutex::place(w)),
            SimLockName::FutexAdaptive => SimLock::Plain(w.arena.place(AdaptiveMutex::new())),
            SimLockName::ParkingLot => SimLock::Plain(LotMutex::place(w)),
            SimLockName::RustStd => SimLock::Plain(w.arena.place(StdMutex::new())),
        }
    }

    fn lock(self) {
        let site = Location::caller();
        match self {
            SimLock::Semaphore(semaphore) => semaphore.down(),
            SimLock::Counter(mutex) => mutex.lock(),
            SimLock::Core(mutex) => mutex.lock(site).expect("a task takes one lock at a time"),
            SimLock::Fair(mutex) => mutex.lock(site).expect("a task takes one lock at a time"),
            SimLock::Crowd(mutex) => mutex.lock(site).expect("a task takes one lock at a time"),
            SimLock::Unbounded(mutex) => mutex.lock(site).expect("a task takes one lock at a time"),
            SimLock::Restless(mutex) => mutex.lock(site).expect("a task takes one lock at a time"),
            SimLock::Sleeping(mutex) => mutex.lock(site).expect("a task takes one lock at a time"),
            SimLock::Classic(semaphore) => semaphore.down(site),
            SimLock::Tuned(semaphore) => semaphore.down(site),
            SimLock::Plain(mutex) => mutex.lock(),
        }
    }

    fn unlock(self) {
        match self {
            SimLock::Semaphore(semaphore) => semaphore.up(),
            SimLock::Counter(mutex) => mutex.unlock(),
            // SAFETY: by HELD-ONCE the running task has the lock.
            SimLock::Core(mutex) => unsafe { mutex.unlock() },
            // SAFETY: by HELD-ONCE the running task has the lock.
            SimLock::Fair(mutex) => unsafe { mutex.unlock() },
            // SAFETY: by HELD-ONCE the running task has the lock.
            SimLock::Crowd(mutex) => unsafe { mutex.unlock() },
            // SAFETY: by HELD-ONCE the running task has the lock.
            SimLock::Unbounded(mutex) => unsafe { mutex.unlock() },
            // SAFETY: by HELD-ONCE the running task has the lock.
            SimLock::Restless(mutex) => unsafe { mutex.unlock() },
            // SAFETY: by HELD-ONCE the running task has the lock.
            SimLock::Sleeping(mutex) => unsafe { mutex.unlock() },
            SimLock::Classic(semaphore) => semaphore.up().expect("the permit that was taken"),
            SimLock::Tuned(semaphore) => semaphore.up().expect("the permit that was taken"),
            SimLock::Plain(mutex) => mutex.unlock(),
        }
    }

    /// Runs `section` with the lock; `number`: the lock's, for its figures.
    pub(crate) fn with(self, number: usize, section: impl FnOnce()) {
        note(StepKind::Ask, number);
        let asked = now();
        with(|w| w.tally.asked(number, w.current, asked));
        at(Activity::Lock, || self.lock());
        let taken = now();
        note(StepKind::Take, number);
        with(|w| w.tally.taken(number, w.current, asked, taken));
        at(Activity::Section, section);
        note(StepKind::Release, number);
        let released = now();
        with(|w| w.tally.released(number, w.current, taken, released));
        at(Activity::Lock, || self.unlock());
    }
}
