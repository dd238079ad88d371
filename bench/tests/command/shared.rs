//! Locks between processes: what the benchmarks report, and that the locks hold
//! when processes are killed.

use crate::common::{Outcome, run, succeed};
use serde_json::{Value, json};

fn parsed(outcome: &Outcome) -> Value {
    let report: Value = serde_json::from_str(&outcome.stdout).expect("standard output is JSON");
    crate::common::documented(&report);
    report
}

fn number(report: &Value, key: &str) -> u64 {
    report[key].as_u64().unwrap_or_else(|| panic!("no count {key}: {report}"))
}

/// Tells whether this machine lets this user make namespaces of process ids; says so if
/// not.
fn namespaces() -> bool {
    let outcome = run(&["bench", "storm", "--kills=1", "--processes=1", "--namespaces"]);
    let refused = outcome.stderr.contains("does not allow namespaces");
    if refused {
        assert_eq!(outcome.status, 1, "{outcome:?}");
        eprintln!("skipped: {}", outcome.stderr.trim());
    } else {
        assert_eq!(outcome.status, 0, "{outcome:?}");
    }
    !refused
}

fn storm(kills: u64, more: &[&str]) -> Value {
    let kills_flag = format!("--kills={kills}");
    let outcome = run(&[&["bench", "storm", "--json", &kills_flag], more].concat());
    let report = parsed(&outcome);
    for key in ["torn", "stalls", "unfounded", "lost"] {
        assert_eq!(report[key], 0, "{report}");
    }
    assert_eq!(outcome.status, 0, "{outcome:?}");
    for key in ["kills", "quiet_phases", "operations"] {
        assert_ne!(number(&report, key), 0, "{key}: {report}");
    }
    assert!(number(&report, "kills") >= kills, "{report}");
    assert!(report["longest_wait_ms"].as_f64().is_some_and(|ms| ms < 2000.0), "{report}");
    assert!(report["kills_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{report}");
    for kind in report["kinds"].as_array().expect("kinds") {
        assert_ne!(number(kind, "operations"), 0, "{kind}");
        assert_ne!(number(kind, "owner_died"), 0, "no kill met a holder: {kind}");
    }
    report
}

const FLAGS: [&str; 8] =
    ["exclusive", "beside_robust", "churn", "stop", "exec", "reap", "users", "without_proc"];

/// Returns the only combination.
fn round(report: &Value) -> &Value {
    let rounds = report["rounds"].as_array().expect("rounds");
    assert_eq!(rounds.len(), 1, "{report}");
    &rounds[0]
}

fn kinds(report: &Value) -> Vec<&str> {
    let kinds = report["kinds"].as_array().expect("kinds");
    kinds.iter().filter_map(|kind| kind["lock"].as_str()).collect()
}

#[test]
fn a_storm_of_processes_of_one_thread() {
    let report = storm(400, &[]);
    assert_eq!(kinds(&report), ["mutex"]);
    let round = round(&report);
    assert_eq!(number(round, "processes"), 4);
    assert_eq!(number(round, "locks"), 8);
    assert_eq!(round["namespaces"], "one");
    for flag in FLAGS {
        assert_eq!(round[flag], false, "{flag}: {report}");
    }
    assert_eq!(report["robust"], Value::Null);
    assert_eq!(report["skipped"], Value::Array(Vec::new()));
}

#[test]
fn a_storm_of_processes_of_three_threads_over_two_locks() {
    storm(300, &["--threads=3", "--locks=2"]);
}

#[test]
fn a_storm_over_each_kind_of_lock() {
    for kind in ["rwlock", "semaphore", "condvar"] {
        let report = storm(400, &["--lock", kind]);
        assert_eq!(kinds(&report), [kind]);
        let units = &report["kinds"][0]["units_returned"];
        assert_eq!(units.as_u64().is_some_and(|units| units > 0), kind == "semaphore", "{report}");
    }
}

#[test]
fn a_storm_over_all_kinds_at_once() {
    let report = storm(600, &["--lock=all", "--threads=3"]);
    assert_eq!(kinds(&report), ["mutex", "rwlock", "semaphore", "condvar"]);
}

#[test]
fn a_storm_in_an_exclusive_segment() {
    let report = storm(400, &["--lock=mutex,semaphore", "--exclusive", "--threads=2"]);
    assert_eq!(kinds(&report), ["mutex", "semaphore"]);
    assert_eq!(round(&report)["exclusive"], true);
}

#[test]
fn a_storm_beside_robust_mutexes_recovers_both() {
    let report = storm(300, &["--beside-robust", "--threads=2"]);
    let robust = &report["robust"];
    for key in ["torn", "stuck"] {
        assert_eq!(number(robust, key), 0, "{report}");
    }
    assert_ne!(number(robust, "owner_died"), 0, "no kill met a holder: {report}");
}

#[test]
fn a_storm_of_processes_that_are_all_number_one() {
    if namespaces() {
        let report = storm(300, &["--namespaces"]);
        assert_eq!(round(&report)["namespaces"], "each");
        storm(600, &["--namespaces", "--lock=all"]);
    }
}

#[test]
fn a_storm_of_processes_in_several_namespaces() {
    if namespaces() {
        let report = storm(400, &["--namespaces=several", "--lock=mutex,rwlock", "--threads=2"]);
        assert_eq!(round(&report)["namespaces"], "several");
    }
}

#[test]
fn a_storm_of_threads_that_come_and_go() {
    let report = storm(400, &["--churn", "--lock=all", "--threads=3"]);
    assert_eq!(round(&report)["churn"], true);
}

#[test]
fn a_storm_of_processes_that_are_stopped() {
    let report = storm(400, &["--stop", "--lock=all"]);
    assert_ne!(number(&report, "stops"), 0, "{report}");
}

#[test]
fn a_storm_of_processes_that_become_other_programs() {
    let report = storm(300, &["--exec", "--lock=all", "--threads=2"]);
    assert_ne!(number(&report, "execs"), 0, "{report}");
    assert_eq!(round(&report)["exec"], true);
}

/// Runs a storm of something that may not be to be had here.
fn storm_if_possible(kills: u64, flag: &str, more: &[&str]) -> Option<Value> {
    let outcome = run(&[&["bench", "storm", "--kills=1", "--processes=1", flag], more].concat());
    if outcome.stderr.contains("not possible here") {
        assert_eq!(outcome.status, 1, "{outcome:?}");
        eprintln!("skipped: {}", outcome.stderr.trim());
        return None;
    }
    Some(storm(kills, &[&[flag], more].concat()))
}

#[test]
fn a_storm_of_processes_of_which_the_memory_is_taken() {
    // What the kernel has in the segment it sees without that memory.
    for more in [&["--threads=2"][..], &["--exclusive"]] {
        if let Some(report) = storm_if_possible(100, "--reap", more) {
            assert_ne!(number(&report, "reaped"), 0, "{report}");
        }
    }
}

#[test]
fn a_storm_of_two_users() {
    if let Some(report) = storm_if_possible(300, "--users", &["--lock=all"]) {
        assert_eq!(round(&report)["users"], true);
    }
}

#[test]
fn a_storm_without_proc() {
    if let Some(report) = storm_if_possible(300, "--without-proc", &["--lock=all"]) {
        assert_eq!(round(&report)["without_proc"], true);
    }
}

#[test]
fn all_combinations_have_their_turn_or_are_skipped_for_a_reason() {
    let outcome = run(&["bench", "storm", "--all", "--kills=200", "--json"]);
    let report = parsed(&outcome);
    let (rounds, skipped) = (&report["rounds"], &report["skipped"]);
    let (rounds, skipped) = (rounds.as_array().expect("rounds"), skipped.as_array().expect("some"));
    assert!(rounds.len() + skipped.len() > 10, "{report}");
    for round in rounds {
        assert_ne!(number(round, "kills"), 0, "{round}");
    }
    let sum = |key| rounds.iter().map(|round| number(round, key)).sum::<u64>();
    for key in ["kills", "quiet_phases", "torn", "stalls", "lost", "operations"] {
        assert_eq!(number(&report, key), sum(key), "{key}: {report}");
    }
    for skipped in skipped {
        eprintln!("skipped: {}: {}", skipped["name"], skipped["why"]);
        assert!(skipped["why"].as_str().is_some_and(|why| !why.is_empty()), "{report}");
    }
    assert_eq!(outcome.status, 0, "{report}");
}

/// Runs `bench steps`. Returns `None`, with a message, where processes may not be traced.
fn steps(flags: &[&str]) -> Option<Outcome> {
    let outcome = run(&[&["bench", "steps", "--every=400"], flags].concat());
    if outcome.stderr.contains("not possible here") {
        assert_eq!(outcome.status, 1, "{outcome:?}");
        eprintln!("skipped: {}", outcome.stderr.trim());
        return None;
    }
    Some(outcome)
}

#[test]
fn who_sleeps_for_what_a_process_has_gets_it_wherever_that_is_killed() {
    let Some(outcome) = steps(&["--limit=60", "--json"]) else { return };
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let report = parsed(&outcome);
    let operations = report["operations"].as_array().expect("operations");
    for kind in ["mutex", "rwlock", "semaphore", "condvar"] {
        let of_kind: Vec<_> = operations.iter().filter(|one| one["lock"] == kind).collect();
        assert!(of_kind.len() >= 3, "{kind}: {report}");
        // Some of the killed had what the others wanted.
        let sum = |key| of_kind.iter().map(|one| number(one, key)).sum::<u64>();
        assert_ne!(sum("told"), 0, "{kind}: {report}");
        assert_ne!(sum("asleep"), 0, "{kind}: {report}");
    }
    for one in operations {
        assert!(number(one, "kills") >= 3 && number(one, "instructions") > 0, "{one}");
    }
}

#[test]
fn kills_at_steps_have_a_table() {
    let Some(outcome) = steps(&["--limit=60", "--lock=mutex"]) else { return };
    assert_eq!(outcome.status, 0, "{outcome:?}");
    for word in ["mutex", "lock, held", "unlock", "median wait"] {
        assert!(outcome.stdout.contains(word), "no {word:?} in\n{}", outcome.stdout);
    }
}

/// Shows what this machine did with each lock: of ours, what is promised; of the others, what their
/// pages say, so that a trial that tries nothing is found out.
#[test]
fn locks_between_processes_are_compared_by_what_they_do() {
    let report = parsed(&succeed(&["bench", "rivals", "--quick", "--json"]));
    let locks = report["locks"].as_array().expect("locks");
    let row = |name: &str| {
        let found = locks.iter().find(|row| row["lock"] == name);
        found.unwrap_or_else(|| panic!("no {name}: {report}"))
    };
    for ours in ["lockstead mutex", "lockstead rwlock"] {
        let row = row(ours);
        assert_eq!(row["after_kill"], "told", "{row}");
        assert_eq!(row["after_kill_with_child"], "told", "{row}");
        for kept in ["excludes_threads", "survives_child"] {
            assert_eq!(row[kept], true, "{kept}: {row}");
        }
        assert_ne!(row["survives_waiter"], false, "{row}");
    }
    assert_eq!(row("lockstead rwlock")["after_reader_kill"], "silent", "{report}");
    for (name, field, value) in [
        ("pthread robust", "after_kill", json!("told")),
        ("pthread robust", "survives_child", json!(true)),
        ("sem_t", "after_kill", json!("stuck")),
        ("sem_t", "survives_child", json!(false)),
        ("fcntl, OFD", "after_kill", json!("silent")),
        ("fcntl, OFD", "after_kill_with_child", json!("stuck")),
        ("fcntl, OFD", "survives_close", json!(true)),
        ("fcntl, OFD", "survives_child", json!(false)),
        ("flock", "after_kill", json!("silent")),
        ("flock", "excludes_threads", json!(true)),
        ("fcntl, POSIX", "excludes_threads", json!(false)),
        ("fcntl, POSIX", "survives_close", json!(false)),
    ] {
        assert_eq!(row(name)[field], value, "{name}, {field}: {report}");
    }
    let left_out = report["left_out"].as_array().expect("what is left out");
    let containers = left_out.iter().any(|left| left["what"] == "containers");
    for row in locks.iter().filter(|row| !row["excludes_threads"].is_null()) {
        assert!(row["pair_ns"].as_f64().is_some_and(|ns| ns > 0.0), "{row}");
        let tried = !row["survives_waiter"].is_null();
        assert!(tried || containers || row["lock"] == "multiprocessing.Lock", "{row}");
    }
    for optional in ["LMDB", "multiprocessing.Lock"] {
        let there = locks.iter().any(|row| row["lock"] == optional);
        let why = left_out.iter().find(|left| left["what"] == optional);
        assert!(there != why.is_some(), "{optional}: {report}");
        if let Some(why) = why {
            eprintln!("skipped: {optional}: {}", why["why"]);
        }
    }
}

#[test]
fn a_storm_ends_with_its_time() {
    let outcome = succeed(&["bench", "storm", "--seconds=0.5", "--lock=mutex", "--json"]);
    let report = parsed(&outcome);
    assert!(report["seconds"].as_f64().is_some_and(|seconds| seconds >= 0.5), "{report}");
    assert_ne!(number(&report, "kills"), 0, "{report}");
}

#[test]
fn a_storm_has_a_summary_and_tells_how_far_it_is() {
    let outcome = succeed(&["bench", "storm", "--kills=60", "--processes=2", "--lock=all"]);
    for word in [
        " kills in",
        "condvar",
        "told of a death",
        "torn without a word 0",
        "longest wait",
        "slots lost          0",
        "2 of 1 thread",
        "kills/s",
    ] {
        assert!(outcome.stdout.contains(word), "no {word:?} in\n{}", outcome.stdout);
    }
}

#[test]
fn impossible_storms_are_refused() {
    for (flag, allowed) in [
        ("--kills=0", "1.."),
        ("--processes=0", "from 1 to 64"),
        ("--threads=17", "from 1 to 16"),
        ("--locks=257", "from 1 to 256"),
    ] {
        let kills = if flag.starts_with("--kills") { "--json" } else { "--kills=1" };
        let outcome = run(&["bench", "storm", kills, flag]);
        assert_eq!(outcome.status, 2, "{flag}: {outcome:?}");
        assert!(outcome.stderr.contains(allowed), "{flag}: {outcome:?}");
    }
    for (flags, allowed) in [
        (&["--lock=spin"][..], "mutex, rwlock, semaphore, condvar, or all"),
        (&["--beside-robust", "--exclusive"], "cannot be used with"),
        (&["--beside-robust", "--namespaces"], "cannot be used with"),
        (&["--beside-robust", "--reap"], "cannot be used with"),
        (&["--beside-robust", "--exec"], "cannot be used with"),
        (&["--all", "--churn"], "cannot be used with"),
        (&["--namespaces=none"], "each, several"),
        (&["--seconds=0"], "--seconds"),
    ] {
        let outcome = run(&[&["bench", "storm", "--kills=1"], flags].concat());
        assert_eq!(outcome.status, 2, "{flags:?}: {outcome:?}");
        assert!(outcome.stderr.contains(allowed), "{flags:?}: {outcome:?}");
    }
    let outcome = run(&["bench", "dead", "--locks=2000000"]);
    assert_eq!(outcome.status, 2, "{outcome:?}");
    assert!(outcome.stderr.contains("from 1 to 1048576"), "{outcome:?}");
}

#[test]
fn all_locks_of_a_dead_holder_are_reported() {
    let outcome = succeed(&["bench", "dead", "--locks=10000", "--json"]);
    let report = parsed(&outcome);
    assert_eq!(number(&report, "locks"), 10_000);
    assert_eq!(number(&report, "reported"), 10_000);
    assert_eq!(number(&report, "stuck"), 0);
    for key in ["known_ms", "swept_ms"] {
        assert!(report[key].as_f64().is_some_and(|ms| ms > 0.0), "{report}");
    }
    // The kernel follows a thread's list of robust mutexes so far.
    assert_eq!(number(&report["glibc_robust"], "reported"), 2048);
    assert_eq!(number(&report["glibc_robust"], "stuck"), 10_000 - 2048);
    let table = succeed(&["bench", "dead", "--locks=3000"]).stdout;
    for word in ["3,000", "2,048", "952", "glibc-robust", "known after"] {
        assert!(table.contains(word), "no {word:?} in\n{table}");
    }
}

#[test]
fn the_pair_has_the_form_of_the_uncontended_one() {
    let outcome = succeed(&["bench", "shared", "--quick", "--pair-only", "--json"]);
    let report = parsed(&outcome);
    let results = report["results"].as_array().expect("results");
    let names: Vec<_> = results.iter().filter_map(|row| row["lock"].as_str()).collect();
    assert_eq!(names, ["lockstead", "glibc-robust", "glibc-pshared"]);
    assert!(report["limit_ns"].as_f64().is_some_and(|ns| ns > 0.0), "{report}");
    for row in results {
        for key in ["ns", "ratio_to_limit", "bytes", "ns_min", "ns_max"] {
            assert!(row[key].as_f64().is_some_and(|figure| figure > 0.0), "{key}: {row}");
        }
        assert!(row.get("instructions").is_some(), "{row}");
    }
    assert_eq!(results[0]["bytes"], 8);
    assert_eq!(report["contended"], Value::Array(Vec::new()));
}

#[test]
fn processes_contend_in_every_cell() {
    let args = ["bench", "shared", "--quick", "--processes=2,3", "--section=0,1us", "--think=0,1x"];
    let report = parsed(&succeed(&[&args[..], &["--json"]].concat()));
    let cells = report["contended"].as_array().expect("cells");
    // A section of nothing has one think time: nothing.
    let kinds: Vec<_> =
        cells.iter().map(|cell| (number(cell, "processes"), number(cell, "section_ns"))).collect();
    assert_eq!(kinds, [(2, 0), (2, 1000), (2, 1000), (3, 0), (3, 1000), (3, 1000)]);
    for cell in cells {
        let rows = cell["results"].as_array().expect("results");
        assert_eq!(rows.len(), 3, "{cell}");
        for row in rows {
            for key in ["ops_per_s", "ops_per_cpu_s", "jain", "ops_per_s_min", "ops_per_s_max"] {
                assert!(row[key].is_number(), "{key}: {row}");
            }
        }
    }
    let text = succeed(&args).stdout;
    for word in ["2 processes, section 0", "3 processes, section 1us, think 1x", "glibc-pshared"] {
        assert!(text.contains(word), "no {word:?} in\n{text}");
    }
}

#[test]
fn the_demonstration_kills_in_containers_or_says_why_not() {
    let text = succeed(&["demo", "container-kill"]).stdout;
    assert!(text.contains("100,000"), "{text}");
    assert!(text.contains("2,048"), "{text}");
    if !namespaces() {
        assert!(text.contains("Left out: this machine does not allow namespaces"), "{text}");
        return;
    }
    let line = |lock: &str| {
        let found = text.lines().find(|line| line.trim_start().starts_with(lock));
        found.unwrap_or_else(|| panic!("no {lock} in\n{text}"))
    };
    // Two owners with the one, and one with the other.
    assert!(line("glibc-robust").contains("1, 1  gets it: owner died       2"), "{text}");
    let own = line("lockstead");
    assert!(own.contains("1, 1              refused       1  gets it: owner died"), "{text}");
}

/// Nobody gets at the workers' side by chance.
#[test]
fn a_worker_that_nobody_told_what_to_do_says_so() {
    let outcome = run(&["--lockstead-bench-worker"]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(outcome.stderr.contains("told nothing"), "{outcome:?}");
}
