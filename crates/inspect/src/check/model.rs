//! What was found, with names: what texts, JSON and SARIF are made from, and what
//! is read again from a report that was kept.

use super::level_word;
use crate::stack::Stack;
pub use lockstead_rules::Level;
use serde::{Deserialize, Serialize};

/// A lock by its names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LockIdentity {
    /// The name of the lock.
    pub name: String,
    /// Kind and attributes: `recursive mutex`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// What all locks of its origin are called; of a variable its name.
    pub class: String,
    /// The address at which it lay.
    pub address: u64,
}

impl LockIdentity {
    /// Returns the name; with the type, where the name does not say it.
    #[must_use]
    pub fn text(&self) -> String {
        if self.type_name.is_empty() || self.name.starts_with(&self.type_name) {
            self.name.clone()
        } else {
            format!("{} ({})", self.name, self.type_name)
        }
    }
}

/// A thread, by what the kernel calls it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadIdentity {
    /// The kernel's number; 0 if it is not known.
    pub tid: u32,
    /// Its name, where that is known.
    pub name: Option<String>,
}

/// How a lock is held or asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HoldMode {
    /// The lock is for this thread alone.
    #[default]
    Write,
    /// The lock is shared with other readers; a reader waits behind a waiting writer.
    Read,
    /// The lock is shared with other readers, past waiting writers.
    RecursiveRead,
}

impl From<lockstead_lockdep::Mode> for HoldMode {
    fn from(mode: lockstead_lockdep::Mode) -> HoldMode {
        match mode {
            lockstead_lockdep::Mode::Write => HoldMode::Write,
            lockstead_lockdep::Mode::Read => HoldMode::Read,
            lockstead_lockdep::Mode::ReadRecursive => HoldMode::RecursiveRead,
        }
    }
}

/// What kind of cycle an order finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CycleKind {
    /// The steps go through locks.
    Locks,
    /// The steps go through classes: a step begins with a lock of the same class as the one that
    /// the step before it asks for.
    Classes,
    /// The steps lead from a lock that a signal handler takes to one under which it may run.
    Handler,
}

/// Why a cycle is not called a potential deadlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OrderExcuse {
    /// One thread took all steps, or there were fewer threads than steps.
    OneThread,
    /// The threads of all steps hold a further lock.
    Gate,
    /// The process had one thread.
    Alone,
    /// The locks are not the same, but of the same classes.
    OtherInstances,
}

/// One step of an order: a thread held one lock and asked for another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OrderStep {
    /// The thread that took this step.
    pub thread: ThreadIdentity,
    /// The lock that it held.
    pub holds: LockIdentity,
    /// How it held that lock.
    pub holds_how: HoldMode,
    /// It had taken that one by trylock.
    pub tried: bool,
    /// The stack at which it had acquired it.
    pub acquired: Option<Stack>,
    /// The lock that it asked for.
    pub asks: LockIdentity,
    /// How it asked for that lock.
    pub asks_how: HoldMode,
    /// It would have given up at a deadline.
    #[serde(default)]
    pub timed: bool,
    /// The stack at which it asked for that lock.
    pub asked: Option<Stack>,
    /// All other locks that it held.
    pub gates: Vec<LockIdentity>,
    /// The process had one thread.
    pub alone: bool,
}

/// Locks that are taken in no one order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LockOrder {
    /// What the steps go through; reports of version 1 call it `ring`.
    #[serde(alias = "ring")]
    pub cycle: CycleKind,
    /// The signal whose handler closes the cycle.
    pub signal: Option<u8>,
    /// The thread that was seen to run the handler that closes the cycle.
    #[serde(default)]
    pub handler: Option<ThreadIdentity>,
    /// Why it is not called a potential deadlock.
    pub excuse: Option<OrderExcuse>,
    /// The further lock that all hold, if that is why.
    pub gate: Option<LockIdentity>,
    /// Each begins with the lock that the one before it asks for.
    pub steps: Vec<OrderStep>,
}

/// A rule that was broken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RuleViolation {
    /// The thread that broke the rule.
    pub thread: ThreadIdentity,
    /// The lock that the rule is about.
    pub lock: LockIdentity,
    /// The stack at which the rule was broken.
    pub stack: Option<Stack>,
    /// The stack at which the thread had acquired the lock, of a rule about waiting with it.
    pub acquired: Option<Stack>,
    /// The other thread that has a part in it, the owner, say.
    pub other: Option<ThreadIdentity>,
    /// The stack at which that one, or the same one, did its part earlier: the acquisition,
    /// say.
    pub earlier: Option<Stack>,
    /// The other lock that has a part in it.
    pub other_lock: Option<LockIdentity>,
    /// The number of a signal, an address, an error: as the rule has it.
    pub number: u64,
}

/// What a finding of the checks has besides what every finding has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Details {
    /// `DEADLOCK`, `RULE`, `POTENTIAL` or `ORDER`; null of what is no finding of the checks.
    #[serde(with = "level_word", default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub level: Option<Level>,
    /// `deadlock`, `lock-order-inversion` or the id of another rule ([the
    /// rules](validator.md#the-rules)).
    pub rule: Option<String>,
    /// The same for all findings of one cause, in all runs of a build of the program.
    pub cause: Option<String>,
    /// `FILE:LINE` of the suppression that kept it from being printed; `the shipped list:LINE` of
    /// one that comes with lockstead.
    pub suppressed: Option<String>,
    /// What an inversion is made of; null of other findings.
    pub order: Option<LockOrder>,
    /// The rule that was broken; reports of version 1 call it `breach`.
    #[serde(alias = "breach")]
    pub violation: Option<RuleViolation>,
}

impl Details {
    /// Returns the locks that have a part in it, each once.
    #[must_use]
    pub fn locks(&self) -> Vec<&LockIdentity> {
        let mut locks: Vec<&LockIdentity> = Vec::new();
        let steps = self.order.iter().flat_map(|order| &order.steps);
        let violation = self
            .violation
            .iter()
            .flat_map(|violation| std::iter::once(&violation.lock).chain(&violation.other_lock));
        for lock in steps.flat_map(|step| [&step.holds, &step.asks]).chain(violation) {
            if !locks.iter().any(|known| known.address == lock.address && known.name == lock.name) {
                locks.push(lock);
            }
        }
        locks
    }

    /// Returns its stacks, those first where it became one.
    #[must_use]
    pub fn stacks(&self) -> Vec<&Stack> {
        let steps = self.order.iter().flat_map(|order| &order.steps);
        let violation = self
            .violation
            .iter()
            .flat_map(|violation| [&violation.stack, &violation.acquired, &violation.earlier]);
        steps.flat_map(|step| [&step.asked, &step.acquired]).chain(violation).flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_spelt_as_printed_and_read_again() {
        for level in Level::ALL.map(Some).into_iter().chain([None]) {
            let json = serde_json::to_value(Details { level, ..Details::default() }).expect("data");
            assert_eq!(json["level"].as_str(), level.map(Level::word));
            assert_eq!(serde_json::from_value::<Details>(json).expect("a finding").level, level);
        }
        assert!(serde_json::from_str::<Details>(r#"{"level": "BAD"}"#).is_err());
    }
}
