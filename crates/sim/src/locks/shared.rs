//! Reader-writer locks of programs.
//!
//! # Invariants
//! - **SHARED-ONCE** The caller releases the lock on the task that has just taken it, once, in the
//!   way in which it took it.

use super::SimLockName;
use crate::engine::calls::at;
use crate::engine::task::Activity;
use crate::engine::words::{Sim, U32};
use crate::engine::world::SimWorld;
use lockstead_core::{Off, Platform, RawRwLock, WaitBounds};
use std::panic::Location;

/// A reader-writer lock on a simulated machine.
#[derive(Clone, Copy)]
pub(crate) enum SimRwLock {
    /// The reader-writer lock of this project.
    Core(&'static RawRwLock<Sim, Off>),
    /// A model of the one of the C library.
    Futex(&'static FutexRwLock),
}

/// The reader-writer lock of the GNU C library, as it is unless a program asks for another: readers go
/// before writers.
///
/// It is in a phase, of readers or of writers, and a phase ends by being handed over: the last reader
/// hands the lock to the first of the writers that wait, a writer to all readers that do. So it belongs to
/// tasks that still sleep, and whoever comes until they have woken up and are through has to wait. A
/// reader that comes while readers have it joins them. Of the writers one waits for the phase; the others
/// wait for its place.
///
/// # Source
/// The comment at the head of glibc's `pthread_rwlock_common.c` (since 2.25), which describes the algorithm.
/// Left out: deadlines, and the preferences of writers, which are other kinds.
#[repr(C)]
pub(crate) struct FutexRwLock {
    /// The number of readers that have it or wait for it, in units of [`READER`], and two flags.
    state: U32,
    /// The word on which tasks sleep that wait for the other phase: 1 in that of writers, and [`SLEEPS`].
    phase: U32,
    /// The number of writers that wait for the place of the first one.
    writers: U32,
    /// The word on which they sleep: 1 while they are to.
    place: U32,
}

/// It is the phase of writers.
const WRITING: u32 = 1;
/// A writer has it, or is the first to wait for the phase.
const TAKEN: u32 = 2;
const READER: u32 = 4;
const SLEEPS: u32 = 2;

impl FutexRwLock {
    const fn new() -> Self {
        FutexRwLock { state: U32::ZERO, phase: U32::ZERO, writers: U32::ZERO, place: U32::ZERO }
    }

    /// Changes the state by `change`. Returns what it was and what it became.
    fn turn(&self, change: impl Fn(u32) -> u32) -> (u32, u32) {
        loop {
            let seen = self.state.read();
            let next = change(seen);
            if self.state.replace(seen, next).is_ok() {
                return (seen, next);
            }
        }
    }

    fn read_lock(&self) {
        let seen = self.state.update(|state| state + READER);
        if seen & WRITING == 0 {
            return;
        }
        at(Activity::ReadLock, || {
            // A writer left it in its phase, and no other one came: whoever reads first ends that.
            let begins = |state| if state & TAKEN == 0 { state & !WRITING } else { state };
            let (before, now) = self.turn(begins);
            if before & WRITING != now & WRITING {
                self.begin_phase(0);
            } else {
                self.await_phase(0);
            }
        });
    }

    fn read_unlock(&self) {
        let leaves = |state: u32| match state - READER {
            TAKEN => TAKEN | WRITING,
            left => left,
        };
        let (before, now) = self.turn(leaves);
        if before & WRITING != now & WRITING {
            at(Activity::SlowPath, || self.begin_phase(WRITING));
        }
    }

    fn write_lock(&self) {
        let mut seen = self.state.update(|state| state | TAKEN);
        if seen & TAKEN != 0 {
            at(Activity::WriteLock, || {
                self.writers.update(|writers| writers + 1);
                loop {
                    self.place.update(|_| 1);
                    seen = self.state.update(|state| state | TAKEN);
                    if seen & TAKEN == 0 {
                        break;
                    }
                    Sim::wait32(&self.place, 1, &WaitBounds::FOREVER);
                }
                self.writers.update(|writers| writers - 1);
            });
        }
        if seen & WRITING != 0 {
            return;
        }
        at(Activity::WriteLock, || {
            let begins = |state| if state < READER { state | WRITING } else { state };
            let (before, now) = self.turn(begins);
            if before & WRITING != now & WRITING {
                self.begin_phase(WRITING);
            } else {
                self.await_phase(WRITING);
            }
        });
    }

    fn write_unlock(&self) {
        let leaves = |state: u32| match state & !TAKEN {
            readers @ READER.. => readers & !WRITING,
            nobody => nobody,
        };
        let (before, now) = self.turn(leaves);
        if before & WRITING != now & WRITING {
            at(Activity::SlowPath, || self.begin_phase(0));
        }
        if self.writers.read() != 0 {
            at(Activity::SlowPath, || {
                self.place.update(|_| 0);
                Sim::wake(Sim::address32(&self.place), 1);
            });
        }
    }

    /// Tells those who sleep that it is this phase now.
    fn begin_phase(&self, phase: u32) {
        if self.phase.update(|_| phase) & SLEEPS != 0 {
            Sim::wake(Sim::address32(&self.phase), u32::MAX);
        }
    }

    /// Sleeps until it is this phase, which cannot end before the task has had the lock.
    fn await_phase(&self, phase: u32) {
        while self.state.read() & WRITING != phase {
            let other = phase ^ WRITING;
            let seen = self.phase.read();
            // Whoever changes the phase says so here a moment later.
            if seen & WRITING != other {
                Sim::relax();
                continue;
            }
            let marked = other | SLEEPS;
            if seen == marked || self.phase.replace(seen, marked).is_ok() {
                Sim::wait32(&self.phase, marked, &WaitBounds::FOREVER);
            }
        }
    }
}

impl SimRwLock {
    /// Places the one that comes with this mutex: lockstead's with lockstead's, else the C
    /// library's.
    pub(crate) fn place(w: &mut SimWorld, mutex: SimLockName) -> Self {
        if mutex.is_own() {
            SimRwLock::Core(w.arena.place(RawRwLock::new()))
        } else {
            SimRwLock::Futex(w.arena.place(FutexRwLock::new()))
        }
    }

    pub(crate) fn lock(self, writes: bool) {
        let site = Location::caller();
        match (self, writes) {
            (SimRwLock::Core(lock), false) => lock.read(site).expect("it has not written"),
            (SimRwLock::Core(lock), true) => lock.write(site).expect("it takes it once"),
            (SimRwLock::Futex(lock), false) => lock.read_lock(),
            (SimRwLock::Futex(lock), true) => lock.write_lock(),
        }
    }

    pub(crate) fn unlock(self, writes: bool) {
        match (self, writes) {
            // SAFETY: by SHARED-ONCE the running task has it for reading.
            (SimRwLock::Core(lock), false) => unsafe { lock.unlock_read() },
            // SAFETY: by SHARED-ONCE the running task has it for writing.
            (SimRwLock::Core(lock), true) => unsafe { lock.unlock_write() },
            (SimRwLock::Futex(lock), false) => lock.read_unlock(),
            (SimRwLock::Futex(lock), true) => lock.write_unlock(),
        }
    }
}
