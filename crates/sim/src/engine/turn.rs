//! The handle by which a running task gives its turn back.

use corosensei::Yielder;
use std::sync::mpsc::{Receiver, Sender};

/// The function that a task runs.
pub(crate) type TaskBody = &'static dyn Fn();

/// The way in which a running task gives its turn back.
#[derive(Clone, Copy)]
pub(crate) enum TurnEnd {
    /// The turn that no task has.
    None,
    Routine(*const Yielder<(), ()>),
    Thread(*const Baton),
}

/// A thread's side of the hand-over.
pub(crate) struct Baton {
    pub(super) go: Receiver<()>,
    pub(super) done: Sender<Said>,
}

pub(super) enum Said {
    Suspended,
    Ended,
    Panicked(Box<dyn std::any::Any + Send>),
}
