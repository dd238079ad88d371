//! Locks of Rust's std under `lockstead run`: programs that rustc has built, with nothing of ours
//! in them.

use crate::common::{documented, text};
use crate::programs::{cycles, line, program, under};
use serde_json::Value;

const SOURCE: &str = "std_locks.rs";

#[test]
fn a_deadlock_of_std_mutexes_is_reported_once_with_its_evidence() {
    let Some(locks) = program(SOURCE) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.json");
    let running = under(&["--json", text(&file)], &[text(&locks), "abba"]);
    running.expect("lockstead: DEADLOCK", 1);
    let ended = running.terminate();
    let said = &ended.stderr;
    let head = "lockstead: DEADLOCK: 2 threads wait for each other";
    assert_eq!(said.lines().filter(|line| line.starts_with(head)).count(), 1, "{said}");
    for (thread, other, mark) in [("saver", "spender", "saves"), ("spender", "saver", "spends")] {
        let (_, rest) = said.split_once(&format!("\"{thread}\" waits for Rust std")).expect(said);
        let (_, rest) = rest.split_once("held by thread ").expect(said);
        assert!(rest.lines().next().is_some_and(|line| line.contains(other)), "{said}");
        assert!(rest.contains(&format!(" at {}", line(SOURCE, mark))), "{said}");
    }
    let report: Value =
        serde_json::from_slice(&std::fs::read(&file).expect("written")).expect("JSON");
    documented(&report);
    let found = report["findings"].as_array().expect("a list");
    let dead: Vec<_> = found.iter().filter(|found| found["kind"] == "deadlock").collect();
    assert_eq!(dead.len(), 1, "{report:#}");
    assert_eq!(dead[0]["threads"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_deadlock_of_a_std_mutex_and_one_of_the_c_library_ends_the_program_if_asked_to() {
    let Some(locks) = program(SOURCE) else { return };
    let running = under(&["--no-report", "--on-deadlock", "kill"], &[text(&locks), "mixed"]);
    running.expect("lockstead: DEADLOCK", 1);
    let ended = running.end_with_open_input();
    let said = &ended.stderr;
    assert_eq!(ended.status.code(), Some(3), "{said}");
    assert!(said.contains("\"booker\" waits for Rust std::sync::Mutex std_locks::VAULT"), "{said}");
    assert!(said.contains("\"opener\" waits for mutex std_locks::LEDGER"), "{said}");
}

#[test]
fn threads_without_work_are_no_deadlock() {
    let Some(locks) = program(SOURCE) else { return };
    let running = under(&["--no-report"], &[text(&locks), "idle"]);
    // All wait, which is said when they have been looked at.
    running.expect("lockstead: STUCK", 1);
    let ended = running.terminate();
    assert_eq!(cycles(&ended.stderr, "DEADLOCK").len(), 0, "{}", ended.stderr);
}

#[test]
fn the_report_ranks_std_mutexes_among_the_locks() {
    let Some(locks) = program(SOURCE) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.json");
    let ended = under(&["--json", text(&file)], &[text(&locks), "contended"]).end();
    assert!(ended.status.success(), "{}", ended.stderr);
    let report: Value =
        serde_json::from_slice(&std::fs::read(&file).expect("written")).expect("JSON");
    documented(&report);
    let locks = report["processes"][0]["locks"].as_array().expect("a list");
    let named = |lock: &&Value| lock["name"] == "std_locks::VAULT";
    let vault = locks.iter().find(named).unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!(
        (&vault["kind"], &vault["type"]),
        (&"futex".into(), &"Rust std::sync::Mutex".into())
    );
    assert!(vault["contended"].as_u64().is_some_and(|waits| waits >= 2), "{vault:#}");
    let place = line(SOURCE, "waits");
    let is_there = |sites: &Value| {
        let sites = sites.as_array().expect("a list");
        sites.iter().any(|site| site["site"].as_str().is_some_and(|site| site.contains(&place)))
    };
    assert!(is_there(&vault["waited_at"]), "{vault:#}");
    assert!(!vault["woken_at"].as_array().expect("a list").is_empty(), "{vault:#}");
    assert_eq!(vault["held_at"].as_array().map(Vec::len), Some(0));
    assert!(ended.stderr.contains("std_locks::VAULT (Rust std::sync::Mutex"), "{}", ended.stderr);
}
