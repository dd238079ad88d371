//! What is known of a wait in the kernel.

use serde::Serialize;
use std::collections::BTreeSet;

/// A wait in the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Asleep {
    /// What it waits for, where the call does not say it all: `the lock of /run/app.lock (flock)`.
    pub what: Option<String>,
    /// What can end the wait.
    #[serde(flatten)]
    pub ends: WaitEnds,
    /// Whether it ends by itself at some time.
    pub timed: bool,
}

/// What can end a wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "ends_by", rename_all = "snake_case")]
pub enum WaitEnds {
    /// It waits for a lock, or for something used like one, which these processes hold.
    Holders {
        /// The processes that are known.
        processes: Vec<OtherProcess>,
    },
    /// The processes that have the other end, or may change it, of whom not all are known.
    Processes {
        /// The processes that are known.
        processes: Vec<OtherProcess>,
    },
    /// Threads of the process alone.
    Inside,
    /// The end of a child.
    Child,
    /// A signal ends it.
    Signal,
    /// Time alone ends it.
    Time,
    /// Somebody or something that is not looked for: a peer, a device, a person.
    Outside,
}

/// A process that can end a wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherProcess {
    /// Its id where the command runs.
    pub pid: u32,
    /// Its name; null: it has ended.
    pub name: Option<String>,
    /// The evidence on which it is named, where that is not the kernel's word for a holder.
    pub why: Option<String>,
}

impl OtherProcess {
    /// Returns a process by its number.
    pub(super) fn new(pid: u32) -> OtherProcess {
        let name = std::fs::read(format!("/proc/{pid}/comm")).ok();
        let name = name.map(|name| String::from_utf8_lossy(name.trim_ascii_end()).into_owned());
        OtherProcess { pid, name, why: None }
    }
}

impl Asleep {
    pub(super) fn plain(ends: WaitEnds) -> Asleep {
        let timed = ends == WaitEnds::Time;
        Asleep { what: None, ends, timed }
    }

    pub(super) fn on(what: String, ends: WaitEnds) -> Asleep {
        Asleep { what: Some(what), ..Asleep::plain(ends) }
    }

    /// Returns the same wait; with `limited` it ends by itself at some time.
    pub(super) fn limited(self, limited: bool) -> Asleep {
        Asleep { timed: self.timed || limited, ..self }
    }

    /// Returns whether what is waited for has a holder, who should release it.
    #[must_use]
    pub fn is_lock(&self) -> bool {
        matches!(self.ends, WaitEnds::Holders { .. })
    }
}

/// Returns those of the numbers, each once, as processes.
pub(super) fn others(pids: impl IntoIterator<Item = u32>) -> Vec<OtherProcess> {
    let pids: BTreeSet<u32> = pids.into_iter().collect();
    pids.into_iter().map(OtherProcess::new).collect()
}
