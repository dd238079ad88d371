//! What was found, as numbers: of locks, threads and stacks of one ledger.

use super::lives::LockLife;
use lockstead_ledger::violation::SeenViolation;
use lockstead_lockdep::{InversionKind, Level, Mode};
use lockstead_rules::Rule;

/// News of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckFacts {
    /// An order of locks that goes round.
    Order(OrderFacts),
    /// A rule was broken.
    Violation(ViolationFacts),
}

impl CheckFacts {
    /// Returns how bad it is.
    #[must_use]
    pub fn level(&self) -> Level {
        match self {
            CheckFacts::Order(order) => order.level(),
            CheckFacts::Violation(facts) => facts.level(),
        }
    }
}

/// A thread as a record names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ThreadFacts {
    /// Unique in the process; 0 if it is not known.
    pub serial: u32,
    /// The number that the kernel has for it.
    pub tid: u32,
}

/// A cycle of steps; see [`lockstead_lockdep::Inversion`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderFacts {
    /// [`Level::Potential`] if it was shown that it can hurt, else [`Level::Order`].
    pub level: Level,
    /// The kind of the steps: locks, classes, or a handler.
    pub kind: InversionKind,
    /// Each begins with the lock that the one before it asks for.
    pub steps: Vec<StepFacts>,
    /// The thread that was seen to run the signal handler, of a way that a handler closes.
    pub handler: Option<ThreadFacts>,
    /// What speaks against a deadlock.
    pub excuse: Option<ExcuseFacts>,
}

impl OrderFacts {
    /// Returns the rule that the order breaks.
    #[must_use]
    pub fn rule(&self) -> Rule {
        match self.kind {
            InversionKind::Handler { .. } => Rule::InHandler,
            InversionKind::Cycle | InversionKind::Classes => Rule::LockOrderInversion,
        }
    }

    /// Returns how bad it is: as its rule, unless nothing shows that it can hurt.
    #[must_use]
    pub fn level(&self) -> Level {
        if self.level > Level::Order { self.rule().level() } else { Level::Order }
    }
}

/// Why a cycle is not called a potential deadlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExcuseFacts {
    /// There are not as many threads as steps.
    OneThread,
    /// The threads hold this lock all the time.
    Gate(LockLife),
    /// The process had one thread.
    Alone,
    /// The locks are not the same, but of the same classes.
    OtherInstances,
}

/// One step, and who was seen to take it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepFacts {
    /// The lock that is held.
    pub from: LockLife,
    /// The lock that is asked for.
    pub to: LockLife,
    /// The thread that took the step.
    pub thread: ThreadFacts,
    /// The stack of the acquisition of `from`.
    pub from_stack: u32,
    /// The stack of the call.
    pub to_stack: u32,
    /// How `from` is held.
    pub from_mode: Mode,
    /// How `to` is asked for.
    pub to_mode: Mode,
    /// The other locks that were held.
    pub gates: Vec<LockLife>,
    /// The process had one thread.
    pub alone: bool,
    /// `from` was taken by trylock.
    pub tried: bool,
    /// It would have given `to` up at a deadline.
    pub timed: bool,
}

/// A violation, with the locks that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViolationFacts {
    /// The violation as the process wrote it.
    pub violation: SeenViolation,
    /// The lock, if it has a record.
    pub lock: Option<LockLife>,
    /// The other lock, if there is one.
    pub other: Option<LockLife>,
}

impl ViolationFacts {
    /// Returns how bad it is: as its rule, unless nothing tells it from what is right.
    #[must_use]
    pub fn level(&self) -> Level {
        if self.violation.weak { Level::Order } else { self.violation.rule.level() }
    }
}
