//! Ends before the end: signals, and readers that have gone.

use crate::common::{entries, finish, lockstead, text};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

fn signal(child: &Child, signal: libc::c_int) {
    let pid = i32::try_from(child.id()).expect("a process id");
    // SAFETY: the call takes numbers only; the child has not been waited for, so the id is its own.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

/// Waits until `ready`, at most ten seconds.
fn wait_until(ready: impl Fn() -> bool) {
    let start = Instant::now();
    while !ready() {
        assert!(start.elapsed() < Duration::from_secs(10), "the command did not get going");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the command has this many threads: its own two, which it starts
/// after it has installed its handlers, and those that measure.
fn wait_for_threads(child: &Child, threads: usize) {
    let tasks = format!("/proc/{}/task", child.id());
    wait_until(|| entries(tasks.as_ref()).len() >= threads);
}

#[test]
fn an_interrupted_vfs_removes_its_files_and_reports_nothing() {
    for number in [libc::SIGINT, libc::SIGTERM] {
        let folder = tempfile::tempdir().expect("a folder");
        let child = lockstead(&["bench", "vfs", "--seconds=600", "--locks=std,lockstead"])
            .args(["--json", "--dir", text(folder.path())])
            .spawn()
            .expect("the command starts");
        wait_until(|| !entries(folder.path()).is_empty());
        signal(&child, number);
        let outcome = finish(child);
        assert_eq!(outcome.status, 130, "{outcome:?}");
        assert_eq!(outcome.stdout, "");
        assert!(outcome.stderr.contains("interrupted"), "{outcome:?}");
        assert_eq!(entries(folder.path()), [""; 0], "files are left");
    }
}

#[test]
fn an_interrupted_demo_removes_its_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let child = lockstead(&["demo", "--seconds=600", "--dir", text(folder.path())])
        .spawn()
        .expect("the command starts");
    wait_until(|| !entries(folder.path()).is_empty());
    signal(&child, libc::SIGINT);
    assert_eq!(finish(child).status, 130);
    assert_eq!(entries(folder.path()), [""; 0], "files are left");
}

#[test]
fn a_demo_is_interrupted_while_it_shows_programs() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = lockstead(&["demo", "--seconds=600", "--dir", text(folder.path())])
        .spawn()
        .expect("the command starts");
    let mut output = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    output.read_line(&mut line).expect("text");
    assert!(line.starts_with("1. a "), "{line}");
    signal(&child, libc::SIGINT);
    assert_eq!(finish(child).status, 130);
    assert_eq!(entries(folder.path()), [""; 0], "files are left");
}

#[test]
fn the_other_benchmarks_end_on_a_signal_too() {
    let grid = ["bench", "contended", "--threads=64", "--section=1ms", "--json"];
    let pair = ["bench", "uncontended", "--json"];
    for args in [&grid[..], &pair] {
        let child = lockstead(args).spawn().expect("the command starts");
        wait_for_threads(&child, 3);
        signal(&child, libc::SIGINT);
        let outcome = finish(child);
        assert_eq!(outcome.status, 130, "{args:?}: {outcome:?}");
        assert_eq!(outcome.stdout, "");
    }
}

#[test]
fn a_thread_that_does_not_look_up_is_not_waited_for() {
    // Until all have looked at their flag, a minute of processor time goes by.
    let child = lockstead(&["bench", "contended", "--threads=64", "--section=100ms"])
        .args(["--think=9x", "--locks=std", "--json"])
        .spawn()
        .expect("the command starts");
    wait_for_threads(&child, 4);
    signal(&child, libc::SIGINT);
    let outcome = finish(child);
    assert_eq!(outcome.status, 130, "{outcome:?}");
    assert_eq!(outcome.stdout, "");
    assert!(outcome.stderr.contains("interrupted"), "{outcome:?}");
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let runs: [&[&str]; 3] =
        [&["sim", "list"], &["bench", "uncontended", "--quick", "--locks=std"], &["--help"]];
    for args in runs {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let child = lockstead(args).stdout(Stdio::from(writer)).spawn().expect("starts");
        let outcome = finish(child);
        assert_eq!(outcome.status, 0, "{args:?}: {outcome:?}");
        assert!(!outcome.stderr.contains("panic"), "{outcome:?}");
        assert!(!outcome.stderr.contains("error"), "{outcome:?}");
    }
}
