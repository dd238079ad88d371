//! A task: what it is doing, and what the engine knows of it.

use super::event::Random;
use super::poll::Poll;
use super::time::Ps;
use super::turn::TurnEnd;
use super::words::U32;
use std::collections::{HashMap, VecDeque};

/// The index of no task.
pub(crate) const NOBODY: usize = usize::MAX;

/// The thing that a task is doing, for the share of processor time by function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Activity {
    /// The task computes outside of locks.
    Think,
    /// The task is between acquisition and release.
    Section,
    /// The task acquires or releases, apart from what follows.
    Lock,
    /// The task is in the slow path of a mutex of the kernel.
    SlowPath,
    /// The task spins for a mutex whose owner runs.
    SpinOnOwner,
    /// The task waits in the queue of spinners.
    SpinQueue,
    /// The task spins for the lock of a wait list.
    SpinLock,
    /// The task spins for a lock to read.
    ReadLock,
    /// The task spins for a lock to write.
    WriteLock,
    /// The task is in the kernel: it switches, sleeps or wakes another.
    Kernel,
}

/// The number of activities that there are.
pub(crate) const PLACES: usize = 10;

/// The state of a task for the scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TaskState {
    Running,
    Queued,
    Asleep,
    Ended,
}

/// A thread of the simulated program.
pub(crate) struct SimTask {
    pub(crate) turn: TurnEnd,
    pub(crate) state: TaskState,
    /// The processor it runs on, is queued for, or ran on last.
    pub(crate) cpu: usize,
    /// The number of reasons why the task may not be preempted.
    pub(crate) kernel: u32,
    /// The time that has passed for it and not for the world yet.
    pub(crate) debt: Ps,
    /// The time it still has to pass, at full speed.
    pub(crate) left: Ps,
    /// Whether a busy sibling slows that down.
    pub(crate) scaled: bool,
    /// The time since which it passes that.
    pub(crate) began: Ps,
    /// The speed at which it passes that.
    pub(crate) speed: f64,
    pub(crate) planned: bool,
    pub(crate) number: u32,
    pub(crate) timer: u32,
    /// Whether it is about to sleep, unless it is woken before.
    pub(crate) sleepy: bool,
    /// Whether it is among the sleepers of an address.
    pub(crate) lying: bool,
    pub(crate) timed_out: bool,
    /// The processor time of the task so far, as the scheduler weighs it.
    pub(crate) virtual_time: i64,
    pub(crate) since: Ps,
    /// The time when it left a processor.
    pub(crate) left_at: Ps,
    pub(crate) poll: Poll,
    pub(crate) place: Activity,
    pub(crate) mark: Ps,
    /// Whether its accesses are those of the kernel, which no trace shows.
    pub(crate) hushed: bool,
    pub(crate) on_cpu: &'static U32,
    pub(crate) random: Random,
}

/// The sleepers of each bucket with their addresses, the longest asleep first.
#[derive(Default)]
pub(crate) struct Sleepers {
    pub(super) queues: HashMap<usize, VecDeque<(usize, usize)>>,
}
