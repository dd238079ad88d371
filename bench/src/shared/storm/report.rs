//! What came of a storm.

use super::Kind;
use crate::machine::Machine;
use serde::Serialize;

/// What came of it. The counts are those of all kinds together.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Workers that were killed.
    pub kills: u64,
    /// How often a lock told its next owner that the last one had died.
    pub owner_died: u64,
    /// How often it did not, and its invariant did not hold.
    pub torn: u64,
    /// Waits beyond [`STALL`](super::STALL).
    pub stalls: u64,
    /// The longest wait for a lock.
    pub longest_wait_ms: f64,
    /// Deaths told of beyond those that there were.
    pub unfounded: u64,
    /// The same for each kind of lock.
    pub kinds: Vec<KindReport>,
    /// The robust mutexes of the C library in the same threads.
    pub robust: Option<RobustReport>,
    /// Times without fresh arrivals, in which all came to an end.
    pub calms: u64,
    /// Workers at the same time.
    pub processes: usize,
    /// Threads of each.
    pub threads: usize,
    /// Locks of each kind.
    pub locks: usize,
    /// Whether each worker was process 1 of its namespace.
    pub namespaces: bool,
    /// Whether threads gave the kernel a list of their own.
    pub exclusive: bool,
    /// Critical sections.
    pub operations: u64,
    /// How long it took.
    pub seconds: f64,
    /// Where.
    pub machine: Machine,
}

impl Report {
    /// Whether the locks did what they promise.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.torn == 0
            && self.stalls == 0
            && self.unfounded == 0
            && self.robust.as_ref().is_none_or(|robust| robust.torn == 0 && robust.stuck == 0)
    }
}

/// One kind of lock.
#[derive(Clone, Debug, Serialize)]
pub struct KindReport {
    /// Which.
    pub lock: Kind,
    /// How often a lock told its next owner that the last one had died; of a semaphore,
    /// that holders had.
    pub owner_died: u64,
    /// Units that the dead had, as the semaphores have told; of other kinds `None`.
    pub units_returned: Option<u64>,
    /// How often its invariant did not hold.
    pub torn: u64,
    /// Deaths told of beyond those that there were.
    pub unfounded: u64,
    /// Waits beyond [`STALL`](super::STALL).
    pub stalls: u64,
    /// The longest wait for a lock.
    pub longest_wait_ms: f64,
    /// Critical sections.
    pub operations: u64,
}

/// The robust mutexes of the C library.
#[derive(Clone, Debug, Serialize)]
pub struct RobustReport {
    /// How often one told its next owner that the last one had died.
    pub owner_died: u64,
    /// How often it did not, and its invariant did not hold.
    pub torn: u64,
    /// How often one was not to be had although nobody lived who had it.
    pub stuck: u64,
    /// Critical sections.
    pub operations: u64,
}
