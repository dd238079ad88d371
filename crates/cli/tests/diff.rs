//! `lockstead diff` on reports of a real run, and on ones in which its times are changed.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::browser::{Browser, with_user};
use crate::common::{Outcome, documented, run, text};
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
            // A multiple of which each factor here makes a whole number: a lock may have waited for nanoseconds.
            let ns = (value.as_u64().expect("a time") / 200 + 1) * 200;
            *value = Value::from((ns as f64 * factor * noise) as u64);
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
    let text = |file: &PathBuf| text(file).to_owned();
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

/// Sorts the locks by their change, to and fro, opens what is folded, and measures the page.
const USER: &str = r##"
const seen = { wide: document.documentElement.scrollWidth - document.documentElement.clientWidth };
const locks = document.querySelector("table.sortable");
const order = () => Array.from(locks.tBodies[0].rows).map(row => Number(row.cells[3].dataset.value));
const head = Array.from(locks.tHead.querySelectorAll("button")).find(one => one.textContent === "change");
head.click();
seen.falling = order();
head.click();
seen.rising = order();
seen.dots = locks.querySelectorAll("tbody tr:first-child circle").length;
const link = document.querySelector("details.noise td a");
seen.folded = !link.checkVisibility();
location.hash = link.getAttribute("href");
addEventListener("hashchange", () => {
  seen.opened = link.checkVisibility();
  document.body.setAttribute("data-seen", JSON.stringify(seen));
});
"##;

#[test]
fn the_page_shows_each_run_and_a_browser_sorts_it() {
    let Some(report) = report_of(&[], &[]) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    // Locks that get worse, better, and neither, with names that would end a page.
    let of = |name: &str, factors: [f64; 3]| {
        let mut report = report.clone();
        let process = &mut report["processes"][0];
        process["groups"] = Value::Array(Vec::new());
        let hot = process["locks"][0].clone();
        let lock = |(number, factor): (usize, f64)| {
            let mut lock = hot.clone();
            lock["group"] = Value::Null;
            let letter = ["a", "b", "c"][number];
            lock["name"] = Value::from(format!("{letter}</script><b>\"'&{}", "x".repeat(3000)));
            lock["wait"]["total_ns"] = Value::from((factor * 1e8) as u64);
            lock
        };
        process["locks"] = factors.into_iter().enumerate().map(lock).collect();
        side(folder.path(), name, &report, 1.0)
    };
    let (before, after) = (of("before", [1.0, 3.0, 1.0]), of("after", [2.0, 1.0, 1.001]));
    let [page, used] = ["page.html", "used.html"].map(|name| folder.path().join(name));
    let outcome = diff(&["--html", text(&page), "--fail-on", "10%"], &before, &after);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(outcome.stdout.contains("something got worse"), "the text comes as well: {outcome:?}");
    let written = std::fs::read_to_string(&page).expect("the page was written, all the same");
    assert!(!written.contains("</script><b>"));
    let Some(browser) = Browser::find() else { return };
    std::fs::write(&used, with_user(&written, USER)).expect("written");
    for size in ["1280,900", "390,844"] {
        let seen = browser.seen(&used, size);
        let changes = |order: &str| -> Vec<i64> {
            let all = seen[order].as_array().expect("a list").iter();
            all.map(|change| change.as_i64().expect("a number")).collect()
        };
        let (falling, rising) = (changes("falling"), changes("rising"));
        assert!(falling.len() == 2 && falling[0] > 0 && falling[1] < 0, "{seen}");
        assert_eq!(rising, [falling[1], falling[0]]);
        assert_eq!(seen["dots"], 2 * RUNS, "{seen}");
        assert_eq!((&seen["folded"], &seen["opened"]), (&true.into(), &true.into()), "{seen}");
        assert_eq!(seen["wide"], 0, "{size}: {seen}");
    }
}

#[test]
fn a_page_that_cannot_be_written_is_refused_before_the_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = folder.path().join("report.json");
    std::fs::write(&report, "{}").expect("the folder can be written");
    let report = text(&report);
    for (page, said) in [
        ("-", "standard output has the comparison as text; name a file"),
        (report, "this is one of the reports, which would be lost"),
        ("/nowhere/page.html", "cannot write in /nowhere"),
    ] {
        let outcome = run(&["diff", "--html", page, report, report]);
        assert_eq!(outcome.status, 2, "{page}: {outcome:?}");
        let why = format!("invalid value '{page}' for '--html': ");
        for words in [&*why, said] {
            assert!(outcome.stderr.contains(words), "{words}: {outcome:?}");
        }
    }
    assert_eq!(std::fs::read_to_string(report).expect("it is there"), "{}");
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
