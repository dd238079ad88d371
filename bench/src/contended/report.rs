//! What a contended measurement gives.

use super::grid::{Grid, GridFigures, GridPlace};
use super::summary::GridSummary;
use crate::LockName;
use lockstead_render::machine::MachineFacts;
use serde::Serialize;

/// What was measured, as reports write it.
#[derive(Clone, Debug, Serialize)]
pub struct ContendedReport {
    /// The machine that was measured, and when.
    pub machine: MachineFacts,
    /// Rounds of each cell.
    pub rounds: usize,
    /// Length of a slice that counts sections.
    pub slice_ms: f64,
    /// Length of a slice that times waits. A wait that would have been longer
    /// is cut off about there, for then the others stop.
    pub wait_slice_ms: f64,
    /// Busy processes that ran beside it; what they used is not foreign.
    pub foreign_processes: usize,
    /// The processor quota under which it ran.
    pub quota: Option<QuotaUsed>,
    /// How long holders slept inside of sections, if they did.
    pub sleep_in_section_ns: Option<u64>,
    /// The holder sleeps in one of so many sections.
    pub sleep_every: Option<u64>,
    /// One entry for each combination.
    pub cells: Vec<ContendedCell>,
    /// What they come to; `None` without lockstead's mutex and a peer.
    pub summary: Option<GridSummary>,
}

/// A processor quota, and whether it was felt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct QuotaUsed {
    /// Per cent of one processor.
    pub percent: u32,
    /// The generation of control groups that kept it: `v1` or `v2`.
    pub control_groups: &'static str,
    /// Periods of 100 ms in which it was used up before their end.
    pub throttled_periods: Option<u64>,
}

/// One combination of threads, section and think time.
#[derive(Clone, Debug, Serialize)]
pub struct ContendedCell {
    /// The number of threads.
    pub threads: usize,
    /// Whether each thread was pinned to one processor, in turn.
    pub pinned: bool,
    /// Length of the section in nanoseconds.
    pub section_ns: u64,
    /// Think time as a multiple of the section.
    pub think_ratio: f64,
    /// What others did meanwhile.
    #[serde(flatten)]
    pub disturbance: Disturbance,
    /// One row for each lock.
    pub results: Vec<ContendedRow>,
}

/// What other processes did to the rounds of a cell.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Disturbance {
    /// Processor time that they used in the rounds that count, in per cent of all
    /// processors: the median of the rounds. `None` when the rounds are too short
    /// to tell (below 200 ms), or the system does not.
    pub foreign_cpu_percent: Option<f64>,
    /// Rounds that were thrown away because they used more than 6 %. As many as there are
    /// rounds; then rounds count whatever others do.
    pub rounds_discarded: usize,
    /// Rounds that count although they used more than 6 %: there were too many to
    /// measure them all again.
    pub rounds_disturbed: usize,
}

/// One lock in one cell.
#[derive(Clone, Debug, Serialize)]
pub struct ContendedRow {
    /// The lock that was measured.
    pub lock: LockName,
    /// Sections per second, all threads together: the median of the rounds.
    pub ops_per_s: f64,
    /// Sections per second of processor time.
    pub ops_per_cpu_s: f64,
    /// Half of the acquisitions waited at most this long (to 1 %, as the other
    /// percentiles).
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

impl ContendedReport {
    /// Returns how holders slept inside of sections: nanoseconds, and in every so many.
    #[must_use]
    pub fn sleep(&self) -> Option<(u64, u64)> {
        self.sleep_in_section_ns.zip(self.sleep_every)
    }
}

impl ContendedCell {
    /// Returns the row of `lock`.
    #[must_use]
    pub fn row(&self, lock: LockName) -> Option<&ContendedRow> {
        self.results.iter().find(|row| row.lock == lock)
    }

    /// Returns the peer with the highest throughput: what the ratios are to.
    #[must_use]
    pub fn best_peer(&self) -> Option<&ContendedRow> {
        self.results
            .iter()
            .filter(|row| row.lock.is_peer())
            .max_by(|a, b| a.ops_per_s.total_cmp(&b.ops_per_s))
    }
}

impl From<&ContendedReport> for Grid {
    fn from(report: &ContendedReport) -> Self {
        // A machine is plain fields.
        let machine = serde_json::to_value(&report.machine).unwrap_or_default();
        Self { machine, cells: report.cells.iter().map(GridPlace::from).collect() }
    }
}

impl From<&ContendedCell> for GridPlace {
    fn from(cell: &ContendedCell) -> Self {
        Self {
            threads: cell.threads,
            pinned: cell.pinned,
            section_ns: cell.section_ns,
            think_ratio: cell.think_ratio,
            results: cell.results.iter().map(GridFigures::from).collect(),
        }
    }
}

impl From<&ContendedRow> for GridFigures {
    fn from(row: &ContendedRow) -> Self {
        Self {
            lock: row.lock.name().to_owned(),
            ops_per_s: row.ops_per_s,
            ops_per_cpu_s: row.ops_per_cpu_s,
            wait_p999_ns: Some(row.wait_p999_ns as f64),
            wait_max_ns: Some(row.wait_max_ns as f64),
            jain: Some(row.jain),
        }
    }
}
