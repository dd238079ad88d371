//! A lock + unlock pair that nobody disputes, of locks that processes share.
//!
//! As [`uncontended`](crate::uncontended), in the same form and with the same
//! limit; but everything, the limit's word too, lies in memory that several
//! processes can map.

use super::home::{Home, SharedLock, with_home};
use super::memory::SharedMemory;
use crate::uncontended::{LIMIT, LimitLock, MeasuredLock, UncontendedReport, compare};
use crate::{Error, Session, options};
use std::time::Duration;

/// How long to measure.
#[derive(Clone, Debug)]
pub struct SharedPairOptions {
    /// The number of rounds; each measures all locks and the limit once, in shuffled order.
    pub rounds: usize,
    /// Time for one lock in one round.
    pub slice: Duration,
}

impl Default for SharedPairOptions {
    /// Returns options for 151 rounds of 1 ms.
    fn default() -> Self {
        Self { rounds: 151, slice: Duration::from_millis(1) }
    }
}

/// Measures all of them.
///
/// # Errors
/// [`Error::Option`] for options out of range, [`Error::Process`] or
/// [`Error::Segment`] if there is no memory to share, [`Error::Threads`],
/// [`Error::Interrupted`].
pub fn measure(
    options: &SharedPairOptions,
    session: &mut Session<'_>,
) -> Result<UncontendedReport<SharedLock>, Error> {
    options::within("--rounds", options.rounds, 1..=10_000, "")?;
    options::within("--slice", options.slice.as_micros(), 100..=60_000_000, "us")?;
    let word = || SharedMemory::<LimitLock>::create();
    let limit = MeasuredLock::at::<LimitLock, _>(LIMIT, word()?, word()?, |memory| memory);
    let mut locks = Vec::new();
    for lock in SharedLock::ALL {
        locks.push((lock, with_home!(lock, H => subject::<H>(lock))?));
    }
    compare(limit, locks, options.rounds, options.slice, session)
}

fn subject<H: Home>(lock: SharedLock) -> Result<MeasuredLock, Error> {
    Ok(MeasuredLock::at(lock.name(), H::create()?, H::create()?, H::lock))
}
