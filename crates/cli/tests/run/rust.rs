//! Locks of Rust's std under `lockstead run`: programs that rustc has built, with nothing of ours
//! in them.

use crate::common::{documented, run, text};
use crate::programs::{cycles, line, only, program, under};
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
    let found = only(said, "DEADLOCK");
    assert_eq!(found.len(), 2, "{said}");
    for (thread, other, mark) in [("saver", "spender", "saves"), ("spender", "saver", "spends")] {
        let party = found.iter().find(|party| party.name == thread).expect(said);
        let next = found.iter().find(|party| party.name == other).expect(said);
        assert_eq!(party.waits, format!("for {}", next.holds), "{said}");
        assert!(party.waits.starts_with("for Rust std::sync::Mutex at 0x"), "{said}");
        let place = format!(" at {}", line(SOURCE, mark));
        assert!(party.waits_at.iter().any(|frame| frame.contains(&place)), "{said}");
        assert!(party.holds_at.iter().any(|line| line.starts_with("pad: ")), "{said}");
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
    let found = only(said, "DEADLOCK");
    let party = |name: &str| found.iter().find(|party| party.name == name).expect(said);
    let (vault, ledger) = ("std_locks::VAULT (Rust std::sync::Mutex)", "std_locks::LEDGER (mutex)");
    let booker = party("booker");
    assert_eq!((&*booker.waits, &*booker.holds), (&*format!("for {vault}"), ledger), "{said}");
    assert!(booker.holds_at[0].starts_with("std_locks::book() at "), "{said}");
    let opener = party("opener");
    assert_eq!((&*opener.waits, &*opener.holds), (&*format!("for {ledger}"), vault), "{said}");
}

#[test]
fn a_mutex_that_was_waited_for_is_held_by_who_has_woken_nobody_since() {
    // Of the other lock of the cycle a landing pad names the holder.
    let Some(locks) = program(SOURCE) else { return };
    let running = under(&["--no-report"], &[text(&locks), "waited"]);
    running.expect("lockstead: DEADLOCK", 1);
    let said = running.stderr();
    let (_, pid) = said.split_once("in std_locks (pid ").expect(&said);
    let dumped = run(&["dump", "--json", pid.split(')').next().expect("a number")]);
    let ended = running.terminate();
    // The guard may be lost, and the memory another lock's.
    let found = only(&ended.stderr, "DEADLOCK, probably");
    let waited = found.iter().find(|party| party.name == "waited").expect(&ended.stderr);
    assert_eq!(waited.holds, "std_locks::VAULT (Rust std::sync::Mutex)", "{}", ended.stderr);
    let says = |line: &String| line.starts_with("likely: it has waited for it");
    assert!(waited.holds_at.iter().any(says), "{}", ended.stderr);
    let place = format!(" at {}", line(SOURCE, "waited"));
    assert!(waited.holds_at.iter().any(|frame| frame.ends_with(&place)), "{}", ended.stderr);
    let dumped: Value = serde_json::from_str(&dumped.stdout).expect("JSON");
    let locks = dumped["locks"].as_array().expect("a list");
    let vault =
        locks.iter().find(|lock| lock["name"].as_str().is_some_and(|n| n.ends_with("VAULT")));
    let holder = &vault.expect("it is waited for")["holders"][0];
    assert!(holder["acquired"].is_u64() && holder["exact"] == true, "{dumped:#}");
}

#[test]
fn the_threads_of_a_report_have_the_waiting_of_their_process() {
    let Some(locks) = program(SOURCE) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.json");
    let ended = under(&["--json", text(&file)], &[text(&locks), "table"]).end();
    assert!(ended.status.success(), "{}", ended.stderr);
    let report: Value =
        serde_json::from_slice(&std::fs::read(&file).expect("written")).expect("JSON");
    let process = &report["processes"][0];
    let threads = process["threads"]["worst"].as_array().expect("a list");
    let waited: u64 = threads.iter().filter_map(|thread| thread["waited_ns"].as_u64()).sum();
    assert!(waited > 0, "readers have waited: {report:#}");
    assert_eq!(Some(waited), process["waiting"]["waited_ns"].as_u64(), "{report:#}");
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
