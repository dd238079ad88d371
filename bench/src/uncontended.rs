//! A lock + unlock pair that nobody disputes.

use crate::machine::Machine;
use crate::{Error, LockName, Session};
use serde::Serialize;
use std::time::Duration;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// The locks, in the order of the report.
    pub locks: Vec<LockName>,
    /// Rounds; each measures all locks and the limit once, in shuffled order.
    pub rounds: usize,
    /// Time for one lock in one round.
    pub slice: Duration,
}

impl Default for Options {
    /// All available locks, 31 rounds of 5 ms.
    fn default() -> Self {
        Self {
            locks: crate::locks::available(),
            rounds: 31,
            slice: Duration::from_millis(5),
        }
    }
}

/// The result.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Where.
    pub machine: Machine,
    /// Nanoseconds of the bare `lock cmpxchg` + `xchg` pair in this run.
    pub limit_ns: f64,
    /// Smallest and largest of the limit's rounds.
    pub limit_ns_min: f64,
    /// See `limit_ns_min`.
    pub limit_ns_max: f64,
    /// Instructions of the bare pair.
    pub limit_instructions: Option<f64>,
    /// One row for each lock.
    pub results: Vec<Row>,
}

/// One lock.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The lock.
    pub lock: LockName,
    /// Nanoseconds per pair, the median of the rounds.
    pub ns: f64,
    /// `ns` over `limit_ns`.
    pub ratio_to_limit: f64,
    /// Instructions per pair; `None` when they cannot be counted here.
    pub instructions: Option<f64>,
    /// Why `instructions` is `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions_absent: Option<String>,
    /// Size of the lock.
    pub bytes: usize,
    /// Smallest of the rounds.
    pub ns_min: f64,
    /// Largest of the rounds.
    pub ns_max: f64,
}

/// Measures.
///
/// # Errors
/// [`Error::Option`] for options out of range, [`Error::Unavailable`] for a
/// lock that is not built in, [`Error::Interrupted`].
pub fn measure(options: &Options, session: &mut Session<'_>) -> Result<Report, Error> {
    let _ = (options, session);
    Err(Error::Interrupted)
}
