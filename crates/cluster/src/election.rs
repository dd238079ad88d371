//! Leader election: a mutex whose owner says something of itself.

use crate::error::ClusterError;
use crate::etcd::wire::{Get, Op};
use crate::hold::{Hold, guard};
use crate::locked::{Locked, exclusive};
use crate::protocol::{LockKeys, Mode, Who};
use crate::session::Session;
use crate::wait::{Patience, acquire};
use lockstead::CancelToken;
use std::panic::Location;
use std::time::{Duration, Instant};

/// An election: the candidates of all sessions queue, the first one leads until it resigns or dies.
#[derive(Clone, Debug)]
pub struct Election {
    session: Session,
    keys: LockKeys,
}

/// The leadership of an [`Election`]; dropped, it ends.
#[must_use = "the leadership ends as soon as this is dropped"]
pub struct Leadership {
    hold: Hold,
}

guard!(Leadership);
exclusive!(Leadership);

/// The candidate that leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// What it says of itself.
    pub says: String,
    /// The host on which it runs.
    pub host: String,
    /// The number of its process.
    pub pid: u32,
    /// The token of its leadership.
    pub token: u64,
}

impl Election {
    /// Names an election. Nothing is sent.
    #[must_use]
    pub fn new(session: &Session, name: &str) -> Self {
        let keys = LockKeys::new(&session.inner.root, name);
        Election { session: session.clone(), keys }
    }

    /// Waits until this candidate leads, of which others read what it `says`: its address, say.
    ///
    /// # Errors
    /// As [`Mutex::lock`](crate::Mutex::lock).
    #[track_caller]
    pub fn campaign(&self, says: &str) -> Result<Locked<Leadership>, ClusterError> {
        self.campaign_by(says, Patience::Forever, Location::caller())
    }

    /// Waits at most `timeout` for that.
    ///
    /// # Errors
    /// [`ClusterError::TimedOut`]; as [`campaign`](Self::campaign).
    #[track_caller]
    pub fn campaign_timeout(
        &self,
        says: &str,
        timeout: Duration,
    ) -> Result<Locked<Leadership>, ClusterError> {
        let until = Instant::now().checked_add(timeout);
        let patience = until.map_or(Patience::Forever, Patience::Until);
        self.campaign_by(says, patience, Location::caller())
    }

    /// Waits for that unless `token` is fired.
    ///
    /// # Errors
    /// [`ClusterError::Cancelled`]; as [`campaign`](Self::campaign).
    #[track_caller]
    pub fn campaign_killable(
        &self,
        says: &str,
        token: &CancelToken,
    ) -> Result<Locked<Leadership>, ClusterError> {
        self.campaign_by(says, Patience::Cancel(token), Location::caller())
    }

    fn campaign_by(
        &self,
        says: &str,
        patience: Patience<'_>,
        caller: &Location<'_>,
    ) -> Result<Locked<Leadership>, ClusterError> {
        match acquire(&self.session, &self.keys, Mode::Write, patience, caller, says) {
            Ok(got) => {
                let guard = Leadership { hold: Hold::new(&self.session, got.plan) };
                Ok(Locked::new(guard, got.died))
            }
            Err(ClusterError::NotRecoverable) => Ok(Locked::NotRecoverable),
            Err(error) => Err(error),
        }
    }

    /// Returns who leads now, as etcd has it; `None` if nobody does.
    ///
    /// # Errors
    /// As a request.
    pub fn leader(&self) -> Result<Option<Leader>, ClusterError> {
        let get = Get::all(&self.keys.queue());
        let (_, places) = self.session.inner.client.get(&get)?;
        Ok(places.first().map(|first| {
            let who = Who::read(&first.value);
            let token = u64::try_from(first.created).unwrap_or(0) * crate::hold::TURNS;
            Leader { says: who.says, host: who.host, pid: who.pid, token }
        }))
    }
}

impl Leadership {
    /// Says something else of oneself from now on.
    ///
    /// # Errors
    /// [`ClusterError::Lost`], [`ClusterError::Removed`]; as a request.
    pub fn proclaim(&mut self, says: &str) -> Result<(), ClusterError> {
        self.check()?;
        let plan = &mut self.hold.plan;
        plan.who.says = says.to_owned();
        let step = Op::put(&plan.own(), plan.who.to_json(), plan.lease);
        let answer = self.hold.session.txn(&plan.guarded(vec![step]), &mut false)?;
        if answer.succeeded { Ok(()) } else { Err(self.hold.removed()) }
    }
}
