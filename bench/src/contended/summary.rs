//! What a grid comes to: the mutex beside the best of the others, and which of the aims
//! that the project has set itself are met, cell by cell.
//!
//! The others are the mutexes that sleep ([`Grid::rivals`]). A cell that was not
//! measured is not judged: an aim that has none of its cells is neither met nor missed.

use super::grid::{Grid, GridFigures, GridPlace};
use crate::stats::geometric_mean;
use lockstead_core::{Policy, Standard};
use serde::Serialize;
use std::collections::BTreeSet;

/// The lock that is judged.
pub const SUBJECT: &str = "lockstead";

/// How long a thread may wait for each runnable one that is before it on its processor:
/// the kernel's slice of time, in nanoseconds.
const SCHEDULER_SLICE: f64 = 3e6;

/// What a grid comes to for lockstead's mutex.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GridSummary {
    /// The lock that is judged, `lockstead`.
    pub lock: &'static str,
    /// The locks that it is compared with: the mutexes that sleep, which are all peers but
    /// `pthread-pi`, which lends priorities, and `sem_t`.
    pub peers: Vec<String>,
    /// Critical sections per second, over all cells.
    pub throughput: Overall,
    /// Critical sections per second of processor time, over all cells.
    pub work_per_cpu_s: Overall,
    /// The project's aims, and what was reached of each.
    pub targets: Vec<GridAim>,
}

/// One measure over all cells.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Overall {
    /// The peer with the highest geometric mean over all cells; null, as the others below, where
    /// nothing could be compared.
    pub best_single_peer: Option<String>,
    /// The geometric mean over the cells of the ratio to that peer.
    pub mean_to_best_single_peer: Option<f64>,
    /// The geometric mean over the cells of the ratio to the best peer of each cell.
    pub mean_to_best_of_cell: Option<f64>,
    /// The cell with the lowest ratio to its best peer.
    pub worst: Option<CellFigure>,
}

/// A figure of a cell.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellFigure {
    /// The number of threads.
    pub threads: usize,
    /// The length of the critical section.
    pub section_ns: u64,
    /// The think time, as a multiple of the section.
    pub think_ratio: f64,
    /// The peer that is compared with; null if none is.
    pub peer: Option<String>,
    /// The figure, in the unit of the aim; a ratio where there is none.
    pub value: f64,
}

/// What the values of an aim are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// A ratio of one figure to another.
    Ratio,
    /// Jain's index of fairness.
    Index,
    /// A time in nanoseconds.
    Ns,
}

/// The side of its limit on which a value is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LimitSide {
    /// The limit or more.
    AtLeast,
    /// The limit or less.
    AtMost,
}

/// An aim of the project, and how far it is reached.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GridAim {
    /// The name of the aim.
    pub target: &'static str,
    /// What is wanted, in words.
    pub wanted: String,
    /// The side of `limit` on which the value is to be.
    pub side: LimitSide,
    /// The limit that the aim sets.
    pub limit: f64,
    /// The unit of the limit and the value.
    pub unit: Unit,
    /// The worst value of the cells that count; null if none of them was measured.
    pub value: Option<f64>,
    /// Whether the aim is reached; null if there is no value.
    pub reached: Option<bool>,
    /// The cells that miss it, the worst first.
    pub missed: Vec<CellFigure>,
}

/// A figure of a lock where more is better.
type LockFigure = fn(&GridFigures) -> f64;

const THROUGHPUT: LockFigure = |figures| figures.ops_per_s;
const WORK: LockFigure = |figures| figures.ops_per_cpu_s;

impl GridSummary {
    /// Sums up these cells. Returns `None` if none has both [`SUBJECT`] and a peer.
    #[must_use]
    pub fn of(grid: &Grid) -> Option<Self> {
        let grid = &grid.plain();
        let rivals: Vec<String> = grid.rivals().into_iter().map(str::to_owned).collect();
        let compared = grid.cells.iter().any(|cell| to_best(cell, THROUGHPUT).is_some());
        compared.then(|| Self {
            lock: SUBJECT,
            throughput: Overall::of(grid, &rivals, THROUGHPUT),
            work_per_cpu_s: Overall::of(grid, &rivals, WORK),
            targets: targets(grid, &rivals),
            peers: rivals,
        })
    }
}

impl Overall {
    fn of(grid: &Grid, rivals: &[String], figure: LockFigure) -> Self {
        let to_best: Vec<CellFigure> =
            grid.cells.iter().filter_map(|cell| to_best(cell, figure)).collect();
        let single = single(grid, rivals, figure);
        Self {
            mean_to_best_single_peer: single.as_ref().map(|(_, mean)| *mean),
            best_single_peer: single.map(|(peer, _)| peer),
            mean_to_best_of_cell: mean(to_best.iter().map(|spot| spot.value)),
            worst: to_best.into_iter().min_by(|a, b| a.value.total_cmp(&b.value)),
        }
    }
}

/// Returns the peer that is best over all cells that have it, and the geometric mean of the
/// ratios to it.
fn single(grid: &Grid, rivals: &[String], figure: LockFigure) -> Option<(String, f64)> {
    rivals
        .iter()
        .filter_map(|peer| {
            let ratios = grid.cells.iter().filter_map(|cell| to(cell, peer, figure));
            Some((peer.clone(), mean(ratios.map(|spot| spot.value))?))
        })
        .min_by(|a, b| a.1.total_cmp(&b.1))
}

/// Returns the geometric mean of what is positive: where a lock did nothing in the time there was,
/// there is no ratio.
fn mean(ratios: impl Iterator<Item = f64>) -> Option<f64> {
    let ratios: Vec<f64> = ratios.filter(|ratio| ratio.is_finite() && *ratio > 0.0).collect();
    (!ratios.is_empty()).then(|| geometric_mean(&ratios))
}

fn spot(cell: &GridPlace, peer: Option<&str>, value: f64) -> CellFigure {
    CellFigure {
        threads: cell.threads,
        section_ns: cell.section_ns,
        think_ratio: cell.think_ratio,
        peer: peer.map(str::to_owned),
        value,
    }
}

/// Returns the ratio to a peer in a cell.
fn to(cell: &GridPlace, peer: &str, figure: LockFigure) -> Option<CellFigure> {
    let ratio = figure(cell.of(SUBJECT)?) / figure(cell.of(peer)?);
    ratio.is_finite().then(|| spot(cell, Some(peer), ratio))
}

/// Returns the ratio to the best peer of a cell.
fn to_best(cell: &GridPlace, figure: LockFigure) -> Option<CellFigure> {
    let (peer, _) = cell.best(|figures| Some(figure(figures)))?;
    to(cell, peer, figure)
}

fn target(
    target: &'static str,
    wanted: impl Into<String>,
    (side, limit, unit): (LimitSide, f64, Unit),
    spots: impl Iterator<Item = CellFigure>,
) -> GridAim {
    let mut spots: Vec<CellFigure> = spots.collect();
    spots.sort_by(|a, b| a.value.total_cmp(&b.value));
    if side == LimitSide::AtMost {
        spots.reverse();
    }
    let met = |value: f64| match side {
        LimitSide::AtLeast => value >= limit,
        LimitSide::AtMost => value <= limit,
    };
    let value = spots.first().map(|spot| spot.value);
    GridAim {
        target,
        wanted: wanted.into(),
        side,
        limit,
        unit,
        value,
        reached: value.map(met),
        missed: spots.into_iter().filter(|spot| !met(spot.value)).collect(),
    }
}

/// Returns an aim that is about all cells together, and is missed by none of them.
fn over_all(name: &'static str, wanted: &str, limit: f64, value: Option<f64>) -> GridAim {
    let met = value.map(|value| value >= limit);
    let limits = (LimitSide::AtLeast, limit, Unit::Ratio);
    GridAim { value, reached: met, ..target(name, wanted, limits, std::iter::empty()) }
}

fn targets(grid: &Grid, rivals: &[String]) -> Vec<GridAim> {
    let cells = || grid.cells.iter();
    let least = |limit| (LimitSide::AtLeast, limit, Unit::Ratio);
    let is = |threads: usize, section: u64, think: f64| {
        move |cell: &&GridPlace| {
            (cell.threads, cell.section_ns) == (threads, section) && cell.think_ratio == think
        }
    };
    let mixed = || cells().filter(is(16, 1_000, 1.0));
    let of_ours = |cell: &GridPlace, figure: fn(&GridFigures) -> Option<f64>| {
        Some(spot(cell, None, figure(cell.of(SUBJECT)?)?))
    };
    let single = |figure| single(grid, rivals, figure).map(|(_, mean)| mean);
    let processors = grid.machine["processors"].as_f64().unwrap_or(1.0).max(1.0);
    let longest = bound(16) + scheduler(16, processors);
    vec![
        target(
            "throughput-every-cell",
            "throughput: in no cell below 0.95 of its best peer",
            least(0.95),
            cells().filter_map(|cell| to_best(cell, THROUGHPUT)),
        ),
        over_all(
            "throughput-mean",
            "throughput: geometric mean at least 1.25 times the best single peer's",
            1.25,
            single(THROUGHPUT),
        ),
        target(
            "work-every-cell",
            "work per CPU-second: in no cell below 0.9 of pthread's",
            least(0.9),
            cells().filter_map(|cell| to(cell, "pthread", WORK)),
        ),
        over_all(
            "work-mean",
            "work per CPU-second: geometric mean at least the best single peer's",
            1.0,
            single(WORK),
        ),
        target(
            "long-sections",
            "20 µs, think 1x, at 2, 16 and 64 threads: at least 1.6 times std",
            least(1.6),
            [2, 16, 64].into_iter().flat_map(|threads| {
                cells()
                    .filter(is(threads, 20_000, 1.0))
                    .filter_map(|cell| to(cell, "std", THROUGHPUT))
            }),
        ),
        target(
            "many-threads",
            "64 threads: at least 0.85 of the throughput of 2 for sections of 1 µs and more",
            least(0.85),
            cells()
                .filter(|cell| cell.threads == 64 && cell.section_ns >= 1_000)
                .filter_map(|cell| many_to_two(grid, cell)),
        ),
        target(
            "short-sections",
            "50 ns, think 1x, at 4 threads: at least parking_lot",
            least(1.0),
            cells().filter(is(4, 50, 1.0)).filter_map(|cell| to(cell, "parking_lot", THROUGHPUT)),
        ),
        target(
            "mixed-throughput",
            "1 µs, think 1x, 16 threads: throughput at least 0.95 of the best peer",
            least(0.95),
            mixed().filter_map(|cell| to_best(cell, THROUGHPUT)),
        ),
        target(
            "mixed-fairness",
            "there: Jain's index at least 0.95",
            (LimitSide::AtLeast, 0.95, Unit::Index),
            mixed().filter_map(|cell| of_ours(cell, |figures| figures.jain)),
        ),
        target(
            "mixed-longest-wait",
            "there: longest wait at most 5 ms",
            (LimitSide::AtMost, 5e6, Unit::Ns),
            mixed().filter_map(|cell| of_ours(cell, |figures| figures.wait_max_ns)),
        ),
        target(
            "mixed-p999",
            "there: 99.9 % of the waits at most 0.5 ms",
            (LimitSide::AtMost, 5e5, Unit::Ns),
            mixed().filter_map(|cell| of_ours(cell, |figures| figures.wait_p999_ns)),
        ),
        target(
            "mixed-work",
            "there: work per CPU-second at least std's",
            least(1.0),
            mixed().filter_map(|cell| to(cell, "std", WORK)),
        ),
        target(
            "bounded-wait",
            format!(
                "16 threads, no think time: longest wait at most the bound of {:.1} ms and the \
                 scheduler's {:.0} ms",
                bound(16) / 1e6,
                scheduler(16, processors) / 1e6
            ),
            (LimitSide::AtMost, longest, Unit::Ns),
            cells()
                .filter(|cell| cell.threads == 16 && cell.think_ratio == 0.0)
                .filter_map(|cell| of_ours(cell, |figures| figures.wait_max_ns)),
        ),
    ]
}

/// Returns when a waiter asks for the lock that so many threads want, in nanoseconds.
fn bound(threads: u64) -> f64 {
    (Standard::BOUND + (threads - 1) * Standard::SHARE) as f64
}

/// Returns how long a thread may wait for a processor that it shares with its fellows.
fn scheduler(threads: u64, processors: f64) -> f64 {
    (threads as f64 / processors).ceil() * SCHEDULER_SLICE
}

/// Returns the throughput of this cell over that of the same with two threads.
fn many_to_two(grid: &Grid, cell: &GridPlace) -> Option<CellFigure> {
    let two = grid.cells.iter().find(|two| {
        (two.threads, two.section_ns) == (2, cell.section_ns) && two.think_ratio == cell.think_ratio
    })?;
    let ratio = cell.of(SUBJECT)?.ops_per_s / two.of(SUBJECT)?.ops_per_s;
    ratio.is_finite().then(|| spot(cell, None, ratio))
}

impl GridSummary {
    /// Returns the cells that miss an aim, each once.
    #[must_use]
    pub fn cells_missed(&self) -> usize {
        let missed = self.targets.iter().flat_map(|target| &target.missed);
        let cell = |spot: &CellFigure| (spot.threads, spot.section_ns, spot.think_ratio.to_bits());
        missed.map(cell).collect::<BTreeSet<_>>().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(lock: &str, ops_per_s: f64) -> GridFigures {
        GridFigures {
            lock: lock.to_owned(),
            ops_per_s,
            ops_per_cpu_s: ops_per_s / 2.0,
            wait_p99_ns: Some(1e5),
            wait_p999_ns: Some(4e5),
            wait_max_median_ns: Some(1e6),
            wait_weighted_p99_ns: Some(1e6),
            wait_max_ns: Some(6e6),
            jain: Some(0.97),
        }
    }

    fn cell(threads: usize, section_ns: u64, think_ratio: f64, rates: [f64; 4]) -> GridPlace {
        let locks = ["lockstead", "std", "parking_lot", "sem_t"];
        let results = locks.into_iter().zip(rates).map(|(lock, rate)| figures(lock, rate));
        GridPlace { threads, pinned: false, section_ns, think_ratio, results: results.collect() }
    }

    fn grid(cells: Vec<GridPlace>) -> Grid {
        let machine = serde_json::json!({ "processors": 2 });
        Grid { machine, shares_slice_ms: None, cells }
    }

    fn aim<'a>(summary: &'a GridSummary, name: &str) -> &'a GridAim {
        summary.targets.iter().find(|target| target.target == name).expect(name)
    }

    #[test]
    fn the_best_of_a_cell_and_the_best_of_all_are_different_peers() {
        // The semaphore is faster than all, and is not compared with.
        let summary = GridSummary::of(&grid(vec![
            cell(2, 0, 0.0, [10.0, 20.0, 10.0, 99.0]),
            cell(4, 50, 1.0, [40.0, 5.0, 20.0, 99.0]),
        ]))
        .expect("there are peers");
        assert_eq!(summary.peers, ["std", "parking_lot"]);
        // std: 0.5 and 8, mean 2; parking_lot: 1 and 2, mean 1.41.
        let overall = &summary.throughput;
        assert_eq!(overall.best_single_peer.as_deref(), Some("parking_lot"));
        let near = |value: Option<f64>, to: f64| (value.expect("a mean") - to).abs() < 1e-9;
        assert!(near(overall.mean_to_best_single_peer, 2f64.sqrt()));
        assert!(near(overall.mean_to_best_of_cell, 1.0));
        let worst = overall.worst.as_ref().expect("two cells");
        assert_eq!((worst.threads, worst.peer.as_deref(), worst.value), (2, Some("std"), 0.5));
        assert_eq!(summary.cells_missed(), 1);
    }

    #[test]
    fn an_aim_names_the_cells_that_miss_it_worst_first() {
        let summary = GridSummary::of(&grid(vec![
            cell(2, 0, 0.0, [9.0, 10.0, 1.0, 1.0]),
            cell(4, 0, 0.0, [5.0, 10.0, 1.0, 1.0]),
            cell(4, 50, 1.0, [30.0, 10.0, 20.0, 1.0]),
            cell(16, 1_000, 1.0, [30.0, 10.0, 20.0, 1.0]),
        ]))
        .expect("there are peers");
        let every = aim(&summary, "throughput-every-cell");
        assert_eq!((every.value, every.reached), (Some(0.5), Some(false)));
        assert_eq!(every.missed.iter().map(|spot| spot.threads).collect::<Vec<_>>(), [4, 2]);
        let short = aim(&summary, "short-sections");
        assert_eq!((short.value, short.reached), (Some(1.5), Some(true)));
        assert!(short.missed.is_empty());
        // Above its limit where less is better.
        let wait = aim(&summary, "mixed-longest-wait");
        assert_eq!((wait.value, wait.reached, wait.missed.len()), (Some(6e6), Some(false), 1));
        assert_eq!(aim(&summary, "mixed-p999").reached, Some(true));
    }

    #[test]
    fn what_was_not_measured_is_neither_met_nor_missed() {
        let summary = GridSummary::of(&grid(vec![cell(3, 0, 0.0, [1.0, 1.0, 1.0, 1.0])]));
        let summary = summary.expect("there are peers");
        for name in ["long-sections", "many-threads", "mixed-p999", "bounded-wait"] {
            let target = aim(&summary, name);
            assert_eq!((target.value, target.reached), (None, None), "{name}");
        }
        // pthread was not there.
        assert_eq!(aim(&summary, "work-every-cell").reached, None);
        let alone = grid(vec![cell(3, 0, 0.0, [1.0; 4])].into_iter().map(alone).collect());
        assert!(GridSummary::of(&alone).is_none());
    }

    fn alone(mut cell: GridPlace) -> GridPlace {
        cell.results.truncate(1);
        cell
    }

    #[test]
    fn many_threads_are_held_against_two() {
        let at = |threads, rate| cell(threads, 1_000, 1.0, [rate, 1.0, 1.0, 1.0]);
        let summary = GridSummary::of(&grid(vec![at(2, 100.0), at(64, 80.0)])).expect("peers");
        let many = aim(&summary, "many-threads");
        assert_eq!((many.value, many.reached), (Some(0.8), Some(false)));
    }
}
