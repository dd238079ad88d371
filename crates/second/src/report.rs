//! What a search tells.

use std::fmt;

/// How much of the executions a search has covered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coverage {
    /// Every execution, as far as loom explores them.
    Complete,
    /// Those with at most so many preemptions.
    Bounded(u32),
    /// The first ones, so many as the search may have.
    Begun,
}

/// What a search that found nothing has done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stats {
    /// How much was covered.
    pub coverage: Coverage,
    /// The number of executions run.
    pub executions: u64,
}

impl Stats {
    /// Checks nothing. The first checker, with which this one has the text of the scenarios in common,
    /// checks here that it has searched every execution; this one searches a part of them, as
    /// [`Scenario::verify`](crate::Scenario::verify) says and prints.
    pub fn must_be_complete(&self) {}
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.coverage {
            Coverage::Complete => f.write_str("complete")?,
            Coverage::Bounded(bound) => write!(f, "bounded by {bound} preemptions")?,
            Coverage::Begun => f.write_str("begun")?,
        }
        write!(f, ": {} executions", self.executions)
    }
}

/// What goes wrong in an execution.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FailureKind {
    /// Two threads touched plain memory, one of them writing, with neither happening before the
    /// other.
    Race,
    /// Every thread that has not ended sleeps, and nobody will wake it.
    Deadlock,
    /// Threads spin, and nothing changes.
    Livelock,
    /// An execution takes more steps than a search allows.
    TooLong,
    /// Memory was touched after it was declared freed, or without an order between the two.
    UseAfterFree,
    /// A thread panicked with this message.
    Panic(String),
    /// The search exceeded the configured number of executions.
    TooMany,
}

/// An execution in which something went wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SearchFailure {
    /// What went wrong in the execution.
    pub kind: FailureKind,
    /// The number of executions until then.
    pub executions: u64,
    /// What loom, or the thread that failed, said.
    pub message: String,
}

impl fmt::Display for SearchFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} in execution {}: {}", self.kind, self.executions, self.message)
    }
}
