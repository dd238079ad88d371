//! Several locks at a time: what wait/wound mutexes cost where threads want what others have.
//!
//! # Role
//! What `lockstead bench ww` runs. In a *turn* a thread takes some of the locks that there are,
//! chosen at random and in random order, works on what they guard for the length of the section,
//! releases them, and begins again. A [`WwScheme`] is a way to do that without deadlock: contexts by
//! wait-die and by wound-wait, an order of the locks, and what programs do without either.
//!
//! | module | has |
//! |---|---|
//! | `options` | what is asked for, and the names of the schemes |
//! | `sets` | the schemes |
//! | `slices` | the measuring loops |
//! | `report` | what comes of it |

mod options;
mod report;
mod sets;
mod slices;

pub use options::{MAX_LOCKS, MAX_TAKE, WwOptions, WwScheme};
pub use report::{WwCell, WwReport, WwRow};

use crate::clock::Ticks;
use crate::contended::beside::rounds;
use crate::contended::work::WorkPace;
use crate::foreign::Observation;
use crate::harness::Slice;
use crate::session::StepsProgress;
use crate::{Error, Session, stats};
use lockstead_render::machine::MachineFacts;
use options::WwKey;
use sets::{Contexts, Ordered, Trying};
use slices::{SliceLoad, SliceSample, TurnTimes};
use std::time::Duration;

/// Measures what the options ask for.
///
/// # Errors
/// [`Error::Option`] for options out of range, [`Error::Broken`] and [`Error::Stuck`] for locks
/// that do not work, [`Error::Threads`], [`Error::Interrupted`].
pub fn measure(options: &WwOptions, session: &mut Session<'_>) -> Result<WwReport, Error> {
    options.check()?;
    let machine = MachineFacts::here();
    let bench = WwBench { options, clock: Ticks::calibrated(), pace: WorkPace::calibrated() };
    let grid = options.grid();
    let mut progress = StepsProgress::new(grid.len() * options.rounds * options.schemes.len());
    let cells = grid
        .into_iter()
        .map(|key| bench.cell(key, &mut progress, session))
        .collect::<Result<_, _>>()?;
    progress.end(session)?;
    Ok(WwReport {
        machine,
        rounds: options.rounds,
        slice_ms: options.slice.as_secs_f64() * 1e3,
        timed_slice_ms: options.timed_slice().as_secs_f64() * 1e3,
        cells,
    })
}

struct WwBench<'a> {
    options: &'a WwOptions,
    clock: Ticks,
    pace: WorkPace,
}

impl WwBench<'_> {
    fn cell(
        &self,
        key: WwKey,
        progress: &mut StepsProgress,
        session: &mut Session<'_>,
    ) -> Result<WwCell, Error> {
        let options = self.options;
        let load =
            SliceLoad { take: key.take, locks: key.locks, steps: self.pace.steps(key.section) };
        // When they are told to stop, each thread may still have to wait for its turn.
        let patience = Duration::from_secs(20) + 8 * key.section * key.threads as u32;
        let mut samples: Vec<WwSamples> =
            options.schemes.iter().map(|_| WwSamples::new()).collect();
        let disturbance = rounds(
            (options.rounds, options.schemes.len()),
            progress,
            || {
                let observation = Observation::begin();
                move || observation.foreign_percent()
            },
            |index, progress| {
                let scheme = options.schemes[index];
                progress.step(session, &format!("{key}: {scheme}"))?;
                let slice =
                    |length| Slice { lock: scheme.name(), threads: key.threads, length, patience };
                let counted = slice(options.slice);
                let timed = slice(options.timed_slice());
                self.sample(scheme, load, [&counted, &timed], session)
            },
            |index, sample| samples[index].add(&sample),
        )?;
        Ok(WwCell {
            threads: key.threads,
            take: key.take,
            locks: key.locks,
            section_ns: key.section.as_nanos() as u64,
            disturbance,
            results: options
                .schemes
                .iter()
                .zip(&samples)
                .map(|(&scheme, samples)| samples.row(scheme, self.clock))
                .collect(),
        })
    }

    fn sample(
        &self,
        scheme: WwScheme,
        load: SliceLoad,
        slices: [&Slice; 2],
        session: &Session<'_>,
    ) -> Result<[SliceSample; 2], Error> {
        use lockstead_core::RawMutex;
        use lockstead_core::ww::Scheme;
        use lockstead_linux::Linux;
        use std::sync::Mutex;
        let [counted, timed] = slices;
        macro_rules! both {
            ($set:expr) => {
                [
                    slices::counted(counted, load, $set, session)?,
                    slices::timed(timed, load, $set, self.clock, session)?,
                ]
            };
        }
        Ok(match scheme {
            WwScheme::WoundWait => both!(Contexts::new(Scheme::WoundWait, load.locks)),
            WwScheme::WaitDie => both!(Contexts::new(Scheme::WaitDie, load.locks)),
            WwScheme::Order => both!(Ordered::<RawMutex<Linux>>::new(load.locks)),
            WwScheme::OrderStd => both!(Ordered::<Mutex<()>>::new(load.locks)),
            WwScheme::TryStd => both!(Trying::new(load.locks)),
        })
    }
}

/// What the rounds of one cell gave for one scheme.
struct WwSamples {
    per_s: Vec<f64>,
    per_cpu_s: Vec<f64>,
    timed_per_s: Vec<f64>,
    jain: Vec<f64>,
    refusals: Vec<f64>,
    retries: Vec<f64>,
    switches: [Vec<f64>; 2],
    times: TurnTimes,
}

impl WwSamples {
    fn new() -> Self {
        Self {
            per_s: Vec::new(),
            per_cpu_s: Vec::new(),
            timed_per_s: Vec::new(),
            jain: Vec::new(),
            refusals: Vec::new(),
            retries: Vec::new(),
            switches: [Vec::new(), Vec::new()],
            times: TurnTimes::new(),
        }
    }

    fn add(&mut self, [counted, timed]: &[SliceSample; 2]) {
        self.per_s.push(counted.window.per_second());
        self.per_cpu_s.push(counted.window.per_cpu_second());
        self.timed_per_s.push(timed.window.per_second());
        self.jain.push(stats::jain(&counted.window.turns));
        let tally = &counted.tally;
        let a_turn = |number: u64| number as f64 / tally.turns.max(1) as f64;
        self.refusals.push(a_turn(tally.refusals));
        self.retries.push(a_turn(tally.retries));
        for (all, number) in self.switches.iter_mut().zip(tally.switches) {
            all.push(a_turn(number));
        }
        self.times.merge(&timed.times);
    }

    fn row(&self, scheme: WwScheme, clock: Ticks) -> WwRow {
        let turns_per_s = stats::median(&self.per_s);
        let (turns_per_s_min, turns_per_s_max) = stats::spread(&self.per_s);
        WwRow {
            scheme,
            turns_per_s,
            turns_per_cpu_s: stats::median(&self.per_cpu_s),
            refusals_per_turn: stats::median(&self.refusals),
            retries_per_turn: stats::median(&self.retries),
            voluntary_switches_per_turn: stats::median(&self.switches[0]),
            involuntary_switches_per_turn: stats::median(&self.switches[1]),
            turn_p999_ns: self.times.ticks.quantile_ns(0.999, clock),
            turn_max_ns: self.times.ticks.max_ns(clock),
            overtaken_max: self.times.overtaken,
            jain: stats::median(&self.jain),
            turns_per_s_min,
            turns_per_s_max,
            timed_ratio: stats::median(&self.timed_per_s) / turns_per_s.max(1e-9),
        }
    }
}
