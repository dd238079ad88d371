//! Workloads: what the tasks of a simulation do, and what comes out of it.
//!
//! A *job* is some computing, some time away from the processor, and a number of rounds
//! with acquisitions. The tasks do one job after the other, for ever: a closed system.

mod file;
mod run;

pub use file::BUNDLED;
pub use run::{RunFigures, run, run_traced};

use serde::Deserialize;

/// A workload, as its file describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The name that files give it.
    pub name: String,
    /// A sentence that says what it is.
    pub about: String,
    /// The number of tasks, unless the caller says otherwise.
    pub tasks: usize,
    /// Whether lock and section belong to the kernel, where nobody is preempted.
    #[serde(default)]
    pub kernel: bool,
    /// The processor time of a job outside of sections, in microseconds.
    pub compute: f64,
    /// The time of a job away from the processor, in microseconds.
    #[serde(default)]
    pub away: f64,
    /// The number of rounds into which a job is divided.
    #[serde(default = "one_round")]
    pub rounds: u32,
    /// The share by which computing times vary.
    #[serde(default)]
    pub variation: f64,
    /// The simulated milliseconds before counting begins.
    pub warm_up: f64,
    /// The simulated milliseconds that are counted.
    pub length: f64,
    /// The locks that tasks use.
    #[serde(default)]
    pub locks: Vec<WorkUse>,
}

fn one_round() -> u32 {
    1
}

/// The way in which a round uses one lock, or one of several of a kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkUse {
    /// The name that reports write.
    pub name: String,
    /// The kind of the lock.
    #[serde(default)]
    pub kind: UseKind,
    /// The number of such locks, of which each burst takes one at random.
    #[serde(default = "one_lock")]
    pub many: usize,
    /// The number of acquisitions in a row.
    pub burst: f64,
    /// The length of the section, in microseconds.
    pub section: f64,
    /// The section of writers of a reader-writer lock, if it is another.
    #[serde(default)]
    pub write_section: Option<f64>,
    /// The time between two acquisitions of a burst, in microseconds.
    #[serde(default)]
    pub gap: f64,
    /// The number of cache lines that the section changes.
    #[serde(default)]
    pub lines: usize,
    /// The share of acquisitions of a reader-writer lock that write.
    #[serde(default)]
    pub writes: f64,
}

fn one_lock() -> usize {
    1
}

/// The kinds of locks in a workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UseKind {
    /// The lock that is simulated.
    #[default]
    Mutex,
    /// The kernel's reader-writer spin lock.
    ReadWrite,
}
