//! What each ingredient of the mutex is worth over a whole grid.
//!
//! As the contended cells of [`super::contended`], for cells of one's choice and the
//! mutex alone: in a round the whole lock and the locks without one ingredient each take
//! their turn in shuffled order, and an effect is the ratio of the whole lock to the one
//! without *in the same round*: above 1 the ingredient is worth having there.

use super::figures::{ExplainSamples, RoundsFigure};
use super::ingredients::Ingredient;
use super::subjects::{self, ExplainSubject};
use crate::clock::Ticks;
use crate::contended::beside::{ContendedSurroundings, rounds};
use crate::contended::slices::ThreadLoad;
use crate::contended::work::WorkPace;
use crate::contended::{self, CellKey, Disturbance, QuotaUsed};
use crate::harness::Slice;
use crate::session::StepsProgress;
use crate::{Error, LockName, Session, stats};
use lockstead_render::machine::MachineFacts;
use serde::Serialize;

/// What was measured, as reports write it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AblationReport {
    /// The machine that was measured, and when.
    pub machine: MachineFacts,
    /// The number of rounds of each cell; in each, all locks take their turn in shuffled order.
    pub rounds: usize,
    /// How long a turn that counts sections is, in milliseconds.
    pub slice_ms: f64,
    /// The number of busy processes that ran beside it (`--foreign`); what they use is not counted
    /// as foreign.
    pub foreign_processes: usize,
    /// The quota of processor time under which it ran (`--quota`); null without.
    pub quota: Option<QuotaUsed>,
    /// How long the holder slept inside of sections (`--sleep-in-section`); null without.
    pub sleep_in_section_ns: Option<u64>,
    /// The holder slept in one of so many sections; null if it never did.
    pub sleep_every: Option<u64>,
    /// How even the whole mutex was, over all cells.
    pub whole: Fairness,
    /// One object for each ingredient, over all cells.
    pub ingredients: Vec<Worth>,
    /// One object for each combination of threads, section and think time.
    pub cells: Vec<AblationCell>,
}

impl AblationReport {
    /// Returns how holders slept inside of sections: nanoseconds, and in every so many.
    #[must_use]
    pub fn sleep(&self) -> Option<(u64, u64)> {
        self.sleep_in_section_ns.zip(self.sleep_every)
    }
}

/// An ingredient over all cells.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Worth {
    /// The ingredient that was left out.
    pub ingredient: Ingredient,
    /// What it is, and what there is without it.
    pub description: &'static str,
    /// Throughput of the whole mutex over that without the ingredient: above 1 it is higher with
    /// it.
    pub throughput: AblationShare,
    /// Work per second of processor time, in the same way.
    pub efficiency: AblationShare,
    /// The longest wait, in the same way: above 1 it is longer with the ingredient.
    pub longest_wait: AblationShare,
    /// How even the mutex without the ingredient was; no ratios.
    pub without: Fairness,
}

/// How even the threads of a lock fared.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fairness {
    /// Jain's index of the threads' shares.
    pub jain: AblationShare,
    /// The longest wait of a round, in nanoseconds.
    pub wait_max_ns: AblationShare,
}

/// A ratio of the whole mutex to the one without an ingredient, or a figure of one of them, over
/// all cells.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AblationShare {
    /// The geometric mean over all cells.
    pub mean: f64,
    /// The cell with the lowest ratio or figure.
    pub lowest: Extreme,
    /// The cell with the highest ratio or figure.
    pub highest: Extreme,
}

/// A cell, and its ratio or figure.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Extreme {
    /// Whether threads were pinned.
    pub pinned: bool,
    /// The number of threads.
    pub threads: usize,
    /// The length of the critical section.
    pub section_ns: u64,
    /// The think time, as a multiple of the section.
    pub think_ratio: f64,
    /// The ratio or the figure that was found there.
    pub value: f64,
}

/// One combination of threads, section and think time.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AblationCell {
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
    /// Critical sections per second of the whole lock.
    pub ops_per_s: RoundsFigure,
    /// Jain's index of the whole lock.
    pub jain: RoundsFigure,
    /// The longest wait of each round for the whole lock.
    pub wait_max_ns: RoundsFigure,
    /// What each ingredient is worth here.
    pub effects: Vec<AblationEffect>,
}

/// The whole lock over the one without an ingredient, round by round.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AblationEffect {
    /// The ingredient that was left out.
    pub ingredient: Ingredient,
    /// Throughput of the whole lock over that without the ingredient.
    pub throughput: RoundsFigure,
    /// Work per second of processor time, in the same way.
    pub efficiency: RoundsFigure,
    /// The longest wait, in the same way.
    pub longest_wait: RoundsFigure,
    /// Jain's index of the lock without the ingredient.
    pub jain: RoundsFigure,
    /// The longest wait of each round for the lock without the ingredient.
    pub wait_max_ns: RoundsFigure,
}

/// Measures the mutex whole and without each of `ingredients` in the cells of `options`,
/// whose locks do not matter.
///
/// # Errors
/// As [`contended::measure`]; [`Error::Option`] for an ingredient that is none of a
/// contended mutex's ([`Ingredient::MUTEX`]).
pub fn measure(
    options: &contended::ContendedOptions,
    ingredients: &[Ingredient],
    session: &mut Session<'_>,
) -> Result<AblationReport, Error> {
    options.check()?;
    let subjects = chosen(ingredients)?;
    let machine = MachineFacts::here();
    let bench = AblationBench {
        options,
        subjects,
        clock: Ticks::calibrated(),
        pace: WorkPace::calibrated(),
    };
    let grid = options.grid();
    let beside = ContendedSurroundings::enter(options)?;
    let mut progress = StepsProgress::new(grid.len() * options.rounds * bench.subjects.len());
    let cells: Vec<AblationCell> = grid
        .into_iter()
        .map(|spot| bench.cell(spot, &beside, &mut progress, session))
        .collect::<Result<_, _>>()?;
    progress.end(session)?;
    Ok(AblationReport {
        machine,
        rounds: options.rounds,
        slice_ms: options.slice.as_secs_f64() * 1e3,
        foreign_processes: options.foreign,
        quota: beside.quota_used(),
        sleep_in_section_ns: options.sleep.map(|sleep| sleep.length.as_nanos() as u64),
        sleep_every: options.sleep.map(|sleep| sleep.every),
        whole: Fairness {
            jain: AblationShare::of(&cells, |cell| Some(&cell.jain)).expect("at least one cell"),
            wait_max_ns: AblationShare::of(&cells, |cell| Some(&cell.wait_max_ns))
                .expect("as above"),
        },
        ingredients: ingredients.iter().filter_map(|&i| Worth::of(i, &cells)).collect(),
        cells,
    })
}

/// Returns the whole mutex, then the mutex without each of the ingredients.
fn chosen(ingredients: &[Ingredient]) -> Result<Vec<ExplainSubject>, Error> {
    crate::options::some("--ingredients", ingredients, "at least one ingredient")?;
    let mut all = subjects::mutexes();
    let mut chosen = Vec::new();
    for without in std::iter::once(None).chain(ingredients.iter().copied().map(Some)) {
        let at = all.iter().position(|subject| subject.without == without);
        let at = at.ok_or_else(|| Error::Option {
            option: "--ingredients",
            given: without.map_or("", Ingredient::name).to_owned(),
            allowed: format!(
                "each once, of {}",
                Ingredient::MUTEX.map(Ingredient::name).join(", ")
            ),
        })?;
        chosen.push(all.swap_remove(at));
    }
    Ok(chosen)
}

struct AblationBench<'a> {
    options: &'a contended::ContendedOptions,
    subjects: Vec<ExplainSubject>,
    clock: Ticks,
    pace: WorkPace,
}

impl AblationBench<'_> {
    fn cell(
        &self,
        spot: CellKey,
        beside: &ContendedSurroundings,
        progress: &mut StepsProgress,
        session: &mut Session<'_>,
    ) -> Result<AblationCell, Error> {
        let options = self.options;
        let (pinned, threads, section, think) = spot;
        let label = contended::label(spot);
        let load = ThreadLoad::of(spot, options.sleep, self.pace);
        let patience = contended::patience(spot, options);
        let mut samples: Vec<ExplainSamples> =
            self.subjects.iter().map(|_| ExplainSamples::default()).collect();
        let disturbance = rounds(
            (options.rounds, self.subjects.len()),
            progress,
            || beside.observe(),
            |index, progress| {
                let subject = &self.subjects[index];
                progress.step(session, &format!("{label}: {}", subject.name()))?;
                let (lock, length) = (LockName::Lockstead.name(), options.slice);
                let mut slice = Slice { lock, threads, length, patience };
                subject.measure(&mut slice, load, self.clock, session)
            },
            |index, (window, waits)| samples[index].add(&window, &waits, self.clock),
        )?;
        let (whole, without) = samples.split_first().expect("the whole lock is the first");
        let effects = self.subjects[1..].iter().zip(without).filter_map(|(subject, samples)| {
            let [throughput, efficiency, longest_wait] = whole.over(samples);
            let ingredient = subject.without?;
            let (jain, wait_max_ns) = samples.fairness();
            Some(AblationEffect {
                ingredient,
                throughput,
                efficiency,
                longest_wait,
                jain,
                wait_max_ns,
            })
        });
        let (jain, wait_max_ns) = whole.fairness();
        Ok(AblationCell {
            threads,
            pinned,
            section_ns: section.as_nanos() as u64,
            think_ratio: think,
            disturbance,
            ops_per_s: RoundsFigure::of(&whole.ops_per_s),
            jain,
            wait_max_ns,
            effects: effects.collect(),
        })
    }
}

impl Worth {
    fn of(ingredient: Ingredient, cells: &[AblationCell]) -> Option<Self> {
        let share = |figure: fn(&AblationEffect) -> &RoundsFigure| {
            AblationShare::of(cells, |cell| {
                cell.effects.iter().find(|effect| effect.ingredient == ingredient).map(figure)
            })
        };
        Some(Self {
            ingredient,
            description: ingredient.description(),
            throughput: share(|effect| &effect.throughput)?,
            efficiency: share(|effect| &effect.efficiency)?,
            longest_wait: share(|effect| &effect.longest_wait)?,
            without: Fairness {
                jain: share(|effect| &effect.jain)?,
                wait_max_ns: share(|effect| &effect.wait_max_ns)?,
            },
        })
    }
}

impl AblationShare {
    fn of<'a>(
        cells: &'a [AblationCell],
        figure: impl Fn(&'a AblationCell) -> Option<&'a RoundsFigure>,
    ) -> Option<Self> {
        let mut ratios: Vec<Extreme> = cells
            .iter()
            .filter_map(|cell| {
                Some(Extreme {
                    pinned: cell.pinned,
                    threads: cell.threads,
                    section_ns: cell.section_ns,
                    think_ratio: cell.think_ratio,
                    value: figure(cell)?.median,
                })
            })
            .collect();
        ratios.sort_by(|a, b| a.value.total_cmp(&b.value));
        let values: Vec<f64> = ratios.iter().map(|extreme| extreme.value).collect();
        let (lowest, highest) = (ratios.first()?.clone(), ratios.last()?.clone());
        Some(Self { mean: stats::geometric_mean(&values), lowest, highest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    fn options() -> contended::ContendedOptions {
        contended::ContendedOptions {
            threads: vec![2, 4],
            sections: vec![Duration::from_nanos(50)],
            thinks: vec![1.0],
            rounds: 2,
            slice: Duration::from_millis(2),
            ..contended::ContendedOptions::default()
        }
    }

    #[test]
    fn every_ingredient_of_the_mutex_is_left_out_in_every_cell() {
        let stop = AtomicBool::new(false);
        let mut quiet = |_: u64, _: u64, _: &str| {};
        let mut session = Session::new(&stop, &mut quiet);
        let report = measure(&options(), &Ingredient::MUTEX, &mut session).expect("measures");
        assert_eq!(report.cells.len(), 2);
        for cell in &report.cells {
            let measured: Vec<_> = cell.effects.iter().map(|effect| effect.ingredient).collect();
            assert_eq!(measured, Ingredient::MUTEX);
        }
        assert_eq!(report.ingredients.len(), Ingredient::MUTEX.len());
        for worth in &report.ingredients {
            let without = &worth.without;
            let ratios = [&worth.throughput, &worth.efficiency, &worth.longest_wait];
            assert!(without.jain.lowest.value > 0.0 && without.jain.highest.value <= 1.0);
            for share in [&ratios[..], &[&without.jain, &without.wait_max_ns]].concat() {
                let (low, high) = (share.lowest.value, share.highest.value);
                assert!(low <= share.mean * 1.001 && share.mean <= high * 1.001, "{worth:?}");
            }
        }
    }

    #[test]
    fn what_is_none_of_the_mutex_s_is_refused() {
        let stop = AtomicBool::new(false);
        let mut quiet = |_: u64, _: u64, _: &str| {};
        let mut session = Session::new(&stop, &mut quiet);
        for ingredients in [&[][..], &[Ingredient::Owner], &[Ingredient::Queue, Ingredient::Queue]]
        {
            let error = measure(&options(), ingredients, &mut session).expect_err("refused");
            assert!(error.to_string().contains("--ingredients"), "{error}");
        }
    }
}
