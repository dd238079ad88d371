//! What a checked lock keeps, and its hooks.

use super::inside::inside;
use super::{engine, listening, thread};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use lockstead_core::{Access, Hooks, LockId, Path, Site};

/// The hooks behind locks without a name, in a build with the feature `check`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checked;

/// What [`Checked`] keeps in each lock. The lock may be moved while nobody holds
/// it: it takes its identity along.
#[derive(Debug)]
pub struct CheckedLock {
    /// The lock's number in the order graph; 0 before its first use.
    number: AtomicU32,
    name: Option<&'static str>,
    origin: Option<Site>,
    /// Whether it is a reader-writer lock; one that was not said to be is, from its first reader on.
    pub(super) reads: AtomicBool,
}

impl CheckedLock {
    /// Makes the state of a lock that was created at `origin`.
    pub(crate) const fn new(name: Option<&'static str>, origin: Option<Site>) -> Self {
        let (number, reads) = (AtomicU32::new(0), AtomicBool::new(false));
        CheckedLock { number, name, origin, reads }
    }

    /// Says that it is a reader-writer lock.
    pub(crate) const fn reader_writer(mut self) -> Self {
        self.reads_and_writes();
        self
    }

    /// Says that it is a reader-writer lock.
    pub(crate) const fn reads_and_writes(&mut self) {
        self.reads = AtomicBool::new(true);
    }

    /// Returns the name given to the lock.
    pub(super) const fn name(&self) -> Option<&'static str> {
        self.name
    }

    /// Returns the lock's number, if it was ever used.
    fn known_number(&self) -> Option<u32> {
        Some(self.number.load(Relaxed)).filter(|&number| number != 0)
    }

    /// Returns the lock's number, given at its first use, which is at `site`.
    fn number(&self, address: LockId, site: Site) -> u32 {
        let known = self.number.load(Relaxed);
        if known != 0 {
            return known;
        }
        let new = engine::introduce(self.name, self.origin.unwrap_or(site), address);
        match self.number.compare_exchange(0, new, Relaxed, Relaxed) {
            Ok(_) => new,
            // Another thread used it at the same moment.
            Err(first) => {
                engine::forget(new);
                first
            }
        }
    }
}

impl Drop for CheckedLock {
    fn drop(&mut self) {
        let number = *self.number.get_mut();
        if number != 0 {
            inside(|| engine::forget(number));
        }
    }
}

impl Hooks for Checked {
    type Waits = lockstead_core::Standard;
    type State = CheckedLock;
    #[allow(clippy::declare_interior_mutable_const, reason = "a value to begin with, not a place")]
    const NEW: CheckedLock = CheckedLock::new(None, None);

    #[track_caller]
    fn will_acquire(lock: &CheckedLock, id: LockId, access: Access, subclass: u32, site: Site) {
        if listening::will_acquire() {
            return;
        }
        thread::will_acquire(|| lock.number(id, site), access, subclass, site);
    }

    #[track_caller]
    fn will_wait(lock: &CheckedLock, _id: LockId, endless: bool) {
        if !listening::takes_over() {
            thread::will_wait(lock.known_number(), endless);
        }
    }

    fn acquired(lock: &CheckedLock, id: LockId, access: Access, _path: Path, site: Site) {
        if listening::acquired(lock, id, access) {
            return;
        }
        thread::acquired(|| lock.number(id, site), access, site);
    }

    fn abandoned(lock: &CheckedLock, _id: LockId, _site: Site) {
        if listening::abandoned() {
            return;
        }
        thread::abandoned(lock.known_number());
    }

    fn releasing(lock: &CheckedLock, id: LockId) {
        if listening::releasing(lock, id) {
            return;
        }
        thread::releasing(lock.known_number());
    }

    fn name(lock: &CheckedLock) -> Option<&'static str> {
        lock.name
    }
}
