//! Deadlocks that close at the same instant, and cycles that close again.

use crate::programs::{cycles, program, under};
use std::collections::HashSet;

/// Runs two threads that close a cycle at one instant, so many times.
fn closed_at_one_instant(kind: &str, times: usize) {
    let Some(instant) = program("instant.c") else { return };
    let count = times.to_string();
    let running = under(&["--no-report"], &[instant.as_os_str(), kind.as_ref(), count.as_ref()]);
    running.expect("lockstead: DEADLOCK", times);
    let ended = running.terminate();
    let found = cycles(&ended.stderr, "DEADLOCK");
    assert_eq!(found.len(), times, "{kind}");
    assert!(found.iter().all(|members| members.len() == 2), "{kind}");
    let tids: HashSet<_> = ended.stderr.lines().filter(|l| l.starts_with("  thread ")).collect();
    assert_eq!(tids.len(), 2 * times, "{kind}: a thread in two reports");
}

#[test]
fn cycles_of_one_process_are_each_reported_once() {
    closed_at_one_instant("threads", 300);
}

#[test]
fn cycles_of_many_processes_are_each_reported_once() {
    closed_at_one_instant("processes", 50);
}
