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

pub(crate) mod slices;
pub(crate) mod work;

use crate::clock::Ticks;
use crate::foreign::{Observation, TOLERATED};
use crate::harness::Slice;
use crate::locks::with_lock;
use crate::machine::Machine;
use crate::session::Progress;
use crate::{Error, LockName, Session, options, stats};
use serde::Serialize;
use slices::{Load, Waits};
use std::time::Duration;
use work::Pace;

/// What to measure: every combination of threads, section and think ratio.
#[derive(Clone, Debug)]
pub struct Options {
    /// The locks, in the order of the report.
    pub locks: Vec<LockName>,
    /// Numbers of threads, each 1 to [`MAX_THREADS`].
    pub threads: Vec<usize>,
    /// Lengths of the critical section. Zero: one load and one store.
    pub sections: Vec<Duration>,
    /// Time between release and next acquisition, as a multiple of the section.
    pub thinks: Vec<f64>,
    /// Rounds; each measures all locks of a cell once, in shuffled order.
    pub rounds: usize,
    /// Time for one lock in one round; half as much again for its waits.
    pub slice: Duration,
}

/// The largest number of threads.
pub const MAX_THREADS: usize = 1024;
/// The longest section.
pub const MAX_SECTION: Duration = Duration::from_millis(100);
/// The largest think ratio.
pub const MAX_THINK: f64 = 1000.0;
/// The longest section and think time together, in seconds.
pub const MAX_TURN: f64 = 1.0;

impl Default for Options {
    /// The grid of `lockstead bench contended`, 5 rounds of 100 ms.
    fn default() -> Self {
        Self {
            locks: crate::locks::available(),
            threads: vec![2, 4, 16, 64],
            sections: [0, 50, 1_000, 20_000].map(Duration::from_nanos).to_vec(),
            thinks: vec![0.0, 1.0, 10.0],
            rounds: 5,
            slice: Duration::from_millis(100),
        }
    }
}

impl Options {
    /// The same cells, each in 3 rounds of 20 ms.
    #[must_use]
    pub fn quick(self) -> Self {
        Self { rounds: 3, slice: Duration::from_millis(20), ..self }
    }
}

/// A section as users write it: `0`, `50ns`, `1us`, `20us`.
///
/// # Errors
/// [`Error::Option`] naming `--section`.
pub fn parse_section(text: &str) -> Result<Duration, Error> {
    let section = match text.trim() {
        "0" => Some(Duration::ZERO),
        text => humantime::parse_duration(text).ok(),
    };
    section.filter(|&section| section <= MAX_SECTION).ok_or_else(|| Error::Option {
        option: "--section",
        given: text.to_owned(),
        allowed: format!("durations from 0 to {MAX_SECTION:?}, written 0, 50ns, 1us, 2ms"),
    })
}

/// A think ratio as users write it: `0`, `1x`, `10x`, `0.5x`.
///
/// # Errors
/// [`Error::Option`] naming `--think`.
pub fn parse_think(text: &str) -> Result<f64, Error> {
    let number = text.trim();
    number
        .strip_suffix('x')
        .unwrap_or(number)
        .parse()
        .ok()
        .filter(|think| (0.0..=MAX_THINK).contains(think))
        .ok_or_else(|| Error::Option {
            option: "--think",
            given: text.to_owned(),
            allowed: format!(
                "multiples of the section from 0 to {MAX_THINK}x, written 0, 0.5x, 10x"
            ),
        })
}

/// The result.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Where.
    pub machine: Machine,
    /// Rounds of each cell.
    pub rounds: usize,
    /// Length of a slice that counts sections.
    pub slice_ms: f64,
    /// Length of a slice that times waits. A wait that would have been longer
    /// is cut off about there, for then the others stop.
    pub wait_slice_ms: f64,
    /// One entry for each combination.
    pub cells: Vec<Cell>,
}

/// One combination of threads, section and think time.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// Threads.
    pub threads: usize,
    /// Length of the section in nanoseconds.
    pub section_ns: u64,
    /// Think time as a multiple of the section.
    pub think_ratio: f64,
    /// Processor time that other processes used in the rounds that count, in
    /// per cent of all processors: the median of the rounds. `None` when the
    /// rounds are too short to tell (below 200 ms), or the system does not.
    pub foreign_cpu_percent: Option<f64>,
    /// Rounds that were thrown away because others used more than 6 %. As many
    /// as there are rounds; then rounds count whatever others do.
    pub rounds_discarded: usize,
    /// One row for each lock.
    pub results: Vec<Row>,
}

/// One lock in one cell.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The lock.
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

impl Cell {
    /// The row of `lock`.
    #[must_use]
    pub fn row(&self, lock: LockName) -> Option<&Row> {
        self.results.iter().find(|row| row.lock == lock)
    }

    /// The peer with the highest throughput: what the ratios are to.
    #[must_use]
    pub fn best_peer(&self) -> Option<&Row> {
        self.results
            .iter()
            .filter(|row| row.lock.is_peer())
            .max_by(|a, b| a.ops_per_s.total_cmp(&b.ops_per_s))
    }
}

/// Measures.
///
/// # Errors
/// [`Error::Option`] for options out of range, [`Error::Unavailable`] for a
/// lock that is not built in, [`Error::Broken`] and [`Error::Stuck`] for locks
/// that do not work, [`Error::Threads`], [`Error::Interrupted`].
pub fn measure(options: &Options, session: &mut Session<'_>) -> Result<Report, Error> {
    options.check()?;
    let machine = Machine::here();
    let bench = Bench { options, clock: Ticks::calibrated(), pace: Pace::calibrated() };
    let grid = options.grid();
    let mut progress = Progress::new(grid.len() * options.rounds * options.locks.len());
    let cells = grid
        .into_iter()
        .map(|place| bench.cell(place, &mut progress, session))
        .collect::<Result<_, _>>()?;
    progress.end(session)?;
    Ok(Report {
        machine,
        rounds: options.rounds,
        slice_ms: options.slice.as_secs_f64() * 1e3,
        wait_slice_ms: options.wait_slice().as_secs_f64() * 1e3,
        cells,
    })
}

/// Threads, section, think ratio.
type Place = (usize, Duration, f64);

/// Whether sections and think times, as multiples of them, can be measured.
pub(crate) fn check_times(sections: &[Duration], thinks: &[f64]) -> Result<(), Error> {
    options::some("--section", sections, "at least one duration")?;
    options::some("--think", thinks, "at least one multiple")?;
    for &section in sections {
        options::within("--section", section.as_nanos(), 0..=MAX_SECTION.as_nanos(), "ns")?;
    }
    for &think in thinks {
        options::within("--think", think, 0.0..=MAX_THINK, "x")?;
        for &section in sections {
            // Who is measured looks whether to stop once in a while only.
            let turn = section.as_secs_f64() * (1.0 + think);
            options::within("--section times (1 + --think)", turn, 0.0..=MAX_TURN, " s")?;
        }
    }
    Ok(())
}

impl Options {
    fn check(&self) -> Result<(), Error> {
        options::locks(&self.locks)?;
        options::some("--threads", &self.threads, "at least one number")?;
        for &threads in &self.threads {
            options::within("--threads", threads, 1..=MAX_THREADS, "")?;
        }
        check_times(&self.sections, &self.thinks)?;
        options::within("--rounds", self.rounds, 1..=1000, "")?;
        options::within("--slice", self.slice.as_millis(), 1..=3_600_000, "ms")
    }

    fn grid(&self) -> Vec<Place> {
        let mut grid = Vec::new();
        for &threads in &self.threads {
            for &section in &self.sections {
                for &think in &self.thinks {
                    grid.push((threads, section, think));
                }
            }
        }
        grid
    }

    fn wait_slice(&self) -> Duration {
        self.slice / 2
    }
}

struct Bench<'a> {
    options: &'a Options,
    clock: Ticks,
    pace: Pace,
}

/// What the rounds of one cell gave for one lock.
struct Samples {
    ops_per_s: Vec<f64>,
    ops_per_cpu_s: Vec<f64>,
    jain: Vec<f64>,
    timed_ops_per_s: Vec<f64>,
    waits: Waits,
}

/// What one round gave for one lock.
struct Sample {
    counted: crate::harness::Window,
    timed: crate::harness::Window,
    waits: Waits,
}

impl Bench<'_> {
    fn cell(
        &self,
        (threads, section, think): Place,
        progress: &mut Progress,
        session: &mut Session<'_>,
    ) -> Result<Cell, Error> {
        let options = self.options;
        let label = format!("{threads} threads, {section:?} section, {think}x think");
        let load = Load {
            section: self.pace.steps(section),
            think: self.pace.steps(section.mul_f64(think)),
        };
        let slice = |lock, length| Slice {
            lock,
            threads,
            length,
            patience: Duration::from_secs(20) + 4 * section.mul_f64(1.0 + think) * threads as u32,
        };
        let mut samples: Vec<Samples> = options.locks.iter().map(|_| Samples::new()).collect();
        let mut order: Vec<usize> = (0..options.locks.len()).collect();
        let mut foreign = Vec::new();
        let mut discarded = 0;
        let mut kept = 0;
        while kept < options.rounds {
            fastrand::shuffle(&mut order);
            let observation = Observation::begin();
            let mut round = Vec::new();
            for &index in &order {
                let lock = options.locks[index];
                progress.step(session, &format!("{label}: {lock}"))?;
                let (count, time) = (slice(lock, options.slice), slice(lock, options.wait_slice()));
                let sample = with_lock!(lock, L => {
                    let counted = slices::throughput::<L>(&count, load, session)?;
                    let (timed, waits) = slices::waits::<L>(&time, load, self.clock, session)?;
                    Sample { counted, timed, waits }
                })?;
                round.push((index, sample));
            }
            let others = observation.foreign_percent();
            if others.is_some_and(|percent| percent > TOLERATED) && discarded < options.rounds {
                discarded += 1;
                progress.again(order.len());
                continue;
            }
            kept += 1;
            foreign.extend(others);
            for (index, sample) in round {
                samples[index].add(sample);
            }
        }
        Ok(Cell {
            threads,
            section_ns: section.as_nanos() as u64,
            think_ratio: think,
            foreign_cpu_percent: (!foreign.is_empty()).then(|| stats::median(&foreign)),
            rounds_discarded: discarded,
            results: options
                .locks
                .iter()
                .zip(&samples)
                .map(|(&lock, samples)| samples.row(lock, self.clock))
                .collect(),
        })
    }
}

impl Samples {
    fn new() -> Self {
        Self {
            ops_per_s: Vec::new(),
            ops_per_cpu_s: Vec::new(),
            jain: Vec::new(),
            timed_ops_per_s: Vec::new(),
            waits: Waits::new(),
        }
    }

    fn add(&mut self, sample: Sample) {
        self.ops_per_s.push(sample.counted.per_second());
        self.ops_per_cpu_s.push(sample.counted.per_cpu_second());
        self.jain.push(stats::jain(&sample.counted.turns));
        self.timed_ops_per_s.push(sample.timed.per_second());
        self.waits.merge(&sample.waits);
    }

    fn row(&self, lock: LockName, clock: Ticks) -> Row {
        let ops_per_s = stats::median(&self.ops_per_s);
        let (ops_per_s_min, ops_per_s_max) = stats::spread(&self.ops_per_s);
        Row {
            lock,
            ops_per_s,
            ops_per_cpu_s: stats::median(&self.ops_per_cpu_s),
            wait_p50_ns: self.waits.quantile_ns(0.5, clock),
            wait_p99_ns: self.waits.quantile_ns(0.99, clock),
            wait_p999_ns: self.waits.quantile_ns(0.999, clock),
            wait_max_ns: self.waits.max_ns(clock),
            jain: stats::median(&self.jain),
            ops_per_s_min,
            ops_per_s_max,
            timed_ratio: stats::median(&self.timed_ops_per_s) / ops_per_s.max(1e-9),
        }
    }
}
