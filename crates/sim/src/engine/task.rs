//! A task: what it is doing, and what the engine knows of it.

use super::event::Random;
use super::poll::Poll;
use super::time::Ps;
use super::turn::Turn;
use super::words::U32;
use std::collections::{HashMap, VecDeque};

/// The index of no task.
pub(crate) const NOBODY: usize = usize::MAX;

/// What a task is doing, for the share of processor time by function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Activity {
    /// The task computes outside of locks.
    Think,
    /// Between acquisition and release.
    Section,
    /// Acquiring and releasing, apart from what follows.
    Lock,
    /// The path of a mutex of the kernel when the first try has failed.
    SlowPath,
    /// Spinning for a mutex whose owner runs.
    SpinOnOwner,
    /// Waiting in the queue of spinners.
    SpinQueue,
    /// Spinning for the lock of a wait list.
    SpinLock,
    /// Spinning for a lock to read.
    ReadLock,
    /// Spinning for a lock to write.
    WriteLock,
    /// In the kernel: switching, sleeping, waking.
    Kernel,
}

/// How many places there are.
pub(crate) const PLACES: usize = 10;

/// Where a task is with the processors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Running,
    Queued,
    Asleep,
    Ended,
}

/// A thread of the simulated program.
pub(crate) struct Task {
    pub(crate) turn: Turn,
    pub(crate) state: State,
    /// The processor it runs on, is queued for, or ran on last.
    pub(crate) cpu: usize,
    /// More than 0 while the task may not be preempted.
    pub(crate) kernel: u32,
    /// Time that has passed for it and not for the world yet.
    pub(crate) debt: Ps,
    /// Time it still has to pass, at full speed.
    pub(crate) left: Ps,
    /// Whether a busy sibling slows that down.
    pub(crate) scaled: bool,
    /// Since when it passes it, and how fast.
    pub(crate) began: Ps,
    pub(crate) speed: f64,
    pub(crate) planned: bool,
    pub(crate) number: u32,
    pub(crate) timer: u32,
    /// Going to sleep unless woken before.
    pub(crate) sleepy: bool,
    /// Stands among the sleepers of an address.
    pub(crate) lying: bool,
    pub(crate) timed_out: bool,
    /// Processor time so far, as the scheduler weighs it.
    pub(crate) virtual_time: i64,
    pub(crate) since: Ps,
    pub(crate) poll: Poll,
    pub(crate) place: Activity,
    pub(crate) mark: Ps,
    pub(crate) on_cpu: &'static U32,
    pub(crate) random: Random,
}

/// The sleepers of each address, the longest asleep first.
#[derive(Default)]
pub(crate) struct Sleepers {
    pub(super) queues: HashMap<usize, VecDeque<usize>>,
}
