//! What is read of a report of `lockstead run --json`.

use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct RecordedReport {
    pub(super) schema: String,
    /// The number of processors on which it was recorded; 0: unknown.
    #[serde(default)]
    pub(super) processors: u64,
    /// Processor time of the program and its children; 0: unknown.
    #[serde(default)]
    pub(super) cpu_ns: u64,
    /// How long it took; 0: unknown.
    #[serde(default)]
    pub(super) wall_ns: u64,
    /// Processor time that others had meanwhile.
    #[serde(default)]
    pub(super) others_ns: Option<u64>,
    pub(super) processes: Vec<ProfileProcess>,
    #[serde(default)]
    pub(super) silent_processes: u64,
}

#[derive(Deserialize)]
pub(super) struct ProfileProcess {
    #[serde(default)]
    pub(super) lived_ns: u64,
    pub(super) threads: Threads,
    pub(super) waiting: ProfileWaiting,
    pub(super) locks: Vec<RecordedLock>,
    /// What threads waited for that is no lock.
    #[serde(default)]
    pub(super) idle: Vec<RecordedLock>,
    /// Locks that are one row.
    #[serde(default)]
    pub(super) groups: Vec<RecordedLock>,
    /// The locks that are not listed.
    #[serde(default)]
    pub(super) more: MoreLocks,
}

#[derive(Deserialize)]
pub(super) struct Threads {
    pub(super) peak: u64,
    /// The threads that waited longest.
    #[serde(default)]
    pub(super) worst: Vec<ProfileThread>,
    /// The threads by the function that they began with.
    #[serde(default)]
    pub(super) kinds: Vec<ProfileKind>,
}

/// Threads that began with one function.
#[derive(Clone, Deserialize)]
pub(super) struct ProfileKind {
    pub(super) start: Option<String>,
    pub(super) peak: u64,
    pub(super) lived_ns: u64,
    pub(super) waited_ns: u64,
    pub(super) idled_ns: u64,
    pub(super) ran_ns: Option<u64>,
    pub(super) queued_ns: Option<u64>,
}

/// What one kind of threads did with an object.
#[derive(Clone, Deserialize)]
pub(super) struct ProfileRole {
    pub(super) start: Option<String>,
    pub(super) holds: u64,
    pub(super) held_ns: u64,
    pub(super) shared_holds: u64,
    pub(super) shared_ns: u64,
    pub(super) waits: u64,
    pub(super) waited_ns: u64,
    pub(super) gives: u64,
}

/// The sum of locks that are not listed.
#[derive(Default, Deserialize)]
pub(super) struct MoreLocks {
    pub(super) locks: u64,
    pub(super) acquisitions: u64,
}

#[derive(Deserialize)]
pub(super) struct ProfileThread {
    pub(super) lived_ns: u64,
    pub(super) waited_ns: u64,
    pub(super) idled_ns: u64,
    pub(super) acquisitions: u64,
}

#[derive(Deserialize)]
pub(super) struct ProfileWaiting {
    pub(super) thread_ns: u64,
    pub(super) waited_ns: u64,
    pub(super) idled_ns: u64,
    /// The processor time of the process.
    #[serde(default)]
    pub(super) ran_ns: Option<u64>,
    /// How long its threads stood ready without a processor.
    #[serde(default)]
    pub(super) queued_ns: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct RecordedLock {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) locks: u64,
    pub(super) acquisitions: u64,
    pub(super) hold: ProfileDurations,
    #[serde(default)]
    pub(super) wait: RecordedWaits,
    /// What each kind of threads did with it.
    #[serde(default)]
    pub(super) roles: Vec<ProfileRole>,
    /// Waits that a deadline ended.
    #[serde(default)]
    pub(super) timed_out: u64,
    /// The row that it is part of.
    #[serde(default)]
    pub(super) group: Option<u64>,
}

/// How long a lock was waited for.
#[derive(Default, Deserialize)]
pub(super) struct RecordedWaits {
    pub(super) total_ns: u64,
}

#[derive(Deserialize)]
pub(super) struct ProfileDurations {
    pub(super) count: u64,
    pub(super) total_ns: u64,
    #[serde(default)]
    pub(super) p99_ns: u64,
    #[serde(default)]
    pub(super) histogram: Vec<Bucket>,
}

/// Durations from here to twice as long.
#[derive(Deserialize)]
pub(super) struct Bucket {
    pub(super) from_ns: u64,
    pub(super) count: u64,
}

/// A hold of so many times what 99 of a hundred take did not run all the while.
const PREEMPTED: u64 = 8;

impl ProfileDurations {
    /// Returns the mean, in nanoseconds. Without those whose thread lost its processor: the
    /// simulated machine takes it away by itself.
    pub(super) fn mean(&self) -> f64 {
        let mean = self.total_ns as f64 / self.count.max(1) as f64;
        let most = self.p99_ns.saturating_mul(PREEMPTED);
        let usual = || self.histogram.iter().filter(|bucket| bucket.from_ns <= most);
        let many: f64 = usual().map(|bucket| bucket.count as f64).sum();
        if many == 0.0 {
            return mean;
        }
        let sum: f64 =
            usual().map(|bucket| 1.5 * bucket.from_ns as f64 * bucket.count as f64).sum();
        mean.min(sum / many)
    }
}
