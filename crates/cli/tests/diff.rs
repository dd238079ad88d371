//! `lockstead diff` on reports of a real run, and on ones in which its times are changed.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use crate::common::{Outcome, documented, run};
use crate::report::json as report_of;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The number of runs of a side.
const RUNS: u64 = 4;

/// Writes reports that have the waits of `run`, times `factor` and with a little noise. Returns the
/// files of these reports.
fn side(folder: &Path, name: &str, run: &Value, factor: f64) -> Vec<PathBuf> {
    let written = |number: u64| {
        let noise = 1.0 + 0.01 * number as f64;
        let scale = |value: &mut Value| {
            let ns = value.as_u64().expect("a time") as f64;
            *value = Value::from((ns * factor * noise) as u64);
        };
        let mut run = run.clone();
        let process = &mut run["processes"][0];
        scale(&mut process["waiting"]["waited_ns"]);
        for lock in process["locks"].as_array_mut().expect("locks") {
            scale(&mut lock["wait"]["total_ns"]);
            for site in lock["waited_at"].as_array_mut().expect("places") {
                scale(&mut site["total_ns"]);
            }
        }
        let file = folder.join(format!("{name}-{number}.json"));
        std::fs::write(&file, run.to_string()).expect("the folder can be written");
        file
    };
    (0..RUNS).map(written).collect()
}

/// Compares two sides by `lockstead diff`.
fn diff(options: &[&str], before: &[PathBuf], after: &[PathBuf]) -> Outcome {
    let text = |file: &PathBuf| file.to_str().expect("a plain name").to_owned();
    let mut words: Vec<String> = ["diff"].iter().chain(options).map(|&word| word.into()).collect();
    words.extend(before.iter().map(text));
    words.push("--".into());
    words.extend(after.iter().map(text));
    run(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn what_got_worse_by_more_than_noise_fails_where_asked_to() {
    let Some(report) = report_of(&[], &[]) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let side = |name, factor| side(folder.path(), name, &report, factor);
    let (before, same, more) = (side("before", 1.0), side("same", 1.005), side("more", 1.5));
    let outcome = diff(&["--fail-on", "+10%"], &before, &more);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    for words in ["4 runs before, 4 runs after", "WORSE", "+50.", "something got worse by more"] {
        assert!(outcome.stdout.contains(words), "no {words:?} in {}", outcome.stdout);
    }
    let name = report["processes"][0]["locks"][0]["name"].as_str().expect("a name");
    assert!(outcome.stdout.contains(name), "{name}: {}", outcome.stdout);
    let function = report["processes"][0]["locks"][0]["waited_at"][0]["function"].as_str();
    let place = format!("at {}", function.expect("the program has symbols"));
    assert!(outcome.stdout.contains(&place), "{place}: {}", outcome.stdout);
    // Worse, but no more than is allowed; better; not told from noise.
    assert_eq!(diff(&["--fail-on", "60%"], &before, &more).status, 0);
    let better = diff(&["--fail-on", "0"], &more, &before);
    assert!(better.status == 0 && better.stdout.contains("better"), "{better:?}");
    let noise = diff(&["--fail-on", "0"], &before, &same);
    assert!(noise.status == 0 && noise.stdout.contains("may differ by noise alone"), "{noise:?}");
    assert!(!noise.stdout.contains("->"), "{}", noise.stdout);
    assert!(diff(&["--all"], &before, &same).stdout.contains("->"));
}

#[test]
fn one_run_of_each_side_is_compared_and_no_verdict_given() {
    let Some(report) = report_of(&[], &[]) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let side = |name, factor| side(folder.path(), name, &report, factor);
    let (before, more) = (side("before", 1.0), side("more", 1.5));
    let outcome = diff(&["--json"], &before[..1], &more[..1]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let json: Value = serde_json::from_str(&outcome.stdout).expect("JSON and nothing else");
    documented(&json);
    assert_eq!(json["schema"], "lockstead-diff");
    let locks = json["locks"].as_array().expect("locks");
    assert!(!locks.is_empty() && locks.iter().all(|lock| lock["verdict"] == "too-few-runs"));
    assert!(json["notes"][0].as_str().is_some_and(|note| note.contains("three runs")), "{json}");
    let changed = |lock: &Value| lock["change_percent"].as_f64();
    assert!(locks.iter().filter_map(changed).all(|percent| (percent - 50.0).abs() < 0.1));
    assert_eq!(diff(&["--fail-on", "+10%"], &before[..1], &more[..1]).status, 1);
}

#[test]
fn a_lock_that_a_report_may_have_left_out_is_not_called_new() {
    let Some(mut report) = report_of(&[], &[]) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let after = side(folder.path(), "after", &report, 1.0);
    let process = &mut report["processes"][0];
    let hidden = process["locks"].as_array_mut().expect("locks").remove(0);
    let name = hidden["name"].as_str().expect("a name");
    let verdict = |before: &[PathBuf]| {
        let outcome = diff(&["--json"], before, &after);
        let json: Value = serde_json::from_str(&outcome.stdout).expect("JSON and nothing else");
        let locks = json["locks"].as_array().expect("locks").clone();
        let lock = locks.into_iter().find(|lock| lock["lock"] == name).expect("the lock");
        lock["verdict"].as_str().expect("a word").to_owned()
    };
    assert_eq!(verdict(&side(folder.path(), "without", &report, 1.0)), "worse");
    let most = hidden["wait"]["total_ns"].as_u64().expect("a time") * 2;
    report["processes"][0]["more"]["waited_ns"] = Value::from(most);
    assert_eq!(verdict(&side(folder.path(), "short", &report, 1.0)), "noise");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = folder.path().join("other.json");
    std::fs::write(&other, "{\"schema\": \"lockstead-check\"}").expect("the folder can be written");
    let other = other.to_str().expect("a plain name");
    for (words, status, said) in [
        (&["diff", other][..], 2, "two reports are compared"),
        (&["diff", other, other, other], 2, "two reports are compared"),
        (
            &["diff", other, other],
            1,
            "is a report of lockstead-check, not of `lockstead run --json",
        ),
        (&["diff", "/dev/null", other], 1, "no report of `lockstead run --json FILE`"),
        (&["diff", "/nowhere.json", other], 1, "cannot read /nowhere.json"),
        (&["diff", "--fail-on", "-5%", other, other], 2, "how much more is allowed"),
    ] {
        let outcome = run(words);
        assert_eq!(outcome.status, status, "{words:?}: {outcome:?}");
        assert!(outcome.stderr.contains(said) && outcome.stdout.is_empty(), "{outcome:?}");
    }
}
