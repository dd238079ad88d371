//! How well the sources know whether an owner runs, and what they cost.
//!
//! # Role
//! What `lockstead oncpu check` measures. The table of who runs where is the truth that
//! the other sources are held against: it is asked just before and just after them, and
//! where it changed in between the answer is not counted.

use crate::session::StepsProgress;
use crate::{Error, Session, stats};
use core::panic::Location;
use lockstead_core::{OnCpu, Platform, RawMutex, Slot};
use lockstead_linux::Linux;
use lockstead_linux::oncpu::status;
use lockstead_linux::owner::{Oracle, ask};
use lockstead_oncpu::{OncpuRefusal, start, stop};
use lockstead_render::machine::MachineFacts;
use serde::Serialize;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// What a measurement is asked for.
#[derive(Clone, Copy, Debug)]
pub struct OncpuOptions {
    /// Threads that fight for one mutex.
    pub threads: usize,
    /// How long they hold it, and how long they do without.
    pub section: Duration,
    /// The time for which each source is asked.
    pub time: Duration,
}

/// What was measured, as reports write it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OncpuReport {
    /// The machine that was measured, and when.
    pub machine: MachineFacts,
    /// The number of threads that fought for one mutex.
    pub threads: usize,
    /// How long they held it each time, and how long they did without, in nanoseconds.
    pub section_ns: u64,
    /// Starting the table, in milliseconds: the median; null where it was kept already.
    pub start_ms: Option<f64>,
    /// Processor time of a switch between two threads on one processor, without the table, with the
    /// byte that wakes the other: the median; null as `start_ms`.
    pub switch_ns: Option<f64>,
    /// What the table adds to that: the median of the differences; null as `start_ms`.
    pub switch_added_ns: Option<f64>,
    /// One object for each source.
    pub sources: Vec<Source>,
}

/// One source against the table.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Source {
    /// The name of the source: `table`, which the others are compared with and which has costs
    /// only, `processor`, `clock`, or `both`.
    pub source: &'static str,
    /// The number of questions that count: the table said the same before and after.
    pub questions: u64,
    /// The number of them about owners that did not run.
    pub off: u64,
    /// The share of its answers "does not run" that were right; null if there were none.
    pub right_percent: Option<f64>,
    /// The share of the owners that did not run that it found; null if there were none.
    pub found_percent: Option<f64>,
    /// A question about a thread that runs: the average of many in a row, for a clock is not read
    /// for each.
    pub running_ns: f64,
    /// A question about a thread that sleeps, in the same way.
    pub sleeping_ns: f64,
}

const SOURCES: [(&str, Oracle); 4] = [
    ("table", Oracle::Table),
    ("processor", Oracle::Processor),
    ("clock", Oracle::Clock),
    ("both", Oracle::Both),
];
/// Rounds of each cost.
const ROUNDS: usize = 7;

/// Why it was not measured.
#[derive(Debug)]
pub enum OncpuFailure {
    /// There is no table, and none can be started.
    Table(OncpuRefusal),
    /// Somebody has stopped the table on the way.
    Stopped,
    /// Another error of a measurement.
    Other(Error),
}

impl From<Error> for OncpuFailure {
    fn from(error: Error) -> Self {
        OncpuFailure::Other(error)
    }
}

/// Stops the table that was started for the measurement.
struct Started(bool);

impl Drop for Started {
    fn drop(&mut self) {
        if self.0 {
            // Whoever could start it can stop it.
            let _ = stop();
        }
    }
}

/// Starts the table if nobody keeps one, measures, and stops it again. The process must
/// not have taken a lock of this project before: locks look for the table once.
///
/// # Errors
/// [`OncpuFailure`].
pub fn measure(
    options: &OncpuOptions,
    session: &mut Session<'_>,
) -> Result<OncpuReport, OncpuFailure> {
    let is_kept = || match status() {
        Ok(found) => Ok(found.is_some_and(|running| running.kept)),
        Err(why) => Err(OncpuFailure::Table(why.into())),
    };
    let kept = is_kept()?;
    let mut progress = StepsProgress::new(ROUNDS + 2 * SOURCES.len() - 1);
    let mut started = Started(!kept);
    let (mut starts, mut plain, mut added) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..if kept { 0 } else { ROUNDS } {
        progress.step(session, "the cost of a switch")?;
        let without = switch_ns();
        let begin = Instant::now();
        start().map_err(OncpuFailure::Table)?;
        starts.push(begin.elapsed().as_secs_f64() * 1e3);
        added.push(switch_ns() - without);
        plain.push(without);
        stop().map_err(OncpuFailure::Table)?;
    }
    if !kept {
        start().map_err(OncpuFailure::Table)?;
    }
    let mut sources = Vec::new();
    for (name, oracle) in SOURCES {
        progress.step(session, name)?;
        let costs =
            [AskedThread::Running, AskedThread::Sleeping].map(|peer| question_ns(oracle, peer));
        let counts = if oracle == Oracle::Table {
            [[0; 3]; 2]
        } else {
            progress.step(session, name)?;
            compare(oracle, options, session)
        };
        // Of a table that is no more nothing can be learnt.
        if !session.stopped() && !is_kept()? {
            return Err(OncpuFailure::Stopped);
        }
        sources.push(Source::new(name, counts, costs));
    }
    progress.end(session)?;
    if started.0 {
        started.0 = false;
        stop().map_err(OncpuFailure::Table)?;
    }
    let middle = |values: &[f64]| (!values.is_empty()).then(|| stats::median(values));
    Ok(OncpuReport {
        machine: MachineFacts::here(),
        threads: options.threads,
        section_ns: options.section.as_nanos() as u64,
        start_ms: middle(&starts),
        switch_ns: middle(&plain),
        switch_added_ns: middle(&added),
        sources,
    })
}

/// The number of answers by the truth (off, on) and the answer (off, on, unknown).
type AnswerCounts = [[u64; 3]; 2];

impl Source {
    fn new(
        source: &'static str,
        counts: AnswerCounts,
        [running_ns, sleeping_ns]: [f64; 2],
    ) -> Self {
        let [[right, missed, silent], [wrong, ..]] = counts;
        let percent = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64 * 100.0);
        Source {
            source,
            questions: counts.as_flattened().iter().sum(),
            off: right + missed + silent,
            right_percent: percent(right, right + wrong),
            found_percent: percent(right, right + missed + silent),
            running_ns,
            sleeping_ns,
        }
    }
}

/// Has threads fight for a mutex; one that finds it taken asks about the owner.
fn compare(source: Oracle, options: &OncpuOptions, session: &Session<'_>) -> AnswerCounts {
    let lock = RawMutex::<Linux>::new();
    let counts = Mutex::new([[0; 3]; 2]);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..options.threads {
            scope.spawn(|| {
                let mut mine: AnswerCounts = [[0; 3]; 2];
                let here = Location::caller();
                while !over.load(Relaxed) {
                    if !lock.try_lock(here) {
                        if let Some((truth, answer)) = question(&lock, source) {
                            mine[truth][answer] += 1;
                        }
                        lock.lock(here).expect("nobody holds it twice, nobody forks");
                    }
                    work(options.section);
                    // SAFETY: by PEER-HELD this thread holds the lock, which it took above.
                    unsafe { lock.unlock() };
                    work(options.section);
                }
                let mut all = counts.lock().unwrap_or_else(|e| e.into_inner());
                for (sum, one) in all.as_flattened_mut().iter_mut().zip(mine.as_flattened()) {
                    *sum += one;
                }
            });
        }
        let end = Instant::now() + options.time;
        while Instant::now() < end && !session.stopped() {
            thread::sleep(Duration::from_millis(20));
        }
        over.store(true, Relaxed);
    });
    counts.into_inner().unwrap_or_else(|e| e.into_inner())
}

/// Asks about the owner of `lock`; returns the truth and the answer, if the truth stayed the same.
fn question(lock: &RawMutex<Linux>, source: Oracle) -> Option<(usize, usize)> {
    let owner = lock.owner()?;
    // A clock wants to be asked for a while.
    let patience = Instant::now() + Duration::from_micros(20);
    loop {
        let before = ask(owner, Oracle::Table);
        let answer = ask(owner, source);
        let after = ask(owner, Oracle::Table);
        if lock.owner() != Some(owner) || before != after {
            return None;
        }
        let truth = match before {
            OnCpu::No => 0,
            OnCpu::Yes => 1,
            OnCpu::Unknown => return None,
        };
        let waits = matches!(source, Oracle::Clock | Oracle::Both);
        match answer {
            OnCpu::No => return Some((truth, 0)),
            OnCpu::Yes => return Some((truth, 1)),
            OnCpu::Unknown if waits && Instant::now() < patience => {}
            OnCpu::Unknown => return Some((truth, 2)),
        }
        Linux::relax();
    }
}

fn work(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        core::hint::spin_loop();
    }
}

/// What the thread does that is asked about.
#[derive(Clone, Copy)]
enum AskedThread {
    Running,
    Sleeping,
}

/// Measures the nanoseconds of a question: the median of some rounds of many.
fn question_ns(source: Oracle, peer: AskedThread) -> f64 {
    const MANY: u32 = 20_000;
    let (slot, done) = (AtomicU32::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            slot.store(Linux::me().get(), Relaxed);
            while !done.load(Relaxed) {
                match peer {
                    AskedThread::Running => core::hint::spin_loop(),
                    AskedThread::Sleeping => thread::park(),
                }
            }
        });
        let slot = loop {
            match Slot::new(slot.load(Relaxed)) {
                Some(slot) => break slot,
                None => thread::yield_now(),
            }
        };
        Linux::me();
        let rounds: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let begin = Instant::now();
                for _ in 0..MANY {
                    core::hint::black_box(ask(slot, source));
                }
                begin.elapsed().as_nanos() as f64 / f64::from(MANY)
            })
            .collect();
        done.store(true, Relaxed);
        other.thread().unpark();
        stats::median(&rounds)
    })
}

/// Measures the nanoseconds of processor time from one thread to another on the same processor,
/// and what it takes to write a byte and wait for one. Not of the clock: other processes may come
/// between.
fn switch_ns() -> f64 {
    const TRIPS: u32 = 20_000;
    let ((mut there, mut at_there), (mut back, mut at_back)) = match (pipe(), pipe()) {
        (Ok((a, b)), Ok((c, d))) => ((b, a), (d, c)),
        _ => return f64::NAN,
    };
    let trip = |from: &mut PipeReader, to: &mut PipeWriter| {
        let mut byte = [0];
        from.read_exact(&mut byte).and_then(|()| to.write_all(&byte)).is_ok()
    };
    thread::scope(|scope| {
        scope.spawn(move || {
            stay_on_first();
            while trip(&mut at_there, &mut back) {}
        });
        scope
            .spawn(move || {
                stay_on_first();
                let begin = processor_time();
                let mut trips = 0;
                if there.write_all(&[0]).is_ok() {
                    while trips < TRIPS && trip(&mut at_back, &mut there) {
                        trips += 1;
                    }
                }
                let used = processor_time().saturating_sub(begin);
                used.as_nanos() as f64 / f64::from(2 * TRIPS)
            })
            .join()
            .unwrap_or(f64::NAN)
    })
}

/// Returns what the process has used; while a switch is measured, only two threads of it run.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to a live timespec; the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Pins the calling thread to the first processor that it may use.
fn stay_on_first() {
    // SAFETY: processor sets are plain bits; both calls are about the calling thread.
    unsafe {
        let mut allowed: libc::cpu_set_t = core::mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        libc::sched_getaffinity(0, size, &mut allowed);
        let mut one: libc::cpu_set_t = core::mem::zeroed();
        if let Some(first) = (0..size * 8).find(|&cpu| libc::CPU_ISSET(cpu, &allowed)) {
            libc::CPU_SET(first, &mut one);
            libc::sched_setaffinity(0, size, &one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precision_and_recall_are_of_answers_and_of_truths() {
        // 90 found, 5 said to run, 5 not known; 10 that run were said not to.
        let source = Source::new("clock", [[90, 5, 5], [10, 190, 0]], [1.0, 2.0]);
        assert_eq!((source.questions, source.off), (300, 100));
        assert_eq!(source.right_percent, Some(90.0));
        assert_eq!(source.found_percent, Some(90.0));
        let silent = Source::new("processor", [[0; 3]; 2], [0.0; 2]);
        assert_eq!((silent.right_percent, silent.found_percent), (None, None));
    }

    #[test]
    fn a_switch_takes_time() {
        assert!(switch_ns() > 1.0);
    }
}
