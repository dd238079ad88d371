//! Priority inversion, and what priority inheritance makes of it.
//!
//! # Role
//! What `lockstead bench rt` runs. Three threads with real-time priorities on one
//! processor: *low* holds a lock, *high* asks for it, *middle* wants the processor and
//! has nothing to do with the lock. Middle goes before low, so that high waits for
//! middle, unless high lends low its priority.
//!
//! # What it does to the machine
//! Threads above all ordinary ones keep one processor busy, for a bounded time in each
//! round; between the rounds it rests as long. So the kernel's limit on real-time
//! threads is not reached either.

mod scene;
mod scheduling;

use crate::locks::{BenchLock, Inherit, Normal, Placed, Pthread};
use crate::session::StepsProgress;
use crate::{Error, Session, options, stats};
use lockstead::rt::RtMutex;
use lockstead_render::machine::MachineFacts;
use scene::InversionScene;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// The largest number of rounds.
pub const MAX_ROUNDS: u32 = 10_000;
/// The longest that the middle thread may keep the processor in a round.
pub const MAX_BUSY: Duration = Duration::from_millis(100);

/// What low does with the lock.
const SECTION: Duration = Duration::from_millis(1);

/// What a measurement is asked for.
#[derive(Clone, Copy, Debug)]
pub struct RtOptions {
    /// Rounds with each lock.
    pub rounds: u32,
    /// The processor time that middle wants in each round.
    pub busy: Duration,
}

/// The locks of this measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RtLock {
    /// This project's mutex that lends priorities, `lockstead::rt::RtMutex`.
    LocksteadRt,
    /// The C library's mutex with `PTHREAD_PRIO_INHERIT`.
    PthreadPi,
    /// This project's ordinary mutex, `lockstead::Mutex`.
    Lockstead,
    /// The C library's mutex.
    Pthread,
}

impl RtLock {
    /// All, those that lend priorities first.
    pub const ALL: [RtLock; 4] =
        [RtLock::LocksteadRt, RtLock::PthreadPi, RtLock::Lockstead, RtLock::Pthread];

    /// Returns the name that reports write.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            RtLock::LocksteadRt => "lockstead-rt",
            RtLock::PthreadPi => "pthread-pi",
            RtLock::Lockstead => "lockstead",
            RtLock::Pthread => "pthread",
        }
    }

    /// Tells whether who waits for it lends its priority.
    #[must_use]
    pub const fn inherits(self) -> bool {
        matches!(self, RtLock::LocksteadRt | RtLock::PthreadPi)
    }
}

impl fmt::Display for RtLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RtReport {
    /// The machine that was measured, and when.
    pub machine: MachineFacts,
    /// The processor that all three threads ran on.
    pub processor: usize,
    /// The threads' priorities under `SCHED_FIFO`: of the low, the middle and the high thread.
    pub priorities: [i32; 3],
    /// The number of rounds with each lock.
    pub rounds: u32,
    /// The processor time that low needs with the lock.
    pub section_ns: u64,
    /// The processor time that middle wants in each round.
    pub busy_ns: u64,
    /// One object for each lock.
    pub results: Vec<RtRow>,
}

/// High's waits for one lock.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RtRow {
    /// The lock that was measured.
    pub lock: RtLock,
    /// Whether a waiter lends its priority to the owner.
    pub inherits: bool,
    /// The longest of the high thread's waits.
    pub longest_wait_ns: u64,
    /// The median of the high thread's waits.
    pub median_wait_ns: u64,
}

/// `RtMutex` as the measurement uses locks.
struct LocksteadRt(RtMutex<()>);

impl BenchLock for LocksteadRt {
    fn new() -> Self {
        Self(RtMutex::new(()))
    }

    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        let _guard = self.0.lock();
        section()
    }
}

/// `Mutex` as a program uses it.
struct RtLockstead(lockstead::Mutex<()>);

impl BenchLock for RtLockstead {
    fn new() -> Self {
        Self(lockstead::Mutex::new(()))
    }

    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        let _guard = self.0.lock();
        section()
    }
}

/// Measures what the options ask for.
///
/// # Errors
/// [`Error::Option`] for options out of range, [`Error::Priorities`] where threads may
/// not have real-time priorities (before anything is measured), [`Error::Threads`],
/// [`Error::Stuck`], [`Error::Interrupted`].
pub fn measure(options: &RtOptions, session: &mut Session<'_>) -> Result<RtReport, Error> {
    options::within("--rounds", options.rounds, 1..=MAX_ROUNDS, "")?;
    let longest = MAX_BUSY.as_secs_f64() * 1e3;
    options::within("--busy", options.busy.as_secs_f64() * 1e3, 1.0..=longest, " ms")?;
    let machine = MachineFacts::here();
    let processor = scheduling::processor();
    scheduling::probe(processor)?;
    let mut results = Vec::new();
    let mut progress = StepsProgress::new(RtLock::ALL.len() * options.rounds as usize);
    for lock in RtLock::ALL {
        let waits = match lock {
            RtLock::LocksteadRt => run::<LocksteadRt>(lock, options, session, &mut progress)?,
            RtLock::PthreadPi => run::<Pthread<Inherit>>(lock, options, session, &mut progress)?,
            RtLock::Lockstead => run::<RtLockstead>(lock, options, session, &mut progress)?,
            RtLock::Pthread => run::<Pthread<Normal>>(lock, options, session, &mut progress)?,
        };
        let figures: Vec<f64> = waits.iter().map(|&ns| ns as f64).collect();
        results.push(RtRow {
            lock,
            inherits: lock.inherits(),
            longest_wait_ns: waits.iter().copied().max().unwrap_or(0),
            median_wait_ns: stats::median(&figures) as u64,
        });
    }
    progress.end(session)?;
    Ok(RtReport {
        machine,
        processor,
        priorities: scheduling::PRIORITIES,
        rounds: options.rounds,
        section_ns: SECTION.as_nanos() as u64,
        busy_ns: options.busy.as_nanos() as u64,
        results,
    })
}

fn run<L: BenchLock>(
    lock: RtLock,
    options: &RtOptions,
    session: &mut Session<'_>,
    progress: &mut StepsProgress,
) -> Result<Vec<u64>, Error> {
    let scene = InversionScene::start(Placed::<L>::new(), lock, SECTION, options.busy)?;
    for round in 1..=u64::from(options.rounds) {
        progress.step(session, lock.name())?;
        let took = scene.round(round)?;
        std::thread::sleep(took);
    }
    scene.end()
}
