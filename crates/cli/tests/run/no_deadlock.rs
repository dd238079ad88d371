//! What looks like a deadlock and must not be called one.

use super::deadlock::member;
use crate::programs::{cycles, only, program, skip, start, under};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

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

/// Waits until no thread of the process does anything any more: none has slept and woken between
/// several looks.
fn await_stillness(pid: &str) {
    let switches = || -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it lives");
        let status = |task: std::fs::DirEntry| {
            std::fs::read_to_string(task.path().join("status")).unwrap_or_default()
        };
        let wanted = |line: &&str| line.starts_with("State") || line.contains("ctxt_switches");
        let of = |text: String| text.lines().filter(wanted).collect::<Vec<_>>().join(" ");
        tasks.filter_map(Result::ok).map(|task| of(status(task))).collect()
    };
    let (mut last, mut same, begun) = (Vec::new(), 0, Instant::now());
    while same < 10 {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not come to rest: {last:?}");
        std::thread::sleep(Duration::from_millis(10));
        let now = switches();
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
}

/// The locks of Python are semaphores, of which nobody can tell who has them:
/// it is a deadlock, and must not be called one.
#[test]
fn locks_of_python_in_both_orders_are_not_called_a_deadlock() {
    let Some(python) = python() else { return };
    let program = [python.as_os_str(), "-c".as_ref(), CROSSED.as_ref()];
    let running = under(&["--no-report", "--watch", "200ms", "--on-deadlock", "kill"], &program);
    let pid = running.expect_line();
    await_stillness(&pid);
    running.settle();
    let shown = dumped(&pid);
    let ended = running.end();
    assert_eq!((ended.status.code(), &*ended.stderr), (Some(4), ""));
    assert!(!shown.contains("DEADLOCK"), "{shown}");
    // The same process, of which nothing is known from inside.
    let mut command = Command::new(python);
    command.args(["-c", CROSSED]);
    let running = start(command);
    let pid = running.expect_line();
    await_stillness(&pid);
    let shown = dumped(&pid);
    running.end();
    assert!(
        shown.lines().next().is_some_and(|head| head.ends_with("no deadlock found")),
        "{shown}"
    );
    assert!(!shown.contains("DEADLOCK"), "{shown}");
    // CPython up to 3.14 uses semaphores.
    if shown.contains("waits for semaphore at ") {
        let cannot = "a semaphore has no owner in it: who will post it cannot be told";
        assert_eq!(shown.matches(cannot).count(), 2, "{shown}");
    } else {
        skip("this python3 has other locks");
    }
}

/// Returns what `lockstead dump` says of a process in which no deadlock is found.
fn dumped(pid: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstead"));
    command.args(["dump", pid]);
    let ended = start(command).end();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    ended.stdout
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
