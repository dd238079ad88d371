//! Pictures: well-formed, complete, and never of a foreign or damaged file.

use crate::common::{entries, finish, lockstead, run, succeed, text, texts};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const LOCKS: [&str; 4] = ["lockstead", "semaphore-classic", "std", "a-lock-of-tomorrow"];

fn machine() -> Value {
    json!({"cpu": "A <fast> & \"cheap\" CPU", "processors": 2, "kernel": "6.1", "libc": null})
}

fn vfs() -> Value {
    let result = |lock| json!({"lock": lock, "loops_per_s": 1e5, "cpu_percent": 9.5, "loops_per_cpu_s": 2e5});
    json!({"machine": machine(), "tasks": 16, "seconds": 10.0, "results": LOCKS.map(result)})
}

fn uncontended() -> Value {
    let result = |lock| json!({"lock": lock, "ns": 9.5, "ratio_to_limit": 1.02, "instructions": 12, "bytes": 8});
    json!({"machine": machine(), "limit_ns": 9.31, "results": LOCKS.map(result)})
}

fn contended() -> Value {
    let result = |lock: &str| {
        json!({
            "lock": lock, "ops_per_s": 1e6 + lock.len() as f64, "ops_per_cpu_s": 5e5,
            "wait_p50_ns": 1, "wait_p99_ns": 2, "wait_p999_ns": 3, "wait_max_ns": 4, "jain": 0.9,
        })
    };
    let cell = |threads: u32| {
        json!({
            "threads": threads, "section_ns": 50, "think_ratio": 1.0,
            "results": LOCKS.map(result),
        })
    };
    json!({"machine": machine(), "cells": [cell(2), cell(16)]})
}

/// Writes a report into `folder`.
fn store(folder: &Path, report: &str) -> PathBuf {
    let path = folder.join("report.json");
    std::fs::write(&path, report).expect("a file");
    path
}

#[test]
fn each_kind_of_report_becomes_a_picture() {
    let kinds = [
        (vfs(), vec!["100,000 (1.00x)", "84,153 (2.42x)", "3,825 (6.94x)"]),
        (uncontended(), vec!["9.50 ns, 1.02x, 12 instructions, 8 bytes"]),
        (contended(), vec!["Throughput", "Operations per CPU-second", "50ns", "1.00"]),
    ];
    for (report, words) in kinds {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (store(folder.path(), &report.to_string()), folder.path().join("x.svg"));
        // An older picture is replaced.
        std::fs::write(&to, "older").expect("a file");
        let outcome = succeed(&["plot", text(&from), "-o", text(&to)]);
        assert_eq!(outcome.stdout, "");
        let texts = texts(&std::fs::read_to_string(&to).expect("a picture"));
        let machine = "A <fast> & \"cheap\" CPU · 2 processors · Linux 6.1";
        for word in words.into_iter().chain(LOCKS).chain([machine]) {
            assert!(texts.iter().any(|text| text == word), "no {word:?} in {texts:?}");
        }
        let mut left = entries(folder.path());
        left.sort();
        assert_eq!(left, ["report.json", "x.svg"]);
    }
}

#[test]
fn what_bench_writes_plot_reads() {
    let memory = ["bench", "vfs", "--memory", "--seconds=0.1", "--tasks=2"];
    let grid = ["bench", "contended", "--quick", "--threads=2", "--section=50ns", "--think=0,1x"];
    let pair = ["bench", "uncontended", "--quick"];
    for bench in [&memory[..], &grid, &pair] {
        let report = succeed(&[bench, &["--locks=lockstead,std", "--json"]].concat()).stdout;
        let mut child = lockstead(&["plot", "-", "-o", "-"])
            .stdin(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(report.as_bytes()).expect("plot reads");
        drop(stdin);
        let outcome = finish(child);
        assert_eq!(outcome.status, 0, "{outcome:?}");
        assert!(texts(&outcome.stdout).iter().any(|text| text == "lockstead"));
    }
}

#[test]
fn foreign_and_damaged_files_are_refused() {
    let cut_off = vfs().to_string();
    let mut negative = uncontended();
    negative["limit_ns"] = json!(-1);
    let mut nameless = contended();
    nameless["cells"][1]["results"][0]["lock"] = json!("\u{1}");
    for (report, word) in [
        ("", "JSON"),
        ("\u{feff}[", "JSON"),
        ("{}", "lockstead bench"),
        ("[1, 2]", "lockstead bench"),
        (&cut_off[..cut_off.len() / 2], "cut off"),
        (r#"{"tasks": "many", "results": []}"#, "damaged"),
        (r#"{"cells": []}"#, "no results"),
        (&negative.to_string(), "limit_ns"),
        (&nameless.to_string(), "name"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (store(folder.path(), report), folder.path().join("x.svg"));
        let outcome = run(&["plot", text(&from), "-o", text(&to)]);
        assert_eq!(outcome.status, 2, "{report}: {outcome:?}");
        for word in [word, "FILE.json", text(&from)] {
            assert!(outcome.stderr.contains(word), "no {word:?}: {}", outcome.stderr);
        }
        assert_eq!(entries(folder.path()), ["report.json"]);
    }
}

#[test]
fn places_that_cannot_be_read_or_written_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let from = store(folder.path(), &vfs().to_string());
    let absent = folder.path().join("absent/x.svg");
    for to in [text(&absent), text(folder.path()), "/proc/x.svg", "/", ""] {
        let outcome = run(&["plot", text(&from), "-o", to]);
        assert_eq!(outcome.status, 2, "{to}: {outcome:?}");
        assert!(outcome.stderr.contains("--output"), "{to}: {}", outcome.stderr);
    }
    for from in [text(&absent), text(folder.path())] {
        let outcome = run(&["plot", from, "-o", text(&folder.path().join("x.svg"))]);
        assert_eq!(outcome.status, 2, "{from}: {outcome:?}");
        assert!(outcome.stderr.contains("FILE.json"), "{}", outcome.stderr);
    }
    assert_eq!(entries(folder.path()), ["report.json"]);
}

#[test]
fn a_device_is_written_to_and_not_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let from = store(folder.path(), &vfs().to_string());
    succeed(&["plot", text(&from), "-o", "/dev/null"]);
    assert!(!std::fs::metadata("/dev/null").expect("still there").is_file());
}
