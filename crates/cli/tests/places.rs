//! Where a report says that locks were taken, of a program that takes them through
//! functions of its own.

use crate::common::text;
use crate::exact::support::{compiled, report};
use serde_json::Value;

const SOURCE: &str = include_str!("exact/wrapped.c");

/// Returns the number of the line with this remark.
fn line(remark: &str) -> u64 {
    let remark = format!("/* {remark} */");
    SOURCE.lines().position(|line| line.contains(&remark)).expect("there is one") as u64 + 1
}

/// Returns function, line, wrapper and share, largest first.
fn places(sites: &Value) -> Vec<(&str, u64, Option<&str>, f64)> {
    let sites = sites.as_array().expect("places").iter();
    let place = |site: &'_ Value| {
        let share = site["share_percent"].as_f64().expect("a number");
        (site["line"].as_u64().expect("known"), share)
    };
    sites
        .map(|site| {
            let (line, share) = place(site);
            (site["function"].as_str().expect("known"), line, site["through"].as_str(), share)
        })
        .collect()
}

/// Returns a function and the time for which it held the lock by the program's own clock.
fn of_itself(line: &str) -> Option<(&str, f64)> {
    let (name, time) = line.split_once(' ')?;
    Some((name, time.parse().ok()?))
}

#[test]
fn a_lock_that_is_taken_through_a_wrapper_is_held_by_whoever_called_that() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled(folder.path(), "wrapped", SOURCE, &[]) else { return };
    let page = folder.path().join("page.html");
    let (report, said) = report(folder.path(), &[text(&program)], &[]);
    let lock = &report["processes"][0]["locks"][0];
    assert_eq!(lock["name"], "m");
    let held = places(&lock["held_at"]);
    assert_eq!(held.len(), 3, "{held:?}");
    let by = Some("my_lock()");
    assert_eq!((held[0].0, held[0].1, held[0].2), ("dear", line("dear"), by));
    assert_eq!((held[1].0, held[1].1, held[1].2), ("get", line("get"), None));
    assert_eq!((held[2].0, held[2].1, held[2].2), ("cheap", line("cheap"), by));
    // About 120 holds of 4 ms, 120 of 2, 40 of 1, and what the program says that they were.
    let own: Vec<(&str, f64)> = said.stdout.lines().filter_map(of_itself).collect();
    let all: f64 = own.iter().map(|(_, time)| time).sum();
    assert_eq!(own.len(), 3, "{said:?}");
    for (place, (name, time)) in held.iter().zip(&own) {
        assert_eq!(place.0, *name);
        assert!((place.3 - 100.0 * time / all).abs() < 3.0, "{held:?}, {own:?}");
    }
    let callers: Vec<_> =
        lock["held_at"][0]["callers"].as_array().expect("callers").iter().collect();
    let names: Vec<_> = callers.iter().map(|caller| caller["function"].as_str()).collect();
    assert_eq!(names, [Some("often"), Some("rarely")], "80 and 40 of them");
    let shares: f64 = callers.iter().filter_map(|caller| caller["share_percent"].as_f64()).sum();
    assert!((shares - held[0].3).abs() < 0.1, "they share what the place has");
    for waited in places(&lock["waited_at"]) {
        assert!(["dear", "get", "cheap"].contains(&waited.0), "{waited:?}");
    }
    for part in [
        format!("dear() at wrapped.c:{}, by my_lock()", line("dear")),
        format!("from often() at wrapped.c:{}", line("often")),
        format!("from rarely() at wrapped.c:{}", line("rarely")),
        format!("get() at wrapped.c:{}", line("get")),
    ] {
        assert!(said.stderr.contains(&part), "{part}\n---\n{}", said.stderr);
    }
    let command = ["run", "--no-report", "--html", text(&page), "--", text(&program)];
    crate::common::succeed(&command);
    let page = std::fs::read_to_string(&page).expect("the page was written");
    assert!(page.contains(", by my_lock()") && page.contains("from <span class=\"site\">often()"));
}
