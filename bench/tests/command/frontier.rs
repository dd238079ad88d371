//! Throughput against the longest wait, from a report and measured.

use crate::common::{documented, run, succeed, text, texts};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Returns a report of one cell, in which the fair mutex answers std and nobody answers tbb.
fn report() -> Value {
    let row = |lock: &str, rate: f64, longest: f64| {
        json!({"lock": lock, "ops_per_s": rate, "ops_per_cpu_s": rate / 2.0, "jain": 0.97,
            "wait_p99_ns": 900, "wait_p999_ns": 1000, "wait_max_ns": 2.0 * longest,
            "wait_max_median_ns": longest, "wait_weighted_p99_ns": 1500})
    };
    let rows = [
        row("lockstead", 1000.0, 9e6),
        row("lockstead-fair", 900.0, 2e6),
        row("std", 800.0, 3e6),
        row("tbb", 700.0, 1e6),
    ];
    let cell = json!({"threads": 16, "section_ns": 1000, "think_ratio": 1.0, "results": rows});
    json!({"machine": {"cpu": "A <fast> CPU", "processors": 2}, "cells": [cell]})
}

fn store(folder: &Path, report: &Value) -> PathBuf {
    let path = folder.join("grid.json");
    std::fs::write(&path, report.to_string()).expect("a file");
    path
}

#[test]
fn a_saved_report_becomes_a_frontier() {
    let folder = tempfile::tempdir().expect("a folder");
    let from = store(folder.path(), &report());
    let svg = folder.path().join("frontier.svg");
    let outcome = succeed(&["bench", "frontier", "--from", text(&from), "--svg", text(&svg)]);
    for word in [
        "16 threads, section 1us, think 1x",
        "tbb is not answered: lockstead-fair has 1.29 of its throughput, 2.00 times its longest wait",
        "1 of 2 peers in 1 cells are answered by lockstead or lockstead-fair",
    ] {
        assert!(outcome.stdout.contains(word), "no {word:?} in\n{}", outcome.stdout);
    }
    assert!(!outcome.stdout.contains("std is not answered"));
    let found = texts(&std::fs::read_to_string(&svg).expect("a picture"));
    for word in ["lockstead-fair", "std", "A <fast> CPU · 2 processors", "1.00 ms"] {
        assert!(found.iter().any(|text| text == word), "no {word:?} in {found:?}");
    }
}

#[test]
fn a_frontier_as_json_says_who_is_on_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let from = store(folder.path(), &report());
    let args = ["bench", "frontier", "--json", "--from", text(&from)];
    let frontier: Value = serde_json::from_str(&succeed(&args).stdout).expect("JSON alone");
    documented(&frontier);
    assert_eq!(frontier["ours"], json!(["lockstead", "lockstead-fair"]));
    let points = frontier["cells"][0]["points"].as_array().expect("points");
    let on: Vec<_> = points.iter().map(|it| it["on_frontier"].as_bool().expect("a bool")).collect();
    assert_eq!(on, [true, true, false, true]);
    let answers = &frontier["cells"][0]["answers"];
    assert_eq!((&answers[0]["peer"], &answers[0]["answered"]), (&json!("std"), &json!(true)));
    assert_eq!(
        (&answers[1]["by"], &answers[1]["answered"]),
        (&json!("lockstead-fair"), &json!(false))
    );
}

#[test]
fn what_makes_no_frontier_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut old = report();
    for row in old["cells"][0]["results"].as_array_mut().expect("rows") {
        row.as_object_mut().expect("a row").remove("wait_max_median_ns");
    }
    for (report, extra, words) in [
        (old, "--json", ["--from", "wait_max_median_ns"]),
        (json!({"cells": 7}), "--json", ["--from", "damaged"]),
        (report(), "--threads=2", ["--from", "--threads"]),
        (report(), "--svg=/absent/x.svg", ["--svg", "/absent"]),
    ] {
        let from = store(folder.path(), &report);
        let outcome = run(&["bench", "frontier", "--from", text(&from), extra]);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{extra}: {outcome:?}");
        for word in words {
            assert!(outcome.stderr.contains(word), "no {word:?} in {}", outcome.stderr);
        }
    }
    assert_eq!(run(&["bench", "frontier", "--rounds=0"]).status, 2);
}

#[test]
fn a_measured_frontier_has_the_fair_mutex_and_the_peers() {
    let args = ["bench", "frontier", "--quick", "--threads=4", "--section=1us", "--think=1x"];
    let json = succeed(&[&args[..], &["--rounds=3", "--json"]].concat()).stdout;
    let frontier: Value = serde_json::from_str(&json).expect("JSON alone");
    documented(&frontier);
    let points = frontier["cells"][0]["points"].as_array().expect("points");
    let names: Vec<_> = points.iter().map(|it| it["lock"].as_str().expect("a name")).collect();
    assert!(
        ["lockstead", "lockstead-fair", "std"].iter().all(|it| names.contains(it)),
        "{names:?}"
    );
    assert!(!names.contains(&"pthread-pi"), "it lends priorities");
    assert_eq!(frontier["peers"].as_u64(), Some(names.len() as u64 - 2));
    assert_eq!(frontier["shares_slice_ms"], json!(20.0), "as long as the others");
}

#[test]
fn shares_are_counted_over_turns_of_their_own() {
    let args = ["bench", "frontier", "--quick", "--threads=4", "--section=1us", "--think=1x"];
    let shares = ["--locks=lockstead,std", "--rounds=1", "--shares-over=0.1"];
    let json = succeed(&[&args[..], &shares, &["--json"]].concat()).stdout;
    let frontier: Value = serde_json::from_str(&json).expect("JSON alone");
    documented(&frontier);
    assert_eq!(frontier["shares_slice_ms"], json!(100.0));
    let points = frontier["cells"][0]["points"].as_array().expect("points");
    let jain = |point: &Value| point["jain"].as_f64().is_some_and(|it| it > 0.0 && it <= 1.0);
    assert!(points.len() == 2 && points.iter().all(jain), "{points:?}");
    let said = succeed(&[&args[..], &shares].concat()).stdout;
    assert!(said.contains("Jain's index over 100 ms less 0.02"), "{said}");
}
