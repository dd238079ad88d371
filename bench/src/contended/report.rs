//! What a contended measurement gives.

use super::grid::{Grid, GridFigures, GridPlace};
use super::summary::GridSummary;
use crate::LockName;
use lockstead_render::machine::MachineFacts;
use serde::Serialize;

/// What was measured, as reports write it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContendedReport {
    /// The machine that was measured, and when.
    pub machine: MachineFacts,
    /// The number of rounds of each cell; in each, all locks take their turn in shuffled order.
    pub rounds: usize,
    /// How long a turn that counts sections is, in milliseconds.
    pub slice_ms: f64,
    /// How long a turn that times waits is, in milliseconds. A longer wait is cut off about there,
    /// for then the others stop.
    pub wait_slice_ms: f64,
    /// How long a turn is in which the threads' shares are counted (`jain`), in milliseconds.
    pub shares_slice_ms: f64,
    /// The number of busy processes that ran beside it (`--foreign`); what they use is not counted
    /// as foreign.
    pub foreign_processes: usize,
    /// The quota of processor time under which it ran (`--quota`); null without.
    pub quota: Option<QuotaUsed>,
    /// How long the holder slept inside of sections (`--sleep-in-section`); null without.
    pub sleep_in_section_ns: Option<u64>,
    /// The holder slept in one of so many sections; null if it never did.
    pub sleep_every: Option<u64>,
    /// One object for each combination of threads, section and think time.
    pub cells: Vec<ContendedCell>,
    /// What the cells come to; null where nothing could be compared, as without lockstead's mutex
    /// or a peer.
    pub summary: Option<GridSummary>,
}

/// A processor quota, and whether it was felt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuotaUsed {
    /// The quota, in per cent of one processor.
    pub percent: u32,
    /// The generation of control groups that kept it: `v1` or `v2`.
    pub control_groups: &'static str,
    /// The number of periods of 100 ms in which it was used up before their end, if the system
    /// tells.
    pub throttled_periods: Option<u64>,
}

/// One combination of threads, section and think time.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContendedCell {
    /// The number of threads.
    pub threads: usize,
    /// Whether each thread was pinned to one processor, in turn.
    pub pinned: bool,
    /// The length of the critical section.
    pub section_ns: u64,
    /// The time between a thread's release and its next acquisition, as a multiple of the section.
    pub think_ratio: f64,
    /// What others did meanwhile.
    #[serde(flatten)]
    pub disturbance: Disturbance,
    /// One object for each lock.
    pub results: Vec<ContendedRow>,
}

/// What other processes did to the rounds of a cell.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Disturbance {
    /// What other processes used of all processors during the rounds that count: the median, and
    /// where shares have turns of their own the larger one of the two medians; null where turns are too short to tell (below 200 ms), or the system does not.
    pub foreign_cpu_percent: Option<f64>,
    /// The number of rounds that were thrown away, and measured again, because others used more
    /// than 6 %, at most as many as there are rounds; then rounds count whatever others do. Turns of shares
    /// are counted as rounds here and below.
    pub rounds_discarded: usize,
    /// The number of rounds that count although others used more than 6 %: there were too many to
    /// measure them all again.
    pub rounds_disturbed: usize,
}

impl Disturbance {
    /// Returns what was done to these rounds and to the turns of shares of the same cell.
    pub(crate) fn and(self, more: Self) -> Self {
        Disturbance {
            foreign_cpu_percent: [self, more]
                .into_iter()
                .filter_map(|it| it.foreign_cpu_percent)
                .reduce(f64::max),
            rounds_discarded: self.rounds_discarded + more.rounds_discarded,
            rounds_disturbed: self.rounds_disturbed + more.rounds_disturbed,
        }
    }
}

/// One lock in one cell.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContendedRow {
    /// The name of the lock.
    pub lock: LockName,
    /// Critical sections per second, all threads together: the median of the rounds.
    pub ops_per_s: f64,
    /// Critical sections per second of processor time: the median of the rounds.
    pub ops_per_cpu_s: f64,
    /// 50 % of the acquisitions took at most this long (to 1 %, as the other percentiles).
    pub wait_p50_ns: u64,
    /// 99 % of the acquisitions took at most this long.
    pub wait_p99_ns: u64,
    /// 99.9 % of the acquisitions took at most this long.
    pub wait_p999_ns: u64,
    /// The longest of all acquisitions: no sampling, no rounding.
    pub wait_max_ns: u64,
    /// The longest acquisition of each round: the median over the rounds.
    pub wait_max_median_ns: u64,
    /// 99 % of the time that all threads waited was spent in acquisitions that took at most this long.
    pub wait_weighted_p99_ns: u64,
    /// Jain's fairness index of the threads' shares, from 1 / threads (one thread got everything)
    /// to 1 (all got the same): the median of the turns of `shares_slice_ms`.
    pub jain: f64,
    /// `ops_per_s` of the slowest round.
    pub ops_per_s_min: f64,
    /// `ops_per_s` of the fastest round.
    pub ops_per_s_max: f64,
    /// Throughput while every wait is timed over throughput without: how much the timing disturbs.
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
        let cells = report.cells.iter().map(GridPlace::from).collect();
        Self { machine, shares_slice_ms: Some(report.shares_slice_ms), cells }
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
            wait_p99_ns: Some(row.wait_p99_ns as f64),
            wait_p999_ns: Some(row.wait_p999_ns as f64),
            wait_max_median_ns: Some(row.wait_max_median_ns as f64),
            wait_weighted_p99_ns: Some(row.wait_weighted_p99_ns as f64),
            wait_max_ns: Some(row.wait_max_ns as f64),
            jain: Some(row.jain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_did_to_turns_of_shares_counts_as_what_they_did_to_rounds() {
        let of = |foreign_cpu_percent, rounds_discarded, rounds_disturbed| Disturbance {
            foreign_cpu_percent,
            rounds_discarded,
            rounds_disturbed,
        };
        let both = of(Some(2.0), 1, 0).and(of(Some(5.0), 2, 3));
        assert_eq!(both.foreign_cpu_percent, Some(5.0));
        assert_eq!((both.rounds_discarded, both.rounds_disturbed), (3, 3));
        assert_eq!(of(None, 0, 0).and(of(Some(1.0), 0, 0)).foreign_cpu_percent, Some(1.0));
        assert_eq!(of(None, 0, 0).and(of(None, 0, 0)).foreign_cpu_percent, None);
    }
}
