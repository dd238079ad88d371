//! A workload from a report of `lockstead run --json`.

use super::classes::{self, Classes};
use super::recorded::{ProfileProcess, RecordedLock, RecordedReport};
use super::represent::Unrepresented;
use super::scene;
use crate::failure::Failure;
use lockstead_sim::{UseKind, WorkClass, WorkUse, Workload};
use serde::Serialize;
use std::path::Path;

/// What a profile is.
const REPORT: &str = "a report of `lockstead run --json`";

/// The most locks that are simulated: the worst by waiting come first in a report.
pub(super) const MOST: usize = 16;

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
    /// What a job is, in words.
    pub(super) job: String,
    /// What the recorded run itself made, if that is known.
    pub(super) recorded: Option<RecordedRate>,
    /// What is represented as a queue.
    pub(super) represented: Vec<TokensOf>,
    /// Why the program cannot be predicted, as far as its kinds of threads say so.
    pub(super) not_predictable: Option<String>,
}

/// What a recorded run made.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordedRate {
    /// The number of processors that it could run on.
    pub(super) processors: usize,
    /// The number of jobs in the whole run.
    pub(super) jobs: f64,
    /// The number of jobs a second.
    pub(super) jobs_per_second: f64,
}

/// A condition or a semaphore that one kind of threads gives and another waits for.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct TokensOf {
    /// The name of the object.
    pub(super) name: String,
    /// The function with which those that give it began.
    pub(super) gives: String,
    /// The function with which those that wait for it began.
    pub(super) takes: String,
}

/// Tells whether a kind of a report is that of a lock.
pub(super) fn is_lock(kind: &str) -> bool {
    matches!(kind, "mutex" | "rwlock" | "spin")
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
    let (others_percent, delayed_percent) = (others(&report), delayed(busiest));
    if let Some(classes) = classes::of(busiest) {
        let profile = with_classes(file, busiest, classes, report.processors);
        return Ok(Profile { others_percent, delayed_percent, ..profile });
    }
    let locks: Vec<&RecordedLock> = busiest
        .locks
        .iter()
        .filter(|lock| is_lock(&lock.kind))
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
        tokens: Vec::new(),
        classes: Vec::new(),
    };
    let job = "one acquisition of the busiest lock and what lies between two of them".into();
    let (recorded, represented, not_predictable) = (None, Vec::new(), None);
    Ok(Profile {
        workload,
        unrepresented,
        others_percent,
        delayed_percent,
        job,
        recorded,
        represented,
        not_predictable,
    })
}

/// The least simulated milliseconds, the most, and the number of jobs that are waited for; chosen.
const LEAST: f64 = 60.0;
const LONGEST: f64 = 4000.0;
const JOBS: f64 = 400.0;

/// Returns the profile of a program whose report tells of kinds of threads.
fn with_classes(file: &Path, process: &ProfileProcess, found: Classes, processors: u64) -> Profile {
    let Classes { locks, tokens, classes, jobs, seconds, job, represented, not_predictable } =
        found;
    let taken = |class: &WorkClass, step: u32| class.compute * f64::from(step.max(1));
    let longest = classes.iter().map(|class| {
        let batch = class.takes.iter().chain(&class.gives).map(|step| step.many).max();
        (class.compute + class.away).max(taken(class, batch.unwrap_or(1) / 8))
    });
    let length = (longest.fold(0.0, f64::max) * JOBS / 1e3).clamp(LEAST, LONGEST);
    let is_given = |name: &str| represented.iter().any(|one| one.name == name);
    let mut unrepresented = unrepresented(process);
    unrepresented.retain(|one| match one.kind.as_str() {
        "rwlock" => !locks.iter().any(|lock| lock.name == one.name),
        "barrier" => false,
        _ => !is_given(&one.name) && !locks.iter().any(|lock| lock.name == one.name),
    });
    // Where somebody else's work would make it shorter, `not_predictable` says so.
    for one in &mut unrepresented {
        one.is_harmless = one.kind == "condition" || one.kind == "semaphore";
    }
    let all = process.more.acquisitions + locks_taken(process);
    let workload = Workload {
        name: file.display().to_string(),
        about: "recorded by `lockstead run`".into(),
        tasks: 1,
        kernel: false,
        compute: 0.0,
        away: 0.0,
        rounds: 1,
        variation: 0.5,
        warm_up: length / 4.0,
        length,
        locks,
        tokens,
        classes,
    };
    let missing = process.more.acquisitions as f64 / all.max(1) as f64 * 100.0;
    let missing = (missing > MISSING).then(|| {
        format!(
            "{} locks that nobody waited for, with {missing:.0} % of all acquisitions, are not in \
             the report; record it with `lockstead run --sort acquisitions --top 40`",
            process.more.locks
        )
    });
    let recorded = (processors > 0).then_some(RecordedRate {
        processors: processors as usize,
        jobs,
        jobs_per_second: jobs / seconds.max(1e-9),
    });
    Profile {
        workload,
        unrepresented,
        others_percent: None,
        delayed_percent: None,
        job,
        recorded,
        represented,
        not_predictable: not_predictable.or(missing),
    }
}

/// Locks that are not in a report matter from this share of all acquisitions on, in per cent.
const MISSING: f64 = 10.0;

/// Returns the acquisitions of the listed locks.
fn locks_taken(process: &ProfileProcess) -> u64 {
    let alone = process.locks.iter().filter(|lock| lock.group.is_none());
    process.groups.iter().chain(alone).map(|lock| lock.acquisitions).sum()
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
