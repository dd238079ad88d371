//! The three benchmarks, briefly: the fields of the JSON, and what is read.

use crate::common::{entries, succeed, text};
use serde_json::Value;

/// Parses a report and checks that the object at its root has these keys.
fn report(stdout: &str, keys: &[&str]) -> Value {
    let report: Value = serde_json::from_str(stdout).expect("standard output is JSON alone");
    has(&report, keys);
    crate::common::documented(&report);
    has(&report["machine"], &["cpu", "processors", "kernel", "libc", "date", "optimised"]);
    report
}

fn has(object: &Value, keys: &[&str]) {
    for key in keys {
        assert!(object.get(key).is_some(), "no {key} in {object}");
    }
}

fn positive(object: &Value, keys: &[&str]) {
    for key in keys {
        let number = object[key].as_f64().unwrap_or_else(|| panic!("no number {key}: {object}"));
        assert!(number > 0.0, "{key} is {number}");
    }
}

/// Returns the names of the locks of a list of results.
fn locks(results: &Value) -> Vec<&str> {
    let results = results.as_array().expect("results");
    results.iter().map(|result| result["lock"].as_str().expect("a name")).collect()
}

#[test]
fn vfs_as_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let outcome = succeed(&[
        "bench",
        "vfs",
        "--tasks=3",
        "--seconds=0.2",
        "--locks=std,lockstead",
        "--json",
        "--dir",
        text(folder.path()),
    ]);
    let report = report(&outcome.stdout, &["machine", "tasks", "seconds", "results"]);
    assert_eq!(report["tasks"], 3);
    assert_eq!(report["seconds"], 0.2);
    assert_eq!(locks(&report["results"]), ["std", "lockstead"]);
    for result in report["results"].as_array().expect("results") {
        positive(result, &["loops_per_s", "cpu_percent", "loops_per_cpu_s"]);
    }
    assert_eq!(entries(folder.path()), [""; 0], "files are left");
}

#[test]
fn vfs_in_the_announcements_form() {
    let folder = tempfile::tempdir().expect("a folder");
    let outcome = succeed(&[
        "bench",
        "vfs",
        "--tasks=2",
        "--seconds=0.1",
        "--locks=lockstead,semaphore-classic",
        "--dir",
        text(folder.path()),
    ]);
    for line in [
        "CPUs, running 2 tasks.",
        "checking VFS performance.",
        "avg loops/sec:",
        "CPU utilization:",
        "loops per",
        "8-way x86, mutex",
        // The announced ratios, from the published rows.
        "2.42x",
        "6.94x",
        "1.42x",
        "4.17x",
    ] {
        assert!(outcome.stdout.contains(line), "no {line:?} in\n{}", outcome.stdout);
    }
    assert!(!outcome.stdout.contains('\u{1b}'), "colour without a terminal");
}

#[test]
fn vfs_in_memory_makes_no_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let child =
        crate::common::lockstead(&["bench", "vfs", "--memory", "--seconds=0.1", "--locks=std"])
            .args(["--json", "--tasks=2"])
            // Not a directory: creating anything there would fail.
            .env("TMPDIR", "/dev/null")
            .current_dir(folder.path())
            .spawn()
            .expect("the command starts");
    let outcome = crate::common::finish(child);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    positive(&report(&outcome.stdout, &["results"])["results"][0], &["loops_per_s"]);
    assert_eq!(entries(folder.path()), [""; 0]);
}

#[test]
fn uncontended_as_json_and_as_a_table() {
    let args = ["bench", "uncontended", "--quick", "--locks=lockstead,std"];
    let outcome = succeed(&[&args[..], &["--json"]].concat());
    let report = report(&outcome.stdout, &["machine", "limit_ns", "results"]);
    positive(&report, &["limit_ns"]);
    assert_eq!(locks(&report["results"]), ["lockstead", "std"]);
    for result in report["results"].as_array().expect("results") {
        has(result, &["instructions"]);
        positive(result, &["ns", "ratio_to_limit", "bytes"]);
        let ratio = result["ns"].as_f64().unwrap() / report["limit_ns"].as_f64().unwrap();
        assert!((ratio / result["ratio_to_limit"].as_f64().unwrap() - 1.0).abs() < 1e-6);
    }
    assert_eq!(report["results"][0]["bytes"], 8, "the mutex");

    let table = succeed(&args).stdout;
    for word in ["two bare atomics", "lockstead", "std", "instructions", "bytes"] {
        assert!(table.contains(word), "{table}");
    }
}

#[test]
fn uncontended_in_a_process_with_one_thread() {
    let args = ["bench", "uncontended", "--quick", "--one-thread", "--locks=lockstead,biased"];
    let outcome = succeed(&[&args[..], &["--json"]].concat());
    let report = report(&outcome.stdout, &["one_thread", "limit_ns", "results"]);
    assert_eq!(report["one_thread"], true);
    assert_eq!(locks(&report["results"]), ["lockstead", "biased"]);
    assert_eq!(report["results"][1]["bytes"], 16, "the biased mutex");
}

#[test]
fn contended_as_json_and_as_tables() {
    let args = [
        "bench",
        "contended",
        "--quick",
        "--threads=2,3",
        "--section=0,1us",
        "--think=1x",
        "--locks=lockstead,std,semaphore-tuned",
    ];
    let outcome = succeed(&[&args[..], &["--json"]].concat());
    let report = report(&outcome.stdout, &["machine", "cells"]);
    let cells = report["cells"].as_array().expect("cells");
    let kinds: Vec<_> =
        cells.iter().map(|cell| (cell["threads"].as_u64(), cell["section_ns"].as_u64())).collect();
    let expected = [(2, 0), (2, 1000), (3, 0), (3, 1000)];
    assert_eq!(kinds, expected.map(|(threads, section)| (Some(threads), Some(section))));
    let mut measured = 0;
    for cell in cells {
        assert_eq!(cell["think_ratio"], 1.0);
        assert_eq!(locks(&cell["results"]), ["lockstead", "std", "semaphore-tuned"]);
        for result in cell["results"].as_array().expect("results") {
            has(result, &["ops_per_s", "ops_per_cpu_s", "jain"]);
            // A busy machine may leave no time for so short a measurement.
            if result["ops_per_s"] != 0.0 {
                positive(result, &["ops_per_s", "ops_per_cpu_s", "jain"]);
                measured += 1;
            }
            let waits = ["wait_p50_ns", "wait_p99_ns", "wait_p999_ns", "wait_max_ns"]
                .map(|key| result[key].as_u64().unwrap_or_else(|| panic!("no {key}: {result}")));
            assert!(waits.is_sorted(), "{waits:?}");
        }
    }
    assert_ne!(measured, 0, "{report}");

    let tables = succeed(&args).stdout;
    for word in ["2 threads, section 0", "3 threads, section 1us", "All 4 cells", "p99.9", "Jain"] {
        assert!(tables.contains(word), "no {word:?} in\n{tables}");
    }
    // std is the only peer, so its ratios are 1 by definition.
    let std = tables.lines().find(|line| line.trim_start().starts_with("std ")).expect("std");
    assert!(std.contains(" 1.00x "), "{std}");
}

#[test]
fn a_long_run_without_a_terminal_says_that_it_lives() {
    let args = ["bench", "vfs", "--memory", "--seconds=3", "--tasks=2", "--locks=std"];
    let outcome = succeed(&args);
    assert!(outcome.stderr.contains("std"), "silence for three seconds: {outcome:?}");
}
