//! Throughput against the longest wait: which locks of a cell are beaten in both by another one, and
//! which peers one of lockstead's two mutexes answers in everything.

use super::grid::{Grid, GridFigures, GridPlace};
use serde::Serialize;

/// The mutexes of this project that a user chooses between.
pub const OURS: [&str; 2] = ["lockstead", "lockstead-fair"];

/// The least part of a peer's throughput that answers it.
const THROUGHPUT: f64 = 0.95;
/// The most that a longest wait may be of a peer's.
const LONGEST: f64 = 1.1;
/// The most by which Jain's index may be below a peer's.
const JAIN: f64 = 0.02;

/// All cells of a grid, and what they come to.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Frontier {
    /// The locks of this project that were measured, of `lockstead` and `lockstead-fair`.
    pub ours: Vec<String>,
    /// The number of peers in cells, each cell's counted anew.
    pub peers: usize,
    /// How many of these are answered.
    pub answered: usize,
    /// How long a turn was in which the threads' shares were counted (`jain`), in milliseconds; null if
    /// the report does not say.
    pub shares_slice_ms: Option<f64>,
    /// One object for each combination of threads, section and think time.
    pub cells: Vec<FrontierCell>,
}

/// One combination of threads, section and think time.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrontierCell {
    /// The number of threads.
    pub threads: usize,
    /// The length of the critical section.
    pub section_ns: u64,
    /// The time between a thread's release and its next acquisition, as a multiple of the section.
    pub think_ratio: f64,
    /// One object for each lock.
    pub points: Vec<FrontierPoint>,
    /// One object for each peer: how lockstead answers it.
    pub answers: Vec<FrontierAnswer>,
}

/// One lock in one cell.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrontierPoint {
    /// The name of the lock.
    pub lock: String,
    /// Critical sections per second.
    pub ops_per_s: f64,
    /// Critical sections per second of processor time.
    pub ops_per_cpu_s: f64,
    /// 99 % of the acquisitions took at most this long; null if the report does not say.
    pub wait_p99_ns: Option<f64>,
    /// 99.9 % of the acquisitions took at most this long.
    pub wait_p999_ns: Option<f64>,
    /// 99 % of the time waited was in acquisitions that took at most this long.
    pub wait_weighted_p99_ns: Option<f64>,
    /// The longest acquisition of each round: the median over the rounds.
    pub longest_ns: f64,
    /// Jain's fairness index of the threads' shares, from 1 / threads to 1.
    pub jain: f64,
    /// Whether no other lock of the cell has both more throughput and a shorter longest wait.
    pub on_frontier: bool,
}

/// How one peer is answered by that lock of this project which comes nearest to it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrontierAnswer {
    /// The peer that is answered, or not.
    pub peer: String,
    /// The lock of this project that comes nearest.
    pub by: String,
    /// Whether it has at least 0.95 of the peer's throughput, at most 1.1 times its longest wait and
    /// at least its Jain index less 0.02.
    pub answered: bool,
    /// Its throughput as a ratio to the peer's.
    pub throughput_ratio: f64,
    /// Its longest wait as a ratio to the peer's.
    pub longest_ratio: f64,
    /// Its Jain index less the peer's.
    pub jain_difference: f64,
}

impl Frontier {
    /// Draws up the frontier of each cell in which one of [`OURS`] was measured. Cells of pinned threads
    /// are left out if there are others, and locks whose waits the report does not have.
    #[must_use]
    pub fn of(grid: &Grid) -> Self {
        let grid = &grid.plain();
        let measured = |lock: &&str| grid.locks().contains(lock);
        let cells: Vec<_> = grid.cells.iter().filter_map(FrontierCell::of).collect();
        let answers = || cells.iter().flat_map(|cell| &cell.answers);
        Frontier {
            ours: OURS.into_iter().filter(measured).map(str::to_owned).collect(),
            peers: answers().count(),
            answered: answers().filter(|answer| answer.answered).count(),
            shares_slice_ms: grid.shares_slice_ms,
            cells,
        }
    }
}

impl FrontierCell {
    fn of(place: &GridPlace) -> Option<Self> {
        let mut points: Vec<_> = place.results.iter().filter_map(FrontierPoint::of).collect();
        let beaten: Vec<bool> =
            points.iter().map(|point| points.iter().any(|other| other.beats(point))).collect();
        for (point, beaten) in points.iter_mut().zip(beaten) {
            point.on_frontier = !beaten;
        }
        let ours = || points.iter().filter(|point| OURS.contains(&point.lock.as_str()));
        ours().next()?;
        let rivals = |point: &&FrontierPoint| place.rivals().any(|rival| rival.lock == point.lock);
        let nearest = |peer: &FrontierPoint| {
            let answers = ours().map(|ours| FrontierAnswer::of(ours, peer));
            answers.max_by(|a, b| a.margin().total_cmp(&b.margin()))
        };
        let answers = points.iter().filter(rivals).filter_map(nearest).collect();
        Some(FrontierCell {
            threads: place.threads,
            section_ns: place.section_ns,
            think_ratio: place.think_ratio,
            answers,
            points,
        })
    }
}

impl FrontierPoint {
    fn of(figures: &GridFigures) -> Option<Self> {
        Some(FrontierPoint {
            lock: figures.lock.clone(),
            ops_per_s: figures.ops_per_s,
            ops_per_cpu_s: figures.ops_per_cpu_s,
            wait_p99_ns: figures.wait_p99_ns,
            wait_p999_ns: figures.wait_p999_ns,
            wait_weighted_p99_ns: figures.wait_weighted_p99_ns,
            longest_ns: figures.wait_max_median_ns?,
            jain: figures.jain?,
            on_frontier: false,
        })
    }

    fn beats(&self, other: &Self) -> bool {
        self.ops_per_s > other.ops_per_s && self.longest_ns < other.longest_ns
    }
}

impl FrontierAnswer {
    fn of(ours: &FrontierPoint, peer: &FrontierPoint) -> Self {
        let mut answer = FrontierAnswer {
            peer: peer.lock.clone(),
            by: ours.lock.clone(),
            answered: false,
            throughput_ratio: ours.ops_per_s / peer.ops_per_s.max(f64::MIN_POSITIVE),
            longest_ratio: ours.longest_ns / peer.longest_ns.max(1.0),
            jain_difference: ours.jain - peer.jain,
        };
        answer.answered = answer.margin() >= 0.0;
        answer
    }

    /// Returns by how much the worst of the three is on the right side, as a logarithm, or for the
    /// index as a difference: below 0 if one is on the wrong side.
    fn margin(&self) -> f64 {
        let throughput = (self.throughput_ratio / THROUGHPUT).ln();
        let longest = (LONGEST / self.longest_ratio).ln();
        throughput.min(longest).min(self.jain_difference + JAIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(lock: &str, ops: f64, longest: f64, jain: f64) -> serde_json::Value {
        json!({"lock": lock, "ops_per_s": ops, "ops_per_cpu_s": ops, "jain": jain,
               "wait_max_median_ns": longest})
    }

    fn frontier(rows: &[serde_json::Value]) -> Frontier {
        let cell = json!({"threads": 16, "section_ns": 1000, "think_ratio": 1.0, "results": rows});
        let grid: Grid = serde_json::from_value(json!({"cells": [cell]})).expect("a grid");
        Frontier::of(&grid)
    }

    #[test]
    fn who_has_less_and_waits_longer_is_not_on_the_frontier() {
        let rows = [
            row("lockstead", 10.0, 9e6, 0.9),
            row("lockstead-fair", 9.0, 2e6, 0.9),
            row("std", 8.0, 3e6, 0.9),
            row("tbb", 7.0, 1e6, 0.9),
        ];
        let frontier = frontier(&rows);
        let on: Vec<bool> = frontier.cells[0].points.iter().map(|it| it.on_frontier).collect();
        assert_eq!(on, [true, true, false, true]);
        assert_eq!((frontier.peers, frontier.answered), (2, 1));
    }

    #[test]
    fn a_peer_is_answered_by_one_lock_in_all_three() {
        let ours = [row("lockstead", 10.0, 9e6, 0.9), row("lockstead-fair", 9.6, 1.09e6, 0.89)];
        let answer = |peer| {
            let rows = [&ours[..], &[peer]].concat();
            frontier(&rows).cells.remove(0).answers.remove(0)
        };
        let answered = answer(row("std", 10.0, 1e6, 0.9));
        assert!(answered.answered && answered.by == "lockstead-fair", "{answered:?}");
        // Each of the three is enough to fail, whatever the other lock is best at.
        for peer in
            [row("std", 10.2, 1e6, 0.9), row("std", 10.0, 0.98e6, 0.9), row("std", 10.0, 1e6, 0.92)]
        {
            let answer = answer(peer);
            assert!(!answer.answered, "{answer:?}");
        }
    }

    #[test]
    fn what_lends_priorities_is_no_peer_and_what_says_nothing_of_waits_is_left_out() {
        let old = json!({"lock": "usync", "ops_per_s": 1.0, "ops_per_cpu_s": 1.0});
        let rows =
            [row("lockstead", 10.0, 9e6, 0.9), row("pthread-pi", 1.0, 1e9, 0.1), old.clone()];
        let found = frontier(&rows);
        assert_eq!((found.peers, found.cells[0].points.len()), (0, 2));
        assert!(frontier(&[old]).cells.is_empty());
    }
}
