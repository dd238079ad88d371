//! How memory becomes again what it was.
//!
//! What stores do is noted as they do it, and undone one by one. What threads know
//! changes at every step, and is put down as a whole.

use super::view::MemoryView;
use super::{Mind, ModelMemory, Touched};
use crate::fingerprint::mix;

/// What has changed, and how to undo it.
pub(super) enum Change {
    /// A location is used.
    Registered(u16),
    /// A location was touched; who had touched it before.
    Touched(u16, Touched),
    /// The only store of a location was replaced; value and hash before.
    Replaced(u16, u64, u64),
    /// A location has one more store, at this place in the order; hash before.
    Inserted(u16, u16, u64),
}

/// Memory at some point of an execution.
#[derive(Default)]
pub(crate) struct MemoryMark {
    /// Changes that came before.
    changes: usize,
    hash: u64,
    /// What threads know; nothing where all know everything.
    minds: Vec<Mind>,
    agreed: MemoryView,
}

impl ModelMemory {
    /// Puts down what [`put_back`](Self::put_back) needs.
    pub(crate) fn save(&self, mark: &mut MemoryMark) {
        mark.changes = self.journal.len();
        mark.hash = self.hash;
        if !self.merged {
            mark.minds.clone_from(&self.minds);
            mark.agreed.clone_from(&self.agreed);
        }
    }

    /// Makes everything as it was at `mark`, which is of this execution.
    pub(crate) fn put_back(&mut self, mark: &MemoryMark) {
        while self.journal.len() > mark.changes {
            let Some(change) = self.journal.pop() else { break };
            self.undo(change);
        }
        self.hash = mark.hash;
        if !self.merged {
            self.minds.clone_from(&mark.minds);
            self.agreed.clone_from(&mark.agreed);
        }
    }

    fn undo(&mut self, change: Change) {
        match change {
            Change::Registered(location) => {
                self.locations[usize::from(location)].present = false;
            }
            Change::Touched(location, before) => {
                self.locations[usize::from(location)].touched = before;
            }
            Change::Replaced(location, value, hash) => {
                let location = &mut self.locations[usize::from(location)];
                location.stores[0].value = value;
                location.stores[0].id = mix(value, 9);
                location.hash = hash;
            }
            Change::Inserted(location, at, hash) => {
                let location = &mut self.locations[usize::from(location)];
                location.stores.remove(usize::from(at));
                location.hash = hash;
            }
        }
    }
}
