//! What of a report of `lockstead run --json` is compared.

use serde::Deserialize;

/// What is compared of one run.
#[derive(Debug, Deserialize)]
pub(super) struct RecordedRun {
    pub(super) wall_ns: u64,
    /// The processor time; 0 if unknown.
    pub(super) cpu_ns: u64,
    pub(super) processors: u64,
    pub(super) machine: RecordedMachine,
    pub(super) processes: Vec<RecordedProcess>,
}

/// The machine of a run.
#[derive(Debug, Deserialize)]
pub(super) struct RecordedMachine {
    pub(super) cpu: Option<String>,
}

/// One process of a run.
#[derive(Debug, Deserialize)]
pub(super) struct RecordedProcess {
    pub(super) exe: Option<String>,
    pub(super) waiting: RecordedWaiting,
    pub(super) locks: Vec<RecordedLock>,
    /// The locks that are one row; none in reports of before there were any.
    #[serde(default)]
    pub(super) groups: Vec<RecordedLock>,
    pub(super) more: RecordedMore,
}

/// Which part of a process's time was spent waiting.
#[derive(Debug, Deserialize)]
pub(super) struct RecordedWaiting {
    pub(super) thread_ns: u64,
    pub(super) waited_ns: u64,
}

/// The locks of a process that are not listed.
#[derive(Debug, Deserialize)]
pub(super) struct RecordedMore {
    pub(super) waited_ns: u64,
    pub(super) acquisitions: u64,
}

/// One lock, or several of one origin.
#[derive(Debug, Deserialize)]
pub(super) struct RecordedLock {
    pub(super) name: String,
    /// Which of the groups it is part of.
    pub(super) group: Option<u64>,
    pub(super) acquisitions: u64,
    pub(super) wait: RecordedDurations,
    pub(super) waited_at: Vec<RecordedSite>,
}

/// The waits for a lock.
#[derive(Debug, Deserialize)]
pub(super) struct RecordedDurations {
    pub(super) total_ns: u64,
}

/// A place where threads waited for a lock.
#[derive(Debug, Deserialize)]
pub(super) struct RecordedSite {
    pub(super) site: String,
    pub(super) function: Option<String>,
    pub(super) total_ns: u64,
}
