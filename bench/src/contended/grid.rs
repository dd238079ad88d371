//! A contended grid as figures alone: of a measurement, or of a report that was saved,
//! by this version or another.

use crate::LockName;
use serde::Deserialize;
use serde_json::Value;

/// The cells of a report.
#[derive(Clone, Debug, Deserialize)]
pub struct Grid {
    /// The place where it was measured.
    #[serde(default)]
    pub machine: Value,
    /// How long a turn was in which the threads' shares were counted, in milliseconds.
    #[serde(default)]
    pub shares_slice_ms: Option<f64>,
    /// The cells of the grid.
    pub cells: Vec<GridPlace>,
}

/// One combination of threads, section and think time.
#[derive(Clone, Debug, Deserialize)]
pub struct GridPlace {
    /// The number of threads.
    pub threads: usize,
    /// Whether threads were pinned to processors.
    #[serde(default)]
    pub pinned: bool,
    /// The length of the section in nanoseconds.
    pub section_ns: u64,
    /// Think time as a multiple of the section.
    pub think_ratio: f64,
    /// One entry for each lock.
    pub results: Vec<GridFigures>,
}

/// What one lock did in a cell. Waits and fairness are not in the oldest reports.
#[derive(Clone, Debug, Deserialize)]
pub struct GridFigures {
    /// The lock's name, perhaps one that this version does not know.
    pub lock: String,
    /// The number of sections per second.
    pub ops_per_s: f64,
    /// Sections per second of processor time.
    pub ops_per_cpu_s: f64,
    /// 99 % of the acquisitions waited at most this long.
    #[serde(default)]
    pub wait_p99_ns: Option<f64>,
    /// 99.9 % of the acquisitions waited at most this long.
    #[serde(default)]
    pub wait_p999_ns: Option<f64>,
    /// The longest wait of all.
    #[serde(default)]
    pub wait_max_ns: Option<f64>,
    /// The longest wait of each round: the median over the rounds.
    #[serde(default)]
    pub wait_max_median_ns: Option<f64>,
    /// 99 % of the time waited was in waits of at most this length.
    #[serde(default)]
    pub wait_weighted_p99_ns: Option<f64>,
    /// Jain's index of the threads' shares.
    #[serde(default)]
    pub jain: Option<f64>,
}

impl Grid {
    /// Returns the grid without the cells of pinned threads, if there are others: a cell is then
    /// known by its threads, section and think time.
    #[must_use]
    pub fn plain(&self) -> Self {
        let all_pinned = self.cells.iter().all(|cell| cell.pinned);
        let counts = |cell: &&GridPlace| all_pinned || !cell.pinned;
        let cells = self.cells.iter().filter(counts).cloned().collect();
        Self { machine: self.machine.clone(), cells, ..*self }
    }

    /// Returns all locks, in the order of their first appearance.
    #[must_use]
    pub fn locks(&self) -> Vec<&str> {
        let mut locks: Vec<&str> = Vec::new();
        for figures in self.cells.iter().flat_map(|cell| &cell.results) {
            if !locks.contains(&figures.lock.as_str()) {
                locks.push(&figures.lock);
            }
        }
        locks
    }

    /// Returns the locks that lockstead's mutex is to be compared with ([`LockName::is_rival`]).
    #[must_use]
    pub fn rivals(&self) -> Vec<&str> {
        self.locks().into_iter().filter(|lock| is_rival(lock)).collect()
    }
}

impl GridPlace {
    /// Returns what `lock` did in this cell.
    #[must_use]
    pub fn of(&self, lock: &str) -> Option<&GridFigures> {
        self.results.iter().find(|figures| figures.lock == lock)
    }

    /// Returns what the rivals did in this cell ([`LockName::is_rival`]).
    pub fn rivals(&self) -> impl Iterator<Item = &GridFigures> {
        self.results.iter().filter(|figures| is_rival(&figures.lock))
    }

    /// Returns the rival with the most of `figure`, and how much.
    #[must_use]
    pub fn best(&self, figure: impl Fn(&GridFigures) -> Option<f64>) -> Option<(&str, f64)> {
        self.rivals()
            .filter_map(|figures| Some((figures.lock.as_str(), figure(figures)?)))
            .max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// Tells whether a lock is somebody else's, as one that only a later version knows is taken to be.
fn is_rival(lock: &str) -> bool {
    lock.parse().map_or(true, LockName::is_rival)
}
