//! Processes that are killed all the time, around invariants.
//!
//! # Role
//! Workers use locks of one segment at random. What a lock protects, and what of it
//! would show a lock that does not hold, is said for each kind:
//!
//! | module | kind | invariant |
//! |---|---|---|
//! | `mutex` | mutex | two counters that a section makes equal again; nobody else inside |
//! | `rwlock` | reader-writer lock | the same, and readers see neither change while they read |
//! | `semaphore` | semaphore | those that live and hold never have more than there is |
//! | `condvar` | condition variable | made = taken + in stock; who is notified passes it on, or its death does |
//! | `beside` | the C library's robust mutex, in the same threads | as the mutex |
//!
//! # Squalls
//! The parent kills workers at random moments and starts new ones in their place, which
//! is a good test of exclusion, and a bad one of wake-ups: whatever was lost, the next
//! arrival or the next death mends. So after every [`SQUALL`] kills there is a *calm*:
//! nobody begins anything new, about half of the workers are killed within a
//! millisecond of each other, nobody comes in their place, and who is left must come to
//! an end by what the locks do for it. Then every lock is looked at.
//!
//! # What is judged
//! - *Torn*: an invariant does not hold, and the lock had not said that somebody died.
//! - *Unfounded*: deaths that were told of beyond those that there were. A lock that
//!   always says that its owner died would hide everything else.
//! - *Stall*: a wait that takes longer than [`STALL`]. Most waits have no deadline of
//!   their own, so that a lost wake-up is not mended by one. Who stalls is killed as
//!   well, so that the storm ends.
//!
//! A worker's counts live in memory that survives it. It counts what it saw before
//! it goes on; what it had seen and not counted when it was killed is lost, which
//! may only make the number of deaths noticed smaller.

mod beside;
mod condvar;
mod field;
mod mutex;
mod report;
mod rwlock;
mod semaphore;
mod weather;
mod worker;

use super::process::{Namespaces, Place};
use crate::machine::Machine;
use crate::{Error, Session, options};
pub use field::Kind;
pub use report::{KindReport, Report, RobustReport};
use std::time::{Duration, Instant};
use weather::Storm;
pub(super) use worker::{Part, work};

/// A wait that is longer is a stall.
pub const STALL: Duration = Duration::from_secs(3);
/// The largest number of processes.
pub const MAX_PROCESSES: usize = 64;
/// The largest number of threads in a process.
pub const MAX_THREADS: usize = 16;
/// The largest number of locks.
pub const MAX_LOCKS: usize = 256;
/// The largest number of kills.
pub const MAX_KILLS: u64 = 10_000_000;
/// So many kills are followed by a calm.
pub const SQUALL: u64 = 24;

/// What to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many workers to kill.
    pub kills: u64,
    /// Which kinds of locks they use.
    pub kinds: Vec<Kind>,
    /// Workers at the same time.
    pub processes: usize,
    /// Locks of each kind.
    pub locks: usize,
    /// Threads of each worker.
    pub threads: usize,
    /// Every worker is process 1 of a namespace of its own.
    pub namespaces: bool,
    /// Threads give the kernel a list of their own, in the segment.
    pub exclusive: bool,
    /// The same threads use robust mutexes of the C library.
    pub beside_robust: bool,
}

impl Default for Options {
    /// 1000 kills, 4 processes of one thread, 8 mutexes.
    fn default() -> Self {
        Self {
            kills: 1000,
            kinds: vec![Kind::Mutex],
            processes: 4,
            locks: 8,
            threads: 1,
            namespaces: false,
            exclusive: false,
            beside_robust: false,
        }
    }
}

/// Lets it storm.
///
/// # Errors
/// [`Error::Option`] for options out of range or that exclude each other,
/// [`Error::Namespaces`] if they are asked for and not to be had, [`Error::Worker`] if a
/// worker ends by itself, [`Error::Process`], [`Error::Segment`], [`Error::Interrupted`].
pub fn measure(options: &Options, session: &mut Session<'_>) -> Result<Report, Error> {
    check(options)?;
    let place = if options.namespaces { Place::Own(Namespaces::find()?) } else { Place::Here };
    let machine = Machine::here();
    let start = Instant::now();
    let mut storm = Storm::new(options, place)?;
    storm.rage(session)?;
    Ok(storm.report(start.elapsed(), machine))
}

fn check(options: &Options) -> Result<(), Error> {
    options::within("--kills", options.kills, 1..=MAX_KILLS, "")?;
    options::within("--lock", options.kinds.len(), 1..=Kind::ALL.len(), " kinds")?;
    options::within("--processes", options.processes, 1..=MAX_PROCESSES, "")?;
    options::within("--locks", options.locks, 1..=MAX_LOCKS, "")?;
    options::within("--threads", options.threads, 1..=MAX_THREADS, "")?;
    // Every thread that dies wears its place.
    let deaths = options.kills * options.threads as u64;
    options::within("--kills times --threads", deaths, 1..=MAX_KILLS, "")?;
    // The C library's mutexes do not work in a thread that has an exclusive list; and
    // take the death of a waiter in another namespace for that of the owner.
    if options.beside_robust && (options.exclusive || options.namespaces) {
        return Err(Error::Option {
            option: "--beside-robust",
            given: "with --exclusive or --namespaces".into(),
            allowed: "without either".into(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storms_that_cannot_be_are_refused() {
        let usual = Options::default();
        for (options, expected) in [
            (Options { kills: MAX_KILLS, threads: 2, ..usual.clone() }, "--kills times --threads"),
            (Options { kinds: Vec::new(), ..usual.clone() }, "--lock"),
            (Options { beside_robust: true, exclusive: true, ..usual.clone() }, "--beside-robust"),
            (Options { beside_robust: true, namespaces: true, ..usual.clone() }, "--beside-robust"),
        ] {
            let refused = check(&options).expect_err(expected);
            assert!(refused.to_string().contains(expected), "{refused}");
        }
        check(&usual).expect("possible");
    }
}
