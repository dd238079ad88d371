//! The process that `lockstead attach` watches: when it is left, and how.

use super::processes::Observed;
use super::signals::asks_to_end;
use crate::attach::{Attached, Remains};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time between two looks for files that have been loaded.
const LOOK: Duration = Duration::from_millis(100);
/// How long threads have to come out of the library.
const PATIENCE: Duration = Duration::from_secs(10);

/// A process that was not started by this command.
pub(super) struct AttachedRun {
    attached: Attached,
    process: Option<Arc<Observed>>,
    until: Option<Instant>,
    look: Instant,
    asked: bool,
}

impl AttachedRun {
    /// Watches a process, until then if there is such a time.
    pub(super) fn new(attached: Attached, process: Observed, until: Option<Instant>) -> Self {
        let process = Some(Arc::new(process));
        AttachedRun { attached, process, until, look: Instant::now() + LOOK, asked: false }
    }

    /// Returns the process, once.
    pub(super) fn first(&mut self) -> Option<Arc<Observed>> {
        self.process.take()
    }

    /// Takes in a signal to the command: those that would end it have it leave the process.
    pub(super) fn signal(&mut self, signal: libc::c_int) {
        self.asked |= asks_to_end(signal);
    }

    /// Does what is due, and tells whether the process is to be left: it has ended (`gone`) or become another
    /// program, the time is over, or somebody has asked for it.
    pub(super) fn is_over(&mut self, gone: bool) -> bool {
        let now = Instant::now();
        if now >= self.look && !gone {
            self.look = now + LOOK;
            self.asked |= !self.attached.look();
        }
        gone || self.asked || self.until.is_some_and(|until| now >= until)
    }

    /// Leaves the process.
    pub(super) fn leave(self) -> Result<Duration, Remains> {
        self.attached.detach(PATIENCE)
    }
}
