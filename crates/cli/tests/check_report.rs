//! What `lockstead run --check` says of a program, in all forms, and what the
//! commands make of its report afterwards.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod files;
mod suppressed;
mod usage;
mod why;

use crate::programs::{Ended, line, program, under};
use std::path::PathBuf;

/// Returns the program of these tests.
fn checked() -> Option<PathBuf> {
    program("checked.c")
}

/// Runs `lockstead run --check --no-report FLAGS -- checked WHAT`.
fn under_check(flags: &[&str], what: &[&str]) -> Option<Ended> {
    let program = checked()?;
    let mut words = vec![program.to_str().expect("a plain name")];
    words.extend(what);
    Some(under(&[&["--check", "--no-report"], flags].concat(), &words).end())
}

/// Returns a text with `#` for the numbers of processes and threads.
fn numberless(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("id ") {
        let (before, after) = rest.split_at(at + 3);
        out += before;
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        out += if digits == 0 { "" } else { "#" };
        rest = &after[digits..];
    }
    out + rest
}

/// Returns the lines that begin with `lockstead: LEVEL:`.
fn heads(text: &str) -> Vec<&str> {
    let level = |line: &&str| {
        ["DEADLOCK", "RULE", "POTENTIAL", "ORDER"]
            .iter()
            .any(|level| line.starts_with(&format!("lockstead: {level}: ")))
    };
    text.lines().filter(level).collect()
}

const INVERSION: &str = "lockstead: POTENTIAL: lock order inversion of 2 locks";

#[test]
fn an_inversion_has_both_locks_both_threads_and_all_four_stacks() {
    let Some(ended) = under_check(&[], &["crossed"]) else { return };
    let text = numberless(&ended.stderr);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], INVERSION);
    assert!(lines.len() <= 40, "{text}");
    let plain: Vec<&str> =
        lines.iter().copied().filter(|line| !line.starts_with("      ")).collect();
    let wanted = [
        INVERSION,
        "  in checked (pid #): journal -> accounts -> journal",
        "  thread \"audit\" (tid #)",
        "    asks for accounts (mutex), at:",
        "    holds journal (mutex), acquired at:",
        "  thread \"transfer\" (tid #)",
        "    asks for journal (mutex), at:",
        "    holds accounts (mutex), acquired at:",
        "lockstead: check: 1 potential deadlock (2 locks in an order, 2 edges, 1 process)",
    ];
    assert_eq!(plain, wanted, "{text}");
    let frames: Vec<&str> =
        lines.iter().copied().filter(|line| line.starts_with("      ")).map(str::trim).collect();
    let site = |mark: &str, function: &str| format!("{function}() at {}", line("checked.c", mark));
    for (mark, function) in [
        ("transfer-has", "transfer"),
        ("transfer-wants", "transfer"),
        ("audit-has", "audit"),
        ("audit-wants", "audit"),
    ] {
        let site = site(mark, function);
        assert_eq!(frames.iter().filter(|frame| **frame == site).count(), 1, "{site}: {text}");
    }
    assert_eq!(ended.stdout, "done\n");
    assert_eq!(ended.status.code(), Some(3));
}

#[test]
fn a_clean_program_keeps_its_status_and_hears_that_it_is_clean() {
    let Some(ended) = under_check(&[], &["path", "fails"]) else { return };
    let nothing = "lockstead: check: nothing was found (3 locks in an order, 2 edges, 1 process)\n";
    assert_eq!(ended.stderr, nothing);
    assert_eq!(ended.status.code(), Some(7));
}

#[test]
fn a_status_of_the_program_is_said_where_another_takes_its_place() {
    let Some(ended) = under_check(&[], &["unlock", "fails"]) else { return };
    assert_eq!(heads(&ended.stderr), ["lockstead: RULE: unlock of an unlocked lock"]);
    assert!(ended.stderr.ends_with("  the program: exit status 7\n"), "{}", ended.stderr);
    assert_eq!(ended.status.code(), Some(3));
}

#[test]
fn what_cannot_hurt_as_seen_is_shown_on_request() {
    let Some(ended) = under_check(&[], &["gated"]) else { return };
    assert_eq!(heads(&ended.stderr), [""; 0], "{}", ended.stderr);
    assert!(ended.stderr.contains("  1 doubtful finding that did no harm"), "{}", ended.stderr);
    assert_eq!(ended.status.code(), Some(0));
    let Some(ended) = under_check(&["--strict"], &["gated"]) else { return };
    assert_eq!(heads(&ended.stderr), ["lockstead: ORDER: lock order inversion of 2 locks"]);
    let excuse = "  no deadlock as it was seen: all of them hold gate (mutex) meanwhile\n";
    assert!(ended.stderr.contains(excuse), "{}", ended.stderr);
    assert!(ended.stderr.contains("\n    and holds gate\n"), "{}", ended.stderr);
    assert_eq!(ended.status.code(), Some(3));
    // What turns out worse is said again.
    let Some(ended) = under_check(&["--strict"], &["gated", "crossed"]) else { return };
    let orders = ["lockstead: ORDER: lock order inversion of 2 locks", INVERSION];
    assert_eq!(heads(&ended.stderr), orders, "{}", ended.stderr);
}

#[test]
fn a_cause_is_reported_once_for_all_processes_of_a_program() {
    let Some(ended) = under_check(&[], &["children", "crossed"]) else { return };
    assert_eq!(heads(&ended.stderr), [INVERSION], "{}", ended.stderr);
    assert!(ended.stderr.contains("4 processes)"), "{}", ended.stderr);
    let Some(program) = checked() else { return };
    let script = format!("{0} crossed; {0} crossed", program.display());
    let ended = under(&["--check", "--no-report"], &["sh", "-c", &script]).end();
    assert_eq!(heads(&ended.stderr), [INVERSION], "{}", ended.stderr);
    assert_eq!(ended.status.code(), Some(3));
}

#[test]
fn a_deadlock_is_reported_and_not_the_guess_that_it_may_happen() {
    let Some(program) = checked() else { return };
    let words = [program.as_os_str(), "meets".as_ref()];
    let running = under(&["--check", "--no-report"], &words);
    running.expect("lockstead: DEADLOCK", 1);
    running.settle();
    let ended = running.terminate();
    let all = heads(&ended.stderr);
    assert_eq!(all.len(), 1, "{}", ended.stderr);
    assert!(all[0].starts_with("lockstead: DEADLOCK: 2 threads wait for each other, in "));
    assert!(ended.stderr.contains("lockstead: check: 1 deadlock ("), "{}", ended.stderr);
    assert_eq!(ended.status.code(), Some(3));
}

#[test]
fn a_damaged_ledger_ends_nothing_but_its_own_report() {
    let Some(program) = program("scribbles.c") else { return };
    let words = [program.as_os_str(), "1".as_ref(), "12".as_ref()];
    let ended = under(&["--check", "--strict", "--no-report"], &words).end();
    let shown = &ended.stderr;
    assert!(matches!(ended.status.code(), Some(0 | 3)), "{:?}: {shown}", ended.status);
    assert!(!shown.contains("panicked"), "{shown}");
    assert!(shown.contains("lockstead: check: "), "{shown}");
}
