//! The figures that are counted while a simulation runs.

use crate::engine::time::Ps;

/// The figures that are counted for one lock.
#[derive(Clone, Debug, Default)]
pub struct LockFigures {
    /// The name of the lock in the workload.
    pub name: String,
    /// The number of acquisitions.
    pub taken: u64,
    /// The number of acquisitions that took more than a microsecond.
    pub waited: u64,
    /// The number of tasks that still waited for it when the simulation ended, and had for more
    /// than a microsecond.
    pub waiting: u64,
    /// The time of all waiting, in picoseconds, with what had passed of the waits that had not
    /// ended.
    pub wait: Ps,
    /// The longest wait of all, those that had not ended among them.
    pub longest: Ps,
    /// The longest of those that had not ended; 0 if there were none.
    pub longest_waiting: Ps,
    /// The time of all holding, in picoseconds.
    pub held: Ps,
}

impl LockFigures {
    /// Tells whether the longest wait had ended when the simulation did.
    #[must_use]
    pub fn longest_ended(&self) -> bool {
        self.longest_waiting < self.longest || self.longest == 0
    }
}

/// What a task has to do with a lock.
#[derive(Clone, Copy)]
enum TaskStage {
    Out,
    /// It waits for this lock, since then.
    Waits(usize, Ps),
    /// It has this lock, since then.
    Holds(usize, Ps),
}

/// The counts from the end of the warm-up on.
#[derive(Default)]
pub(crate) struct SimTally {
    pub(crate) from: Ps,
    pub(crate) locks: Vec<LockFigures>,
    holders: Vec<Option<usize>>,
    /// What each task has to do with a lock, as far as any has ever asked for one. A task asks for
    /// one lock at a time.
    stages: Vec<TaskStage>,
    /// The work done, in rounds.
    pub(crate) rounds: f64,
    /// The number of times that two tasks had one lock.
    pub(crate) violations: u64,
}

/// A wait that is counted.
const WAIT: Ps = 1_000_000;

impl SimTally {
    pub(crate) fn add_lock(&mut self, name: &str) -> usize {
        self.locks.push(LockFigures { name: name.to_owned(), ..LockFigures::default() });
        self.holders.push(None);
        self.locks.len() - 1
    }

    fn enter(&mut self, task: usize, stage: TaskStage) {
        if self.stages.len() <= task {
            self.stages.resize(task + 1, TaskStage::Out);
        }
        self.stages[task] = stage;
    }

    /// Notes that a task begins to wait.
    pub(crate) fn asked(&mut self, lock: usize, task: usize, asked: Ps) {
        self.enter(task, TaskStage::Waits(lock, asked));
    }

    /// Notes that a task has a lock, which others may have with it.
    pub(crate) fn entered(&mut self, lock: usize, task: usize, taken: Ps) {
        self.enter(task, TaskStage::Holds(lock, taken));
    }

    /// Counts what has not ended at the end of the simulation: waits that are cut off would be
    /// left out, and a task that starves has no other.
    pub(crate) fn close(&mut self, end: Ps) {
        for stage in std::mem::take(&mut self.stages) {
            match stage {
                TaskStage::Waits(lock, asked) if asked < end => {
                    let wait = end - asked.max(self.from);
                    let figures = &mut self.locks[lock];
                    figures.waiting += u64::from(wait > WAIT);
                    figures.wait += wait;
                    figures.longest = figures.longest.max(wait);
                    figures.longest_waiting = figures.longest_waiting.max(wait);
                }
                TaskStage::Holds(lock, taken) => {
                    self.locks[lock].held += end.saturating_sub(taken.max(self.from));
                }
                TaskStage::Waits(..) | TaskStage::Out => {}
            }
        }
    }

    pub(crate) fn taken(&mut self, lock: usize, task: usize, asked: Ps, taken: Ps) {
        self.entered(lock, task, taken);
        if self.holders[lock].replace(task).is_some() {
            self.violations += 1;
        }
        if taken < self.from {
            return;
        }
        let figures = &mut self.locks[lock];
        let wait = taken.saturating_sub(asked.max(self.from));
        figures.taken += 1;
        figures.waited += u64::from(wait > WAIT);
        figures.wait += wait;
        figures.longest = figures.longest.max(wait);
    }

    pub(crate) fn released(&mut self, lock: usize, task: usize, taken: Ps, released: Ps) {
        self.enter(task, TaskStage::Out);
        if self.holders[lock].take() != Some(task) {
            self.violations += 1;
        }
        if released >= self.from {
            self.locks[lock].held += released - taken.max(self.from);
        }
    }

    /// Counts an acquisition of a lock that may be shared.
    pub(crate) fn shared(
        &mut self,
        (lock, task): (usize, usize),
        asked: Ps,
        taken: Ps,
        released: Ps,
    ) {
        self.enter(task, TaskStage::Out);
        if released < self.from {
            return;
        }
        let figures = &mut self.locks[lock];
        let wait = taken.saturating_sub(asked.max(self.from));
        figures.taken += 1;
        figures.waited += u64::from(wait > WAIT);
        figures.wait += wait;
        figures.longest = figures.longest.max(wait);
        figures.held += released - taken.max(self.from);
    }

    pub(crate) fn progress(&mut self, now: Ps, rounds: f64) {
        if now >= self.from {
            self.rounds += rounds;
        }
    }
}
