//! Processes that serve, or that somebody is there to wake, are not called stuck by
//! `lockstead run`, and who holds a lock of a file is not taken for the holder of another.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::programs::{Running, program, start};
use std::process::Command;

/// Returns a kind of `serves.c`, watched; and the folder for its files.
fn watched(kind: &str) -> Option<(Running, tempfile::TempDir)> {
    let serves = program("serves.c")?;
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstead"));
    command.args(["run", "--watch", "300ms", "--"]).arg(serves).arg(kind);
    command.env("TMPDIR", folder.path());
    Some((start(command), folder))
}

/// Returns what is said of a kind until something is called stuck.
fn until_stuck(kind: &str) -> Option<String> {
    let (running, _folder) = watched(kind)?;
    running.expect("lockstead: STUCK", 1);
    Some(running.terminate().stderr)
}

/// Returns what is reported, each with its lines.
fn reports<'a>(said: &'a str, title: &str) -> Vec<&'a str> {
    let lines = |report: &'a str| report.split("\nlockstead").next().unwrap_or_default();
    said.split(title).skip(1).map(lines).collect()
}

/// Expects that of a kind nobody is called stuck but its child, which begins to wait when it does.
fn is_not_stuck(kind: &str) {
    let Some(said) = until_stuck(kind) else { return };
    let (live, _) = said.split_once("reported after").unwrap_or((&said, ""));
    for report in reports(live, "lockstead: STUCK") {
        assert!(report.contains("waits for semaphore permits"), "{kind}: {said}");
    }
    assert!(!said.contains("BLOCKED"), "{kind}: {said}");
}

#[test]
fn who_serves_or_has_somebody_to_wake_it_is_not_stuck() {
    let healthy = [
        "serves-fifo",
        "forwards-slowly",
        "has-sibling",
        "serves-signals",
        "serves-pipe",
        "waits-for-sleeper",
        "never-taken",
        "has-timer",
    ];
    // Side by side, since they sleep most of the time.
    std::thread::scope(|scope| {
        for kind in healthy {
            scope.spawn(move || is_not_stuck(kind));
        }
    });
}

#[test]
fn threads_that_outlive_the_main_thread_can_be_stuck() {
    let Some(said) = until_stuck("main-ended") else { return };
    assert!(said.contains("the only thread waits"), "{said}");
}

#[test]
fn who_waits_for_one_range_hears_nothing_of_the_holder_of_another() {
    let Some((running, _folder)) = watched("ranges") else { return };
    for side in ["left", "right"] {
        running.expect(&format!("BLOCKED: thread \"wants-{side}\""), 1);
    }
    let said = running.terminate().stderr;
    for side in ["left", "right"] {
        let report = reports(&said, &format!("BLOCKED: thread \"wants-{side}\""))[0];
        assert_eq!(report.matches("held by process").count(), 1, "{said}");
        assert!(report.contains(&format!("\"has-{side}\"")), "{said}");
    }
}

#[test]
fn of_two_that_share_a_range_and_want_it_alone_each_waits_for_the_other() {
    let Some((running, _folder)) = watched("two-upgrade") else { return };
    for name in ["first", "second"] {
        running.expect(&format!("BLOCKED: thread \"{name}\""), 1);
    }
    let said = running.terminate().stderr;
    for (name, other) in [("first", "second"), ("second", "first")] {
        let report = reports(&said, &format!("BLOCKED: thread \"{name}\""))[0];
        assert_eq!(report.matches("held by process").count(), 1, "{said}");
        assert!(report.contains(&format!("\"{other}\"")), "{said}");
    }
}
