//! Two containers that share a lock, and in both the process is number 1.
//!
//! A robust mutex of the C library names its owner by thread number alone. When a
//! *waiter* of the same number dies in its own namespace, the kernel takes it for
//! the owner and gives the lock up, while the owner is at work: two owners.

use super::home::{Home, OneLock};
use super::memory::{Plain, SharedMemory};
use super::process::{HandedFiles, Namespaces, WorkerJob, WorkerPlace, WorkerProcess, until};
use crate::Error;
use crate::locks::{PosixRobust, Pthread, Robustly};
use lockstead::shared::{Locked, Segment, SharedError};
use serde::{Deserialize, Serialize};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A container's process does its step within this time.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a third process, outside of both containers, gets when it asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThirdAnswer {
    /// The lock is refused: somebody has it.
    Busy,
    /// The third process has the lock, and is told that the last owner died.
    OwnerDied,
    /// The third process has the lock.
    Had,
}

/// What came of it for one kind of lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct ContainersOutcome {
    /// The number of the owner's process, as it sees itself.
    pub owner: u32,
    /// The number of the waiter's process.
    pub waiter: u32,
    /// What a third one gets after the waiter was killed. The owner lives, and has
    /// the lock.
    pub after_waiter: ThirdAnswer,
    /// What it gets after the owner was killed too; not asked if it had the lock
    /// by then.
    pub after_owner: Option<ThirdAnswer>,
}

/// What came of it for both kinds of lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct ContainersReport {
    /// What glibc's robust mutex did.
    pub glibc_robust: ContainersOutcome,
    /// What lockstead's mutex did.
    pub lockstead: ContainersOutcome,
}

/// Kills a waiter, then an owner, of both kinds of lock.
///
/// # Errors
/// [`Error::Namespaces`] if there can be no containers, [`Error::Process`],
/// [`Error::Worker`], [`Error::Segment`].
pub fn measure() -> Result<ContainersReport, Error> {
    let place = WorkerPlace::Own(Namespaces::find()?);
    Ok(ContainersReport {
        glibc_robust: kill::<SharedMemory<Pthread<PosixRobust>>>(ContainerKind::Glibc, place)?,
        lockstead: kill::<Segment<OneLock>>(ContainerKind::Lockstead, place)?,
    })
}

/// The part that one container plays.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct ContainerPart {
    kind: ContainerKind,
    role: usize,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum ContainerKind {
    Glibc,
    Lockstead,
}

const OWNER: usize = 0;
const WAITER: usize = 1;

/// What both containers and the parent see.
#[repr(C)]
struct ContainersControl {
    /// The number of each process as it sees itself, when it is about to ask for
    /// the lock.
    numbers: [AtomicU32; 2],
    /// The owner has it.
    held: AtomicU32,
}

// SAFETY: by PLAIN-BITS it is made of atomics: any bits are valid, and others may write at any
// time.
unsafe impl Plain for ContainersControl {}

/// The three things that are done with the lock.
trait Contested: Home {
    /// Takes it and does not give it back.
    fn keep(&self) -> Result<(), Error>;

    /// Asks for it without waiting.
    fn ask(&self) -> Result<ThirdAnswer, Error>;
}

impl Contested for SharedMemory<Pthread<PosixRobust>> {
    fn keep(&self) -> Result<(), Error> {
        self.take();
        Ok(())
    }

    fn ask(&self) -> Result<ThirdAnswer, Error> {
        // Given back: the memory must not go while this thread's list names it.
        match self.try_take() {
            Robustly::Had => {
                self.give_back();
                Ok(ThirdAnswer::Had)
            }
            Robustly::OwnerDied => {
                self.mark_consistent();
                self.give_back();
                Ok(ThirdAnswer::OwnerDied)
            }
            Robustly::Busy => Ok(ThirdAnswer::Busy),
        }
    }
}

impl Contested for Segment<OneLock> {
    fn keep(&self) -> Result<(), Error> {
        std::mem::forget(self.lock().lock().map_err(refused)?);
        Ok(())
    }

    fn ask(&self) -> Result<ThirdAnswer, Error> {
        match self.lock().try_lock() {
            Ok(Locked::Acquired(_)) => Ok(ThirdAnswer::Had),
            Ok(Locked::OwnerDied(_)) => Ok(ThirdAnswer::OwnerDied),
            Err(SharedError::Held) => Ok(ThirdAnswer::Busy),
            Ok(Locked::NotRecoverable) => Err(refused("it is not recoverable")),
            Err(error) => Err(refused(error)),
        }
    }
}

fn refused(why: impl std::fmt::Display) -> Error {
    Error::Segment { what: "the lock refuses", why: why.to_string() }
}

fn kill<H: Contested>(kind: ContainerKind, place: WorkerPlace) -> Result<ContainersOutcome, Error> {
    let (control, home) = (SharedMemory::<ContainersControl>::create()?, H::create()?);
    let start = |role| {
        let job = ContainerPart { kind, role };
        WorkerProcess::start(&job, &[control.as_fd(), home.file()], place)
    };
    let late = || Error::Worker { how: "a container's process did not do its part".into() };
    let number = |role: usize| control.numbers[role].load(Ordering::Relaxed);
    let mut owner = start(OWNER)?;
    if !until(PATIENCE, || control.held.load(Ordering::Relaxed) != 0) {
        return Err(late());
    }
    let mut waiter = start(WAITER)?;
    if !until(PATIENCE, || number(WAITER) != 0 && waiter.sleeps()) {
        return Err(late());
    }
    waiter.kill();
    waiter.reap();
    let after_waiter = home.ask()?;
    // Whoever has the lock by then cannot ask for it again.
    let after_owner = match after_waiter {
        ThirdAnswer::Busy => {
            owner.kill();
            owner.reap();
            Some(home.ask()?)
        }
        ThirdAnswer::OwnerDied | ThirdAnswer::Had => None,
    };
    Ok(ContainersOutcome {
        owner: number(OWNER),
        waiter: number(WAITER),
        after_waiter,
        after_owner,
    })
}

impl WorkerJob for ContainerPart {
    const NAME: &'static str = "container";

    fn work(self, mut files: HandedFiles) -> Result<(), Error> {
        let part = self;
        let control = SharedMemory::<ContainersControl>::open(files.next())?;
        match part.kind {
            ContainerKind::Glibc => {
                act(part, &control, &SharedMemory::<Pthread<PosixRobust>>::open(files.next())?)
            }
            ContainerKind::Lockstead => {
                act(part, &control, &Segment::<OneLock>::attach(files.next())?)
            }
        }
    }
}

fn act<H: Contested>(
    part: ContainerPart,
    control: &ContainersControl,
    home: &H,
) -> Result<(), Error> {
    control.numbers[part.role].store(std::process::id(), Ordering::Relaxed);
    home.keep()?;
    control.held.fetch_add(1, Ordering::Relaxed);
    loop {
        std::thread::park();
    }
}
