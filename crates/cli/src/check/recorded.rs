//! A report of `lockstead run --json`, read again.

use crate::recorded;
use lockstead_inspect::check::model::{Details, ThreadIdentity};
use lockstead_inspect::check::order::RecordedOrder;
use lockstead_inspect::report::Finding;
use lockstead_inspect::stack::Stack;
use lockstead_render::failure::Failure;
use serde::Deserialize;
use std::path::Path;

/// What of a report matters here.
#[derive(Debug, Deserialize)]
pub(crate) struct Report {
    /// The processes of the run.
    #[serde(default)]
    pub(crate) processes: Vec<RecordedProcess>,
    /// Whether the run checked anything.
    #[serde(default)]
    pub(crate) checked: bool,
    /// The findings of the run.
    #[serde(default)]
    pub(crate) findings: Vec<RecordedFinding>,
}

/// What matters of a process.
#[derive(Debug, Deserialize)]
pub(crate) struct RecordedProcess {
    /// The number that the kernel had for it.
    pub(crate) pid: u32,
    /// The file it ran.
    pub(crate) exe: Option<String>,
    /// The order of its locks.
    pub(crate) order: Option<RecordedOrder>,
}

impl RecordedProcess {
    /// Names the process, as `bank (pid 12)`.
    pub(crate) fn name(&self) -> String {
        let name = self.exe.as_deref().and_then(|exe| exe.rsplit('/').next());
        format!("{} (pid {})", lockstead_render::words::clean(name.unwrap_or("process")), self.pid)
    }
}

/// What matters of a finding.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct RecordedFinding {
    /// The number of its process.
    pub(crate) pid: u32,
    /// The first line of its text.
    pub(crate) title: String,
    /// The text as it was printed.
    pub(crate) text: String,
    /// The threads of a deadlock; none of another finding.
    #[serde(default)]
    pub(crate) threads: Vec<RecordedMember>,
    /// What a finding of the checks has besides.
    #[serde(flatten)]
    pub(crate) details: Details,
}

/// A thread of a deadlock.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct RecordedMember {
    #[serde(flatten)]
    pub(crate) thread: ThreadIdentity,
    pub(crate) waits: Option<RecordedPart>,
    pub(crate) holds: Option<RecordedPart>,
}

/// What it waits for, or holds.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct RecordedPart {
    /// The wait ends by itself at a deadline.
    #[serde(default)]
    pub(crate) timed: bool,
    pub(crate) stack: Option<Stack>,
}

impl From<&Finding> for RecordedFinding {
    fn from(finding: &Finding) -> RecordedFinding {
        let member = |party: &lockstead_inspect::report::finding::FindingThread| RecordedMember {
            thread: ThreadIdentity { tid: party.tid, name: party.name.clone() },
            waits: party
                .waits
                .as_ref()
                .map(|waits| RecordedPart { timed: waits.timed, stack: waits.stack.clone() }),
            holds: party
                .holds
                .as_ref()
                .map(|holds| RecordedPart { timed: false, stack: holds.stack.clone() }),
        };
        RecordedFinding {
            pid: finding.pid,
            title: finding.title.clone(),
            text: finding.text.clone(),
            threads: finding.threads.iter().map(member).collect(),
            details: finding.details.clone(),
        }
    }
}

/// Reads a report of `lockstead run --check --json FILE`; `-` is standard input.
///
/// # Errors
/// It cannot be read, or is none.
pub(crate) fn read(file: &Path) -> Result<Report, Failure> {
    recorded::read(file, "lockstead run --check")
}
