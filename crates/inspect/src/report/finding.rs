//! What was found while a program ran: for people as text, for machines as the
//! threads that have a part in it.

use crate::check::model::Details;
use crate::python::PythonStack;
use crate::snapshot::model::HolderEvidence;
use crate::stack::Stack;
use serde::Serialize;

/// Something that was reported while the program ran.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// `deadlock`; `probable_deadlock`, one link of which rests on weaker evidence; `timed_cycle`, which a time-out will open; `blocked`, a wait above the limit;
    /// `stuck`, a process in which all threads wait; `hang`, a run in which nothing moves, with all
    /// threads of all its processes; with `--check` also `order`, locks taken in no
    /// one order, and `violation`, of a rule.
    pub kind: String,
    /// The process that it is about.
    pub pid: u32,
    /// The time of the finding, since the start.
    pub at_ns: u64,
    /// The first line of the text.
    pub title: String,
    /// The report as it was printed.
    pub text: String,
    /// The threads that have a part in it: the members of a cycle, each waiting for what the next
    /// one holds, the last for what the first one does; a blocked thread, those that hold the lock
    /// (three at most), and whom these wait for; empty of an `order` and a `violation`.
    pub threads: Vec<FindingThread>,
    /// What there is to say of a finding of `--check`.
    #[serde(flatten)]
    pub details: Details,
}

/// A thread's part in a finding.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FindingThread {
    /// The kernel's id of the thread.
    pub tid: u32,
    /// Its name, where that is known.
    pub name: Option<String>,
    /// Its process, `prog (pid 12)`, where that is not, or not only, the finding's.
    pub process: Option<String>,
    /// Whether it has ended and left the lock held.
    pub ended: bool,
    /// The object that it waits for.
    pub waits: Option<FindingWait>,
    /// What it holds of that which matters here.
    pub holds: Option<FindingHold>,
    /// What a thread does that holds and does not wait.
    pub doing: Option<HolderActivity>,
}

/// A lock by its names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamedLock {
    /// The name of the lock.
    pub name: String,
    /// Kind and attributes: `recursive mutex`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The address of the lock.
    pub address: u64,
}

impl NamedLock {
    /// Returns the name; with the type, where the name does not say it.
    #[must_use]
    pub fn text(&self) -> String {
        let name = self.name.strip_prefix("the ").unwrap_or(&self.name);
        if self.type_name.is_empty() || name.starts_with(&self.type_name) {
            self.name.clone()
        } else {
            format!("{} ({})", self.name, self.type_name)
        }
    }
}

/// A wait that is part of a finding.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FindingWait {
    /// `mutex`, `read`, `write`, `spin`, `join`, `condition` (with a lock: to have that mutex
    /// back), `semaphore`, `barrier`, or `futex` for a lock of another kind that is had alone.
    pub how: &'static str,
    /// The lock; null for a join.
    pub lock: Option<NamedLock>,
    /// The id of the joined thread.
    pub thread: Option<u32>,
    /// Whether it wants to read and a waiting writer stops it.
    pub behind_writer: bool,
    /// Whether it ends by itself at a deadline.
    pub timed: bool,
    /// How long it has lasted; null where only the memory of the process tells of it.
    pub waited_ns: Option<u64>,
    /// The stack at which it waits; null if that is not known.
    pub stack: Option<Stack>,
    /// The frames of Python there; null where there are none, or they were not looked for.
    pub python: Option<PythonStack>,
}

/// A lock that is held.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FindingHold {
    /// The lock that is meant.
    pub lock: NamedLock,
    /// Whether it is held with others, for reading.
    pub shared: bool,
    /// Whether the lock's own word names the thread: where it was acquired was not recorded.
    pub by_word: bool,
    /// What shows that the thread holds it.
    pub evidence: HolderEvidence,
    /// The ground for that, a sentence; null where the lock or the ledger names the thread.
    pub rests_on: Option<String>,
    /// How long, where that is known.
    pub held_ns: Option<u64>,
    /// The stack at which it was acquired; null if that was not recorded.
    pub stack: Option<Stack>,
}

/// What a thread does.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HolderActivity {
    /// What it does, in words: `is now in the system call read`.
    pub what: String,
    /// Its stack, where it can be seen.
    pub stack: Option<Stack>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_said_once() {
        let text = |name: &str, type_name: &str| {
            NamedLock { name: name.into(), type_name: type_name.into(), address: 0 }.text()
        };
        assert_eq!(text("journal", "mutex"), "journal (mutex)");
        assert_eq!(text("mutex from f() at f.c:1, #2", "mutex"), "mutex from f() at f.c:1, #2");
        let recursive = "mutex from f() at f.c:1, #2 (recursive mutex)";
        assert_eq!(text("mutex from f() at f.c:1, #2", "recursive mutex"), recursive);
        assert_eq!(text("lock at 0x12", ""), "lock at 0x12");
    }
}
