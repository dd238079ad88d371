//! What was found while a program ran: for people as text, for machines as the
//! threads that have a part in it.

use crate::check::model::Details;
use crate::stack::Stack;
use serde::Serialize;

/// Something that was reported while the program ran.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Finding {
    /// `deadlock`, `timed_cycle`, `blocked`, `order` or `violation`.
    pub kind: String,
    /// The process.
    pub pid: u32,
    /// When, since the start of the command.
    pub at_ns: u64,
    /// It in one line.
    pub title: String,
    /// It as it was printed.
    pub text: String,
    /// Who has a part in it. Of a cycle each waits for what the next one holds,
    /// the last for what the first one does. Of a blocked thread: itself, then
    /// those that hold the lock, then whoever the first of these waits for, and
    /// so on. None of an `order` or a `violation`.
    pub threads: Vec<Party>,
    /// What there is to say of a finding of `--check`.
    #[serde(flatten)]
    pub details: Details,
}

/// A thread's part in a finding.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Party {
    /// The kernel's number.
    pub tid: u32,
    /// Its name, where that is known.
    pub name: Option<String>,
    /// Its process, `prog (pid 12)`, where that is another one than the finding's.
    pub process: Option<String>,
    /// It has ended.
    pub ended: bool,
    /// What it waits for.
    pub waits: Option<Waits>,
    /// What it holds of that which matters here.
    pub holds: Option<Holds>,
    /// What it does, of a thread that waits for nothing.
    pub doing: Option<Activity>,
}

/// A lock by its names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LockName {
    /// What it is called.
    pub name: String,
    /// Kind and attributes: `recursive mutex`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Where it lies.
    pub address: u64,
}

impl LockName {
    /// The name; with the type, where the name does not say it.
    #[must_use]
    pub fn text(&self) -> String {
        if self.type_name.is_empty() || self.name.starts_with(&self.type_name) {
            self.name.clone()
        } else {
            format!("{} ({})", self.name, self.type_name)
        }
    }
}

/// A wait.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Waits {
    /// `mutex`, `read`, `write`, `spin`, `join`, `condition`, `semaphore` or
    /// `barrier`. A `condition` with a lock waits to have that mutex back.
    pub how: &'static str,
    /// The lock; of a join there is none.
    pub lock: Option<LockName>,
    /// The thread whose end it waits for.
    pub thread: Option<u32>,
    /// It wants to read, and a writer stands in line before it.
    pub behind_writer: bool,
    /// It ends by itself at a deadline.
    pub timed: bool,
    /// How long it has lasted.
    pub waited_ns: u64,
    /// Where it waits; `None` if that was not recorded.
    pub stack: Option<Stack>,
}

/// A lock that is held.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Holds {
    /// The lock.
    pub lock: LockName,
    /// With others: for reading.
    pub shared: bool,
    /// How long, where that is known.
    pub held_ns: Option<u64>,
    /// Where it was acquired; `None` if that was not recorded.
    pub stack: Option<Stack>,
}

/// What a thread does.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Activity {
    /// In words: `is now in the system call read`.
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
            LockName { name: name.into(), type_name: type_name.into(), address: 0 }.text()
        };
        assert_eq!(text("journal", "mutex"), "journal (mutex)");
        assert_eq!(text("mutex from f() at f.c:1, #2", "mutex"), "mutex from f() at f.c:1, #2");
        let recursive = "mutex from f() at f.c:1, #2 (recursive mutex)";
        assert_eq!(text("mutex from f() at f.c:1, #2", "recursive mutex"), recursive);
        assert_eq!(text("lock at 0x12", ""), "lock at 0x12");
    }
}
