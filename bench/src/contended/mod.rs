//! Many threads, one lock: threads × section × think time.
use crate::machine::Machine;
use crate::{Error, LockName, Session};
use serde::Serialize;
use std::time::Duration;

/// What to measure: every combination of threads, section and think ratio.
#[derive(Clone, Debug)]
pub struct Options {
    /// The locks, in the order of the report.
    pub locks: Vec<LockName>,
    /// Numbers of threads, each 1 to [`MAX_THREADS`].
    pub threads: Vec<usize>,
    /// Lengths of the critical section. Zero: one load and one store.
    pub sections: Vec<Duration>,
    /// Time between release and next acquisition, as a multiple of the section.
    pub thinks: Vec<f64>,
    /// Rounds; each measures all locks of a cell once, in shuffled order.
    pub rounds: usize,
    /// Time for one lock in one round; half as much again for its waits.
    pub slice: Duration,
}

/// The largest number of threads.
pub const MAX_THREADS: usize = 1024;
/// The longest section.
pub const MAX_SECTION: Duration = Duration::from_millis(100);
/// The largest think ratio.
pub const MAX_THINK: f64 = 1000.0;

impl Default for Options {
    /// The grid of `lockstead bench contended`, 5 rounds of 200 ms.
    fn default() -> Self {
        Self {
            locks: crate::locks::available(),
            threads: vec![2, 4, 16, 64],
            sections: [0, 50, 1_000, 20_000].map(Duration::from_nanos).to_vec(),
            thinks: vec![0.0, 1.0, 10.0],
            rounds: 5,
            slice: Duration::from_millis(200),
        }
    }
}

impl Options {
    /// The same cells, each in 3 rounds of 20 ms.
    #[must_use]
    pub fn quick(self) -> Self {
        Self {
            rounds: 3,
            slice: Duration::from_millis(20),
            ..self
        }
    }
}

/// A section as users write it: `0`, `50ns`, `1us`, `20us`.
///
/// # Errors
/// [`Error::Option`] naming `--section`.
pub fn parse_section(text: &str) -> Result<Duration, Error> {
    let _ = text;
    Err(Error::Interrupted)
}

/// A think ratio as users write it: `0`, `1x`, `10x`, `0.5x`.
///
/// # Errors
/// [`Error::Option`] naming `--think`.
pub fn parse_think(text: &str) -> Result<f64, Error> {
    let _ = text;
    Err(Error::Interrupted)
}

/// The result.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Where.
    pub machine: Machine,
    /// Rounds of each cell.
    pub rounds: usize,
    /// Length of one slice for throughput. A wait cannot be seen to be longer.
    pub slice_ms: f64,
    /// One entry for each combination.
    pub cells: Vec<Cell>,
}

/// One combination of threads, section and think time.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// Threads.
    pub threads: usize,
    /// Length of the section in nanoseconds.
    pub section_ns: u64,
    /// Think time as a multiple of the section.
    pub think_ratio: f64,
    /// Processor time that other processes used in the rounds that count, in
    /// per cent of all processors: the median of the rounds.
    pub foreign_cpu_percent: f64,
    /// Rounds that were thrown away because others used too much.
    pub rounds_discarded: usize,
    /// One row for each lock.
    pub results: Vec<Row>,
}

/// One lock in one cell.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The lock.
    pub lock: LockName,
    /// Sections per second, all threads together: the median of the rounds.
    pub ops_per_s: f64,
    /// Sections per second of processor time.
    pub ops_per_cpu_s: f64,
    /// Half of the acquisitions waited at most this long.
    pub wait_p50_ns: u64,
    /// 99 % waited at most this long.
    pub wait_p99_ns: u64,
    /// 99.9 % waited at most this long.
    pub wait_p999_ns: u64,
    /// The longest wait of all: no sampling, no rounding.
    pub wait_max_ns: u64,
    /// Jain's index over the threads' sections: the median of the rounds.
    pub jain: f64,
    /// Smallest `ops_per_s` of the rounds.
    pub ops_per_s_min: f64,
    /// Largest `ops_per_s` of the rounds.
    pub ops_per_s_max: f64,
    /// Throughput with every wait timed over throughput without: how much the
    /// timing of waits disturbs.
    pub timed_ratio: f64,
}

impl Cell {
    /// The row of `lock`.
    #[must_use]
    pub fn row(&self, lock: LockName) -> Option<&Row> {
        self.results.iter().find(|row| row.lock == lock)
    }

    /// The peer with the highest throughput: what the ratios are to.
    #[must_use]
    pub fn best_peer(&self) -> Option<&Row> {
        self.results
            .iter()
            .filter(|row| row.lock.is_peer())
            .max_by(|a, b| a.ops_per_s.total_cmp(&b.ops_per_s))
    }
}

/// Measures.
///
/// # Errors
/// [`Error::Option`] for options out of range, [`Error::Unavailable`] for a
/// lock that is not built in, [`Error::Broken`] and [`Error::Stuck`] for locks
/// that do not work, [`Error::Interrupted`].
pub fn measure(options: &Options, session: &mut Session<'_>) -> Result<Report, Error> {
    let _ = (options, session);
    Err(Error::Interrupted)
}
