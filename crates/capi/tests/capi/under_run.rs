//! Programs with the library under `lockstead run`, which sees its waits and their owners.

use crate::common::{compiler, program};
use std::path::PathBuf;
use std::process::Command;

/// Returns the command, if it was built beside this program, as it is with the whole workspace.
fn lockstead() -> Option<PathBuf> {
    let me = std::env::current_exe().expect("a test has a file");
    let command =
        me.ancestors().nth(2).expect("it lies in a folder of the target's").join("lockstead");
    if !command.exists() {
        println!("skipped: the command lockstead was not built");
    }
    command.exists().then_some(command)
}

/// Runs the program for POSIX threads, converted by `pthread.h` and built with these options, until
/// its deadlock is reported.
fn converted(options: &[&str]) -> Option<String> {
    deadlock("c/deadlock.c", &[&["-include", "lockstead/pthread.h"], options].concat())
}

/// Runs the program, built with these options, until its deadlock is reported.
fn deadlock(source: &str, options: &[&str]) -> Option<String> {
    let command = lockstead()?;
    let program = program(source, compiler(false), "gnu11", options);
    let mut run = Command::new("timeout");
    run.args(["-k", "5", "60"]).arg(command).args(["run", "--no-report", "--on-deadlock=kill"]);
    let output = run.arg("--").arg(program).output().expect("timeout runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("cannot watch the locks") {
        println!("skipped: {said}");
        return None;
    }
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("DEADLOCK: 2 threads wait for each other"), "{said}");
    Some(said)
}

#[test]
fn a_deadlock_of_converted_locks_names_its_owners() {
    let Some(said) = converted(&[]) else { return };
    for words in [
        "waits to write journal (lockstead rwlock), since ",
        "holds accounts (lockstead mutex), as its word says",
        "waits for accounts (lockstead mutex), since ",
        "holds journal (lockstead rwlock), as its word says",
        "transfer() at deadlock.c:",
    ] {
        assert!(said.contains(words), "no {words:?} in {said}");
    }
}

#[test]
fn a_deadlock_of_fair_mutexes_names_their_owners() {
    let Some(said) = deadlock("c/fair_deadlock.c", &[]) else { return };
    for words in [
        "waits for journal (lockstead mutex), since ",
        "holds accounts (lockstead mutex), as its word says",
        "waits for accounts (lockstead mutex), since ",
        "holds journal (lockstead mutex), as its word says",
        "transfer() at fair_deadlock.c:",
    ] {
        assert!(said.contains(words), "no {words:?} in {said}");
    }
}

#[test]
fn a_stripped_program_without_unused_sections_is_seen_as_well() {
    let Some(said) = converted(&["-s", "-Wl,--gc-sections"]) else { return };
    assert_eq!(said.matches("(lockstead rwlock), as its word says").count(), 1, "{said}");
}
