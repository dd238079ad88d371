//! The counting semaphore.

use crate::error::ClusterError;
use crate::hold::{Hold, guard};
use crate::protocol::{LockKeys, Mode};
use crate::session::Session;
use crate::wait::{Patience, acquire};
use lockstead::CancelToken;
use std::panic::Location;
use std::time::{Duration, Instant};

/// A number of permits, among all sessions that name the same semaphore.
///
/// In the order in which places in the queue were taken: who wants more than there is keeps those behind
/// it waiting. The permits of a session that dies are free again once its lease has ended. All name the
/// same number of permits; who names another one than those that hold or wait is refused.
///
/// A permit is no exclusion, so that its token, which grows all the same, orders no owners.
#[derive(Clone, Debug)]
pub struct Semaphore {
    session: Session,
    keys: LockKeys,
    permits: u32,
}

/// Permits of a [`Semaphore`]; dropped, they are given back.
#[must_use = "the permits are given back as soon as this is dropped"]
pub struct Permits {
    hold: Hold,
}

guard!(Permits);

impl Semaphore {
    /// Names a semaphore of so many permits. Nothing is sent.
    ///
    /// # Errors
    /// [`ClusterError::Options`]: there is no semaphore without a permit.
    pub fn new(session: &Session, name: &str, permits: u32) -> Result<Self, ClusterError> {
        if permits == 0 {
            return Err(ClusterError::Options("a semaphore has one permit or more".into()));
        }
        let keys = LockKeys::new(&session.inner.root, name);
        Ok(Semaphore { session: session.clone(), keys, permits })
    }

    /// Returns the same semaphore, of which each acquisition takes so many permits.
    ///
    /// # Errors
    /// [`ClusterError::Options`]: none, or more than there are.
    pub fn taking(&self, want: u32) -> Result<SemaphoreUse, ClusterError> {
        if want == 0 || want > self.permits {
            let all = self.permits;
            return Err(ClusterError::Options(format!("take 1 to {all} permits at a time")));
        }
        Ok(SemaphoreUse { of: self.clone(), want })
    }

    /// Acquires one permit, waiting as long as it takes.
    ///
    /// # Errors
    /// [`ClusterError::Lost`], [`ClusterError::Removed`],
    /// [`ClusterError::Permits`]; as a request.
    #[track_caller]
    pub fn acquire(&self) -> Result<Permits, ClusterError> {
        self.acquire_by(1, Patience::Forever, Location::caller())
    }

    /// Acquires one permit if that needs no wait.
    ///
    /// # Errors
    /// [`ClusterError::Held`]; as [`acquire`](Self::acquire).
    #[track_caller]
    pub fn try_acquire(&self) -> Result<Permits, ClusterError> {
        self.acquire_by(1, Patience::Never, Location::caller())
    }

    /// Acquires one permit, waiting at most `timeout`.
    ///
    /// # Errors
    /// [`ClusterError::TimedOut`], not before the time is over; as [`acquire`](Self::acquire).
    #[track_caller]
    pub fn acquire_timeout(&self, timeout: Duration) -> Result<Permits, ClusterError> {
        let until = Instant::now().checked_add(timeout);
        let patience = until.map_or(Patience::Forever, Patience::Until);
        self.acquire_by(1, patience, Location::caller())
    }

    /// Acquires one permit, waiting until `deadline` at most.
    ///
    /// # Errors
    /// [`ClusterError::TimedOut`], not before the deadline; as [`acquire`](Self::acquire).
    #[track_caller]
    pub fn acquire_until(&self, deadline: Instant) -> Result<Permits, ClusterError> {
        self.acquire_by(1, Patience::Until(deadline), Location::caller())
    }

    /// Acquires one permit, unless a signal handler runs on this thread while it sleeps for it.
    ///
    /// # Errors
    /// [`ClusterError::Interrupted`]: a handler ran; as [`acquire`](Self::acquire).
    #[track_caller]
    pub fn acquire_interruptible(&self) -> Result<Permits, ClusterError> {
        self.acquire_by(1, Patience::Interruptible, Location::caller())
    }

    /// Acquires one permit, unless `token` is fired while it waits.
    ///
    /// # Errors
    /// [`ClusterError::Cancelled`]; as [`acquire`](Self::acquire).
    #[track_caller]
    pub fn acquire_killable(&self, token: &CancelToken) -> Result<Permits, ClusterError> {
        self.acquire_by(1, Patience::Cancel(token), Location::caller())
    }

    pub(crate) fn acquire_by(
        &self,
        want: u32,
        patience: Patience<'_>,
        caller: &Location<'_>,
    ) -> Result<Permits, ClusterError> {
        let mode = Mode::Permits { want, of: self.permits };
        let got = acquire(&self.session, &self.keys, mode, patience, caller, "")?;
        Ok(Permits { hold: Hold::new(&self.session, got.plan) })
    }
}

/// A [`Semaphore`] from which several permits are taken at a time.
#[derive(Clone, Debug)]
pub struct SemaphoreUse {
    of: Semaphore,
    want: u32,
}

impl SemaphoreUse {
    /// Acquires the permits, waiting as long as it takes.
    ///
    /// # Errors
    /// [`ClusterError::Lost`], [`ClusterError::Removed`],
    /// [`ClusterError::Permits`]; as a request.
    #[track_caller]
    pub fn acquire(&self) -> Result<Permits, ClusterError> {
        self.of.acquire_by(self.want, Patience::Forever, Location::caller())
    }

    /// Acquires the permits if that needs no wait.
    ///
    /// # Errors
    /// [`ClusterError::Held`]; as [`acquire`](Self::acquire).
    #[track_caller]
    pub fn try_acquire(&self) -> Result<Permits, ClusterError> {
        self.of.acquire_by(self.want, Patience::Never, Location::caller())
    }

    /// Acquires the permits, waiting at most `timeout`.
    ///
    /// # Errors
    /// [`ClusterError::TimedOut`], not before the time is over; as [`acquire`](Self::acquire).
    #[track_caller]
    pub fn acquire_timeout(&self, timeout: Duration) -> Result<Permits, ClusterError> {
        let until = Instant::now().checked_add(timeout);
        let patience = until.map_or(Patience::Forever, Patience::Until);
        self.of.acquire_by(self.want, patience, Location::caller())
    }

    /// Acquires the permits, waiting until `deadline` at most.
    ///
    /// # Errors
    /// [`ClusterError::TimedOut`], not before the deadline; as [`acquire`](Self::acquire).
    #[track_caller]
    pub fn acquire_until(&self, deadline: Instant) -> Result<Permits, ClusterError> {
        self.of.acquire_by(self.want, Patience::Until(deadline), Location::caller())
    }

    /// Acquires the permits, unless a signal handler runs on this thread while it sleeps for it.
    ///
    /// # Errors
    /// [`ClusterError::Interrupted`]: a handler ran; as [`acquire`](Self::acquire).
    #[track_caller]
    pub fn acquire_interruptible(&self) -> Result<Permits, ClusterError> {
        self.of.acquire_by(self.want, Patience::Interruptible, Location::caller())
    }

    /// Acquires the permits, unless `token` is fired while it waits.
    ///
    /// # Errors
    /// [`ClusterError::Cancelled`]; as [`acquire`](Self::acquire).
    #[track_caller]
    pub fn acquire_killable(&self, token: &CancelToken) -> Result<Permits, ClusterError> {
        self.of.acquire_by(self.want, Patience::Cancel(token), Location::caller())
    }
}
