//! A workload from a report of `lockstead run --json`.

use super::represent::Unrepresented;
use super::scene;
use crate::failure::Failure;
use lockstead_sim::{UseKind, WorkUse, Workload};
use serde::Deserialize;
use std::path::Path;

#[derive(Deserialize)]
struct RecordedReport {
    schema: String,
    /// The number of processors on which it was recorded; 0: unknown.
    #[serde(default)]
    processors: u64,
    /// Processor time of the program and its children; 0: unknown.
    #[serde(default)]
    cpu_ns: u64,
    /// How long it took; 0: unknown.
    #[serde(default)]
    wall_ns: u64,
    /// Processor time that others had meanwhile.
    #[serde(default)]
    others_ns: Option<u64>,
    processes: Vec<ProfileProcess>,
    #[serde(default)]
    silent_processes: u64,
}

#[derive(Deserialize)]
struct ProfileProcess {
    #[serde(default)]
    lived_ns: u64,
    threads: Threads,
    waiting: ProfileWaiting,
    locks: Vec<RecordedLock>,
    /// What threads waited for that is no lock.
    #[serde(default)]
    idle: Vec<RecordedLock>,
}

#[derive(Deserialize)]
struct Threads {
    peak: u64,
    /// The threads that waited longest.
    #[serde(default)]
    worst: Vec<ProfileThread>,
}

#[derive(Deserialize)]
struct ProfileThread {
    lived_ns: u64,
    waited_ns: u64,
    idled_ns: u64,
    acquisitions: u64,
}

#[derive(Deserialize)]
struct ProfileWaiting {
    thread_ns: u64,
    waited_ns: u64,
    idled_ns: u64,
    /// The processor time of the process.
    #[serde(default)]
    ran_ns: Option<u64>,
    /// How long its threads stood ready without a processor.
    #[serde(default)]
    queued_ns: Option<u64>,
}

#[derive(Deserialize)]
struct RecordedLock {
    name: String,
    kind: String,
    locks: u64,
    acquisitions: u64,
    hold: ProfileDurations,
    #[serde(default)]
    wait: RecordedWaits,
}

/// How long a lock was waited for.
#[derive(Default, Deserialize)]
struct RecordedWaits {
    total_ns: u64,
}

#[derive(Deserialize)]
struct ProfileDurations {
    count: u64,
    total_ns: u64,
    #[serde(default)]
    p99_ns: u64,
    #[serde(default)]
    histogram: Vec<Bucket>,
}

/// Durations from here to twice as long.
#[derive(Deserialize)]
struct Bucket {
    from_ns: u64,
    count: u64,
}

/// A hold of so many times what 99 of a hundred take did not run all the while.
const PREEMPTED: u64 = 8;

impl ProfileDurations {
    /// Returns the mean, in nanoseconds. Without those whose thread lost its processor: the
    /// simulated machine takes it away by itself.
    fn mean(&self) -> f64 {
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

/// What a profile is.
const REPORT: &str = "a report of `lockstead run --json`";

/// The most locks that are simulated: the worst by waiting come first in a report.
const MOST: usize = 16;

/// What is wrong with a report without mutexes: by default it names only those waited for.
const NONE_NAMED: &str = "names no mutex that was taken; if nobody waited for any, record it \
     with `lockstead run --sort acquisitions --json FILE -- PROGRAM`";

/// A recorded program, as far as it can be simulated.
pub(super) struct Profile {
    /// What is simulated of it.
    pub(super) workload: Workload,
    /// What of it is simulated as something else, if it had any of the time worth naming.
    pub(super) unrepresented: Vec<Unrepresented>,
    /// The share of the processors that others used while it was recorded, if that is known.
    pub(super) others_percent: Option<f64>,
    /// The share of the time that its threads wanted a processor for which they had none, if that is
    /// known.
    pub(super) delayed_percent: Option<f64>,
}

/// Reads the profile: a job is one acquisition of the busiest lock, with what lies between
/// two of them.
///
/// # Errors
/// If the file is no such report, or there is nothing in it to simulate.
pub(super) fn read(file: &Path) -> Result<Profile, Failure> {
    let wrong = |why: String| Failure::Usage(format!("{}: {why}", file.display()));
    let bytes = std::fs::read(file).map_err(|error| wrong(error.to_string()))?;
    let text = scene::text(&file.display().to_string(), bytes, REPORT)?;
    let report: RecordedReport = serde_json::from_str(&text).map_err(|error| {
        let line = error.line();
        Failure::Usage(format!("{}:{line}: {error}; expected: {REPORT}", file.display()))
    })?;
    if report.schema != "lockstead-run" {
        return Err(wrong(format!("`schema` is not possible; expected: {REPORT}")));
    }
    let busiest = report
        .processes
        .iter()
        .max_by_key(|process| process.waiting.thread_ns)
        .ok_or_else(|| wrong("no process in it used a lock".into()))?;
    let locks: Vec<&RecordedLock> = busiest
        .locks
        .iter()
        .filter(|lock| matches!(lock.kind.as_str(), "mutex" | "rwlock" | "spin"))
        .filter(|lock| lock.acquisitions > 0)
        .take(MOST)
        .collect();
    let jobs = locks.iter().map(|lock| lock.acquisitions).max();
    let jobs = jobs.ok_or_else(|| wrong(NONE_NAMED.into()))? as f64;
    let section = |lock: &RecordedLock| lock.hold.mean();
    // What cannot be would not be simulated in any time.
    let threads = busiest.waiting.thread_ns as f64;
    for lock in &locks {
        if lock.hold.total_ns as f64 / lock.hold.count.max(1) as f64 > threads
            || lock.acquisitions > busiest.waiting.thread_ns
        {
            return Err(wrong(format!(
                "`{}` was held or taken more than its threads had time for; expected: {REPORT}",
                lock.name
            )));
        }
    }
    let held: f64 = locks.iter().map(|lock| section(lock) * lock.acquisitions as f64).sum();
    let (running, idled) = work(busiest, &locks);
    let running = running.min(most(busiest, &report));
    let unrepresented = unrepresented(busiest);
    let workload = Workload {
        name: file.display().to_string(),
        about: "recorded by `lockstead run`".into(),
        tasks: busiest.threads.peak.max(1) as usize,
        kernel: false,
        compute: (running - held).max(0.0) / jobs / 1e3,
        away: idled / jobs / 1e3,
        rounds: 1,
        variation: 0.5,
        warm_up: 5.0,
        length: 30.0,
        locks: locks
            .iter()
            .map(|lock| WorkUse {
                name: lock.name.clone(),
                kind: UseKind::Mutex,
                many: lock.locks.clamp(1, 64) as usize,
                burst: lock.acquisitions as f64 / jobs,
                section: section(lock) / 1e3,
                gap: 0.0,
                lines: 1,
                writes: 1.0,
                write_section: None,
            })
            .collect(),
    };
    let (others_percent, delayed_percent) = (others(&report), delayed(busiest));
    Ok(Profile { workload, unrepresented, others_percent, delayed_percent })
}

/// Returns the share of the time in which threads neither waited nor idled that they stood without
/// a processor, in per cent.
fn delayed(process: &ProfileProcess) -> Option<f64> {
    let waiting = &process.waiting;
    let busy = waiting.thread_ns.saturating_sub(waiting.waited_ns.saturating_add(waiting.idled_ns));
    let share = waiting.queued_ns? as f64 / busy.max(1) as f64;
    // Looks meet a thread in a wait for a lock that became one for a processor as well.
    Some((share.min(1.0) * 1000.0).round() / 10.0)
}

/// Returns the share of the processors that others used meanwhile, in per cent.
fn others(report: &RecordedReport) -> Option<f64> {
    let all = report.wall_ns as f64 * report.processors as f64;
    let others = report.others_ns.filter(|_| all > 0.0)? as f64;
    Some((others / all * 1000.0).round() / 10.0)
}

/// Lists what a process had that is simulated as something else, the largest share first.
fn unrepresented(process: &ProfileProcess) -> Vec<Unrepresented> {
    let all = process.waiting.thread_ns;
    let locks = process.locks.iter().chain(&process.idle);
    let mut list: Vec<Unrepresented> = locks
        .filter_map(|lock| {
            let time = lock.hold.total_ns.saturating_add(lock.wait.total_ns);
            Unrepresented::new(&lock.name, &lock.kind, time, all)
        })
        .filter(Unrepresented::is_named)
        .collect();
    list.sort_by(|one, other| other.share_percent.total_cmp(&one.share_percent));
    list
}

/// Returns the most processor time that a process can have had, in nanoseconds: who waits for a
/// processor looks as if it computed. The process's own may be known; with one process it is that of
/// the run, while others may have children that nobody waited for.
fn most(process: &ProfileProcess, report: &RecordedReport) -> f64 {
    let alone = report.processes.len() == 1 && report.silent_processes == 0;
    let known = [
        if alone { report.cpu_ns } else { 0 },
        process.waiting.ran_ns.unwrap_or(0),
        process.lived_ns.saturating_mul(report.processors),
    ];
    known.into_iter().filter(|&time| time > 0).min().map_or(f64::INFINITY, |time| time as f64)
}

/// Returns what the threads did in all, in nanoseconds: computing (what a thread did when it
/// neither waited nor idled) and idling. Threads that wait are listed one by one: what they did
/// stands for all that use locks, so that one which only starts the others does not count.
fn work(process: &ProfileProcess, locks: &[&RecordedLock]) -> (f64, f64) {
    let running = |lived: u64, waited: u64, idled: u64| {
        lived.saturating_sub(waited.saturating_add(idled)) as f64
    };
    let listed = || process.threads.worst.iter().filter(|thread| thread.acquisitions > 0);
    let taken: f64 = listed().map(|thread| thread.acquisitions as f64).sum();
    if taken == 0.0 {
        let all = &process.waiting;
        return (running(all.thread_ns, all.waited_ns, all.idled_ns), all.idled_ns as f64);
    }
    let share = locks.iter().map(|lock| lock.acquisitions as f64).sum::<f64>() / taken;
    let ran: f64 = listed().map(|t| running(t.lived_ns, t.waited_ns, t.idled_ns)).sum();
    let idled: f64 = listed().map(|thread| thread.idled_ns as f64).sum();
    (ran * share, idled * share)
}
