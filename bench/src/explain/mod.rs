//! Where the mutex's advantages over the semaphore come from, ingredient by
//! ingredient, and whether a semaphore can have them too.
//!
//! # Role
//! When the kernel's mutex was proposed in 2005 as smaller, faster and better
//! checked than the semaphore, a reviewer asked back: from where do the savings
//! come, and would a semaphore that had been given the same work not have them as
//! well? Here each of those questions has its measurement. The mutex and a
//! semaphore that shares its slow path are measured whole and with one ingredient
//! left out at a time; the conclusions ([`answers`]) follow from the figures.
//!
//! | module | what it gives |
//! |---|---|
//! | `ingredients` | what can be left out, and the policy that does |
//! | `machines` | machines that differ in one thing, where a policy does not reach |
//! | `subjects` | the locks with and without |
//! | [`ablation`] | the mutex's ingredients over a whole grid |
//! | [`contended`] | throughput, processor time and the longest wait, and each ingredient's share |
//! | [`text`] | bytes of code: of call sites in this command, and of objects built both ways |
//! | [`sizes`] | bytes of the locks beside the published ones |
//! | [`owners`] | what is tried with each lock that needs an owner |
//! | [`answers`] | questions and conclusions |

pub mod ablation;
pub mod answers;
mod compiled;
pub mod contended;
mod ingredients;
mod machines;
pub mod owners;
pub mod sizes;
mod subjects;
pub mod text;

use crate::clock::Ticks;
use crate::contended::slices::Waits;
use crate::harness::Window;
use crate::session::Progress;
use crate::{Error, Session, options, stats, uncontended};
use lockstead_render::machine::Machine;
use serde::Serialize;
use std::time::Duration;

pub use ingredients::Ingredient;
pub use subjects::{ExplainedLock, label};

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
    /// A minute and a half.
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

    fn check(&self) -> Result<(), Error> {
        options::within("--rounds", self.rounds, 2..=1000, "")?;
        options::within("--rounds", self.pairs, 2..=10_000, "")?;
        options::within("--slice", self.slice.as_millis(), 1..=60_000, "ms")
    }
}

/// The median and the range over the rounds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct RoundsFigure {
    /// Half of the rounds were at or below it.
    pub median: f64,
    /// The figure of the lowest round.
    pub min: f64,
    /// The figure of the highest round.
    pub max: f64,
    /// The median of endless rounds lies between this and `high`, with a confidence of
    /// 95 %; below six rounds `min` and `max`, with less.
    pub low: f64,
    /// The upper end of the interval that `low` begins.
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
    fn ratio(of: &[f64], to: &[f64]) -> Self {
        let ratios: Vec<f64> =
            of.iter().zip(to).map(|(of, to)| of.max(1.0) / to.max(1.0)).collect();
        Self::of(&ratios)
    }

    /// Whether the rounds tell on which side of 1 the median is.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}

/// What the rounds gave for one subject.
#[derive(Default)]
struct ExplainSamples {
    ops_per_s: Vec<f64>,
    ops_per_cpu_s: Vec<f64>,
    wait_max_ns: Vec<f64>,
    jain: Vec<f64>,
}

impl ExplainSamples {
    /// Adds the figures of one more round.
    fn add(&mut self, window: &Window, waits: &Waits, clock: Ticks) {
        self.ops_per_s.push(window.per_second());
        self.ops_per_cpu_s.push(window.per_cpu_second());
        self.wait_max_ns.push(waits.max_ns(clock) as f64);
        self.jain.push(stats::jain(&window.turns));
    }

    /// Jain's index and the longest wait.
    fn fairness(&self) -> (RoundsFigure, RoundsFigure) {
        (RoundsFigure::of(&self.jain), RoundsFigure::of(&self.wait_max_ns))
    }

    /// These over `others`, round by round.
    fn over(&self, others: &ExplainSamples) -> [RoundsFigure; 3] {
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

/// What was measured, as reports write it.
#[derive(Clone, Debug, Serialize)]
pub struct ExplainReport {
    /// The machine that was measured, and when.
    pub machine: Machine,
    /// Rounds of each cell.
    pub rounds: usize,
    /// Length of a slice.
    pub slice_ms: f64,
    /// The pair that nobody disputes.
    pub uncontended: uncontended::UncontendedReport<String>,
    /// The cells with several threads.
    pub cells: Vec<contended::ExplainCell>,
    /// The bytes of code of each lock.
    pub text: text::Text,
    /// The bytes of each lock.
    pub sizes: Vec<sizes::Size>,
    /// What was tried that needs an owner.
    pub owners: Vec<owners::Trial>,
    /// The questions, and what the figures say.
    pub answers: Vec<answers::Answer>,
}

/// Measures what the options ask for.
///
/// # Errors
/// [`Error::Option`] for options out of range, [`Error::Broken`] and
/// [`Error::Stuck`] for locks that do not work, [`Error::Threads`],
/// [`Error::Interrupted`].
pub fn measure(
    options: &ExplainOptions,
    session: &mut Session<'_>,
) -> Result<ExplainReport, Error> {
    options.check()?;
    let machine = Machine::here();
    // First, for it counts instructions in a forked child: the fewer threads have
    // been, the better.
    let limit = uncontended::Subject::new::<uncontended::Limit>(uncontended::LIMIT);
    let slice = Duration::from_millis(1);
    let uncontended =
        uncontended::compare(limit, subjects::pairs(), options.pairs, slice, session)?;
    let mut progress = Progress::new(contended::steps(options));
    let cells = contended::measure(options, &mut progress, session)?;
    progress.end(session)?;
    let mut report = ExplainReport {
        machine,
        rounds: options.rounds,
        slice_ms: options.slice.as_secs_f64() * 1e3,
        uncontended,
        cells,
        text: text::measure(),
        sizes: sizes::all(),
        owners: owners::try_all(),
        answers: Vec::new(),
    };
    report.answers = answers::from(&report);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

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

    #[test]
    fn every_ingredient_of_both_locks_is_measured() {
        let stop = AtomicBool::new(false);
        let mut quiet = |_: u64, _: u64, _: &str| {};
        let mut session = Session::new(&stop, &mut quiet);
        let options = ExplainOptions { rounds: 2, slice: Duration::from_millis(2), pairs: 2 };
        let report = measure(&options, &mut session).expect("measures");
        assert_eq!(report.cells.len(), 2);
        for cell in &report.cells {
            for ingredient in Ingredient::ALL {
                // Who is named is a matter of the pair that nobody disputes.
                let named = ingredient == Ingredient::Owner;
                assert_eq!(
                    cell.effect(ExplainedLock::Mutex, ingredient).is_none(),
                    named,
                    "{ingredient:?}"
                );
                let owners = [Ingredient::OwnerRunning, Ingredient::BackOff].contains(&ingredient);
                assert_eq!(
                    cell.effect(ExplainedLock::Semaphore, ingredient).is_none(),
                    named || owners
                );
            }
            for effect in &cell.effects {
                let share = effect.throughput;
                assert!(share.min <= share.median && share.median <= share.max, "{effect:?}");
            }
        }
        for pair in ["mutex without owner", "semaphore with owner"] {
            assert!(report.uncontended.results.iter().any(|row| row.lock == pair), "{pair}");
        }
        assert!(!report.answers.is_empty());
        assert!(report.answers.iter().all(|answer| !answer.conclusions.is_empty()));
    }

    #[test]
    fn impossible_options_are_refused() {
        let stop = AtomicBool::new(false);
        let mut quiet = |_: u64, _: u64, _: &str| {};
        let mut session = Session::new(&stop, &mut quiet);
        let options = ExplainOptions { rounds: 1, ..ExplainOptions::quick() };
        let error = measure(&options, &mut session).expect_err("one round has no spread");
        assert!(error.to_string().contains("2 to 1000"), "{error}");
    }
}
