//! What looks like a deadlock and must not be called one.

use super::deadlock::member;
use crate::programs::{cycles, only, program, skip, under};
use std::path::Path;
use std::process::Command;

#[test]
fn a_cycle_with_a_deadline_is_said_to_end() {
    let Some(deadlocks) = program("deadlocks.c") else { return };
    // It ends in an hour.
    let program = [deadlocks.as_os_str(), "timed".as_ref(), "1".as_ref(), "3600000".as_ref()];
    let running = under(&["--no-report", "--on-deadlock", "kill"], &program);
    running.expect("lockstead: CYCLE", 1);
    let ended = running.terminate();
    let wanted = [
        ("patient", "for two (mutex), timed", "patient-waits", "one (mutex)", "patient-holds"),
        ("stubborn", "for one (mutex)", "stubborn-waits", "two (mutex)", "stubborn-holds"),
    ];
    let mut found = only(&ended.stderr, "CYCLE");
    found.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(found, wanted.map(|e| member("deadlocks.c", &[], e)), "{}", ended.stderr);
    let head = ended.stderr.lines().next().unwrap_or_default();
    let words = "lockstead: CYCLE: 2 threads wait for each other until a time-out, in deadlocks (";
    assert!(head.starts_with(words), "{head}");
}

#[test]
fn a_cycle_that_closes_again_and_again_is_counted() {
    const ROUNDS: usize = 15;
    let Some(deadlocks) = program("deadlocks.c") else { return };
    let rounds = ROUNDS.to_string();
    let program = [deadlocks.as_os_str(), "timed".as_ref(), rounds.as_ref(), "150".as_ref()];
    let ended = under(&["--no-report", "--on-deadlock", "kill"], &program).end();
    assert_eq!((ended.status.code(), &*ended.stdout), (Some(5), "both came through\n"));
    assert_eq!(only(&ended.stderr, "CYCLE").len(), 2, "{}", ended.stderr);
    let count = ended.stderr.split("closed again ").nth(1).expect("a count");
    let count: usize = count.split(' ').next().expect("a word").parse().expect("a number");
    assert!((1..ROUNDS).contains(&count), "{}", ended.stderr);
}

/// Semaphores belong to nobody: somebody else may post.
#[test]
fn semaphores_in_both_orders_are_not_called_a_deadlock() {
    let Some(tokens) = program("tokens.c") else { return };
    let running = under(&["--no-report"], &[&tokens]);
    running.expect("both hold one", 1);
    let ended = running.terminate();
    assert_eq!(ended.stderr, "both hold one\n");
}

/// Two threads, each with one `threading.Lock`, that want the other's; the
/// number of the process on standard output, until standard input ends.
const CROSSED: &str = "\
import os, threading
a, b, met = threading.Lock(), threading.Lock(), threading.Barrier(3)
def cross(first, second):
    with first:
        met.wait()
        with second:
            pass
for pair in ((a, b), (b, a)):
    threading.Thread(target=cross, args=pair, daemon=True).start()
met.wait()
print(os.getpid(), flush=True)
os.read(0, 1)
os._exit(4)
";

fn python() -> Option<&'static Path> {
    // What is found first by its name may be a script that looks for another.
    let candidates = ["/usr/bin/python3", "python3"].map(Path::new);
    let works = |python: &&Path| Command::new(python).arg("--version").output().is_ok();
    let found = candidates.into_iter().find(works);
    if found.is_none() {
        skip("no python3");
    }
    found
}

#[test]
fn python_goes_on_after_locks_that_time_out() {
    let Some(python) = python() else { return };
    let script = CROSSED
        .replace(
            "        with second:\n            pass\n",
            "        second.acquire(timeout=0.3)\n",
        )
        .replace("os.read(0, 1)", "[t.join() for t in threading.enumerate() if t.daemon]");
    let program = [python.as_os_str(), "-c".as_ref(), script.as_ref()];
    let ended = under(&["--no-report"], &program).end();
    assert_eq!((ended.status.code(), &*ended.stderr), (Some(4), ""));
    assert_eq!(cycles(&ended.stderr, "CYCLE").len(), 0);
}
