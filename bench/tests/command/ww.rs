//! `lockstead bench ww`: what it reports, and what it refuses.

use crate::common::{documented, run};
use serde_json::Value;

const SCHEMES: [&str; 5] = ["wound-wait", "wait-die", "order", "order-std", "try-std"];

fn short(extra: &[&str]) -> Vec<String> {
    let cell = ["--threads=3", "--take=2", "--locks=3", "--section=0,2us", "--quick"];
    ["bench", "ww"].iter().chain(&cell).chain(extra).map(ToString::to_string).collect()
}

fn with(extra: &[&str]) -> crate::common::Outcome {
    let args = short(extra);
    run(&args.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn every_scheme_has_its_turns_in_every_cell() {
    let outcome = with(&["--json"]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let report: Value = serde_json::from_str(&outcome.stdout).expect("standard output is JSON");
    documented(&report);
    let cells = report["cells"].as_array().expect("cells");
    let places: Vec<_> = cells.iter().map(|cell| cell["section_ns"].as_u64()).collect();
    assert_eq!(places, [Some(0), Some(2_000)]);
    for cell in cells {
        let asked = [&cell["threads"], &cell["take"], &cell["locks"]].map(Value::as_u64);
        assert_eq!(asked, [3, 2, 3].map(Some));
        let rows = cell["results"].as_array().expect("rows");
        let names: Vec<_> = rows.iter().filter_map(|row| row["scheme"].as_str()).collect();
        assert_eq!(names, SCHEMES);
        for row in rows {
            let number = |field: &str| row[field].as_f64().expect("a number");
            assert!(number("turn_max_ns") >= number("turn_p999_ns"), "{row}");
            // Of two locks a turn that is refused had taken one.
            assert_eq!(number("refusals_per_turn"), number("retries_per_turn"), "{row}");
            if row["scheme"].as_str().is_some_and(|name| name.starts_with("order")) {
                assert_eq!(number("refusals_per_turn"), 0.0, "{row}");
            }
        }
    }
}

#[test]
fn the_table_has_a_row_for_each_scheme() {
    let outcome = with(&["--schemes=try-std,wait-die"]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let starts = |name: &str| {
        outcome.stdout.lines().filter(|line| line.trim_start().starts_with(name)).count()
    };
    assert_eq!(SCHEMES.map(starts), [0, 2, 0, 0, 2], "{}", outcome.stdout);
    assert!(outcome.stdout.contains("3 threads, 2 of 3 locks, section 2us"), "{outcome:?}");
}

#[test]
fn values_out_of_range_are_refused() {
    for (flag, allowed) in [
        ("--take=0", "1 to 16"),
        ("--take=17", "1 to 16"),
        ("--take=5", "1 to 3"),
        ("--locks=0", "1 to 4096"),
        ("--schemes=order,die", "wound-wait, wait-die, order"),
    ] {
        let args = ["bench", "ww", "--threads=1", "--locks=3", flag];
        let args =
            if flag.starts_with("--locks") { vec!["bench", "ww", flag] } else { args.to_vec() };
        let outcome = run(&args);
        assert_eq!(outcome.status, 2, "{outcome:?}");
        assert!(outcome.stderr.contains(allowed), "{outcome:?}");
    }
}
