//! A process that holds very many locks is killed: how many of them tell it to
//! their next owner, and how soon.
//!
//! The parent waits for one of the locks when the holder is killed. What passes
//! until it has that lock is how long the death takes to be *known*; from then on
//! any of the others tells it to whoever asks. Then it *sweeps*: takes every other
//! lock without waiting, marks what it protects consistent, releases it.

use super::home::SharedLock;
use super::memory::{Plain, SharedMemory};
use super::process::{HandedFiles, WorkerJob, WorkerPlace, WorkerProcess, ending, until};
use crate::locks::{BenchLock, PosixRobust, Pthread, Robustly};
use crate::{Error, Session, options};
use lockstead::shared::{Locked, Segment, SegmentOptions, Shareable, SharedMutex};
use lockstead_render::machine::MachineFacts;
use serde::{Deserialize, Serialize};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The largest number of locks.
pub const MAX_LOCKS: usize = 1 << 20;

/// The holder takes its locks within this time, and the waiter gets its one.
const PATIENCE: Duration = Duration::from_secs(60);

/// So many robust mutexes of a thread that ended the kernel marks.
const ROBUST_LIST_LIMIT: usize = 2048;

/// Time for the waiter to go to sleep. If it does not, it learns of the death as
/// it asks, and nothing is counted that did not happen.
const LULL: Duration = Duration::from_millis(100);

/// What came of it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeadReport {
    /// What lockstead's mutex did.
    #[serde(flatten)]
    pub lockstead: DeadCount,
    /// The same five for the C library's robust mutex; there the waiter waits for the one that the
    /// kernel marks last.
    pub glibc_robust: DeadCount,
    /// The machine that was measured, and when.
    pub machine: MachineFacts,
}

/// What came of one kind of lock.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeadCount {
    /// The number of locks that the killed process held.
    pub locks: usize,
    /// The number of locks that told their next owner of the death.
    pub reported: usize,
    /// The number of locks that stay taken by nobody.
    pub stuck: usize,
    /// The time from the kill until a waiter had the one of the locks that tells last, and was told
    /// of the death, in milliseconds.
    pub known_ms: f64,
    /// The time from there until all others had been taken, marked consistent and released, in
    /// milliseconds.
    pub swept_ms: f64,
}

/// Kills a holder of very many locks, of each kind.
///
/// # Errors
/// [`Error::Option`] for options out of range, [`Error::Process`],
/// [`Error::Worker`], [`Error::Segment`], [`Error::Stuck`], [`Error::Interrupted`].
pub fn measure(locks: usize, session: &mut Session<'_>) -> Result<DeadReport, Error> {
    options::within("--locks", locks, 1..=MAX_LOCKS, "")?;
    let machine = MachineFacts::here();
    session.tell(0, 2, "lockstead");
    let lockstead = count::<Segment<Many>>(locks, session)?;
    session.tell(1, 2, "glibc-robust");
    let glibc_robust = count::<SharedMemory<ManyRobust>>(locks, session)?;
    Ok(DeadReport { lockstead, glibc_robust, machine })
}

/// Many locks in shared memory.
trait LockField: Sized + Sync {
    const LOCK: SharedLock;

    /// Returns the lock that tells of the death last, of those that do.
    fn last_told(locks: usize) -> usize;

    fn create(locks: usize) -> Result<Self, Error>;

    fn file(&self) -> BorrowedFd<'_>;

    /// Takes a free lock and keeps it.
    fn keep(&self, lock: usize) -> Result<(), Error>;

    /// Waits for a lock. Returns whether it told of a death. It is put in order and released.
    fn wait(&self, lock: usize) -> Result<bool, Error>;

    /// Asks a lock without waiting, as [`wait`](Self::wait); `None`: somebody has
    /// it.
    fn ask(&self, lock: usize) -> Result<Option<bool>, Error>;
}

/// Very many locks of eight bytes each.
#[derive(Shareable)]
#[repr(C)]
struct Many {
    locks: [SharedMutex<()>; MAX_LOCKS],
}

fn refused(why: impl std::fmt::Display) -> Error {
    Error::Segment { what: "a lock refuses", why: why.to_string() }
}

impl LockField for Segment<Many> {
    const LOCK: SharedLock = SharedLock::Lockstead;

    /// Returns any of them, for all tell at the same time.
    fn last_told(locks: usize) -> usize {
        locks - 1
    }

    fn create(_: usize) -> Result<Self, Error> {
        Segment::memfd("lockstead-dead", &SegmentOptions::new().participants(8))
            .map_err(|why| Error::Segment { what: "cannot make a segment", why: why.to_string() })
    }

    fn file(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }

    fn keep(&self, lock: usize) -> Result<(), Error> {
        match self.root().locks[lock].lock() {
            Ok(Locked::Acquired(guard)) => {
                std::mem::forget(guard);
                Ok(())
            }
            Ok(_) => Err(refused("it is not fresh")),
            Err(error) => Err(refused(error)),
        }
    }

    fn wait(&self, lock: usize) -> Result<bool, Error> {
        settle(self.root().locks[lock].lock_timeout(PATIENCE).map_err(refused)?)
    }

    fn ask(&self, lock: usize) -> Result<Option<bool>, Error> {
        match self.root().locks[lock].try_lock() {
            Ok(locked) => settle(locked).map(Some),
            Err(lockstead::shared::SharedError::Held) => Ok(None),
            Err(error) => Err(refused(error)),
        }
    }
}

fn settle(locked: Locked<lockstead::shared::SharedMutexGuard<'_, ()>>) -> Result<bool, Error> {
    match locked {
        Locked::Acquired(_) => Ok(false),
        Locked::OwnerDied(guard) => {
            drop(guard.mark_consistent());
            Ok(true)
        }
        Locked::NotRecoverable => Err(refused("it is not recoverable")),
    }
}

/// Very many locks of forty bytes each.
#[repr(C)]
struct ManyRobust {
    locks: [Pthread<PosixRobust>; MAX_LOCKS],
}

// SAFETY: made for several processes; those in use are settled by the creator.
unsafe impl Plain for ManyRobust {}

impl LockField for SharedMemory<ManyRobust> {
    const LOCK: SharedLock = SharedLock::GlibcRobust;

    /// Returns the last lock of which the kernel tells: it goes through the list from the youngest
    /// on, and gives up there.
    fn last_told(locks: usize) -> usize {
        locks.saturating_sub(ROBUST_LIST_LIMIT)
    }

    fn create(locks: usize) -> Result<Self, Error> {
        let memory = SharedMemory::<ManyRobust>::create()?;
        memory.locks[..locks].iter().for_each(BenchLock::settle);
        Ok(memory)
    }

    fn file(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }

    fn keep(&self, lock: usize) -> Result<(), Error> {
        match self.locks[lock].take() {
            Robustly::Had => Ok(()),
            _ => Err(refused("it is not fresh")),
        }
    }

    fn wait(&self, lock: usize) -> Result<bool, Error> {
        Ok(self.settle(lock, self.locks[lock].take()).unwrap_or(false))
    }

    fn ask(&self, lock: usize) -> Result<Option<bool>, Error> {
        Ok(self.settle(lock, self.locks[lock].try_take()))
    }
}

impl SharedMemory<ManyRobust> {
    fn settle(&self, lock: usize, how: Robustly) -> Option<bool> {
        let died = match how {
            Robustly::Had => false,
            Robustly::OwnerDied => {
                self.locks[lock].mark_consistent();
                true
            }
            Robustly::Busy => return None,
        };
        self.locks[lock].give_back();
        Some(died)
    }
}

fn count<F: LockField>(locks: usize, session: &Session<'_>) -> Result<DeadCount, Error> {
    let (held, field) = (SharedMemory::<AtomicU64>::create()?, F::create(locks)?);
    let job = DeadPart { lock: F::LOCK, locks };
    let mut holder = WorkerProcess::start(&job, &[held.as_fd(), field.file()], WorkerPlace::Here)?;
    let mut early = None;
    let all = until(PATIENCE, || {
        early = holder.ended();
        early.is_some() || session.stopped() || held.load(Ordering::Acquire) as usize == locks
    });
    if let Some(status) = early {
        return Err(Error::Worker { how: ending(status) });
    }
    if session.stopped() {
        return Err(Error::Interrupted);
    }
    let stuck = |missing| Error::Stuck {
        lock: F::LOCK.name(),
        missing,
        threads: 1,
        seconds: PATIENCE.as_secs(),
    };
    if !all {
        return Err(stuck(1));
    }
    let last = F::last_told(locks);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| field.wait(last).map(|died| (died, Instant::now())));
        std::thread::sleep(LULL);
        let killed = Instant::now();
        holder.kill();
        let (died, known) =
            waiter.join().map_err(|_| Error::Worker { how: "the waiter panicked".into() })??;
        let mut count = DeadCount {
            locks,
            reported: usize::from(died),
            stuck: 0,
            known_ms: (known - killed).as_secs_f64() * 1e3,
            swept_ms: 0.0,
        };
        let begin = Instant::now();
        for lock in (0..locks).filter(|&lock| lock != last) {
            match field.ask(lock)? {
                Some(died) => count.reported += usize::from(died),
                None => count.stuck += 1,
            }
        }
        count.swept_ms = begin.elapsed().as_secs_f64() * 1e3;
        Ok(count)
    })
}

/// The part of the process that holds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct DeadPart {
    lock: SharedLock,
    locks: usize,
}

impl WorkerJob for DeadPart {
    const NAME: &'static str = "dead";

    fn work(self, mut files: HandedFiles) -> Result<(), Error> {
        let part = self;
        let held = SharedMemory::<AtomicU64>::open(files.next())?;
        match part.lock {
            SharedLock::Lockstead => {
                let segment: Segment<Many> = Segment::from_fd(files.next()).map_err(refused)?;
                hold(&segment, part.locks, &held)
            }
            SharedLock::GlibcRobust | SharedLock::GlibcShared => {
                hold(&SharedMemory::<ManyRobust>::open(files.next())?, part.locks, &held)
            }
        }
    }
}

fn hold<F: LockField>(field: &F, locks: usize, held: &AtomicU64) -> Result<(), Error> {
    for lock in 0..locks {
        field.keep(lock)?;
    }
    held.store(locks as u64, Ordering::Release);
    loop {
        std::thread::park();
    }
}
