//! Clients, letters and counts of the model.

use crate::etcd::wire::{Answer, Keys, Txn};
use crate::protocol::{Acquire, Mode, ReleasePlan};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mix {
    Mutex,
    Readers,
    Permits,
}

/// How often something happened in all runs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) entered: u64,
    pub(super) copies: u64,
    pub(super) expired: u64,
    pub(super) given_up: u64,
    pub(super) told_of_death: u64,
}

impl Seen {
    pub(super) fn add(&mut self, other: &Seen) {
        self.entered += other.entered;
        self.copies += other.copies;
        self.expired += other.expired;
        self.given_up += other.given_up;
        self.told_of_death += other.told_of_death;
    }
}

pub(super) enum Ask {
    Txn(Txn),
    Renew(i64),
}

/// An answer of etcd: to a transaction, to a renewal; `None`: the lease has ended.
pub(super) type Reply = Option<Result<Answer, bool>>;

pub(super) struct Letter {
    pub(super) client: usize,
    pub(super) number: u64,
    pub(super) sent: u64,
    pub(super) ask: Ask,
    /// Its client still waits for the answer.
    pub(super) answer: bool,
}

#[derive(Debug)]
pub(super) enum Doing {
    Idle,
    Acquiring,
    Waiting { keys: Keys, from: i64, deletions: bool },
    Holding { turns: u8 },
    Repairing,
    Releasing { again: bool, carried_out: bool },
}

pub(super) struct Client {
    pub(super) lease: i64,
    pub(super) deadline: u64,
    pub(super) doing: Doing,
    pub(super) acquire: Option<Acquire>,
    pub(super) plan: Option<ReleasePlan>,
    pub(super) mode: Mode,
    /// The request that is on its way, or has to be sent again.
    pub(super) open: Option<(u64, Txn)>,
    pub(super) renewing: bool,
    pub(super) paused: bool,
    pub(super) attempt: u64,
}
