//! Many processes, one lock: processes × section × think time.
//!
//! As [`contended`], whose sections and think times these are,
//! with one thread in each process. A process counts its own sections; the
//! parent looks at the counts and at the processor time of all of them at the
//! beginning and at the end of a window.

use super::home::{Home, SharedLock, with_home};
use super::memory::{Plain, SharedMemory};
use super::process::{HandedFiles, WorkerJob, WorkerPlace, WorkerProcess, ending, until};
use crate::contended::{
    self, Disturbance,
    beside::rounds,
    work::{SectionWork, WorkPace, busy},
};
use crate::foreign::Observation;
use crate::locks::BenchLock;
use crate::session::StepsProgress;
use crate::{Error, Session, clock, options, stats};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The largest number of processes.
pub const MAX_PROCESSES: usize = 256;

/// How long processes may take to begin, and to end when they are told to.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a measurement is asked for: every combination of processes, section and think ratio.
#[derive(Clone, Debug)]
pub struct SharedOptions {
    /// Numbers of processes, each 1 to [`MAX_PROCESSES`].
    pub processes: Vec<usize>,
    /// Lengths of the critical section. Zero: one load and one store.
    pub sections: Vec<Duration>,
    /// Time between release and next acquisition, as a multiple of the section.
    pub thinks: Vec<f64>,
    /// The number of rounds; each measures all locks of a cell once, in shuffled order.
    pub rounds: usize,
    /// Time for one lock in one round.
    pub slice: Duration,
}

impl Default for SharedOptions {
    /// Returns options for 2, 4 and 16 processes, 5 rounds of 100 ms.
    fn default() -> Self {
        Self {
            processes: vec![2, 4, 16],
            sections: [0, 1_000, 20_000].map(Duration::from_nanos).to_vec(),
            thinks: vec![0.0, 1.0],
            rounds: 5,
            slice: Duration::from_millis(100),
        }
    }
}

/// One combination of processes, section and think time.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SharedCell {
    /// The number of processes, of one thread each.
    pub processes: usize,
    /// The length of the critical section.
    pub section_ns: u64,
    /// The time between a process's release and its next acquisition, as a multiple of the section.
    pub think_ratio: f64,
    /// What others did meanwhile.
    #[serde(flatten)]
    pub disturbance: Disturbance,
    /// One object for each lock.
    pub results: Vec<SharedRow>,
}

/// One lock in one cell.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SharedRow {
    /// The lock that was measured.
    pub lock: SharedLock,
    /// Critical sections per second, all processes together: the median of the rounds.
    pub ops_per_s: f64,
    /// Critical sections per second of processor time: the median of the rounds.
    pub ops_per_cpu_s: f64,
    /// Jain's fairness index of the processes' shares: the median of the rounds.
    pub jain: f64,
    /// `ops_per_s` of the slowest round.
    pub ops_per_s_min: f64,
    /// `ops_per_s` of the fastest round.
    pub ops_per_s_max: f64,
}

/// Measures all locks in all cells.
///
/// # Errors
/// [`Error::Option`] for options out of range, [`Error::Broken`] and
/// [`Error::Stuck`] for locks that do not work, [`Error::Process`],
/// [`Error::Worker`], [`Error::Segment`], [`Error::Interrupted`].
pub fn measure(
    options: &SharedOptions,
    session: &mut Session<'_>,
) -> Result<Vec<SharedCell>, Error> {
    options.check()?;
    let pace = WorkPace::calibrated();
    let mut grid = Vec::new();
    for &processes in &options.processes {
        for &section in &options.sections {
            // Of nothing all multiples are nothing.
            let thinks = if section.is_zero() { &options.thinks[..1] } else { &options.thinks };
            for &think in thinks {
                grid.push((processes, section, think));
            }
        }
    }
    let mut progress = StepsProgress::new(grid.len() * options.rounds * SharedLock::ALL.len());
    let cells = grid
        .into_iter()
        .map(|place| options.cell(place, pace, &mut progress, session))
        .collect::<Result<_, _>>()?;
    progress.end(session)?;
    Ok(cells)
}

impl SharedOptions {
    fn check(&self) -> Result<(), Error> {
        options::some("--processes", &self.processes, "at least one number")?;
        for &processes in &self.processes {
            options::within("--processes", processes, 1..=MAX_PROCESSES, "")?;
        }
        contended::check_times(&self.sections, &self.thinks)?;
        options::within("--rounds", self.rounds, 1..=1000, "")?;
        options::within("--slice", self.slice.as_millis(), 1..=3_600_000, "ms")
    }

    fn cell(
        &self,
        (processes, section, think): (usize, Duration, f64),
        pace: WorkPace,
        progress: &mut StepsProgress,
        session: &mut Session<'_>,
    ) -> Result<SharedCell, Error> {
        let label = format!("{processes} processes, {section:?} section, {think}x think");
        let part = ContendedPart {
            lock: SharedLock::Lockstead,
            index: 0,
            section: pace.steps(section),
            think: pace.steps(section.mul_f64(think)),
        };
        let mut samples = SharedLock::ALL.map(|_| SharedSamples::default());
        // The workers are the run's own.
        let observe = || {
            let (observation, before) = (Observation::begin(), clock::children_cpu());
            move || observation.foreign_percent_beside(clock::children_cpu() - before)
        };
        let disturbance = rounds(
            (self.rounds, SharedLock::ALL.len()),
            progress,
            observe,
            |index, progress| {
                let lock = SharedLock::ALL[index];
                progress.step(session, &format!("{label}: {lock}"))?;
                let slice = SharedSlice {
                    part: ContendedPart { lock, ..part },
                    processes,
                    length: self.slice,
                };
                with_home!(lock, H => slice.run::<H>(session))
            },
            |index, window| samples[index].add(&window),
        )?;
        Ok(SharedCell {
            processes,
            section_ns: section.as_nanos() as u64,
            think_ratio: think,
            disturbance,
            results: SharedLock::ALL.iter().zip(&samples).map(|(&l, s)| s.row(l)).collect(),
        })
    }
}

/// What the rounds of one cell gave for one lock.
#[derive(Default)]
struct SharedSamples {
    ops_per_s: Vec<f64>,
    ops_per_cpu_s: Vec<f64>,
    jain: Vec<f64>,
}

impl SharedSamples {
    fn add(&mut self, window: &SharedWindow) {
        let operations = window.turns.iter().sum::<u64>() as f64;
        self.ops_per_s.push(operations / window.elapsed.as_secs_f64());
        self.ops_per_cpu_s.push(operations / window.cpu.as_secs_f64().max(1e-9));
        self.jain.push(stats::jain(&window.turns));
    }

    fn row(&self, lock: SharedLock) -> SharedRow {
        let (ops_per_s_min, ops_per_s_max) = stats::spread(&self.ops_per_s);
        SharedRow {
            lock,
            ops_per_s: stats::median(&self.ops_per_s),
            ops_per_cpu_s: stats::median(&self.ops_per_cpu_s),
            jain: stats::median(&self.jain),
            ops_per_s_min,
            ops_per_s_max,
        }
    }
}

/// The work of one party.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct ContendedPart {
    lock: SharedLock,
    index: usize,
    section: u64,
    think: u64,
}

/// What all parties and the parent see.
#[repr(C)]
struct CellControl {
    ready: AtomicU32,
    begins: AtomicU32,
    over: AtomicU32,
    shared: SectionWork,
    turns: [SharedCounter; MAX_PROCESSES],
}

/// A counter on lines of its own, so that counting disturbs no neighbour.
#[repr(C, align(128))]
struct SharedCounter(AtomicU64);

// SAFETY: by PLAIN-BITS it is made of atomics: any bits are valid, and others may write at any
// time.
unsafe impl Plain for CellControl {}

/// A slice of time in which processes work on one lock.
struct SharedSlice {
    part: ContendedPart,
    processes: usize,
    length: Duration,
}

/// What was seen from outside during the window.
struct SharedWindow {
    elapsed: Duration,
    cpu: Duration,
    turns: Vec<u64>,
}

impl SharedSlice {
    fn run<H: Home>(&self, session: &Session<'_>) -> Result<SharedWindow, Error> {
        let (control, home) = (SharedMemory::<CellControl>::create()?, H::create()?);
        let mut workers = Vec::new();
        for index in 0..self.processes {
            let job = ContendedPart { index, ..self.part };
            workers.push(WorkerProcess::start(
                &job,
                &[control.as_fd(), home.file()],
                WorkerPlace::Here,
            )?);
        }
        let mut early = None;
        let begun = until(PATIENCE, || {
            early = workers.iter_mut().find_map(WorkerProcess::ended);
            early.is_some()
                || session.stopped()
                || control.ready.load(Ordering::Relaxed) as usize == self.processes
        });
        if let Some(status) = early {
            return Err(Error::Worker { how: ending(status) });
        }
        if session.stopped() {
            return Err(Error::Interrupted);
        }
        if !begun {
            return Err(self.stuck(workers.len()));
        }
        control.begins.store(1, Ordering::Relaxed);
        let window = self.watch(session, &control, &workers);
        control.over.store(1, Ordering::Relaxed);
        let mut statuses = Vec::new();
        let patience = PATIENCE + self.length;
        until(patience, || {
            statuses.extend(workers.iter_mut().filter_map(WorkerProcess::ended));
            statuses.len() == self.processes
        });
        if session.stopped() {
            return Err(Error::Interrupted);
        }
        if let Some(&status) = statuses.iter().find(|&&status| status != 0) {
            return Err(Error::Worker { how: ending(status) });
        }
        if statuses.len() < self.processes {
            return Err(self.stuck(self.processes - statuses.len()));
        }
        let (operations, counted) = (control.counts(self.processes), control.shared.sections());
        let operations = operations.iter().sum();
        if operations != counted {
            return Err(Error::Broken { lock: self.part.lock.name(), operations, counted });
        }
        if window.turns.iter().all(|turns| *turns == 0) {
            let lock = self.part.lock.name();
            return Err(Error::NoTurn { lock, seconds: PATIENCE.as_secs() });
        }
        Ok(window)
    }

    fn stuck(&self, missing: usize) -> Error {
        Error::Stuck {
            lock: self.part.lock.name(),
            missing,
            threads: self.processes,
            seconds: PATIENCE.as_secs(),
        }
    }

    fn watch(
        &self,
        session: &Session<'_>,
        control: &CellControl,
        workers: &[WorkerProcess],
    ) -> SharedWindow {
        let sleep = |length| crate::harness::sleep_within(length, session);
        let cpu = || workers.iter().map(WorkerProcess::cpu).sum::<Duration>();
        sleep((self.length / 10).max(Duration::from_millis(2)));
        let (before, used, start) = (control.counts(self.processes), cpu(), Instant::now());
        loop {
            sleep(self.length);
            let (elapsed, used) = (start.elapsed(), cpu() - used);
            let after = control.counts(self.processes);
            // As of threads: a window without a turn says nothing yet.
            if after != before || session.stopped() || elapsed > PATIENCE {
                let turns = after.iter().zip(&before).map(|(after, before)| after - before);
                return SharedWindow { elapsed, cpu: used, turns: turns.collect() };
            }
        }
    }
}

impl CellControl {
    fn counts(&self, processes: usize) -> Vec<u64> {
        self.turns[..processes].iter().map(|count| count.0.load(Ordering::Relaxed)).collect()
    }
}

impl WorkerJob for ContendedPart {
    const NAME: &'static str = "contended";

    fn work(self, mut files: HandedFiles) -> Result<(), Error> {
        let part = self;
        let control = SharedMemory::<CellControl>::open(files.next())?;
        with_home!(part.lock, H => party(part, &control, &H::attach(files.next())?));
        Ok(())
    }
}

fn party<H: Home>(part: ContendedPart, control: &CellControl, home: &H) {
    let (lock, counter) = (home.lock(), &control.turns[part.index].0);
    // The first acquisition joins tables, and is no part of the measurement.
    lock.with(|| ());
    control.ready.fetch_add(1, Ordering::Relaxed);
    until(PATIENCE, || control.begins.load(Ordering::Relaxed) != 0);
    let (mut turns, mut work) = (0, part.index as u64);
    while control.over.load(Ordering::Relaxed) == 0 {
        work = lock.with(|| control.shared.section(part.section, work));
        turns += 1;
        counter.store(turns, Ordering::Relaxed);
        if part.think > 0 {
            work = busy(part.think, work);
        }
    }
    black_box(work);
}
