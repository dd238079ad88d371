//! A workload from a report of `lockstead run --json`.

use crate::failure::Failure;
use lockstead_sim::{Use, UseKind, Workload};
use serde::Deserialize;
use std::path::Path;

#[derive(Deserialize)]
struct Report {
    schema: String,
    processes: Vec<Process>,
}

#[derive(Deserialize)]
struct Process {
    threads: Threads,
    waiting: Waiting,
    locks: Vec<Lock>,
}

#[derive(Deserialize)]
struct Threads {
    peak: u64,
}

#[derive(Deserialize)]
struct Waiting {
    thread_ns: u64,
    waited_ns: u64,
    idled_ns: u64,
}

#[derive(Deserialize)]
struct Lock {
    name: String,
    kind: String,
    locks: u64,
    acquisitions: u64,
    hold: Durations,
}

#[derive(Deserialize)]
struct Durations {
    count: u64,
    total_ns: u64,
}

/// The most locks that are simulated: the worst by waiting come first in a report.
const MOST: usize = 16;

/// Reads the profile: a job is one acquisition of the busiest lock, with what lies between
/// two of them.
///
/// # Errors
/// If the file is no such report, or there is nothing in it to simulate.
pub(super) fn read(file: &Path) -> Result<Workload, Failure> {
    let wrong = |why: String| Failure::Usage(format!("{}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    let report: Report = serde_json::from_str(&text).map_err(|error| {
        let line = error.line();
        Failure::Usage(format!(
            "{}:{line}: {error}; expected: a report of `lockstead run --json`",
            file.display()
        ))
    })?;
    if report.schema != "lockstead-run" {
        return Err(wrong("expected: a report of `lockstead run --json`".into()));
    }
    let busiest = report
        .processes
        .iter()
        .max_by_key(|process| process.waiting.thread_ns)
        .ok_or_else(|| wrong("no process in it used a lock".into()))?;
    let locks: Vec<&Lock> = busiest
        .locks
        .iter()
        .filter(|lock| matches!(lock.kind.as_str(), "mutex" | "rwlock" | "spin"))
        .filter(|lock| lock.acquisitions > 0)
        .take(MOST)
        .collect();
    let jobs = locks.iter().map(|lock| lock.acquisitions).max();
    let jobs = jobs.ok_or_else(|| wrong("no mutex in it was taken".into()))? as f64;
    let section = |lock: &Lock| lock.hold.total_ns as f64 / lock.hold.count.max(1) as f64;
    let held: f64 = locks.iter().map(|lock| section(lock) * lock.acquisitions as f64).sum();
    let waiting = &busiest.waiting;
    // What a thread did when it neither waited nor idled nor held: it computed.
    let running = waiting.thread_ns.saturating_sub(waiting.waited_ns + waiting.idled_ns) as f64;
    Ok(Workload {
        name: file.display().to_string(),
        about: "recorded by `lockstead run`".into(),
        tasks: busiest.threads.peak.max(1) as usize,
        kernel: false,
        compute: (running - held).max(0.0) / jobs / 1e3,
        away: waiting.idled_ns as f64 / jobs / 1e3,
        rounds: 1,
        variation: 0.5,
        warm_up: 5.0,
        length: 30.0,
        locks: locks
            .iter()
            .map(|lock| Use {
                name: lock.name.clone(),
                kind: UseKind::Mutex,
                many: lock.locks.clamp(1, 64) as usize,
                burst: lock.acquisitions as f64 / jobs,
                section: section(lock) / 1e3,
                gap: 0.0,
                lines: 1,
                writes: 1.0,
            })
            .collect(),
    })
}
