//! What a running task has in hand to give its turn back.

use corosensei::Yielder;
use std::sync::mpsc::{Receiver, Sender};

/// What a task does.
pub(crate) type Body = &'static dyn Fn();

/// How a running task gives its turn back.
#[derive(Clone, Copy)]
pub(crate) enum Turn {
    /// No task has the turn.
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
