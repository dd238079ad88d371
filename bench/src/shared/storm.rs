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
//! # Phases
//! The parent kills workers at random moments and starts new ones in their place, which
//! is a good test of exclusion, and a bad one of wake-ups: whatever was lost, the next
//! arrival or the next death mends. So after every [`KILLS_A_PHASE`] kills there is a *quiet
//! phase*: nobody begins anything new, about half of the workers are killed within a
//! millisecond of each other, nobody comes in their place, and who is left must come to
//! an end by what the locks do for it. Then every lock is looked at.
//!
//! # What is judged
//! - *Torn*: an invariant does not hold, and the lock had not said that somebody died.
//! - *Unfounded*: deaths that were told of beyond those that there were. A lock that
//!   always says that its owner died would hide everything else.
//! - *Stall*: a wait that takes longer than [`STALL`]; of it is subtracted for how long any
//!   worker was stopped meanwhile (`stops`). Most waits have no deadline of their own, so
//!   that a lost wake-up is not mended by one. Who stalls is killed as well, so that the
//!   storm ends.
//! - *Lost*: a slot in which somebody still seems to live when nobody is left (`slots`).
//! - *Broken*: a lock refuses, or a worker ends by itself. The storm ends then.
//!
//! # What can happen to workers
//!
//! | module | what |
//! |---|---|
//! | `fate` | which of them dies, or is stopped, and when |
//! | `deaths` | killed, or killed with its memory taken before it ends |
//! | `exec` | becoming another program, at any instruction of any thread |
//! | `habitat` | another user, no `/proc` |
//! | `worker` | threads that come and go |
//!
//! A worker's counts live in memory that survives it. It counts what it saw before
//! it goes on; what it had seen and not counted when it was killed is lost, which
//! may only make the number of deaths noticed smaller.

mod beside;
mod condvar;
mod course;
mod deaths;
mod driver;
mod exec;
mod fate;
mod field;
mod findings;
mod ground;
mod habitat;
mod hand;
mod limits;
mod mix;
mod mutex;
mod part;
mod protected;
mod report;
mod rwlock;
mod semaphore;
mod slots;
mod stops;
mod suspicion;
mod tally;
mod worker;

use super::process::Namespaces;
use crate::{Error, Session};
use course::Course;
pub use course::Length;
use driver::Storm;
pub(super) use exec::EXECUTED;
pub use limits::{KILLS_A_PHASE, MAX_KILLS, MAX_LOCKS, MAX_PROCESSES, MAX_THREADS, STALL};
pub use mix::{Mix, Namespacing};
pub(super) use part::StormPart;
pub use report::{KindReport, RobustReport, Skipped, StormCounts, StormReport, StormRound};
use std::time::Instant;
pub use tally::StormLockKind;

/// Lets one combination storm.
///
/// # Errors
/// [`Error::Option`] for options out of range or that exclude each other,
/// [`Error::Namespaces`] and [`Error::NotHere`] if something is asked for that is not to be
/// had, [`Error::Process`], [`Error::Segment`], [`Error::Interrupted`].
pub fn measure(
    mix: &Mix,
    length: &Length,
    session: &mut Session<'_>,
) -> Result<StormReport, Error> {
    mix.check()?;
    length.check()?;
    let mut storms = [Storm::new(mix, at_hand(mix)?)?];
    take_turns(&mut storms, length, session)?;
    Ok(StormReport::new(storms.iter().map(Storm::report).collect(), Vec::new()))
}

/// Lets all that there is to storms happen, one combination after the other, again and
/// again. What cannot be had here is left out, and said.
///
/// # Errors
/// As [`measure`].
pub fn measure_all(length: &Length, session: &mut Session<'_>) -> Result<StormReport, Error> {
    length.check()?;
    let mixes = Mix::all();
    let (mut storms, mut skipped) = (Vec::new(), Vec::new());
    for mix in &mixes {
        match at_hand(mix) {
            Ok(namespaces) => storms.push(Storm::new(mix, namespaces)?),
            Err(error @ (Error::Namespaces { .. } | Error::NotHere { .. })) => {
                skipped.push(Skipped { name: mix.to_string(), why: error.to_string() });
            }
            Err(error) => return Err(error),
        }
    }
    take_turns(&mut storms, length, session)?;
    Ok(StormReport::new(storms.iter().map(Storm::report).collect(), skipped))
}

/// Tells whether all that it needs is to be had here; and how namespaces are made, if it needs
/// them.
fn at_hand(mix: &Mix) -> Result<Option<Namespaces>, Error> {
    if mix.reap {
        deaths::probe()?;
    }
    if mix.users {
        habitat::probe_users()?;
    }
    if mix.without_proc {
        habitat::probe_proc()?;
    }
    (mix.namespaces != Namespacing::One).then(Namespaces::find).transpose()
}

/// Lets each storm go on for a while, until all is over.
fn take_turns(
    storms: &mut [Storm<'_>],
    length: &Length,
    session: &mut Session<'_>,
) -> Result<(), Error> {
    let (begin, count) = (Instant::now(), storms.len());
    for at in (0..count).cycle() {
        if storms.iter().all(|storm| storm.broken.is_some()) {
            break;
        }
        let kills = storms.iter().map(|storm| storm.kills).sum();
        let storm = &mut storms[at];
        let turns = (count - at, count == 1);
        let Some(course) = Course::turn(length, begin, turns, (storm.kills, kills)) else { break };
        if storm.broken.is_none() {
            storm.run_turn(&course, session)?;
        }
    }
    Ok(())
}
