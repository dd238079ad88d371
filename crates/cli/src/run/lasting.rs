//! When to look into a process for cycles that the ledger cannot show.
//!
//! # Role
//! The ledger has the waits of Python's locks, for they sleep on semaphores and mutexes, but
//! not who has them: that is in the interpreter's memory. A look there takes longer than one
//! at the ledger, so it is taken when such a wait has lasted, again when it has lasted twice as
//! long, and never more often than once a second.

use lockstead_inspect::maps::{Backing, Maps};
use lockstead_inspect::waits::blocked::WaitPatience;
use lockstead_inspect::waits::observe::LastingWaiter;

const SECOND: u64 = 1_000_000_000;

/// The waits of one process for what may be locks of another runtime.
pub(super) struct LastingWaits {
    patience: WaitPatience,
    /// Whether the process has such a runtime.
    is_host: bool,
    /// A wait has become due since the last look.
    is_due: bool,
    next: u64,
}

impl LastingWaits {
    pub(super) fn new() -> Self {
        let patience = WaitPatience::of_runtimes(SECOND);
        LastingWaits { patience, is_host: false, is_due: false, next: 0 }
    }

    /// Takes in the files that the process has mapped.
    pub(super) fn update(&mut self, maps: &Maps) {
        let is_python = |backing: &Backing| match backing {
            Backing::File { path, .. } => {
                path.file_name().is_some_and(|name| name.to_string_lossy().contains("python"))
            }
            Backing::Anonymous | Backing::Special(_) => false,
        };
        self.is_host = maps.iter().any(|mapping| mapping.executable && is_python(&mapping.backing));
    }

    /// Tells whether the process has such a runtime.
    pub(super) fn is_host(&self) -> bool {
        self.is_host
    }

    /// Returns whether to look at `now`, in nanoseconds of the ledger's clock.
    pub(super) fn is_due<'w>(
        &mut self,
        waiters: impl Iterator<Item = &'w LastingWaiter>,
        now: u64,
    ) -> bool {
        if !self.is_host {
            return false;
        }
        self.is_due |= !self.patience.due(waiters, now).is_empty();
        let due = self.is_due && now >= self.next;
        if due {
            (self.is_due, self.next) = (false, now + SECOND);
        }
        due
    }
}
