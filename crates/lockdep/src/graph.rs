//! The graph as its callers see it.

use crate::types::{Class, ClassId, Edge, Finding, Limits, LockId, Losses, Step, Use};
use alloc::vec::Vec;
use hashbrown::HashMap;

/// The order of locks, as far as it was seen.
#[derive(Debug)]
pub struct Graph {
    limits: Limits,
    locks: HashMap<LockId, Class>,
    losses: Losses,
}

impl Graph {
    /// Nothing was seen yet.
    #[must_use]
    pub fn new(limits: Limits) -> Graph {
        Graph { limits, locks: HashMap::new(), losses: Losses::default() }
    }

    /// A lock begins to live, or is first seen. It keeps the class that it is
    /// declared with until it is forgotten. `false` if there is no room for it:
    /// then its edges are lost.
    pub fn declare(&mut self, lock: LockId, class: ClassId, subclass: u8) -> bool {
        if self.locks.len() >= self.limits.locks as usize && !self.locks.contains_key(&lock) {
            self.losses.locks += 1;
            return false;
        }
        self.locks.entry(lock).or_insert(Class { id: class, subclass });
        true
    }

    /// A lock's life has ended: its edges go, and no ring leads through it any
    /// more. What is known of the order of its class stays.
    pub fn forget(&mut self, lock: LockId) {
        self.locks.remove(&lock);
    }

    /// A thread that holds a lock asks for another one. What this completes is
    /// added to `findings`: at most one ring of locks and one of classes, and for
    /// each signal at most one way between its worlds. A cause (the classes of
    /// the ring) that was found at this level or a higher one is not found again.
    pub fn add(&mut self, edge: &Edge<'_>, findings: &mut Vec<Finding>) {
        let _ = (edge, findings);
    }

    /// A lock is taken in one of the worlds of a signal: to be told once for each
    /// lock, signal, world and mode. What this completes is added to `findings`.
    pub fn used(&mut self, lock: LockId, usage: Use, findings: &mut Vec<Finding>) {
        let _ = (lock, usage, findings);
    }

    /// The shortest way by which `from` comes before `to`; readers wait for
    /// everything here.
    #[must_use]
    pub fn path(&self, from: LockId, to: LockId) -> Option<Vec<Step>> {
        let _ = (from, to);
        None
    }

    /// The shortest way by which a lock of the class `from` comes before one of
    /// the class `to`. Its locks may be dead by now.
    #[must_use]
    pub fn class_path(&self, from: Class, to: Class) -> Option<Vec<Step>> {
        let _ = (from, to);
        None
    }

    /// All edges, each with one of its witnesses.
    pub fn edges(&self) -> impl Iterator<Item = Step> + '_ {
        core::iter::empty()
    }

    /// All edges between classes, each with a witness of one of its edges.
    pub fn class_edges(&self) -> impl Iterator<Item = Step> + '_ {
        core::iter::empty()
    }

    /// What did not fit.
    #[must_use]
    pub fn losses(&self) -> Losses {
        self.losses
    }
}
