//! The announcement's `test-mutex V`: creat + unlink + close.
use crate::machine::Machine;
use crate::{Error, LockName, Session};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// The locks, in the order of the report.
    pub locks: Vec<LockName>,
    /// Tasks, 1 to [`MAX_TASKS`].
    pub tasks: usize,
    /// Time for each lock, 100 ms to a day; spent in several slices, the
    /// locks taking turns.
    pub time: Duration,
    /// Where the files are made; `None`: no files, only the directory in
    /// memory.
    pub dir: Option<PathBuf>,
}

/// The largest number of tasks.
pub const MAX_TASKS: usize = 1024;

impl Default for Options {
    /// As the announcement: 16 tasks, 10 seconds, the system's temporary
    /// directory.
    fn default() -> Self {
        Self {
            locks: crate::locks::available(),
            tasks: 16,
            time: Duration::from_secs(10),
            dir: Some(std::env::temp_dir()),
        }
    }
}

/// The result.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Where.
    pub machine: Machine,
    /// Tasks.
    pub tasks: usize,
    /// Seconds for each lock.
    pub seconds: f64,
    /// Whether no files were made.
    pub memory: bool,
    /// The directory as given.
    pub dir: Option<PathBuf>,
    /// One row for each lock.
    pub results: Vec<Row>,
}

/// One lock.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The lock.
    pub lock: LockName,
    /// Creat + unlink + close per second, all tasks together: the median of
    /// the slices.
    pub loops_per_s: f64,
    /// Processor time used; 100 is all processors all the time.
    pub cpu_percent: f64,
    /// Loops per second of processor time.
    pub loops_per_cpu_s: f64,
    /// Smallest `loops_per_s` of the slices.
    pub loops_per_s_min: f64,
    /// Largest `loops_per_s` of the slices.
    pub loops_per_s_max: f64,
    /// Jain's index over the tasks' loops: the median of the slices.
    pub jain: f64,
}

impl Report {
    /// The row of `lock`.
    #[must_use]
    pub fn row(&self, lock: LockName) -> Option<&Row> {
        self.results.iter().find(|row| row.lock == lock)
    }
}

/// Measures. Whatever happens, the files are removed.
///
/// # Errors
/// [`Error::Option`] for options out of range, [`Error::Directory`] for a
/// directory that is not there or not writable (before anything is measured),
/// [`Error::System`] when a call fails on the way, [`Error::Unavailable`],
/// [`Error::Broken`], [`Error::Stuck`], [`Error::Interrupted`].
pub fn measure(options: &Options, session: &mut Session<'_>) -> Result<Report, Error> {
    let _ = (options, session);
    Err(Error::Interrupted)
}
