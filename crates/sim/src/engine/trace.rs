//! The steps of the tasks, one by one: for the eye, and to compare two engines.

use super::time::Ps;

/// The kinds of steps of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepKind {
    /// The task read a word.
    Load,
    /// The task wrote a word.
    Store,
    /// The task changed a word, or tried to, in one step.
    Update,
    /// The task began to want a lock.
    Ask,
    /// The task has the lock.
    Take,
    /// The task gives the lock back.
    Release,
    /// The task goes to sleep.
    Sleep,
    /// The task woke another one.
    Wake,
    /// The task got a processor.
    Run,
    /// The task lost its processor to another one.
    Preempted,
}

/// A step of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceStep {
    /// The time of the step, in picoseconds.
    pub at: Ps,
    /// The number of the task.
    pub task: u32,
    /// The processor it ran on.
    pub cpu: u32,
    /// The kind of the step.
    pub kind: StepKind,
    /// The address in simulated memory, or the number of the lock, that it did this to.
    pub offset: usize,
    /// The value read or written, the task woken.
    pub value: u64,
}

/// The steps so far.
pub(crate) struct StepTrace {
    pub(crate) on: bool,
    pub(crate) steps: Vec<TraceStep>,
}

impl StepTrace {
    pub(crate) fn new(on: bool) -> Self {
        StepTrace { on, steps: Vec::new() }
    }

    #[cold]
    pub(crate) fn push(
        &mut self,
        at: Ps,
        task: u32,
        cpu: u32,
        kind: StepKind,
        offset: usize,
        value: u64,
    ) {
        self.steps.push(TraceStep { at, task, cpu, kind, offset, value });
    }
}
