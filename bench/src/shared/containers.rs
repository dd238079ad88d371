//! Two containers that share a lock, and in both the process is number 1.
//!
//! A robust mutex of the C library names its owner by thread number alone. When a
//! *waiter* of the same number dies in its own namespace, the kernel takes it for
//! the owner and gives the lock up, while the owner is at work: two owners.

use super::home::{Home, OneLock};
use super::memory::{Memory, Plain};
use super::process::{Files, Job, Namespaces, Place, Worker, until};
use crate::Error;
use crate::locks::{Pthread, Robust, Robustly};
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
pub enum Answer {
    /// The lock is refused: somebody has it.
    Busy,
    /// The third process has the lock, and is told that the last owner died.
    OwnerDied,
    /// The third process has the lock.
    Had,
}

/// What came of it for one kind of lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Outcome {
    /// The number of the owner's process, as it sees itself.
    pub owner: u32,
    /// The number of the waiter's process.
    pub waiter: u32,
    /// What a third one gets after the waiter was killed. The owner lives, and has
    /// the lock.
    pub after_waiter: Answer,
    /// What it gets after the owner was killed too; not asked if it had the lock
    /// by then.
    pub after_owner: Option<Answer>,
}

/// What came of it for both kinds of lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Report {
    /// What glibc's robust mutex did.
    pub glibc_robust: Outcome,
    /// What lockstead's mutex did.
    pub lockstead: Outcome,
}

/// Kills a waiter, then an owner, of both kinds of lock.
///
/// # Errors
/// [`Error::Namespaces`] if there can be no containers, [`Error::Process`],
/// [`Error::Worker`], [`Error::Segment`].
pub fn measure() -> Result<Report, Error> {
    let place = Place::Own(Namespaces::find()?);
    Ok(Report {
        glibc_robust: kill::<Memory<Pthread<Robust>>>(Kind::Glibc, place)?,
        lockstead: kill::<Segment<OneLock>>(Kind::Lockstead, place)?,
    })
}

/// The part that one container plays.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct ContainerPart {
    kind: Kind,
    role: usize,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Kind {
    Glibc,
    Lockstead,
}

const OWNER: usize = 0;
const WAITER: usize = 1;

/// What both containers and the parent see.
#[repr(C)]
struct Control {
    /// The number of each process as it sees itself, when it is about to ask for
    /// the lock.
    numbers: [AtomicU32; 2],
    /// The owner has it.
    held: AtomicU32,
}

// SAFETY: plain atomics.
unsafe impl Plain for Control {}

/// The three things that are done with the lock.
trait Contested: Home {
    /// Takes it and does not give it back.
    fn keep(&self) -> Result<(), Error>;

    /// Asks for it without waiting.
    fn ask(&self) -> Result<Answer, Error>;
}

impl Contested for Memory<Pthread<Robust>> {
    fn keep(&self) -> Result<(), Error> {
        self.take();
        Ok(())
    }

    fn ask(&self) -> Result<Answer, Error> {
        // Given back: the memory must not go while this thread's list names it.
        match self.try_take() {
            Robustly::Had => {
                self.give_back();
                Ok(Answer::Had)
            }
            Robustly::OwnerDied => {
                self.mark_consistent();
                self.give_back();
                Ok(Answer::OwnerDied)
            }
            Robustly::Busy => Ok(Answer::Busy),
        }
    }
}

impl Contested for Segment<OneLock> {
    fn keep(&self) -> Result<(), Error> {
        std::mem::forget(self.lock().lock().map_err(refused)?);
        Ok(())
    }

    fn ask(&self) -> Result<Answer, Error> {
        match self.lock().try_lock() {
            Ok(Locked::Acquired(_)) => Ok(Answer::Had),
            Ok(Locked::OwnerDied(_)) => Ok(Answer::OwnerDied),
            Err(SharedError::Held) => Ok(Answer::Busy),
            Ok(Locked::NotRecoverable) => Err(refused("it is not recoverable")),
            Err(error) => Err(refused(error)),
        }
    }
}

fn refused(why: impl std::fmt::Display) -> Error {
    Error::Segment { what: "the lock refuses", why: why.to_string() }
}

fn kill<H: Contested>(kind: Kind, place: Place) -> Result<Outcome, Error> {
    let (control, home) = (Memory::<Control>::create()?, H::create()?);
    let start = |role| {
        let job = ContainerPart { kind, role };
        Worker::start(&job, &[control.as_fd(), home.file()], place)
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
        Answer::Busy => {
            owner.kill();
            owner.reap();
            Some(home.ask()?)
        }
        Answer::OwnerDied | Answer::Had => None,
    };
    Ok(Outcome { owner: number(OWNER), waiter: number(WAITER), after_waiter, after_owner })
}

impl Job for ContainerPart {
    const NAME: &'static str = "container";

    fn work(self, mut files: Files) -> Result<(), Error> {
        let part = self;
        let control = Memory::<Control>::open(files.next())?;
        match part.kind {
            Kind::Glibc => act(part, &control, &Memory::<Pthread<Robust>>::open(files.next())?),
            Kind::Lockstead => act(part, &control, &Segment::<OneLock>::attach(files.next())?),
        }
    }
}

fn act<H: Contested>(part: ContainerPart, control: &Control, home: &H) -> Result<(), Error> {
    control.numbers[part.role].store(std::process::id(), Ordering::Relaxed);
    home.keep()?;
    control.held.fetch_add(1, Ordering::Relaxed);
    loop {
        std::thread::park();
    }
}
