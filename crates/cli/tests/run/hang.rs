//! A run in which nothing moves: it is said once, with all threads, and then what was asked for is
//! done.

use crate::common::{PAUSE, documented, run, text};
use crate::programs::{Running, fixed, only, program, skip, under};
use serde_json::Value;
use std::os::unix::process::ExitStatusExt;

const HANG: &str = "lockstead: HANG: nothing has moved for ";

/// Runs a program with these flags until nothing has moved for a while.
fn hung(flags: &[&str], program: &[&str]) -> Running {
    let running = under(&[flags, &["--no-report", "--hang-after", "800ms"]].concat(), program);
    running.expect(HANG, 1);
    running
}

#[test]
fn all_threads_are_shown_once_and_the_run_goes_on() {
    let Some(deadlocks) = program("deadlocks.c") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (file, copy) = (folder.path().join("report.json"), folder.path().join("report.txt"));
    let flags = ["--json", text(&file), "--report-file", text(&copy)];
    let running = hung(&flags, &[text(&deadlocks), "join"]);
    assert_eq!(running.stderr().matches(HANG).count(), 1, "{}", running.stderr());
    let ended = running.terminate();
    // The signal ended it while nothing moved.
    assert_eq!(ended.status.code(), Some(4), "{}", ended.stderr);
    assert_eq!(only(&ended.stderr, "DEADLOCK").len(), 2, "{}", ended.stderr);
    let report: Value =
        serde_json::from_slice(&std::fs::read(&file).expect("written")).expect("JSON");
    documented(&report);
    let found = report["findings"].as_array().expect("a list");
    let found: Vec<_> = found.iter().filter(|found| found["kind"] == "hang").collect();
    assert_eq!((found.len(), &found[0]["pid"]), (1, &report["processes"][0]["pid"]));
    let picture = found[0]["text"].as_str().expect("text");
    assert!(ended.stderr.contains(picture), "{picture}\n---\n{}", ended.stderr);
    for line in
        ["1 process, 3 threads\n", "2 threads wait for each other", "works() at deadlocks.c:"]
    {
        assert!(picture.contains(line), "no {line:?} in {picture}");
    }
    let threads = found[0]["threads"].as_array().expect("threads");
    assert_eq!(threads.len(), 3, "{threads:#?}");
    for thread in threads {
        assert!(thread["doing"]["stack"]["frames"].is_array(), "{thread:#}");
        assert!(thread["process"].as_str().is_some_and(|name| name.starts_with("deadlocks (pid ")));
    }
    assert!(std::fs::read_to_string(&copy).expect("written").contains(picture));
}

#[test]
fn whoever_moves_again_is_not_hung_and_is_reported_anew() {
    let mut running = hung(&[], &["cat"]);
    running.say("once\n");
    running.expect(HANG, 2);
    running.say("twice\n");
    let ended = running.end();
    assert_eq!((ended.status.code(), &*ended.stdout), (Some(0), "once\ntwice\n"));
    assert!(ended.stderr.contains("is asleep in read(), for "), "{}", ended.stderr);
}

#[test]
fn all_processes_are_ended_after_the_picture() {
    let ended = hung(&["--on-hang", "abort"], &["sh", "-c", "cat; :"]).end_with_open_input();
    assert_eq!(ended.status.code(), Some(4), "{}", ended.stderr);
    assert!(ended.stderr.contains(": 2 processes, 2 threads\n"), "{}", ended.stderr);
}

#[test]
fn a_child_that_is_not_watched_is_shown_too() {
    let Some(waits) = fixed("waits.c") else { return };
    let running =
        hung(&["--on-hang", "dump"], &["sh", "-c", &format!("{} pause; :", text(&waits))]);
    let stderr = running.stderr();
    assert!(stderr.contains(": 2 processes, "), "{stderr}");
    assert!(stderr.contains(&format!("is asleep in {PAUSE}()")), "{stderr}");
    assert_eq!(running.terminate().status.code(), Some(4));
}

#[test]
fn a_command_is_run_with_the_processes_in_its_environment() {
    let command = "echo said of $LOCKSTEAD_PID: $LOCKSTEAD_PIDS; kill $LOCKSTEAD_PID; exit 9";
    let ended = hung(&["--on-hang", command], &["cat"]).end_with_open_input();
    assert_eq!((ended.status.code(), &*ended.stdout), (Some(4), ""), "{}", ended.stderr);
    let said = ended.stderr.find("\nsaid of ").unwrap_or_else(|| panic!("{}", ended.stderr));
    assert!(ended.stderr.find(HANG).is_some_and(|picture| picture < said), "{}", ended.stderr);
    let end = "lockstead: the command of --on-hang ended with exit status: 9";
    assert!(ended.stderr.contains(end), "{}", ended.stderr);
}

#[test]
fn a_program_that_was_not_hung_ends_with_its_own_status() {
    let running =
        under(&["--no-report", "--hang-after", "24h"], &["sh", "-c", "echo; exec sleep 1000"]);
    running.expect_line();
    let ended = running.terminate();
    assert_eq!(ended.status.signal(), Some(libc::SIGTERM), "{ended:?}");
    for wrong in [["--hang-after", "off"], ["--on-hang", ""]] {
        assert_eq!(run(&["run", wrong[0], wrong[1], "--", "true"]).status, 2, "{wrong:?}");
    }
}

#[test]
fn a_runtime_whose_own_tool_shows_more_is_told_of() {
    let waits = "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)";
    if std::process::Command::new("node").arg("--version").output().is_err() {
        return skip("no node");
    }
    let running = under(&["--no-report", "--hang-after", "800ms"], &["node", "-e", waits]);
    // It may rest while it starts, too.
    running.expect(", main thread) waits for ", 1);
    running.expect(" `node inspect -p ", 1);
}
