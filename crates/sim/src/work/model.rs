//! A workload, as its file describes it.

use super::class::{ClassUse, WorkClass, WorkTokens};
use serde::{Deserialize, Serialize};

/// A workload, as its file describes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The name that files give it.
    pub name: String,
    /// A sentence that says what it is.
    pub about: String,
    /// The number of tasks, unless the caller says otherwise.
    pub tasks: usize,
    /// Whether lock and section belong to the kernel, where nobody is preempted.
    #[serde(default)]
    pub kernel: bool,
    /// The processor time of a job outside of sections, in microseconds.
    pub compute: f64,
    /// The time of a job away from the processor, in microseconds.
    #[serde(default)]
    pub away: f64,
    /// The number of rounds into which a job is divided.
    #[serde(default = "one_round")]
    pub rounds: u32,
    /// The share by which computing times vary.
    #[serde(default)]
    pub variation: f64,
    /// The simulated milliseconds before counting begins.
    pub warm_up: f64,
    /// The simulated milliseconds that are counted.
    pub length: f64,
    /// The locks that tasks use.
    #[serde(default)]
    pub locks: Vec<WorkUse>,
    /// What tasks wait for that others give.
    #[serde(default)]
    pub tokens: Vec<WorkTokens>,
    /// The classes of tasks, if there are several: they say what tasks do, and `locks` which locks
    /// there are.
    #[serde(default)]
    pub classes: Vec<WorkClass>,
}

fn one_round() -> u32 {
    1
}

/// The way in which a round uses one lock, or one of several of a kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkUse {
    /// The name that reports write.
    pub name: String,
    /// The kind of the lock.
    #[serde(default)]
    pub kind: UseKind,
    /// The number of such locks, of which each burst takes one at random.
    #[serde(default = "one_lock")]
    pub many: usize,
    /// The number of acquisitions in a row.
    pub burst: f64,
    /// The length of the section, in microseconds.
    pub section: f64,
    /// The section of writers of a reader-writer lock, if it is another.
    #[serde(default)]
    pub write_section: Option<f64>,
    /// The time between two acquisitions of a burst, in microseconds.
    #[serde(default)]
    pub gap: f64,
    /// The number of cache lines that the section changes.
    #[serde(default)]
    pub lines: usize,
    /// The share of acquisitions of a reader-writer lock that write.
    #[serde(default)]
    pub writes: f64,
}

fn one_lock() -> usize {
    1
}

/// The kinds of locks in a workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UseKind {
    /// The lock that is simulated.
    #[default]
    Mutex,
    /// The kernel's reader-writer spin lock.
    ReadWrite,
    /// The reader-writer lock of programs: the C library's, or lockstead's beside its mutexes.
    Shared,
}

impl Workload {
    /// Returns the number of tasks that the workload has by itself.
    #[must_use]
    pub fn own_tasks(&self) -> usize {
        if self.classes.is_empty() {
            self.tasks
        } else {
            self.classes.iter().map(|class| class.tasks).sum()
        }
    }

    /// Returns the class of each of so many tasks. More or fewer than the workload's own are more
    /// or fewer of its largest class, of which one is left at least.
    pub(super) fn classes_of(&self, tasks: usize) -> Vec<usize> {
        let largest = (0..self.classes.len()).rev().max_by_key(|&at| self.classes[at].tasks);
        let others: usize = self.own_tasks() - largest.map_or(0, |at| self.classes[at].tasks);
        let each = self.classes.iter().enumerate().flat_map(|(at, class)| {
            let many = match largest {
                Some(largest) if largest == at => tasks.saturating_sub(others).max(1),
                _ => class.tasks,
            };
            std::iter::repeat_n(at, many)
        });
        each.collect()
    }

    /// Returns how a class uses one of the locks as if the whole workload did.
    pub(super) fn as_use(&self, used: &ClassUse) -> Option<(usize, WorkUse)> {
        let at = self.locks.iter().position(|lock| lock.name == used.lock)?;
        let lock = WorkUse {
            burst: used.burst,
            section: used.section,
            write_section: used.write_section,
            writes: used.writes,
            ..self.locks[at].clone()
        };
        Some((at, lock))
    }
}
