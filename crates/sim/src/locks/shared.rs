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

/// A count of readers, with a bit for a writer and one for sleepers, all in the word that one
/// sleeps on. As in the GNU C library a reader costs an addition when it comes and one when it goes,
/// and readers go before writers. What its writers have besides, a queue of their own, is left out.
#[repr(transparent)]
pub(crate) struct FutexRwLock(U32);

const WRITER: u32 = 1 << 30;
const SLEEPERS: u32 = 1 << 31;
const READERS: u32 = WRITER - 1;

impl FutexRwLock {
    fn read_lock(&self) {
        while self.0.update(|word| word.wrapping_add(1)) & WRITER != 0 {
            at(Activity::ReadLock, || {
                self.leave();
                self.sleep_while(|word| word & WRITER != 0);
            });
        }
    }

    /// Takes a reader off the count, and wakes everybody if it was the last.
    fn leave(&self) {
        let left = self.0.update(|word| word.wrapping_sub(1)).wrapping_sub(1);
        if left & (READERS | WRITER) == 0 && left & SLEEPERS != 0 {
            self.0.update(|word| word & !SLEEPERS);
            at(Activity::SlowPath, || Sim::wake(Sim::address32(&self.0), u32::MAX));
        }
    }

    fn write_lock(&self) {
        loop {
            let seen = self.0.read();
            if seen & (WRITER | READERS) == 0 {
                if self.0.replace(seen, seen | WRITER).is_ok() {
                    return;
                }
                continue;
            }
            at(Activity::WriteLock, || self.sleep_while(|word| word & (WRITER | READERS) != 0));
        }
    }

    fn write_unlock(&self) {
        if self.0.update(|word| word & !(WRITER | SLEEPERS)) & SLEEPERS != 0 {
            at(Activity::SlowPath, || Sim::wake(Sim::address32(&self.0), u32::MAX));
        }
    }

    /// Sleeps once, until the word has changed, unless it is no longer `taken`.
    fn sleep_while(&self, taken: impl Fn(u32) -> bool) {
        let seen = self.0.read();
        if !taken(seen) {
            return;
        }
        let marked = seen | SLEEPERS;
        if seen == marked || self.0.replace(seen, marked).is_ok() {
            Sim::wait32(&self.0, marked, &WaitBounds::FOREVER);
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
            SimRwLock::Futex(w.arena.place(FutexRwLock(U32::ZERO)))
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
            (SimRwLock::Futex(lock), false) => lock.leave(),
            (SimRwLock::Futex(lock), true) => lock.write_unlock(),
        }
    }
}
