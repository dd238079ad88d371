//! `lockstead bench rt`: what it reports, and what it says where it may not.

use crate::common::{documented, run};
use serde_json::Value;

#[test]
fn who_lends_its_priority_waits_for_low_alone() {
    let outcome = run(&["bench", "rt", "--rounds=5", "--busy=20", "--json"]);
    if outcome.status == 1 && outcome.stderr.contains("may not have real-time priorities") {
        assert!(outcome.stdout.is_empty(), "{outcome:?}");
        eprintln!("skipped: {}", outcome.stderr.trim());
        return;
    }
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let report: Value = serde_json::from_str(&outcome.stdout).expect("standard output is JSON");
    documented(&report);
    assert_eq!(report["rounds"], 5);
    let busy = report["busy_ns"].as_u64().expect("a number");
    assert_eq!(busy, 20_000_000);
    let rows = report["results"].as_array().expect("rows");
    let names: Vec<_> = rows.iter().filter_map(|row| row["lock"].as_str()).collect();
    assert_eq!(names, ["lockstead-rt", "pthread-pi", "lockstead", "pthread"]);
    for row in rows {
        let median = row["median_wait_ns"].as_u64().expect("a number");
        assert!(row["longest_wait_ns"].as_u64() >= Some(median), "{row}");
        // No matter of speed: without inheritance it waits for all of middle's time, which is
        // processor time and cannot be less.
        if row["inherits"] == false {
            assert!(median >= busy, "{row}");
        }
    }
}

#[test]
fn values_out_of_range_are_refused() {
    for (flag, allowed) in [
        ("--rounds=0", "1..=10000"),
        ("--rounds=10001", "1..=10000"),
        ("--busy=0", "1..=100"),
        ("--busy=101", "1..=100"),
    ] {
        let outcome = run(&["bench", "rt", flag]);
        assert_eq!(outcome.status, 2, "{outcome:?}");
        assert!(outcome.stderr.contains(allowed), "{outcome:?}");
    }
}
