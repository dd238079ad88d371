//! Programs that take no library along: what the kernel tells of their futex calls.

use crate::common::{documented, lockstead, run, text};
use crate::programs::{fixed, line, program, skip, with_musl};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const FLAGS: [&str; 3] = ["run", "--syscalls", "--no-report"];

/// Returns the program, if it can be made and the kernel lets its calls be told.
fn told() -> Option<std::path::PathBuf> {
    let program = fixed("syscalls.c")?;
    let tried = run(&[&FLAGS[..], &["--", "true"]].concat());
    if tried.status != 0 {
        skip(&format!("futex calls cannot be told here: {}", tried.stderr));
        return None;
    }
    Some(program)
}

/// Returns the report on a run of these words.
fn report(words: &[&str]) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.json");
    let outcome = run(&[&FLAGS[..], &["--json", text(&file), "--"], words].concat());
    assert_eq!((outcome.status, &*outcome.stdout), (7, "passed\n"), "{outcome:?}");
    let report = std::fs::read_to_string(&file).expect("the report was written");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    documented(&report);
    report
}

#[test]
fn the_waits_of_a_static_program_are_counted_by_word_and_place() {
    let Some(program) = told() else { return };
    let program = text(&program);
    let refused = run(&["run", "--", program]);
    assert_eq!(refused.status, 125);
    assert!(refused.stderr.contains("--syscalls"), "{}", refused.stderr);
    let report = report(&[program, "pass"]);
    let processes = report["processes"].as_array().expect("a list");
    assert_eq!(processes.len(), 1, "{processes:#?}");
    let said = processes[0].to_string();
    assert!(said.contains("\"turn"), "no word by its name: {said}");
    let place = line("syscalls.c", "waits");
    let number = place.rsplit(':').next().expect("a number");
    assert!(said.contains(&format!("\"line\":{number}")), "not {place}: {said}");
}

#[test]
fn a_mutex_of_the_program_s_own_c_library_is_told_by_its_memory() {
    if told().is_none() {
        return;
    }
    for program in [fixed("signalled.c"), with_musl("signalled.c")].into_iter().flatten() {
        let report = report(&[text(&program)]);
        let locks = report["processes"][0]["locks"].as_array();
        let locks = locks.unwrap_or_else(|| panic!("no list of locks of {program:?}: {report:#}"));
        let gate = locks.iter().find(|lock| lock["name"] == "gate").expect("the mutex");
        assert_eq!(gate["type"], "pthread mutex", "{program:?}: {gate:#}");
        // Signals interrupt the wait and do not end it.
        assert_eq!(gate["contended"], 1, "{program:?}: {gate:#}");
    }
}

#[test]
fn a_process_with_the_library_is_not_recorded_twice() {
    let (Some(fixed), Some(dynamic)) = (told(), program("syscalls.c")) else { return };
    let script = format!("{} filters >&2; exec {} pass", text(&fixed), text(&dynamic));
    let report = report(&["sh", "-c", &script]);
    let mut pids: Vec<_> = report["processes"].as_array().expect("a list").iter().collect();
    pids.retain(|process| {
        process["program"].as_str().is_some_and(|name| name.ends_with("syscalls"))
    });
    assert!(pids.len() <= 1, "{pids:#?}");
}

#[test]
fn signals_tracers_and_filters_are_as_without() {
    let Some(program) = told() else { return };
    for what in ["interrupted", "traces", "filters"] {
        let bare = Command::new(&program).arg(what).output().expect("it starts");
        let bare = String::from_utf8_lossy(&bare.stdout).into_owned();
        let told = run(&[&FLAGS[..], &["--", text(&program), what]].concat());
        assert_eq!((told.status, &*told.stdout), (7, &*bare), "{what}");
    }
}

/// Starts the program so that it says its number, and returns it and what it says afterwards.
fn goes_on(program: &Path, kill: impl FnOnce(&mut std::process::Child)) -> Vec<String> {
    let words = [&FLAGS[..], &["--", text(program), "long"]].concat();
    let mut child = lockstead(&words).stderr(Stdio::null()).spawn().expect("starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    lines.next().expect("a line").expect("text");
    kill(&mut child);
    child.wait().expect("ends");
    lines.map(|line| line.expect("text")).collect()
}

#[test]
fn the_program_outlives_the_command() {
    let Some(program) = told() else { return };
    let rest = goes_on(&program, |child| child.kill().expect("killed"));
    assert_eq!(rest, ["passed"]);
}

#[test]
fn what_is_left_behind_goes_on() {
    let Some(program) = told() else { return };
    let script = format!("{} long & :", text(&program));
    let mut child = lockstead(&[&FLAGS[..], &["--", "sh", "-c", &script]].concat())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    assert!(child.wait().expect("ends").success());
    let said: Vec<String> = lines.map(|line| line.expect("text")).collect();
    assert_eq!(said.last().map(String::as_str), Some("passed"));
}
