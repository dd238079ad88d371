//! `lockstead attach` where it does not exist: borrowing a thread is written for the registers and the
//! instructions of x86-64.
//!
//! What the rest of the command uses is here under the same names, so that it says why instead.

use lockstead_inspect::proc::process::LiveProcess;
use lockstead_ledger::hello::Hello;
use std::convert::Infallible;
use std::fs::File;
use std::time::Duration;

/// Why a process is not attached to, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AttachRefusal {
    /// The reason why it is not attached to, as a sentence's end.
    pub(crate) why: String,
    /// What to do instead.
    pub(crate) instead: String,
}

impl AttachRefusal {
    fn of_processor() -> Self {
        AttachRefusal {
            why: format!(
                "on {} no library can be put into a process that runs already: that is written for the \
                 registers of x86-64",
                std::env::consts::ARCH
            ),
            instead: "`lockstead dump PID` shows who waits for whom from outside; `lockstead run` watches \
                      a program from its start"
                .into(),
        }
    }
}

/// A process that the library has come into: there is none.
#[derive(Debug)]
pub(crate) struct Attached {
    never: Infallible,
    /// The longest that all threads stood still at once.
    pub(crate) stood: Duration,
    /// How long the borrowed thread was away from its work.
    pub(crate) borrowed: Duration,
}

/// What is left in a process that could not be left altogether.
#[derive(Debug)]
pub(crate) struct Remains {
    /// The reason why it could not be left altogether, in words.
    pub(crate) why: String,
}

/// Attaches to no process.
///
/// # Errors
/// Always.
pub(crate) fn attach(
    _: &LiveProcess,
    _: &str,
) -> Result<(Attached, File, Box<Hello>), AttachRefusal> {
    Err(AttachRefusal::of_processor())
}

/// Takes nothing out of a process, since nothing can be in it.
///
/// # Errors
/// Always.
pub(crate) fn clean(_: &LiveProcess, _: Duration) -> Result<bool, AttachRefusal> {
    Err(AttachRefusal::of_processor())
}

impl Attached {
    /// Returns how many words lead to the library.
    pub(crate) fn words(&self) -> usize {
        match self.never {}
    }

    /// Looks whether files were loaded.
    pub(crate) fn look(&mut self) {
        match self.never {}
    }

    /// Leaves the process.
    pub(crate) fn detach(self, _: Duration) -> Result<Duration, Remains> {
        match self.never {}
    }
}
