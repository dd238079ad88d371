//! A processor, as `sched` knows it.

use super::time::Ps;
use crate::machine::Machine;

/// A logical processor and its queue.
pub(crate) struct Cpu {
    /// The core of the processor, and below the last-level cache of the core.
    pub(crate) core: usize,
    pub(crate) cache: usize,
    pub(crate) task: Option<usize>,
    pub(super) queue: Vec<usize>,
    /// Whether its task should make room.
    pub(crate) resched: bool,
    /// Whether it switches tasks, or wakes up from idleness.
    pub(super) switching: bool,
    pub(super) idle_since: Ps,
    /// The time until which the task that left it last is on its way.
    pub(super) left_at: Ps,
    /// The time until which its queue is locked, and who has locked it last.
    pub(super) locked_until: Ps,
    pub(super) locked_by: usize,
    /// The processor time that its tasks have had, never less than before.
    pub(super) floor: i64,
    pub(super) slice: u32,
    /// The line of the store that is on its way.
    pub(crate) store: Option<usize>,
    /// The tasks that wait for that store.
    pub(crate) drainers: Vec<usize>,
    pub(crate) busy: Ps,
}

impl Cpu {
    pub(crate) fn new(machine: &Machine, number: usize) -> Self {
        let core = machine.core_of(number);
        Cpu {
            core,
            cache: machine.cache_of(core),
            task: None,
            queue: Vec::new(),
            resched: false,
            switching: false,
            idle_since: 0,
            left_at: 0,
            locked_until: 0,
            locked_by: number,
            floor: 0,
            slice: 0,
            store: None,
            drainers: Vec::new(),
            busy: 0,
        }
    }
}
