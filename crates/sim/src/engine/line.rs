//! Cache lines: which cores have a copy, which tasks wait for it, and what an access costs.
//!
//! # Role
//! A directory knows for each line which cores have a copy and which one may write. An
//! access that needs more than its core has becomes a [`LineRequest`]. Requests for a line are
//! served one after the other; only reads of a line that nobody may write overlap. A
//! request takes the line from its owner after a while ([`Hold`](crate::machine::Hold)),
//! which decides whether an owner gets to do a second step on the line it has just got.
//!
//! # Invariants
//! - **LINE-WRITER** One core has a writable copy, or none; with one, no other has any.
//! - **LINE-TURNS** Requests are served in the order in which they came, but for the preference of
//!   what is near, which passes over a request a limited number of times.
//! - **LINE-ANNOUNCED** A write is announced as done after all reads that were begun before it.
//! - **LINE-STORES** A processor has at most one store on the way; later stores and exchanges wait
//!   for it: stores become visible in their order (TSO).

use super::queue::Requests;
use super::task::NOBODY;
use super::time::Ps;
use crate::machine::Machine;

/// The right to a line that an access wants.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineRight {
    Read,
    Write,
}

/// A store that is done when its line arrives.
#[derive(Clone, Copy)]
pub(crate) struct PendingStore {
    pub(crate) address: usize,
    pub(crate) value: u64,
    pub(crate) wide: bool,
}

pub(super) struct LineRequest {
    pub(super) cpu: usize,
    /// The task that waits for it, unless it is a store.
    pub(super) task: usize,
    pub(super) want: LineRight,
    pub(super) store: Option<PendingStore>,
}

/// A cache line, as the directory knows it.
pub(crate) struct DirectoryLine {
    /// The core that wrote or fetched it last.
    pub(super) owner: usize,
    /// The thread of the owner that did so.
    pub(super) keeper: usize,
    /// Whether the owner alone has it, and may write.
    pub(super) exclusive: bool,
    /// The last-level caches in which it is.
    pub(super) caches: u128,
    /// The time at which the owner got it.
    pub(super) since: Ps,
    /// The time at which the request that is being served takes it away.
    pub(super) leaves: Ps,
    /// The time at which the next read of the shared line may begin.
    pub(super) port: Ps,
    /// The time at which the last read of the shared line ends.
    pub(super) reads_until: Ps,
    pub(super) serving: Option<LineRequest>,
    pub(super) queue: Requests<LineRequest>,
    /// The tasks that are parked while it does not change, with the numbers of their parking.
    pub(crate) watchers: Vec<(u32, u32)>,
}

impl DirectoryLine {
    pub(super) fn new() -> Self {
        DirectoryLine {
            owner: NOBODY,
            keeper: NOBODY,
            exclusive: false,
            caches: 0,
            since: 0,
            leaves: Ps::MAX,
            port: 0,
            reads_until: 0,
            serving: None,
            queue: Requests::new(),
            watchers: Vec::new(),
        }
    }
}

impl DirectoryLine {
    /// Tells whether a thread has to ask for a line that its core has: while others wait, the
    /// line stays for the instruction that fetched it, and a sibling competes with them.
    #[inline]
    pub(super) fn kept_from(&self, cpu: usize) -> bool {
        self.keeper != cpu && (self.serving.is_some() || self.queue.len() > 0)
    }
}

/// The last-level caches at each distance from each, as sets.
pub(crate) struct Reach {
    distances: usize,
    pub(super) caches: Vec<u128>,
}

impl Reach {
    pub(crate) fn new(machine: &Machine) -> Self {
        let many = machine.layout.nodes * machine.layout.caches;
        let distances = machine.lines.transfer.len();
        let mut caches = vec![0; many * distances];
        for (one, other) in (0..many).flat_map(|one| (0..many).map(move |other| (one, other))) {
            caches[one * distances + machine.between(one, other)] |= 1 << other;
        }
        Reach { distances, caches }
    }

    /// Returns the caches at distance 0 from `cache`, at distance 1, and so on.
    #[inline]
    pub(super) fn of(&self, cache: usize) -> &[u128] {
        &self.caches[cache * self.distances..][..self.distances]
    }
}

/// The way in which an access went.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Went {
    /// The access is done at once.
    Hit,
    /// The task is resumed when the line is there.
    Asked,
    /// A store is on the way, and will be done without the task.
    Posted,
    /// The task is resumed when its processor's store is done, and has to try again.
    Drains,
}

impl PendingStore {
    /// Writes the value into memory.
    pub(super) fn apply(self) {
        // SAFETY: the address is that of a live atomic of the arena, of this width; by
        // STRAND-TURN nobody else uses it now.
        unsafe {
            if self.wide {
                std::ptr::with_exposed_provenance_mut::<u64>(self.address).write(self.value);
            } else {
                std::ptr::with_exposed_provenance_mut::<u32>(self.address).write(self.value as u32);
            }
        }
    }
}
