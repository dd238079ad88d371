//! The mutex.

use crate::error::ClusterError;
use crate::hold::{Hold, guard};
use crate::locked::{Locked, exclusive};
use crate::protocol::{LockKeys, Mode};
use crate::session::Session;
use crate::wait::{Got, Patience, acquire, acquire_as};
use lockstead::CancelToken;
use std::panic::Location;
use std::time::{Duration, Instant};

/// Mutual exclusion among all sessions that name the same lock.
///
/// In the order in which places in the queue were taken. One owner, which releases by its guard; not
/// recursive: a thread that asks again waits for itself, which `lockstead cluster dump` shows as a cycle
/// of one.
///
/// # What it promises
/// That at most one session's place is in at any revision of etcd, without any clock; and that at most
/// one guard's [`check`](MutexGuard::check) succeeds at a time, while clocks run at rates that differ by
/// less than a fiftieth. A program may be stopped between `check` and what it does next: whoever must not
/// be overtaken there compares [tokens](MutexGuard::token). See `docs/cluster.md`.
///
/// # Source
/// The recipe of ZooKeeper's locks (Hunt, Konar, Junqueira and Reed, 2010), where each waits for the one
/// before it alone; fencing tokens after Gray and Cheriton's leases (1989) and Kleppmann (2016).
#[derive(Clone, Debug)]
pub struct Mutex {
    session: Session,
    keys: LockKeys,
}

/// The ownership of a [`Mutex`]; dropped, it releases.
#[must_use = "the lock is released as soon as this is dropped"]
pub struct MutexGuard {
    pub(crate) hold: Hold,
}

guard!(MutexGuard);
exclusive!(MutexGuard);

impl Mutex {
    /// Names a lock. Nothing is sent: a lock that nobody has is no key.
    #[must_use]
    pub fn new(session: &Session, name: &str) -> Self {
        let keys = LockKeys::new(&session.inner.root, name);
        Mutex { session: session.clone(), keys }
    }

    /// Acquires the mutex, waiting as long as it takes.
    ///
    /// # Errors
    /// [`ClusterError::Lost`], [`ClusterError::Removed`]; as a request.
    #[track_caller]
    pub fn lock(&self) -> Result<Locked<MutexGuard>, ClusterError> {
        self.lock_by(Patience::Forever, Location::caller())
    }

    /// Acquires the mutex if that needs no wait.
    ///
    /// # Errors
    /// [`ClusterError::Held`]; as [`lock`](Self::lock).
    #[track_caller]
    pub fn try_lock(&self) -> Result<Locked<MutexGuard>, ClusterError> {
        self.lock_by(Patience::Never, Location::caller())
    }

    /// Acquires the mutex, waiting at most `timeout`.
    ///
    /// # Errors
    /// [`ClusterError::TimedOut`], not before the time is over; as [`lock`](Self::lock).
    #[track_caller]
    pub fn lock_timeout(&self, timeout: Duration) -> Result<Locked<MutexGuard>, ClusterError> {
        let until = Instant::now().checked_add(timeout);
        let patience = until.map_or(Patience::Forever, Patience::Until);
        self.lock_by(patience, Location::caller())
    }

    /// Acquires the mutex, waiting until `deadline` at most.
    ///
    /// # Errors
    /// [`ClusterError::TimedOut`], not before the deadline; as [`lock`](Self::lock).
    #[track_caller]
    pub fn lock_until(&self, deadline: Instant) -> Result<Locked<MutexGuard>, ClusterError> {
        self.lock_by(Patience::Until(deadline), Location::caller())
    }

    /// Acquires the mutex, unless a signal handler runs on this thread while it sleeps for it.
    ///
    /// # Errors
    /// [`ClusterError::Interrupted`]: a handler ran; as [`lock`](Self::lock).
    #[track_caller]
    pub fn lock_interruptible(&self) -> Result<Locked<MutexGuard>, ClusterError> {
        self.lock_by(Patience::Interruptible, Location::caller())
    }

    /// Acquires the mutex, unless `token` is fired while it waits.
    ///
    /// # Errors
    /// [`ClusterError::Cancelled`]; as [`lock`](Self::lock).
    #[track_caller]
    pub fn lock_killable(&self, token: &CancelToken) -> Result<Locked<MutexGuard>, ClusterError> {
        self.lock_by(Patience::Cancel(token), Location::caller())
    }

    /// Acquires the mutex for a program in another language: `place` is where in its sources it asks, as
    /// `lockstead cluster dump` is to show it, or empty.
    ///
    /// # Errors
    /// Those of `patience`: [`ClusterError::Held`], [`ClusterError::TimedOut`],
    /// [`ClusterError::Interrupted`], [`ClusterError::Cancelled`]; as [`lock`](Self::lock).
    pub fn lock_as(
        &self,
        patience: Patience<'_>,
        place: &str,
    ) -> Result<Locked<MutexGuard>, ClusterError> {
        let mut who = self.session.who(Location::caller(), "");
        place.clone_into(&mut who.place);
        self.locked(acquire_as(&self.session, &self.keys, Mode::Write, patience, who))
    }

    pub(crate) fn lock_by(
        &self,
        patience: Patience<'_>,
        caller: &Location<'_>,
    ) -> Result<Locked<MutexGuard>, ClusterError> {
        self.locked(acquire(&self.session, &self.keys, Mode::Write, patience, caller, ""))
    }

    fn locked(&self, got: Result<Got, ClusterError>) -> Result<Locked<MutexGuard>, ClusterError> {
        match got {
            Ok(got) => {
                let guard = MutexGuard { hold: Hold::new(&self.session, got.plan) };
                Ok(Locked::new(guard, got.died))
            }
            Err(ClusterError::NotRecoverable) => Ok(Locked::NotRecoverable),
            Err(error) => Err(error),
        }
    }
}
