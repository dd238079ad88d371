//! What a run is asked for, and how its rounds become figures.

use crate::clock::Ticks;
use crate::contended::slices::WaitTicks;
use crate::harness::SliceWindow;
use crate::{Error, options, stats};
use serde::Serialize;
use std::time::Duration;

/// What a measurement is asked for.
#[derive(Clone, Debug)]
pub struct ExplainOptions {
    /// Rounds of each contended cell.
    pub rounds: usize,
    /// Time for one lock in one round; half as much again for its waits.
    pub slice: Duration,
    /// Rounds of the uncontended pair, of 1 ms for each lock.
    pub pairs: usize,
}

impl Default for ExplainOptions {
    /// Returns options for a run of a minute and a half.
    fn default() -> Self {
        Self { rounds: 15, slice: Duration::from_millis(100), pairs: 151 }
    }
}

impl ExplainOptions {
    /// Asks for a run of a few seconds; differences below a tenth do not show.
    #[must_use]
    pub fn quick() -> Self {
        Self { rounds: 5, slice: Duration::from_millis(20), pairs: 9 }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        options::within("--rounds", self.rounds, 2..=1000, "")?;
        options::within("--rounds", self.pairs, 2..=10_000, "")?;
        options::within("--slice", self.slice.as_millis(), 1..=60_000, "ms")
    }
}

/// The median and the range over the rounds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RoundsFigure {
    /// Half of the rounds were at or below it.
    pub median: f64,
    /// The figure of the lowest round.
    pub min: f64,
    /// The figure of the highest round.
    pub max: f64,
    /// The median of endless rounds lies between this and `high`, with a confidence of 95 %; below
    /// six rounds `min`, with less.
    pub low: f64,
    /// The upper end of the interval that `low` begins; below six rounds `max`.
    pub high: f64,
}

impl RoundsFigure {
    /// Sums up these rounds, of which there is at least one.
    #[must_use]
    pub fn of(rounds: &[f64]) -> Self {
        let (min, max) = stats::spread(rounds);
        let mut sorted = rounds.to_vec();
        sorted.sort_by(f64::total_cmp);
        let cut = beyond(rounds.len());
        let (low, high) = (sorted[cut], sorted[rounds.len() - 1 - cut]);
        Self { median: stats::median(rounds), min, max, low, high }
    }

    /// Sums up the ratios of these rounds to those. A round in which nothing was done counts as
    /// one thing done.
    pub(super) fn ratio(of: &[f64], to: &[f64]) -> Self {
        let ratios: Vec<f64> =
            of.iter().zip(to).map(|(of, to)| of.max(1.0) / to.max(1.0)).collect();
        Self::of(&ratios)
    }

    /// Tells whether the rounds tell on which side of 1 the median is.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}

/// What the rounds gave for one subject.
#[derive(Default)]
pub(super) struct ExplainSamples {
    pub(super) ops_per_s: Vec<f64>,
    pub(super) ops_per_cpu_s: Vec<f64>,
    pub(super) wait_max_ns: Vec<f64>,
    pub(super) jain: Vec<f64>,
}

impl ExplainSamples {
    /// Adds the figures of one more round.
    pub(super) fn add(&mut self, window: &SliceWindow, waits: &WaitTicks, clock: Ticks) {
        self.ops_per_s.push(window.per_second());
        self.ops_per_cpu_s.push(window.per_cpu_second());
        self.wait_max_ns.push(waits.max_ns(clock) as f64);
        self.jain.push(stats::jain(&window.turns));
    }

    /// Returns Jain's index and the longest wait.
    pub(super) fn fairness(&self) -> (RoundsFigure, RoundsFigure) {
        (RoundsFigure::of(&self.jain), RoundsFigure::of(&self.wait_max_ns))
    }

    /// Divides these by `others`, round by round.
    pub(super) fn over(&self, others: &ExplainSamples) -> [RoundsFigure; 3] {
        [
            RoundsFigure::ratio(&self.ops_per_s, &others.ops_per_s),
            RoundsFigure::ratio(&self.ops_per_cpu_s, &others.ops_per_cpu_s),
            RoundsFigure::ratio(&self.wait_max_ns, &others.wait_max_ns),
        ]
    }
}

/// Returns how many of so many rounds at each end the median may lie beyond with a chance of 2.5
/// % at most: each round is above or below it like a thrown coin.
fn beyond(rounds: usize) -> usize {
    let mut chance = 0.5_f64.powi(rounds as i32);
    let mut tail = chance;
    let mut cut = 0;
    while tail <= 0.025 && 2 * (cut + 1) < rounds {
        cut += 1;
        chance *= (rounds + 1 - cut) as f64 / cut as f64;
        tail += chance;
    }
    cut.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_sign_test() {
        // The k-th of n from each end, counted from 0: tables of order statistics.
        for (rounds, cut) in [(2, 0), (5, 0), (6, 0), (8, 0), (9, 1), (12, 2), (15, 3), (20, 5)] {
            assert_eq!(beyond(rounds), cut, "{rounds} rounds");
        }
    }

    #[test]
    fn a_figure_is_clear_when_the_rounds_agree() {
        assert!(RoundsFigure::ratio(&[2.0, 3.0, 4.0], &[1.0, 2.0, 3.0]).is_clear());
        assert!(!RoundsFigure::ratio(&[2.0, 1.0, 4.0], &[1.0, 2.0, 3.0]).is_clear());
        let halved = RoundsFigure::ratio(&[10.0, 20.0], &[20.0, 80.0]);
        assert_eq!((halved.min, halved.max), (0.25, 0.5));
        assert_eq!(RoundsFigure::ratio(&[0.0], &[0.0]).median, 1.0);
    }
}
