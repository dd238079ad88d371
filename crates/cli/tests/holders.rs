//! What the holder of a lock did while others waited, beside what the program itself knows of it.
//!
//! The program reads the clocks of its holders around each section, so that what is compared is the
//! same run, whatever else the machine does. The report has an estimate with a margin that it keeps
//! in 95 of 100 cases; twice that is kept but once in ten thousand.

use crate::common::{documented, text};
use crate::exact::support::{compiled, report};
use serde_json::Value;

const SOURCE: &str = include_str!("holders/known.c");

/// The report on `hot`, and the parts of its holds that its holders ran, and at least slept, in per
/// cent.
struct Known {
    hot: Value,
    inner: Option<Value>,
    ran: f64,
    slept: f64,
    stderr: String,
}

fn known(kind: &str) -> Option<Known> {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled(folder.path(), "known", SOURCE, &[])?;
    let (report, outcome) = report(folder.path(), &[text(&program), kind], &[]);
    documented(&report);
    let numbers = outcome.stdout.split_whitespace().map(|word| word.parse().expect("a number"));
    let [held, ran, slept] = numbers.collect::<Vec<f64>>()[..] else { panic!("{outcome:?}") };
    let locks = report["processes"][0]["locks"].as_array().expect("locks");
    let named = |name: &str| locks.iter().find(|lock| lock["name"] == name).cloned();
    Some(Known {
        hot: named("hot").expect("it was waited for"),
        inner: named("inner"),
        ran: ran * 100.0 / held,
        slept: slept * 100.0 / held,
        stderr: outcome.stderr,
    })
}

fn part(lock: &Value, name: &str) -> f64 {
    lock["holder"]["split"][format!("{name}_percent")].as_f64().expect("a number")
}

/// Returns twice the margin of the parts; `None` if the machine was too busy to look.
fn margin(lock: &Value) -> Option<f64> {
    let holder = &lock["holder"];
    if holder["enough"] == false {
        eprintln!("skipped: {} looks", holder["looks"]);
        return None;
    }
    Some(2.0 * holder["margin_percent"].as_f64().expect("a number"))
}

fn line(remark: &str) -> u64 {
    let remark = format!("/* {remark} */");
    SOURCE.lines().position(|line| line.contains(&remark)).expect("the remark") as u64 + 1
}

#[test]
fn a_holder_that_computes_is_seen_to_run() {
    let Some(Known { hot, ran, stderr, .. }) = known("burn") else { return };
    let Some(margin) = margin(&hot) else { return };
    let seen = part(&hot, "running");
    assert!((seen - ran).abs() <= margin, "{seen} of {ran}, to {margin}: {hot:#}");
    assert!(part(&hot, "asleep") <= margin, "{hot:#}");
    let place = &hot["holder"]["places"][0];
    assert_eq!((&place["acquired"], &place["line"]), (&true.into(), &line("takes").into()));
    assert!(stderr.contains("went into waiting for hot; "), "{stderr}");
}

#[test]
fn a_holder_that_sleeps_is_seen_in_its_call_and_where() {
    let Some(Known { hot, slept, stderr, .. }) = known("sleep") else { return };
    let Some(margin) = margin(&hot) else { return };
    let seen = part(&hot, "asleep");
    // It may have slept longer than it asked for.
    assert!(seen >= slept - margin, "{seen} of {slept}, to {margin}: {hot:#}");
    let place = &hot["holder"]["places"][0];
    assert_eq!((&place["doing"], &place["call"]), (&"asleep".into(), &"clock_nanosleep".into()));
    let at = (&place["function"], &place["line"], &place["acquired"]);
    assert_eq!(at, (&"nap".into(), &line("naps").into(), &false.into()));
    let functions = place["stack"]["frames"].as_array().expect("frames").iter();
    let functions: Vec<&str> = functions.filter_map(|frame| frame["function"].as_str()).collect();
    assert!(functions.contains(&"section") && functions.contains(&"worker"), "{functions:?}");
    assert_eq!(hot["verdict"]["rule"], "asleep", "{hot:#}");
    assert!(stderr.contains("; its holder was in clock_nanosleep for "), "{stderr}");
}

#[test]
fn a_holder_that_waits_itself_leads_to_the_lock_that_matters() {
    let Some(Known { hot, inner, .. }) = known("nest") else { return };
    let inner = inner.expect("it was waited for");
    let Some(margin) = margin(&hot) else { return };
    // All that a holder of `hot` does is to wait for `inner`, and to get it.
    let others = ["asleep", "unknown"].map(|name| part(&hot, name));
    assert!(others.iter().all(|&share| share <= margin), "{hot:#}");
    let waited = |place: &&Value| place["doing"] == "waiting";
    let places = hot["holder"]["places"].as_array().expect("places");
    let place = places.iter().find(waited).unwrap_or_else(|| panic!("{hot:#}"));
    assert_eq!((&place["lock"], &place["line"]), (&"inner".into(), &line("asks").into()));
    assert!(part(&inner, "asleep") > 0.0, "{inner:#}");
    assert_eq!(part(&inner, "waiting"), 0.0, "{inner:#}");
}

#[test]
fn verdicts_can_be_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled(folder.path(), "known", SOURCE, &[]) else { return };
    let arguments = ["run", "--no-verdicts", "--", text(&program), "sleep"];
    let outcome = crate::common::succeed(&arguments);
    assert!(outcome.stderr.contains("      holder "), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("went into waiting"), "{}", outcome.stderr);
}
