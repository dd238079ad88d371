//! Locks of one array or from one place, as one row of the exit report.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::common::{documented, succeed, text};
use crate::programs::{line, program};
use serde_json::{Value, json};
use std::fs::read_to_string;

const SOURCE: &str = "groups.c";

/// Returns the report of the program in C as JSON, as text and as a page.
fn reported(options: &[&str]) -> Option<(Value, String, String)> {
    reported_of(SOURCE, options)
}

fn reported_of(source: &str, options: &[&str]) -> Option<(Value, String, String)> {
    let program = program(source)?;
    let folder = tempfile::tempdir().expect("a folder");
    let [json, page] = ["report.json", "report.html"].map(|name| folder.path().join(name));
    let files = ["--json", text(&json), "--html", text(&page)];
    let command = [&["run"], options, &files, &["--", text(&program)]].concat();
    let said = succeed(&command).stderr;
    let report = serde_json::from_str(&read_to_string(&json).expect("written")).expect("JSON");
    Some((report, said, read_to_string(&page).expect("written")))
}

fn numbers<'v>(locks: &'v Value, field: &str) -> Vec<&'v Value> {
    locks.as_array().expect("a list").iter().map(|lock| &lock[field]).collect()
}

#[test]
fn locks_from_one_place_are_one_row_that_tells_the_hot_one() {
    let Some((report, said, page)) = reported(&["--top", "3"]) else { return };
    documented(&report);
    let process = &report["processes"][0];
    let name = format!("mutex from made() at {}", line(SOURCE, "made"));
    let groups = process["groups"].as_array().expect("a list");
    let at = groups.iter().position(|group| group["name"] == *name).expect(&said);
    let group = &groups[at];
    // The thread that ends it acquires all eight, and the five that wait one each.
    assert_eq!((&group["locks"], &group["acquisitions"]), (&json!(8), &json!(13)), "{group:#}");
    assert_eq!((&group["contended"], &group["wait"]["count"]), (&json!(5), &json!(5)));
    assert_eq!((&group["address"], &group["life"]), (&Value::Null, &json!("several")));
    let spread = &group["spread"];
    assert_eq!((&spread["of"], &spread["even"]), (&json!("waiting"), &json!(false)), "{spread:#}");
    let worst = spread["worst"].as_array().expect("a list");
    assert_eq!(worst.len(), 3, "the others were not waited for: {spread:#}");
    assert_eq!(worst[0]["name"], format!("{name}, #4"));
    assert!(worst[0]["share_percent"].as_f64().expect("a number") > 50.0, "{spread:#}");
    let sum: u64 = worst.iter().filter_map(|lock| lock["waited_ns"].as_u64()).sum();
    assert_eq!(group["wait"]["total_ns"], sum);
    // Each listed lock says of which row it is part, and has no row itself.
    let parts: Vec<u64> =
        numbers(&process["locks"], "group").iter().filter_map(|group| group.as_u64()).collect();
    assert!(parts.contains(&(at as u64)), "{process:#}");
    let hot = process["locks"].as_array().expect("a list").iter();
    let mut hot = hot.filter(|lock| lock["name"] == format!("{name}, #4"));
    let hot = hot.next().expect("listed");
    assert_eq!((&hot["row"], &hot["locks"]), (&Value::Null, &json!(1)));

    let row = said.lines().position(|line| line.contains(&format!("  {name} (8 locks")));
    let below: Vec<&str> = said.lines().skip(row.expect(&said) + 2).take(2).collect();
    assert!(below[0].starts_with("      spread  ") && below[0].contains(" of 8: #4 "), "{said}");
    assert!(below[1].contains("waited   100%  worker() at groups.c:"), "{said}");
    assert!(page.contains("Spread among its locks") && page.contains(&format!("{name}, #4")));
}

#[test]
fn locks_of_one_array_are_one_row_by_the_member_of_its_type() {
    let Some((report, said, _)) = reported(&[]) else { return };
    let groups = report["processes"][0]["groups"].as_array().expect("a list");
    let group = groups.iter().find(|group| group["name"] == "shards[*].mutex").expect(&said);
    assert_eq!((&group["locks"], &group["wait"]["count"]), (&json!(8), &json!(5)), "{group:#}");
    assert_eq!(group["spread"]["worst"][0]["name"], "shards[3].mutex");
    assert!(said.contains("  shards[*].mutex (mutex, 8 locks"), "{said}");
    assert!(said.contains(" of 8: [3] "), "{said}");
}

#[test]
fn mutexes_of_rust_in_an_array_and_in_a_vector_are_a_row_each() {
    let Some((report, said, _)) = reported_of("shards.rs", &[]) else { return };
    let groups = report["processes"][0]["groups"].as_array().expect("a list");
    let used =
        format!("Rust std::sync::Mutex used in shards::count() at {}", line("shards.rs", "counts"));
    for (name, hot) in [("shards::SHARDS[*]", "shards::SHARDS[3]"), (&used, &used)] {
        let group = groups.iter().find(|group| group["name"] == name).expect(&said);
        // Locks that nobody waited for are not seen.
        assert_eq!((&group["locks"], &group["wait"]["count"]), (&json!(3), &json!(5)), "{group:#}");
        let worst = &group["spread"]["worst"][0];
        assert!(worst["name"].as_str().expect("a name").starts_with(hot), "{group:#}");
        assert!(worst["share_percent"].as_f64().expect("a number") > 50.0, "{group:#}");
    }
}

#[test]
fn each_lock_has_a_row_where_that_is_asked_for() {
    let Some((report, said, page)) = reported(&["--each-lock"]) else { return };
    let process = &report["processes"][0];
    assert_eq!((&report["each_lock"], &process["groups"]), (&json!(true), &json!([])));
    let rows: Vec<u64> =
        numbers(&process["locks"], "row").iter().filter_map(|row| row.as_u64()).collect();
    assert_eq!(rows, [1, 2, 3, 4, 5, 6], "{process:#}");
    assert_eq!(process["more"], process["more_rows"]);
    let name = format!("mutex from made() at {}", line(SOURCE, "made"));
    assert!(said.contains(&format!("{name}, #4\n")) && !said.contains("spread"), "{said}");
    assert!(!page.contains("Spread among"));
}

#[test]
fn what_is_spread_is_what_the_rows_are_sorted_by() {
    let Some((report, said, _)) = reported(&["--sort", "acquisitions"]) else { return };
    let groups = &report["processes"][0]["groups"];
    for spread in numbers(groups, "spread") {
        assert_eq!((&spread["of"], &spread["even"]), (&json!("acquisitions"), &json!(true)));
        assert_eq!(spread["worst"].as_array().map(Vec::len), Some(8), "{said}");
    }
    assert!(said.contains("of the acquisitions in "), "{said}");
}
