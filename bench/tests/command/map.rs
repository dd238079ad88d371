//! The regime map, from a report and measured; and what the grid comes to.

use crate::common::{documented, entries, run, succeed, text, texts};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Returns a report of four cells, of which the mutex is ahead in two.
fn report() -> Value {
    let row = |lock: &str, rate: f64| {
        json!({"lock": lock, "ops_per_s": rate, "ops_per_cpu_s": rate / 2.0,
            "wait_p999_ns": 1000, "wait_max_ns": 3000, "jain": 0.97})
    };
    let cell = |threads: u32, section: u64, think: f64, ours: f64| {
        json!({"threads": threads, "section_ns": section, "think_ratio": think,
            "results": [row("lockstead", ours), row("std", 100.0), row("a-lock-of-tomorrow", 50.0)]})
    };
    json!({
        "machine": {"cpu": "A <fast> CPU", "processors": 2},
        "cells": [cell(2, 0, 0.0, 50.0), cell(2, 1000, 0.0, 200.0), cell(16, 0, 0.0, 81.0),
            cell(16, 1000, 1.0, 123.0)],
    })
}

fn store(folder: &Path, report: &Value) -> PathBuf {
    let path = folder.join("grid.json");
    std::fs::write(&path, report.to_string()).expect("a file");
    path
}

#[test]
fn a_saved_report_becomes_a_map() {
    let folder = tempfile::tempdir().expect("a folder");
    let from = store(folder.path(), &report());
    let (svg, html) = (folder.path().join("map.svg"), folder.path().join("map.html"));
    let outcome = succeed(&[
        "bench",
        "map",
        "--from",
        text(&from),
        "--svg",
        text(&svg),
        "--html",
        text(&html),
    ]);
    for word in ["Throughput, think 0", "Work per CPU-second, think 1x", "0.50", "1.23", "1us"] {
        assert!(outcome.stdout.contains(word), "no {word:?} in\n{}", outcome.stdout);
    }
    assert!(!outcome.stdout.contains('\u{1b}'), "colour without a terminal");
    let svg = std::fs::read_to_string(&svg).expect("a picture");
    let found = texts(&svg);
    for word in ["0.50", "2.00", "0.81", "1.23", "std", "A <fast> CPU · 2 processors", "1us", "16"]
    {
        assert!(found.iter().any(|text| text == word), "no {word:?} in {found:?}");
    }
    let page = std::fs::read_to_string(&html).expect("a page");
    assert!(page.contains("<svg") && page.contains("not in 2 cells"), "{page}");
    assert!(!page.contains("http://") || page.matches("http://").count() == 1, "fetches nothing");
    let mut left = entries(folder.path());
    left.sort();
    assert_eq!(left, ["grid.json", "map.html", "map.svg"]);
}

#[test]
fn a_map_as_json_has_the_ratios_the_peers_and_the_aims() {
    let folder = tempfile::tempdir().expect("a folder");
    let from = store(folder.path(), &report());
    let args = ["bench", "map", "--json", "--think=0", "--from", text(&from)];
    let map: Value = serde_json::from_str(&succeed(&args).stdout).expect("JSON alone");
    documented(&map);
    assert_eq!(map["lock"], "lockstead");
    assert_eq!(map["peers"], json!(["std", "a-lock-of-tomorrow"]));
    let panels = map["panels"].as_array().expect("panels");
    let measures: Vec<_> = panels.iter().map(|panel| panel["measure"].as_str().unwrap()).collect();
    assert_eq!(measures, ["throughput", "work_per_cpu_s", "longest_wait"]);
    assert_eq!(panels[0]["threads"], json!([2, 16]));
    assert_eq!(panels[0]["sections_ns"], json!([0, 1000]));
    let first = &panels[0]["cells"][0];
    assert_eq!((&first["ratio"], &first["peer"]), (&json!(0.5), &json!("std")));
    let aims = map["summary"]["targets"].as_array().expect("aims");
    let every = aims.iter().find(|aim| aim["target"] == "throughput-every-cell").expect("there");
    assert_eq!(every["reached"], false);
    assert_eq!(every["missed"].as_array().map(Vec::len), Some(2));
    assert_eq!(every["missed"][0]["value"], 0.5);
}

#[test]
fn what_makes_no_map_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut alone = report();
    for cell in alone["cells"].as_array_mut().expect("cells") {
        cell["results"].as_array_mut().expect("rows").truncate(1);
    }
    let vfs = json!({"tasks": 1, "seconds": 1.0, "results":
        [{"lock": "std", "loops_per_s": 1, "cpu_percent": 1, "loops_per_cpu_s": 1}]});
    for (report, extra, words) in [
        (report(), "--think=7x", ["--think", "0, 1x"]),
        (alone, "--json", ["--from", "other mutexes"]),
        (vfs, "--json", ["--from", "contended"]),
        (json!({"cells": 7}), "--json", ["--from", "damaged"]),
        (report(), "--threads=2", ["--from", "--threads"]),
        (report(), "--svg=/absent/x.svg", ["--svg", "/absent"]),
    ] {
        let from = store(folder.path(), &report);
        let outcome = run(&["bench", "map", "--from", text(&from), extra]);
        assert_eq!(outcome.status, 2, "{extra}: {outcome:?}");
        assert_eq!(outcome.stdout, "");
        for word in words {
            assert!(outcome.stderr.contains(word), "no {word:?} in {}", outcome.stderr);
        }
    }
    assert_eq!(run(&["bench", "map", "--from", "/absent/grid.json"]).status, 2);
    assert_eq!(
        run(&["bench", "map", "--locks=std", "--quick", "--threads=1", "--section=0"]).status,
        2
    );
}

#[test]
fn a_measured_map_is_that_of_its_cells() {
    let args = ["bench", "map", "--quick", "--threads=2", "--section=0,1us", "--think=0,1x"];
    let outcome = succeed(&[&args[..], &["--locks=lockstead,std", "--json"]].concat());
    let map: Value = serde_json::from_str(&outcome.stdout).expect("JSON alone");
    documented(&map);
    // A busy machine may leave a lock without a turn in so short a measurement.
    let panels = map["panels"].as_array().expect("panels");
    assert!((1..=6).contains(&panels.len()), "{map}");
    assert!(panels.iter().all(|panel| panel["threads"] == json!([2])));
}

#[test]
fn busy_processes_are_beside_the_run_and_end_with_it() {
    let args = ["bench", "contended", "--quick", "--threads=2", "--section=0", "--think=0"];
    let outcome =
        succeed(&[&args[..], &["--foreign=2", "--locks=lockstead,std", "--json"]].concat());
    let report: Value = serde_json::from_str(&outcome.stdout).expect("JSON alone");
    documented(&report);
    assert_eq!(report["foreign_processes"], 2);
    assert!(report["cells"][0]["rounds_disturbed"].is_u64());
    assert_eq!(report["summary"]["peers"], json!(["std"]));
    for foreign in ["-1", "257", "two"] {
        let outcome = run(&["bench", "contended", &format!("--foreign={foreign}")]);
        assert_eq!(outcome.status, 2, "{outcome:?}");
        assert!(outcome.stderr.contains("from 0 to 256"), "{}", outcome.stderr);
    }
}
