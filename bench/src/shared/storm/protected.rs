//! What the locks of a storm protect, as it lies in the segment.

use super::limits::UNITS;
use lockstead::shared::{OnDeath, Shareable, SharedCondvar, SharedMutex, SharedSemaphore};

/// What a lock protects: whether it is as a section leaves it, and how to make it so.
pub(super) trait Protected {
    /// Tells whether no section is in progress, or was cut off.
    fn is_sound(&self) -> bool;

    /// Puts in order what a dead owner left.
    fn mend(&mut self);
}

/// What a mutex or a reader-writer lock protects.
#[derive(Clone, Copy, Shareable)]
#[repr(C)]
pub(super) struct ProtectedPair {
    pub(super) first: u64,
    pub(super) second: u64,
    /// The name of the thread inside; 0 if there is none.
    pub(super) inside: u64,
}

impl Protected for ProtectedPair {
    fn is_sound(&self) -> bool {
        load(&self.first) == load(&self.second) && load(&self.inside) == 0
    }

    fn mend(&mut self) {
        self.second = self.first;
        self.inside = 0;
    }
}

impl ProtectedPair {
    /// Does the first half of a section.
    pub(super) fn enter(&mut self, name: u64) {
        store(&mut self.inside, name);
        let first = load(&self.first);
        store(&mut self.first, first.wrapping_add(1));
    }

    /// Does the second half of a section. Returns true if nobody else was there meanwhile.
    pub(super) fn leave(&mut self, name: u64) -> bool {
        let second = load(&self.second);
        store(&mut self.second, second.wrapping_add(1));
        let alone = load(&self.inside) == name && load(&self.first) == load(&self.second);
        store(&mut self.inside, 0);
        alone
    }
}

/// A mutex, what it protects, and a condition variable: see `condvar`.
#[derive(Shareable)]
#[repr(C)]
pub(super) struct Depot {
    pub(super) turn: SharedMutex<ProtectedTurn>,
    pub(super) changed: SharedCondvar,
}

/// What a depot's mutex protects.
#[derive(Clone, Copy, Shareable)]
#[repr(C)]
pub(super) struct ProtectedTurn {
    pub(super) made: u64,
    pub(super) taken: u64,
    /// The number of items there are: one at most.
    pub(super) stock: u64,
    pub(super) inside: u64,
    /// Nobody is to wait any more.
    pub(super) over: u64,
}

impl Protected for ProtectedTurn {
    fn is_sound(&self) -> bool {
        let stock = load(&self.stock);
        load(&self.made) == load(&self.taken).wrapping_add(stock)
            && stock <= 1
            && load(&self.inside) == 0
    }

    fn mend(&mut self) {
        // Half made is made, half taken is not.
        self.stock = self.made.wrapping_sub(self.taken);
        self.inside = 0;
    }
}

/// Makes semaphore `at` as a storm begins.
pub(super) fn fresh(at: usize) -> SharedSemaphore {
    let on_death = if reports(at) { OnDeath::Report } else { OnDeath::Return };
    SharedSemaphore::new(UNITS, on_death)
}

/// Tells whether semaphore `at` tells of the dead.
pub(super) fn reports(at: usize) -> bool {
    at.is_multiple_of(2)
}

/// Does a load that no compiler leaves out: somebody who should not be there may have
/// written.
pub(super) fn load(from: &u64) -> u64 {
    // SAFETY: a reference is aligned and valid for reads of its type.
    unsafe { std::ptr::from_ref(from).read_volatile() }
}

/// Does a store that no compiler puts off or joins with another.
pub(super) fn store(to: &mut u64, new: u64) {
    // SAFETY: a unique reference is aligned and valid for writes of its type.
    unsafe { std::ptr::from_mut(to).write_volatile(new) };
}
