//! What workers and the parent of a storm count and say, in memory that survives them.

use super::limits::{MAX_PROCESSES, MAX_THREADS, MOST_TAKEN, STALL};
use super::protected::Protected;
use super::stops::Stops;
use crate::Error;
use crate::shared::memory::Plain;
use lockstead::shared::{HeldGuard, Locked, SharedError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A kind of lock that storms are about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum StormLockKind {
    /// The mutex of this project.
    Mutex,
    /// The reader-writer lock of this project.
    RwLock,
    /// The semaphore of this project.
    Semaphore,
    /// The condition variable with its mutex.
    Condvar,
}

impl StormLockKind {
    /// All, in the order of the reports.
    pub const ALL: [StormLockKind; 4] = [
        StormLockKind::Mutex,
        StormLockKind::RwLock,
        StormLockKind::Semaphore,
        StormLockKind::Condvar,
    ];

    /// Returns the name as flags and reports have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            StormLockKind::Mutex => "mutex",
            StormLockKind::RwLock => "rwlock",
            StormLockKind::Semaphore => "semaphore",
            StormLockKind::Condvar => "condvar",
        }
    }

    /// Returns how many deaths one thread that dies can be told of as: locks that it holds at
    /// once, or units.
    pub(super) const fn told_at_most(self) -> u64 {
        match self {
            StormLockKind::Mutex | StormLockKind::RwLock => 2,
            StormLockKind::Semaphore => MOST_TAKEN as u64,
            StormLockKind::Condvar => 1,
        }
    }
}

impl fmt::Display for StormLockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What the parent and all workers see beside the segment.
#[repr(C)]
pub(super) struct StormControl {
    /// Nobody begins anything new.
    pub(super) over: AtomicU32,
    /// Counts for how long workers were stopped.
    pub(super) stops: Stops,
    pub(super) tallies: [KindTally; StormLockKind::ALL.len()],
    /// The counts of the C library's mutexes.
    pub(super) robust: KindTally,
    pub(super) parties: [[StormThread; MAX_THREADS]; MAX_PROCESSES],
}

// SAFETY: atomics alone: any bits are valid, and other processes may write at any time.
unsafe impl Plain for StormControl {}

impl StormControl {
    pub(super) fn tally(&self, kind: StormLockKind) -> &KindTally {
        &self.tallies[kind as usize]
    }
}

/// What a thread waits for that is no lock.
pub(super) const FOR_A_SLOT: u32 = StormLockKind::ALL.len() as u32;

/// One thread of one worker.
#[repr(C, align(128))]
pub(super) struct StormThread {
    /// Critical sections of this life.
    pub(super) sections: AtomicU64,
    /// Since when it waits, on the system's monotonic clock; 0: it does not.
    pub(super) waits_since: AtomicU64,
    /// What `Control::stops` said then.
    pub(super) waits_stopped: AtomicU64,
    /// The kind of lock that it waits for, if it does; or [`FOR_A_SLOT`].
    pub(super) waits_for: AtomicU32,
    /// The number of the thread, as it sees itself.
    pub(super) thread: AtomicU32,
    /// How often it was found to have ended.
    pub(super) lives: AtomicU32,
    /// What it has of a semaphore, as `suspicion` writes it.
    pub(super) holds: AtomicU64,
}

impl StormThread {
    /// Marks the thread as dead: what it said of itself is not so any more.
    pub(super) fn bury(&self) {
        // In this order: who sees that it holds nothing any more sees why.
        self.lives.fetch_add(1, Ordering::SeqCst);
        self.holds.store(0, Ordering::SeqCst);
        self.waits_since.store(0, Ordering::Relaxed);
        self.sections.store(0, Ordering::Relaxed);
    }

    /// Returns how long it has waited while nobody was stopped, and for what; `None`: a slot.
    pub(super) fn waits(&self, stops: &Stops) -> Option<(Option<StormLockKind>, u64)> {
        // ord: with the store in `Hand::watched`, what this wait began with.
        let since = self.waits_since.load(Ordering::Acquire);
        let stopped = self.waits_stopped.load(Ordering::Relaxed);
        let kind = self.waits_for.load(Ordering::Relaxed) as usize;
        if since == 0 || self.waits_since.load(Ordering::Relaxed) != since {
            return None;
        }
        let now = now_ns();
        let stopped = stops.until(now).saturating_sub(stopped);
        Some((
            StormLockKind::ALL.get(kind).copied(),
            now.saturating_sub(since).saturating_sub(stopped),
        ))
    }

    /// Tells whether that is too long.
    pub(super) fn stalled(&self, stops: &Stops) -> Option<(Option<StormLockKind>, u64)> {
        self.waits(stops).filter(|&(_, waited)| waited > STALL.as_nanos() as u64)
    }
}

/// Counts about one kind of lock.
#[repr(C, align(128))]
pub(super) struct KindTally {
    pub(super) owner_died: AtomicU64,
    /// Units that dead holders had, as semaphores told.
    pub(super) units_returned: AtomicU64,
    pub(super) torn: AtomicU64,
    pub(super) operations: AtomicU64,
    pub(super) longest_wait_ns: AtomicU64,
}

/// Adds to a count that lasts longer than who counts.
pub(super) fn count(counter: &AtomicU64, more: u64) {
    if more != 0 {
        counter.fetch_add(more, Ordering::Relaxed);
    }
}

impl KindTally {
    /// Looks at a lock as it was got, mends what a dead owner left, and gives the guard, and
    /// whether an owner died. Returns `None` if the lock was not to be had in time.
    pub(super) fn received<G>(
        &self,
        outcome: Result<Locked<G>, SharedError>,
    ) -> Result<Option<(G, bool)>, Error>
    where
        G: HeldGuard,
        <G as Deref>::Target: Protected + Sized,
    {
        match outcome {
            Ok(Locked::Acquired(guard)) => {
                count(&self.torn, u64::from(!guard.is_sound()));
                Ok(Some((guard, false)))
            }
            Ok(Locked::OwnerDied(mut guard)) => {
                count(&self.owner_died, 1);
                guard.mend();
                Ok(Some((guard.mark_consistent(), true)))
            }
            Ok(Locked::NotRecoverable) => {
                Err(Error::Worker { how: "a lock is not recoverable, for no reason".into() })
            }
            Err(error) => self.refused(error).map(|()| None),
        }
    }

    /// Passes over refusals that are to be expected.
    pub(super) fn refused(&self, error: SharedError) -> Result<(), Error> {
        match error {
            SharedError::TimedOut | SharedError::Held => Ok(()),
            error => Err(Error::Worker { how: format!("a lock refuses: {error}") }),
        }
    }
}

/// Returns the time of the system's monotonic clock, which is the same in every process.
pub(super) fn now_ns() -> u64 {
    crate::clock::monotonic().as_nanos() as u64
}
