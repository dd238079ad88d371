//! The reader-writer lock.

use crate::error::ClusterError;
use crate::hold::{Hold, guard};
use crate::locked::{Locked, exclusive};
use crate::protocol::{LockKeys, Mode};
use crate::session::Session;
use crate::wait::{Patience, acquire};
use lockstead::CancelToken;
use std::panic::Location;
use std::time::{Duration, Instant};

/// One writer or any number of readers, among all sessions that name the same lock.
///
/// In the order in which places in the queue were taken: a reader that comes after a writer that waits
/// waits for it, and readers that stand side by side in the queue read together. A writer's death is told
/// to the next writer; readers get [`ClusterError::Inconsistent`] until it has repaired what that left. A
/// reader's death loses nothing.
#[derive(Clone, Debug)]
pub struct RwLock {
    session: Session,
    keys: LockKeys,
}

/// The right to write under an [`RwLock`]; dropped, it releases.
#[must_use = "the lock is released as soon as this is dropped"]
pub struct WriteGuard {
    hold: Hold,
}

/// The right to read under an [`RwLock`]; dropped, it releases. Its token says which writers were before:
/// those with smaller ones.
#[must_use = "the lock is released as soon as this is dropped"]
pub struct ReadGuard {
    hold: Hold,
}

guard!(WriteGuard, ReadGuard);
exclusive!(WriteGuard);

impl RwLock {
    /// Names a lock. Nothing is sent: a lock that nobody has is no key.
    #[must_use]
    pub fn new(session: &Session, name: &str) -> Self {
        let keys = LockKeys::new(&session.inner.root, name);
        RwLock { session: session.clone(), keys }
    }

    /// Acquires the lock for writing, waiting as long as it takes.
    ///
    /// # Errors
    /// [`ClusterError::Lost`], [`ClusterError::Removed`]; as a request.
    #[track_caller]
    pub fn write(&self) -> Result<Locked<WriteGuard>, ClusterError> {
        self.write_by(Patience::Forever, Location::caller())
    }

    /// Acquires the lock for writing if that needs no wait.
    ///
    /// # Errors
    /// [`ClusterError::Held`]; as [`write`](Self::write).
    #[track_caller]
    pub fn try_write(&self) -> Result<Locked<WriteGuard>, ClusterError> {
        self.write_by(Patience::Never, Location::caller())
    }

    /// Acquires the lock for writing, waiting at most `timeout`.
    ///
    /// # Errors
    /// [`ClusterError::TimedOut`], not before the time is over; as [`write`](Self::write).
    #[track_caller]
    pub fn write_timeout(&self, timeout: Duration) -> Result<Locked<WriteGuard>, ClusterError> {
        let until = Instant::now().checked_add(timeout);
        let patience = until.map_or(Patience::Forever, Patience::Until);
        self.write_by(patience, Location::caller())
    }

    /// Acquires the lock for writing, waiting until `deadline` at most.
    ///
    /// # Errors
    /// [`ClusterError::TimedOut`], not before the deadline; as [`write`](Self::write).
    #[track_caller]
    pub fn write_until(&self, deadline: Instant) -> Result<Locked<WriteGuard>, ClusterError> {
        self.write_by(Patience::Until(deadline), Location::caller())
    }

    /// Acquires the lock for writing, unless a signal handler runs on this thread while it sleeps for it.
    ///
    /// # Errors
    /// [`ClusterError::Interrupted`]: a handler ran; as [`write`](Self::write).
    #[track_caller]
    pub fn write_interruptible(&self) -> Result<Locked<WriteGuard>, ClusterError> {
        self.write_by(Patience::Interruptible, Location::caller())
    }

    /// Acquires the lock for writing, unless `token` is fired while it waits.
    ///
    /// # Errors
    /// [`ClusterError::Cancelled`]; as [`write`](Self::write).
    #[track_caller]
    pub fn write_killable(&self, token: &CancelToken) -> Result<Locked<WriteGuard>, ClusterError> {
        self.write_by(Patience::Cancel(token), Location::caller())
    }

    /// Acquires the lock for reading, waiting as long as it takes.
    ///
    /// # Errors
    /// [`ClusterError::Lost`], [`ClusterError::Removed`],
    /// [`ClusterError::Inconsistent`], [`ClusterError::NotRecoverable`]; as a request.
    #[track_caller]
    pub fn read(&self) -> Result<ReadGuard, ClusterError> {
        self.read_by(Patience::Forever, Location::caller())
    }

    /// Acquires the lock for reading if that needs no wait.
    ///
    /// # Errors
    /// [`ClusterError::Held`]; as [`read`](Self::read).
    #[track_caller]
    pub fn try_read(&self) -> Result<ReadGuard, ClusterError> {
        self.read_by(Patience::Never, Location::caller())
    }

    /// Acquires the lock for reading, waiting at most `timeout`.
    ///
    /// # Errors
    /// [`ClusterError::TimedOut`], not before the time is over; as [`read`](Self::read).
    #[track_caller]
    pub fn read_timeout(&self, timeout: Duration) -> Result<ReadGuard, ClusterError> {
        let until = Instant::now().checked_add(timeout);
        let patience = until.map_or(Patience::Forever, Patience::Until);
        self.read_by(patience, Location::caller())
    }

    /// Acquires the lock for reading, waiting until `deadline` at most.
    ///
    /// # Errors
    /// [`ClusterError::TimedOut`], not before the deadline; as [`read`](Self::read).
    #[track_caller]
    pub fn read_until(&self, deadline: Instant) -> Result<ReadGuard, ClusterError> {
        self.read_by(Patience::Until(deadline), Location::caller())
    }

    /// Acquires the lock for reading, unless a signal handler runs on this thread while it sleeps for it.
    ///
    /// # Errors
    /// [`ClusterError::Interrupted`]: a handler ran; as [`read`](Self::read).
    #[track_caller]
    pub fn read_interruptible(&self) -> Result<ReadGuard, ClusterError> {
        self.read_by(Patience::Interruptible, Location::caller())
    }

    /// Acquires the lock for reading, unless `token` is fired while it waits.
    ///
    /// # Errors
    /// [`ClusterError::Cancelled`]; as [`read`](Self::read).
    #[track_caller]
    pub fn read_killable(&self, token: &CancelToken) -> Result<ReadGuard, ClusterError> {
        self.read_by(Patience::Cancel(token), Location::caller())
    }

    pub(crate) fn write_by(
        &self,
        patience: Patience<'_>,
        caller: &Location<'_>,
    ) -> Result<Locked<WriteGuard>, ClusterError> {
        match acquire(&self.session, &self.keys, Mode::Write, patience, caller, "") {
            Ok(got) => {
                let guard = WriteGuard { hold: Hold::new(&self.session, got.plan) };
                Ok(Locked::new(guard, got.died))
            }
            Err(ClusterError::NotRecoverable) => Ok(Locked::NotRecoverable),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn read_by(
        &self,
        patience: Patience<'_>,
        caller: &Location<'_>,
    ) -> Result<ReadGuard, ClusterError> {
        let got = acquire(&self.session, &self.keys, Mode::Read, patience, caller, "")?;
        Ok(ReadGuard { hold: Hold::new(&self.session, got.plan) })
    }
}
