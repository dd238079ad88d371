//! The announcement's `test-mutex V`: creat + unlink + close.
//!
//! In the kernel of 2005 a directory had one semaphore (later mutex), and all
//! tasks met there: creat held it while it looked the name up and made the
//! entry, unlink while it looked up and removed, close not at all. Here the
//! lock under test stands in that place. It guards one directory in memory, of
//! names to inode numbers, that all tasks share; with it held, the real call
//! is made on a folder that the task has to itself, so that today's kernel,
//! with its own lock for each folder, disputes nothing:
//!
//! ```text
//! lock { enter the name; openat(O_CREAT) }
//! lock { strike the name; unlinkat }
//! close
//! ```

mod directory;
mod folders;

use crate::harness::{Slice, SliceWorker};
use crate::locks::{BenchLock, Placed, with_lock};
use crate::session::StepsProgress;
use crate::{Error, LockName, Session, options, stats};
use directory::Directory;
use folders::{FolderFailure, Folders};
use lockstead_render::machine::{self, MachineFacts};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What a measurement is asked for.
#[derive(Clone, Debug)]
pub struct VfsOptions {
    /// The locks, in the order of the report.
    pub locks: Vec<LockName>,
    /// Tasks, 1 to [`MAX_TASKS`].
    pub tasks: usize,
    /// Time for each lock, 100 ms to a day; spent in several slices, the
    /// locks taking turns.
    pub time: Duration,
    /// The place where the files are made; `None`: no files, only the directory in memory.
    pub dir: Option<PathBuf>,
}

/// The largest number of tasks.
pub const MAX_TASKS: usize = 1024;

impl Default for VfsOptions {
    /// Asks for what the announcement measured: 16 tasks, 10 seconds, the system's temporary
    /// directory.
    fn default() -> Self {
        Self {
            locks: crate::locks::for_several_threads(),
            tasks: 16,
            time: Duration::from_secs(10),
            dir: Some(std::env::temp_dir()),
        }
    }
}

/// What was measured, as reports write it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VfsReport {
    /// The machine that was measured, and when.
    pub machine: MachineFacts,
    /// The number of tasks at the same time.
    pub tasks: usize,
    /// The time for each lock, in seconds.
    pub seconds: f64,
    /// Whether no files were made: the shared directory was in memory alone.
    pub memory: bool,
    /// The directory in which the files were made, as it was given; null if none were.
    pub dir: Option<PathBuf>,
    /// One object for each lock.
    pub results: Vec<VfsRow>,
}

/// The figures of one lock.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VfsRow {
    /// The name of the lock.
    pub lock: LockName,
    /// Creat + unlink + close per second, all tasks together: the median of the turns.
    pub loops_per_s: f64,
    /// The processor time used; 100 is all processors all the time.
    pub cpu_percent: f64,
    /// Loops per second of processor time.
    pub loops_per_cpu_s: f64,
    /// `loops_per_s` of the slowest turn.
    pub loops_per_s_min: f64,
    /// `loops_per_s` of the fastest turn.
    pub loops_per_s_max: f64,
    /// Jain's fairness index of the tasks' shares: the median of the turns.
    pub jain: f64,
}

impl VfsReport {
    /// Returns the row of `lock`.
    #[must_use]
    pub fn row(&self, lock: LockName) -> Option<&VfsRow> {
        self.results.iter().find(|row| row.lock == lock)
    }
}

/// Tells whether [`measure`] could use these options: for whoever has something else
/// to do first. Leaves nothing behind.
///
/// # Errors
/// [`Error::Option`] and [`Error::Directory`], as of [`measure`].
pub fn check(options: &VfsOptions) -> Result<(), Error> {
    options.check()?;
    Folders::create(options.dir.as_deref(), options.tasks)?.remove()
}

/// Measures what the options ask for. Whatever happens, the files are removed.
///
/// # Errors
/// [`Error::Option`] for options out of range, [`Error::Directory`] for a
/// directory that is not there or not writable (before anything is measured),
/// [`Error::System`] when a call fails on the way, [`Error::Unavailable`],
/// [`Error::Broken`], [`Error::Stuck`], [`Error::Threads`],
/// [`Error::Interrupted`].
pub fn measure(options: &VfsOptions, session: &mut Session<'_>) -> Result<VfsReport, Error> {
    options.check()?;
    let machine = MachineFacts::here();
    let folders = Arc::new(Folders::create(options.dir.as_deref(), options.tasks)?);
    let results = run(options, &folders, session);
    // Threads of a lock that hangs may still hold the folders: removed here,
    // not when the last of them is dropped.
    let removed = folders.remove();
    let results = results?;
    removed?;
    Ok(VfsReport {
        machine,
        tasks: options.tasks,
        seconds: options.time.as_secs_f64(),
        memory: options.dir.is_none(),
        dir: options.dir.clone(),
        results,
    })
}

const SHORTEST: Duration = Duration::from_millis(100);
const DAY: Duration = Duration::from_secs(24 * 3600);

impl VfsOptions {
    fn check(&self) -> Result<(), Error> {
        options::locks(&self.locks)?;
        options::within("--tasks", self.tasks, 1..=MAX_TASKS, "")?;
        let seconds = SHORTEST.as_secs_f64()..=DAY.as_secs_f64();
        options::within("--seconds", self.time.as_secs_f64(), seconds, "")
    }

    /// Returns how often the locks take turns: a slice a second, but at least three for a median
    /// and at most twenty.
    fn rounds(&self) -> u32 {
        (self.time.as_secs() as u32).clamp(3, 20)
    }
}

/// What the slices of one lock gave.
#[derive(Default)]
struct VfsSamples {
    loops_per_s: Vec<f64>,
    cpu_percent: Vec<f64>,
    loops_per_cpu_s: Vec<f64>,
    jain: Vec<f64>,
}

fn run(
    options: &VfsOptions,
    folders: &Arc<Folders>,
    session: &mut Session<'_>,
) -> Result<Vec<VfsRow>, Error> {
    let rounds = options.rounds();
    let mut samples: Vec<VfsSamples> =
        options.locks.iter().map(|_| VfsSamples::default()).collect();
    let mut order: Vec<usize> = (0..options.locks.len()).collect();
    let mut progress = StepsProgress::new(rounds as usize * order.len());
    for _ in 0..rounds {
        fastrand::shuffle(&mut order);
        for &index in &order {
            let lock = options.locks[index];
            progress.step(session, lock.name())?;
            let slice = Slice {
                lock: lock.name(),
                threads: options.tasks,
                length: options.time / rounds,
                patience: Duration::from_secs(30),
            };
            let window = with_lock!(lock, L => measure_slice::<L>(&slice, folders, session)?)?;
            let samples = &mut samples[index];
            let wall = window.elapsed.as_secs_f64() * machine::processors() as f64;
            samples.loops_per_s.push(window.per_second());
            samples.cpu_percent.push(100.0 * window.cpu.as_secs_f64() / wall);
            samples.loops_per_cpu_s.push(window.per_cpu_second());
            samples.jain.push(stats::jain(&window.turns));
        }
    }
    progress.end(session)?;
    Ok(options.locks.iter().zip(&samples).map(|(&lock, samples)| samples.row(lock)).collect())
}

impl VfsSamples {
    fn row(&self, lock: LockName) -> VfsRow {
        let (loops_per_s_min, loops_per_s_max) = stats::spread(&self.loops_per_s);
        VfsRow {
            lock,
            loops_per_s: stats::median(&self.loops_per_s),
            cpu_percent: stats::median(&self.cpu_percent),
            loops_per_cpu_s: stats::median(&self.loops_per_cpu_s),
            loops_per_s_min,
            loops_per_s_max,
            jain: stats::median(&self.jain),
        }
    }
}

fn measure_slice<L: BenchLock>(
    slice: &Slice,
    folders: &Arc<Folders>,
    session: &Session<'_>,
) -> Result<crate::harness::SliceWindow, Error> {
    let place = Arc::new((Placed::<L>::new(), Directory::default()));
    let (inside, folders) = (place.clone(), folders.clone());
    let (window, returned) =
        slice.run(session, move |worker| task::<L>(worker, &inside.0, &inside.1, &folders))?;
    let mut loops = 0;
    for result in returned {
        loops += result.map_err(|failure| Error::System {
            lock: slice.lock,
            what: failure.what,
            source: failure.source,
        })?;
    }
    // SAFETY: by DIRECTORY-GUARDED: all tasks have ended.
    let changes = unsafe { place.1.changes() };
    if changes != 2 * loops {
        return Err(Error::Broken { lock: slice.lock, operations: 2 * loops, counted: changes });
    }
    Ok(window)
}

/// Runs one task until the end, and returns its loops.
fn task<L: BenchLock>(
    worker: &mut SliceWorker<'_>,
    lock: &L,
    directory: &Directory,
    folders: &Folders,
) -> Result<u64, FolderFailure> {
    let name: Arc<str> = format!("task-{}", worker.index).into();
    let folder = folders.of(worker.index);
    while worker.goes_on() {
        let file = lock.with(|| {
            // SAFETY: the lock is held, and it is the one of this directory.
            unsafe { directory.enter(&name, worker.index as u64) };
            folder.create()
        })?;
        lock.with(|| {
            // SAFETY: by DIRECTORY-GUARDED this thread holds the lock.
            unsafe { directory.strike(&name) };
            folder.unlink()
        })?;
        drop(file);
        worker.turn();
    }
    Ok(worker.turns())
}
