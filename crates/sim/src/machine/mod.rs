//! A machine: its processors, its caches, its scheduler, in numbers.
//!
//! It is read from a file in TOML ([`Machine::parse`]), several of which are built in
//! ([`Machine::bundled`]). `docs/simulator.md` gives the source of each number.

mod change;
mod cost;
mod file;
mod part;
mod text;

pub use change::{LISTS, NUMBERS};
pub(crate) use cost::Cost;
pub use file::BUNDLED;
pub use part::PartError;

use serde::Deserialize;
use std::ops::Range;

/// A machine, as its file describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The name that files give it.
    pub name: String,
    /// A sentence that says what it is.
    pub about: String,
    /// The numbers of its nodes, caches, cores and threads.
    pub layout: MachineLayout,
    /// The costs of accesses to memory.
    pub lines: Lines,
    /// The cost of sharing a core.
    pub smt: Smt,
    /// The numbers of the scheduler.
    pub scheduler: Scheduler,
    /// The costs of the kernel.
    pub kernel: Kernel,
    /// The same costs in picoseconds, worked out when the file is read.
    #[serde(skip)]
    pub(crate) cost: Cost,
}

/// The layout of the processors, of which there are `nodes` × `caches` × `cores` × `threads`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineLayout {
    /// The number of memory nodes.
    pub nodes: usize,
    /// The number of last-level caches of a node.
    #[serde(default = "one")]
    pub caches: usize,
    /// The number of cores that share such a cache.
    pub cores: usize,
    /// The number of threads of a core.
    #[serde(default = "one")]
    pub threads: usize,
    /// The factor by which computing takes longer than a workload's file says.
    #[serde(default = "as_it_says")]
    pub pace: f64,
    /// The index in `lines.transfer` of the distance of each pair of nodes; empty if all are
    /// equally far.
    #[serde(default)]
    pub hops: Vec<Vec<usize>>,
    /// The number of cores in use, the first ones of them all; all if it is not given.
    #[serde(default)]
    pub used: Option<usize>,
}

fn as_it_says() -> f64 {
    1.0
}

fn one() -> usize {
    1
}

/// The costs of accesses to cache lines, in nanoseconds. Distances: 0 within a last-level cache, 1
/// between two of a node, 2 and more between nodes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lines {
    /// The cost of an access in the core's own cache.
    pub hit: f64,
    /// The cost of an atomic exchange there.
    pub exchange: f64,
    /// The cost of a line that the other thread of the core has written.
    pub sibling: f64,
    /// The cost of a transfer, by distance.
    pub transfer: Vec<f64>,
    /// The time for which a read of a shared line keeps the next one waiting, by distance.
    pub occupied: Vec<f64>,
    /// The cost of a line that no cache has.
    pub memory: f64,
    /// The time for which an owner keeps a line that another wants to write.
    pub hold_write: f64,
    /// The time for which an owner keeps a line that another wants to read.
    pub hold_read: f64,
    /// The share by which both vary.
    #[serde(default)]
    pub hold_variation: f64,
    /// The factor by which a transfer takes longer while others wait, by distance.
    #[serde(default)]
    pub contended: Vec<f64>,
    /// The chance that the nearest request is served before the first.
    #[serde(default)]
    pub preference: f64,
    /// The number of times that a request may be passed over for that.
    #[serde(default = "some_patience")]
    pub patience: u32,
    /// The share by which transfers and calls of the kernel vary.
    #[serde(default)]
    pub jitter: f64,
    /// The time that one turn of a spin loop takes.
    pub pause: f64,
}

/// Returns the time between two ticks of a kernel with 250 of them a second, in microseconds.
fn a_tick() -> f64 {
    4000.0
}

/// Returns how long a run queue is locked for a wake-up, in microseconds: an order of magnitude.
fn a_short_hold() -> f64 {
    0.3
}

/// Returns how long a change of a list takes, in nanoseconds: an order of magnitude.
fn a_change_of_a_list() -> f64 {
    60.0
}

fn some_patience() -> u32 {
    8
}

/// The numbers of the threads that share a core.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Smt {
    /// The speed of each while another one is busy.
    pub speed: f64,
    /// The speed of its atomic exchanges then.
    #[serde(default = "as_it_says")]
    pub exchanges: f64,
}

/// The numbers of the scheduler, in microseconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheduler {
    /// The time in which each ready task of a processor has its turn.
    pub latency: f64,
    /// The shortest turn that a task has.
    pub slice: f64,
    /// A task that wakes up takes the processor of one that is ahead by more than this.
    pub granularity: f64,
    /// The most processor time that a task may be behind after a sleep.
    pub credit: f64,
    /// The time that a change of tasks takes.
    pub switch: f64,
    /// The time that it takes to wake a task, for the one that wakes it.
    pub wake: f64,
    /// The part of it for which the queue of the target is locked; 0: queues have no locks.
    #[serde(default = "a_short_hold")]
    pub queue: f64,
    /// The time that the waker pays beyond that for a processor that was idle.
    #[serde(default)]
    pub kick: f64,
    /// The time from the wake-up until an idle processor notices it.
    pub signal: f64,
    /// Whether the waker of a task waits until that has left its processor, whose queue is
    /// locked meanwhile.
    #[serde(default)]
    pub leaving: bool,
    /// Whether new tasks are spread over nodes, caches and cores, and idle processors take tasks
    /// from the nearest queue: 1, or 0 for a scheduler that knows caches alone, where task *n*
    /// starts on processor *n*.
    #[serde(default = "as_it_says")]
    pub placement: f64,
    /// The share of wake-ups for which a waker finds an idle processor near by. Else the task stays where it
    /// ran, or comes to its waker, though another processor is idle.
    #[serde(default = "as_it_says")]
    pub finds: f64,
    /// The number of tasks that start on the first node before others are used.
    #[serde(default)]
    pub stay: f64,
    /// The time between two looks of idle processors for tasks that queue, or share a core,
    /// elsewhere; 0: they do not look.
    #[serde(default = "a_tick")]
    pub balance: f64,
    /// An idle processor leaves a task alone that ran less than so long ago, since its data are where it
    /// ran; 0: it takes any.
    #[serde(default)]
    pub hot: f64,
    /// The share of wake-ups that do not take the processor of a task whose turn has not yet lasted `slice`, however
    /// far that task is ahead.
    #[serde(default)]
    pub keeps: f64,
    /// The costs of leaving idle states: after so many microseconds of idleness, so many.
    #[serde(default)]
    pub idle: Vec<(f64, f64)>,
}

/// The costs of system calls, in nanoseconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// The time to enter and leave the kernel.
    pub call: f64,
    /// The time to find the bucket of an address.
    pub futex: f64,
    /// The time for which a change of a bucket's queue keeps its lock, beside the accesses; 0: buckets
    /// have no locks.
    #[serde(default = "a_change_of_a_list")]
    pub bucket: f64,
    /// The number of buckets in all; 0: 256 for each processor, as Linux has them from 3.14 on.
    #[serde(default)]
    pub buckets: f64,
    /// Whether a waker wakes with the bucket's lock in its hands: 1, or 0.
    #[serde(default)]
    pub waking: f64,
    /// The time that one reading of the clock takes.
    pub clock: f64,
    /// The time to restart the releases of other threads; 0: none can be restarted, and a
    /// release is an exchange.
    #[serde(default)]
    pub restart: f64,
}

impl MachineLayout {
    /// Returns the number of cores, whether they are in use or not.
    pub(crate) fn all_cores(&self) -> usize {
        self.nodes * self.caches * self.cores
    }
}

impl Machine {
    /// Makes a machine of these parts.
    #[must_use]
    pub fn new(
        (name, about): (&str, &str),
        layout: MachineLayout,
        lines: Lines,
        smt: Smt,
        scheduler: Scheduler,
        kernel: Kernel,
    ) -> Machine {
        let (name, about) = (name.to_owned(), about.to_owned());
        let cost = Cost::default();
        let mut machine = Machine { name, about, layout, lines, smt, scheduler, kernel, cost };
        machine.settle();
        machine
    }

    /// Returns the number of logical processors.
    #[must_use]
    pub fn cpus(&self) -> usize {
        self.cores() * self.layout.threads
    }

    /// Returns the number of cores in use.
    #[must_use]
    pub fn cores(&self) -> usize {
        let all = self.layout.all_cores();
        self.layout.used.map_or(all, |used| used.min(all))
    }

    #[inline]
    pub(crate) fn core_of(&self, cpu: usize) -> usize {
        cpu / self.layout.threads
    }

    /// Returns the last-level cache of a core.
    #[inline]
    pub(crate) fn cache_of(&self, core: usize) -> usize {
        core / self.layout.cores
    }

    /// Returns the other threads of a processor's core.
    pub(crate) fn siblings(&self, cpu: usize) -> impl Iterator<Item = usize> + use<> {
        let threads = self.layout.threads;
        let first = cpu / threads * threads;
        (first..first + threads).filter(move |&other| other != cpu)
    }

    /// Returns the processors in use that share a last-level cache with this one.
    pub(crate) fn cpus_near(&self, cpu: usize) -> Range<usize> {
        let many = self.layout.cores * self.layout.threads;
        let first = cpu / many * many;
        first..(first + many).min(self.cpus())
    }

    /// Returns the processors in use of a processor's core.
    pub(crate) fn cpus_of_core(&self, cpu: usize) -> Range<usize> {
        let first = cpu / self.layout.threads * self.layout.threads;
        first..first + self.layout.threads
    }

    /// Returns the processors in use of a processor's node.
    pub(crate) fn cpus_of_node(&self, cpu: usize) -> Range<usize> {
        let many = self.layout.caches * self.layout.cores * self.layout.threads;
        let first = cpu / many * many;
        first..(first + many).min(self.cpus())
    }

    /// Tells whether tasks are placed by nodes, caches and cores.
    pub(crate) fn balances(&self) -> bool {
        self.scheduler.placement > 0.0
    }

    /// Tells whether wakers wake with the lock of a bucket in their hands.
    pub(crate) fn wakes_inside(&self) -> bool {
        self.kernel.waking > 0.0
    }

    /// Returns the number of buckets of sleepers: a power of two.
    pub(crate) fn buckets(&self) -> usize {
        let given = self.kernel.buckets as usize;
        (if given == 0 { 256 * self.cpus() } else { given }).next_power_of_two()
    }

    /// Returns the distance between two last-level caches.
    #[inline]
    pub(crate) fn between(&self, one: usize, other: usize) -> usize {
        if one == other {
            return 0;
        }
        let (here, there) = (one / self.layout.caches, other / self.layout.caches);
        if here == there {
            return 1;
        }
        self.layout.hops.get(here).map_or(2, |row| row[there])
    }

    /// Returns the class after the last distance: threads of one core.
    pub(crate) fn sibling_class(&self) -> usize {
        self.lines.transfer.len()
    }

    /// Returns the class after that: a line that no cache has.
    pub(crate) fn memory_class(&self) -> usize {
        self.lines.transfer.len() + 1
    }

    /// Returns the cost of leaving the state that a processor is in after so much idleness.
    pub(crate) fn idle_exit(&self, idle: u64) -> u64 {
        self.cost.idle.iter().rev().find(|&&(after, _)| idle >= after).map_or(0, |&(_, exit)| exit)
    }
}
