//! What an atomic of a model holds itself.

use std::cell::Cell;

/// The memory of an atomic: the number of its location, if it has been used in
/// the execution in progress. The value lives in the engine.
#[derive(Debug, Default)]
pub(crate) struct Atom {
    pub(crate) generation: Cell<u32>,
    pub(crate) location: Cell<u32>,
}

impl Atom {
    #[expect(clippy::declare_interior_mutable_const, reason = "each use is a new one")]
    pub(crate) const NEW: Atom = Atom { generation: Cell::new(0), location: Cell::new(0) };

    pub(crate) fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}
