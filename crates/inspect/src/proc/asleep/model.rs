//! What is known of a wait in the kernel.

use serde::Serialize;
use std::collections::BTreeSet;

/// A wait in the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Asleep {
    /// What for, where the call does not say it all: `the lock of /run/app.lock (flock)`.
    pub what: Option<String>,
    /// What can end it.
    #[serde(flatten)]
    pub ends: Ends,
    /// It ends by itself at some time.
    pub timed: bool,
}

/// What can end a wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "ends_by", rename_all = "snake_case")]
pub enum Ends {
    /// It is a lock, or used like one: these processes hold it.
    Holders {
        /// Who, as far as that is known.
        processes: Vec<Other>,
    },
    /// Somebody at the other end, or who may change it: these, and others that are not known.
    Processes {
        /// Who, as far as that is known.
        processes: Vec<Other>,
    },
    /// The threads of the process alone.
    Inside,
    /// The end of a child.
    Child,
    /// A signal.
    Signal,
    /// Time alone.
    Time,
    /// Somebody or something that is not looked for: a peer, a device, a person.
    Outside,
}

/// A process that can end a wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Other {
    /// Its number here.
    pub pid: u32,
    /// Its name, if it lives.
    pub name: Option<String>,
    /// On what evidence it is named, where that is not the kernel's word for a holder.
    pub why: Option<String>,
}

impl Other {
    /// A process by its number.
    pub(super) fn new(pid: u32) -> Other {
        let name = std::fs::read(format!("/proc/{pid}/comm")).ok();
        let name = name.map(|name| String::from_utf8_lossy(name.trim_ascii_end()).into_owned());
        Other { pid, name, why: None }
    }
}

impl Asleep {
    pub(super) fn plain(ends: Ends) -> Asleep {
        let timed = ends == Ends::Time;
        Asleep { what: None, ends, timed }
    }

    pub(super) fn on(what: String, ends: Ends) -> Asleep {
        Asleep { what: Some(what), ..Asleep::plain(ends) }
    }

    /// The same; `limited`: it ends by itself at some time.
    pub(super) fn limited(self, limited: bool) -> Asleep {
        Asleep { timed: self.timed || limited, ..self }
    }

    /// What is waited for has a holder, who should release it.
    #[must_use]
    pub fn is_lock(&self) -> bool {
        matches!(self.ends, Ends::Holders { .. })
    }
}

/// Those of the numbers, each once, as processes.
pub(super) fn others(pids: impl IntoIterator<Item = u32>) -> Vec<Other> {
    let pids: BTreeSet<u32> = pids.into_iter().collect();
    pids.into_iter().map(Other::new).collect()
}
