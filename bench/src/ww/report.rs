//! What a measurement of several locks at a time gives.

use super::WwScheme;
use crate::contended::Disturbance;
use lockstead_render::machine::MachineFacts;
use serde::Serialize;

/// What was measured, as reports write it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WwReport {
    /// The machine that was measured, and when.
    pub machine: MachineFacts,
    /// The number of rounds of each cell; in each, all schemes have their slice in shuffled order.
    pub rounds: usize,
    /// How long a slice that counts turns is, in milliseconds.
    pub slice_ms: f64,
    /// How long a slice that times turns is, in milliseconds. A longer turn is cut off about there,
    /// for then the other threads stop.
    pub timed_slice_ms: f64,
    /// One object for each combination of threads, locks of a turn, locks and section.
    pub cells: Vec<WwCell>,
}

/// One combination of threads, locks of a turn, locks and section.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WwCell {
    /// The number of threads.
    pub threads: usize,
    /// The number of locks that a turn takes.
    pub take: usize,
    /// The number of locks that there are.
    pub locks: usize,
    /// The length of the section, with all locks of the turn held.
    pub section_ns: u64,
    /// What others did meanwhile.
    #[serde(flatten)]
    pub disturbance: Disturbance,
    /// One object for each scheme.
    pub results: Vec<WwRow>,
}

/// One scheme in one cell.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WwRow {
    /// The scheme that was measured.
    pub scheme: WwScheme,
    /// Turns per second, all threads together: the median of the rounds.
    pub turns_per_s: f64,
    /// Turns per second of processor time: the median of the rounds.
    pub turns_per_cpu_s: f64,
    /// How often a turn was refused a lock and released all that it held, in the mean: the median
    /// of the rounds.
    pub refusals_per_turn: f64,
    /// How many locks a turn took more than once, because it was refused another meanwhile, in the
    /// mean: the median of the rounds.
    pub retries_per_turn: f64,
    /// How often a turn slept, in the mean: the median of the rounds.
    pub voluntary_switches_per_turn: f64,
    /// How often a turn had its processor taken, in the mean: the median of the rounds.
    pub involuntary_switches_per_turn: f64,
    /// 99.9 % of the turns took at most this long, from the first lock asked for to the last
    /// released (to 1 %).
    pub turn_p999_ns: u64,
    /// The longest of all turns.
    pub turn_max_ns: u64,
    /// The most turns that others ended while one was under way. At most one of each other thread
    /// had begun before it; all others are younger.
    pub overtaken_max: u64,
    /// Jain's fairness index of the threads' shares, from 1 / threads (one thread got everything)
    /// to 1 (all got the same): the median of the rounds.
    pub jain: f64,
    /// `turns_per_s` of the slowest round.
    pub turns_per_s_min: f64,
    /// `turns_per_s` of the fastest round.
    pub turns_per_s_max: f64,
    /// Throughput while every turn is timed over throughput without: how much the timing disturbs.
    pub timed_ratio: f64,
}

impl WwCell {
    /// Returns the row of `scheme`.
    #[must_use]
    pub fn row(&self, scheme: WwScheme) -> Option<&WwRow> {
        self.results.iter().find(|row| row.scheme == scheme)
    }
}
