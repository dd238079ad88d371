//! Classes of tasks, as files describe them: a program whose threads have different parts.
//!
//! # Role
//! A job of a class is: taking tokens, computing with its acquisitions, giving tokens, meeting others
//! at barriers, time away. So consumers never do more than producers offer, nor the other way round.

use serde::{Deserialize, Serialize};

/// Tokens that tasks give and take.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkTokens {
    /// The name that classes give it.
    pub name: String,
    /// The number that is there at the beginning.
    #[serde(default)]
    pub start: u32,
    /// Whether it is a barrier instead, at which all tasks of the classes that name it meet.
    #[serde(default)]
    pub barrier: bool,
}

/// The number of tokens of a kind that a job takes or gives.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkStep {
    /// The name of the tokens.
    pub of: String,
    /// The number of them.
    #[serde(default = "one")]
    pub many: u32,
}

fn one() -> u32 {
    1
}

/// The way in which a job of a class uses one of the workload's locks.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassUse {
    /// The name of the lock.
    pub lock: String,
    /// The number of acquisitions of a job.
    pub burst: f64,
    /// The length of the section, in microseconds; of a reader-writer lock that of readers.
    pub section: f64,
    /// The section of writers of a reader-writer lock, if it is another.
    #[serde(default)]
    pub write_section: Option<f64>,
    /// The share of acquisitions of a reader-writer lock that write.
    #[serde(default)]
    pub writes: f64,
}

/// Tasks that do the same.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkClass {
    /// The name that reports write.
    pub name: String,
    /// The number of such tasks.
    pub tasks: usize,
    /// Whether the workload's jobs are those of this class.
    #[serde(default)]
    pub counts: bool,
    /// The processor time of a job outside of sections, in microseconds.
    pub compute: f64,
    /// The time of a job away from the processor, in microseconds.
    #[serde(default)]
    pub away: f64,
    /// What it takes before it computes.
    #[serde(default)]
    pub takes: Vec<WorkStep>,
    /// What it gives afterwards.
    #[serde(default)]
    pub gives: Vec<WorkStep>,
    /// The barriers at which it waits at the end of a job.
    #[serde(default)]
    pub meets: Vec<String>,
    /// The locks that it uses.
    #[serde(default)]
    pub uses: Vec<ClassUse>,
}
