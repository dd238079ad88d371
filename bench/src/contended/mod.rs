//! Many threads, one lock: threads × section × think time.
//!
//! A thread takes the lock, works for the length of the section on a line that
//! all share, releases, works for the think time on nothing shared, and begins
//! again. A section of zero is one load and one store of the shared counter;
//! since the think time is a multiple of the section it is then zero as well,
//! whatever the ratio.
//!
//! The lengths are calibrated against the clock beforehand and are those of an
//! undisturbed processor with the line at hand; fetching the line from another
//! processor comes on top, for all locks alike.

pub(crate) mod beside;
pub mod frontier;
pub mod grid;
pub mod map;
mod options;
pub(crate) mod pinning;
mod report;
pub(crate) mod slices;
pub mod summary;
pub(crate) mod work;

pub use options::{
    ContendedOptions, MAX_SECTION, MAX_THINK, MAX_THREADS, MAX_TURN, SHARES_ROUNDS, Sleep,
    parse_section, parse_sleep, parse_think,
};
pub use report::{ContendedCell, ContendedReport, ContendedRow, Disturbance, QuotaUsed};

pub(crate) use options::{CellKey, check_times};

use crate::clock::Ticks;
use crate::harness::Slice;
use crate::locks::with_lock;
use crate::session::StepsProgress;
use crate::{Error, LockName, Session, stats};
use beside::{ContendedSurroundings, rounds};
use grid::Grid;
use lockstead_render::machine::MachineFacts;
use slices::{ThreadLoad, WaitTicks};
use std::time::Duration;
use summary::GridSummary;
use work::WorkPace;

/// Measures what the options ask for.
///
/// # Errors
/// [`Error::Option`] for options out of range, [`Error::Unavailable`] for a
/// lock that is not built in, [`Error::Broken`] and [`Error::Stuck`] for locks
/// that do not work, [`Error::Threads`], [`Error::Process`], [`Error::Interrupted`].
pub fn measure(
    options: &ContendedOptions,
    session: &mut Session<'_>,
) -> Result<ContendedReport, Error> {
    options.check()?;
    let machine = MachineFacts::here();
    let bench = GridBench { options, clock: Ticks::calibrated(), pace: WorkPace::calibrated() };
    let grid = options.grid();
    let beside = ContendedSurroundings::enter(options)?;
    let mut progress = StepsProgress::new(grid.len() * options.turns() * options.locks.len());
    let cells = grid
        .into_iter()
        .map(|spot| bench.cell(spot, &beside, &mut progress, session))
        .collect::<Result<_, _>>()?;
    progress.end(session)?;
    let mut report = ContendedReport {
        machine,
        rounds: options.rounds,
        slice_ms: options.slice.as_secs_f64() * 1e3,
        wait_slice_ms: options.wait_slice().as_secs_f64() * 1e3,
        shares_slice_ms: options.shares.unwrap_or(options.slice).as_secs_f64() * 1e3,
        foreign_processes: options.foreign,
        quota: beside.quota_used(),
        sleep_in_section_ns: options.sleep.map(|sleep| sleep.length.as_nanos() as u64),
        sleep_every: options.sleep.map(|sleep| sleep.every),
        cells,
        summary: None,
    };
    report.summary = GridSummary::of(&Grid::from(&report));
    Ok(report)
}

struct GridBench<'a> {
    options: &'a ContendedOptions,
    clock: Ticks,
    pace: WorkPace,
}

/// What the rounds of one cell gave for one lock.
struct ContendedSamples {
    ops_per_s: Vec<f64>,
    ops_per_cpu_s: Vec<f64>,
    jain: Vec<f64>,
    timed_ops_per_s: Vec<f64>,
    waits: WaitTicks,
    /// The longest wait of each round.
    longest: Vec<f64>,
}

/// What one round gave for one lock.
struct RoundSample {
    counted: crate::harness::SliceWindow,
    timed: crate::harness::SliceWindow,
    waits: WaitTicks,
}

impl GridBench<'_> {
    fn cell(
        &self,
        spot: CellKey,
        beside: &ContendedSurroundings,
        progress: &mut StepsProgress,
        session: &mut Session<'_>,
    ) -> Result<ContendedCell, Error> {
        let options = self.options;
        let (pinned, threads, section, think) = spot;
        let label = label(spot);
        let load = ThreadLoad::of(spot, options.sleep, self.pace);
        let slice = |lock: LockName, length| Slice {
            lock: lock.name(),
            threads,
            length,
            patience: patience(spot, options),
        };
        let mut samples: Vec<ContendedSamples> =
            options.locks.iter().map(|_| ContendedSamples::new()).collect();
        let mut disturbance = rounds(
            (options.rounds, options.locks.len()),
            progress,
            || beside.observe(),
            |index, progress| {
                let lock = options.locks[index];
                progress.step(session, &format!("{label}: {lock}"))?;
                let (count, time) = (slice(lock, options.slice), slice(lock, options.wait_slice()));
                with_lock!(lock, L => {
                    let counted = slices::throughput::<L>(&count, load, session)?;
                    let (timed, waits) = slices::waits::<L>(&time, load, self.clock, session)?;
                    RoundSample { counted, timed, waits }
                })
            },
            |index, sample| samples[index].add(sample),
        )?;
        if let Some(length) = options.shares {
            samples.iter_mut().for_each(|samples| samples.jain.clear());
            disturbance = disturbance.and(rounds(
                (SHARES_ROUNDS, options.locks.len()),
                progress,
                || beside.observe(),
                |index, progress| {
                    let lock = options.locks[index];
                    progress.step(session, &format!("{label}: shares of {lock}"))?;
                    with_lock!(lock, L => slices::throughput::<L>(&slice(lock, length), load, session)?)
                },
                |index, counted| samples[index].jain.push(stats::jain(&counted.turns)),
            )?);
        }
        Ok(ContendedCell {
            threads,
            pinned,
            section_ns: section.as_nanos() as u64,
            think_ratio: think,
            disturbance,
            results: options
                .locks
                .iter()
                .zip(&samples)
                .map(|(&lock, samples)| samples.row(lock, self.clock))
                .collect(),
        })
    }
}

/// Returns a cell in the words of the progress.
pub(crate) fn label((pinned, threads, section, think): CellKey) -> String {
    let pinned = if pinned { " pinned" } else { "" };
    let plural = if threads == 1 { "" } else { "s" };
    format!("{threads}{pinned} thread{plural}, {section:?} section, {think}x think")
}

/// Returns how long threads may take to end when they are told to: each may first have its turn.
pub(crate) fn patience(
    (_, threads, section, think): CellKey,
    options: &ContendedOptions,
) -> Duration {
    let sleep = options.sleep.map_or(Duration::ZERO, |sleep| sleep.length);
    Duration::from_secs(20) + 4 * (section.mul_f64(1.0 + think) + sleep) * threads as u32
}

impl ContendedSamples {
    fn new() -> Self {
        Self {
            ops_per_s: Vec::new(),
            ops_per_cpu_s: Vec::new(),
            jain: Vec::new(),
            timed_ops_per_s: Vec::new(),
            waits: WaitTicks::new(),
            longest: Vec::new(),
        }
    }

    fn add(&mut self, sample: RoundSample) {
        self.ops_per_s.push(sample.counted.per_second());
        self.ops_per_cpu_s.push(sample.counted.per_cpu_second());
        self.jain.push(stats::jain(&sample.counted.turns));
        self.timed_ops_per_s.push(sample.timed.per_second());
        self.waits.merge(&sample.waits);
        self.longest.push(sample.waits.longest() as f64);
    }

    fn row(&self, lock: LockName, clock: Ticks) -> ContendedRow {
        let ops_per_s = stats::median(&self.ops_per_s);
        let (ops_per_s_min, ops_per_s_max) = stats::spread(&self.ops_per_s);
        ContendedRow {
            lock,
            ops_per_s,
            ops_per_cpu_s: stats::median(&self.ops_per_cpu_s),
            wait_p50_ns: self.waits.quantile_ns(0.5, clock),
            wait_p99_ns: self.waits.quantile_ns(0.99, clock),
            wait_p999_ns: self.waits.quantile_ns(0.999, clock),
            wait_max_ns: self.waits.max_ns(clock),
            wait_max_median_ns: clock.ns(stats::median(&self.longest) as u64),
            wait_weighted_p99_ns: self.waits.weighted_quantile_ns(0.99, clock),
            jain: stats::median(&self.jain),
            ops_per_s_min,
            ops_per_s_max,
            timed_ratio: stats::median(&self.timed_ops_per_s) / ops_per_s.max(1e-9),
        }
    }
}
