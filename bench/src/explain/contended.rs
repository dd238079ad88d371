//! The contended cells: each lock whole and with one ingredient left out.
//!
//! In a round every subject has its slice, in shuffled order; an effect is the
//! ratio of a whole lock to the one without the ingredient *in the same round*, so
//! that what disturbs a round disturbs both. The median and the range over the
//! rounds are reported.

use super::figures::{ExplainOptions, ExplainSamples, RoundsFigure};
use super::ingredients::Ingredient;
use super::subjects::{self, ExplainSubject, ExplainedLock};
use crate::clock::Ticks;
use crate::contended::slices::ThreadLoad;
use crate::contended::work::WorkPace;
use crate::foreign::Observation;
use crate::harness::Slice;
use crate::session::StepsProgress;
use crate::{Error, LockName, Session, stats};
use lockstead_render::machine;
use serde::Serialize;
use std::time::Duration;

/// Threads that share one lock.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExplainCell {
    /// The name of the cell: `crossed` has a thread for each processor, `crowded` eight.
    pub cell: &'static str,
    /// The number of threads.
    pub threads: usize,
    /// The length of the critical section.
    pub section_ns: u64,
    /// The think time, as a multiple of the section.
    pub think_ratio: f64,
    /// What other processes used of all processors: the median of the rounds; null where that
    /// cannot be told.
    pub foreign_cpu_percent: Option<f64>,
    /// One object for each make of each lock.
    pub results: Vec<ExplainRow>,
    /// What each ingredient is worth here.
    pub effects: Vec<IngredientEffect>,
    /// The mutex over each of the other two locks.
    pub versus: Vec<Versus>,
}

/// One make of a lock.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExplainRow {
    /// The lock that was measured.
    pub lock: ExplainedLock,
    /// The ingredient that it lacks; null of a whole lock.
    pub without: Option<Ingredient>,
    /// Critical sections per second.
    pub ops_per_s: RoundsFigure,
    /// Critical sections per second of processor time.
    pub ops_per_cpu_s: RoundsFigure,
    /// The longest wait of each round.
    pub wait_max_ns: RoundsFigure,
}

/// A whole lock over the same without one ingredient, round by round: above 1 is
/// what the ingredient gives, of the wait what it costs.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IngredientEffect {
    /// The lock that was measured.
    pub lock: ExplainedLock,
    /// The ingredient that was left out.
    pub ingredient: Ingredient,
    /// Throughput of the whole lock over that without the ingredient.
    pub throughput: RoundsFigure,
    /// Work per second of processor time, in the same way.
    pub efficiency: RoundsFigure,
    /// The longest wait, in the same way.
    pub longest_wait: RoundsFigure,
}

/// The mutex over another lock, round by round.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Versus {
    /// The lock that the mutex is compared with.
    pub lock: ExplainedLock,
    /// The mutex's throughput over that lock's.
    pub throughput: RoundsFigure,
    /// Work per second of processor time, in the same way.
    pub efficiency: RoundsFigure,
}

impl ExplainCell {
    /// Returns the effect of an ingredient of a lock.
    #[must_use]
    pub fn effect(&self, lock: ExplainedLock, ingredient: Ingredient) -> Option<&IngredientEffect> {
        self.effects.iter().find(|e| e.lock == lock && e.ingredient == ingredient)
    }

    /// Returns the mutex over that lock.
    #[must_use]
    pub fn versus(&self, lock: ExplainedLock) -> Option<&Versus> {
        self.versus.iter().find(|versus| versus.lock == lock)
    }
}

struct CellPlace {
    cell: &'static str,
    threads: usize,
    section: Duration,
    think: f64,
}

/// Lists the cells: one where all threads can run, one where most cannot.
fn places() -> [CellPlace; 2] {
    let processors = machine::processors();
    let section = Duration::from_micros(1);
    [
        CellPlace { cell: "crossed", threads: processors.max(2), section, think: 1.0 },
        CellPlace { cell: "crowded", threads: 8 * processors, section, think: 1.0 },
    ]
}

/// Returns the number of steps that [`measure`] takes.
pub(super) fn steps(options: &ExplainOptions) -> usize {
    places().len() * options.rounds * subjects::all().len()
}

pub(super) fn measure(
    options: &ExplainOptions,
    progress: &mut StepsProgress,
    session: &mut Session<'_>,
) -> Result<Vec<ExplainCell>, Error> {
    let (clock, pace) = (Ticks::calibrated(), WorkPace::calibrated());
    let subjects = subjects::all();
    places()
        .into_iter()
        .map(|place| {
            let think = pace.steps(place.section.mul_f64(place.think));
            let load = ThreadLoad::steps(pace.steps(place.section), think);
            cell(&place, load, clock, &subjects, options, progress, session)
        })
        .collect()
}

fn cell(
    place: &CellPlace,
    load: ThreadLoad,
    clock: Ticks,
    subjects: &[ExplainSubject],
    options: &ExplainOptions,
    progress: &mut StepsProgress,
    session: &mut Session<'_>,
) -> Result<ExplainCell, Error> {
    let mut samples: Vec<ExplainSamples> =
        subjects.iter().map(|_| ExplainSamples::default()).collect();
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    let mut foreign = Vec::new();
    for _ in 0..options.rounds {
        fastrand::shuffle(&mut order);
        let observation = Observation::begin();
        for &index in &order {
            let subject = &subjects[index];
            progress.step(session, &format!("{}: {}", place.cell, subject.name()))?;
            let mut slice = Slice {
                lock: LockName::Lockstead.name(),
                threads: place.threads,
                length: options.slice,
                patience: Duration::from_secs(30),
            };
            let (window, waits) = subject.measure(&mut slice, load, clock, session)?;
            samples[index].add(&window, &waits, clock);
        }
        foreign.extend(observation.foreign_percent());
    }
    let whole = |lock: ExplainedLock| {
        let index = subjects.iter().position(|s| s.lock == lock && s.without.is_none());
        &samples[index.expect("every lock is there whole")]
    };
    let rows = subjects.iter().zip(&samples).map(|(subject, samples)| ExplainRow {
        lock: subject.lock,
        without: subject.without,
        ops_per_s: RoundsFigure::of(&samples.ops_per_s),
        ops_per_cpu_s: RoundsFigure::of(&samples.ops_per_cpu_s),
        wait_max_ns: RoundsFigure::of(&samples.wait_max_ns),
    });
    let effects = subjects.iter().zip(&samples).filter_map(|(subject, samples)| {
        let [throughput, efficiency, longest_wait] = whole(subject.lock).over(samples);
        let ingredient = subject.without?;
        Some(IngredientEffect {
            lock: subject.lock,
            ingredient,
            throughput,
            efficiency,
            longest_wait,
        })
    });
    let versus = [ExplainedLock::Semaphore, ExplainedLock::Semaphore2005].map(|lock| {
        let [throughput, efficiency, _] = whole(ExplainedLock::Mutex).over(whole(lock));
        Versus { lock, throughput, efficiency }
    });
    Ok(ExplainCell {
        cell: place.cell,
        threads: place.threads,
        section_ns: place.section.as_nanos() as u64,
        think_ratio: place.think,
        foreign_cpu_percent: (!foreign.is_empty()).then(|| stats::median(&foreign)),
        results: rows.collect(),
        effects: effects.collect(),
        versus: versus.to_vec(),
    })
}
