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
    /// The time of all waiting, in picoseconds.
    pub wait: Ps,
    /// The longest wait of all.
    pub longest: Ps,
    /// The time of all holding, in picoseconds.
    pub held: Ps,
}

/// The counts from the end of the warm-up on.
#[derive(Default)]
pub(crate) struct SimTally {
    pub(crate) from: Ps,
    pub(crate) locks: Vec<LockFigures>,
    holders: Vec<Option<usize>>,
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

    pub(crate) fn taken(&mut self, lock: usize, task: usize, asked: Ps, taken: Ps) {
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
        if self.holders[lock].take() != Some(task) {
            self.violations += 1;
        }
        if released >= self.from {
            self.locks[lock].held += released - taken.max(self.from);
        }
    }

    /// Counts an acquisition of a lock that may be shared.
    pub(crate) fn shared(&mut self, lock: usize, asked: Ps, taken: Ps, released: Ps) {
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
