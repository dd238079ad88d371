//! The exit report of a real program, as text, JSON and HTML.

pub(crate) mod support;

use crate::common::{Outcome, documented, entries, finish, lockstead, text};
use roxmltree::{Document, ParsingOptions};
use serde_json::Value;
use support::{line, program};

/// Runs `lockstead run OPTIONS -- worst ARGUMENTS` to its end.
fn report(options: &[&str], arguments: &[&str]) -> Option<Outcome> {
    let command = [&["run"], options, &["--", program()?], arguments].concat();
    let outcome = finish(lockstead(&command).spawn().expect("the command starts"));
    assert_eq!(outcome.status, 0, "{outcome:?}");
    Some(outcome)
}

pub(crate) fn json(options: &[&str], arguments: &[&str]) -> Option<Value> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.json");
    report(&[options, &["--no-report", "--json", text(&file)]].concat(), arguments)?;
    let json = std::fs::read_to_string(&file).expect("the report was written");
    assert_eq!(entries(folder.path()), ["report.json"], "and nothing else");
    Some(serde_json::from_str(&json).expect("JSON"))
}

fn named<'v>(list: &'v Value, name: &str) -> &'v Value {
    let found = list
        .as_array()
        .expect("a list")
        .iter()
        .find(|item| item["name"].as_str().is_some_and(|found| found.starts_with(name)));
    found.unwrap_or_else(|| panic!("no {name} in {list:#}"))
}

#[test]
fn the_report_has_the_numbers_of_the_program() {
    let Some(report) = json(&[], &[]) else { return };
    documented(&report);
    assert_eq!((&report["schema"], &report["version"]), (&"lockstead-run".into(), &2.into()));
    assert_eq!(report["findings"], Value::Array(Vec::new()));
    let number = |field: &str| report[field].as_u64().expect("a number");
    assert!(number("processors") > 0);
    assert!(number("cpu_ns") > 0, "it computed");
    // Times of processors and of the clock are not read at once.
    assert!(number("cpu_ns") <= 2 * number("wall_ns") * number("processors"));
    let process = &report["processes"][0];
    assert_eq!(report["processes"].as_array().map(Vec::len), Some(1));
    assert_eq!(process["exit"], "exit status 0");
    assert!(process["exe"].as_str().expect("known").ends_with("/worst"));
    assert_eq!(
        (&process["threads"]["created"], &process["threads"]["peak"]),
        (&4.into(), &4.into())
    );
    let worst = process["threads"]["worst"].as_array().expect("threads");
    assert!(worst.len() >= 3, "{worst:?}");
    named(&process["threads"]["worst"], "worker-1");
    assert_eq!(worst[0]["start"], "worker");

    let hot = &process["locks"][0];
    assert_eq!(
        (&hot["name"], &hot["kind"], &hot["type"]),
        (&"hot".into(), &"mutex".into(), &"mutex".into())
    );
    assert_eq!((&hot["acquisitions"], &hot["contended"]), (&4.into(), &3.into()));
    assert_eq!((&hot["contended_percent"], &hot["wait"]["count"]), (&75.0.into(), &3.into()));
    let number = |value: &Value| value.as_u64().expect("a number");
    // Main slept for 200 ms after all three had gone to sleep.
    assert!(number(&hot["wait"]["total_ns"]) >= 600_000_000, "{hot:#}");
    assert!(number(&hot["wait"]["max_ns"]) >= 200_000_000);
    let buckets = hot["wait"]["histogram"].as_array().expect("buckets");
    assert_eq!(buckets.iter().map(|bucket| number(&bucket["count"])).sum::<u64>(), 3);
    let waited = &hot["waited_at"][0];
    assert_eq!((&waited["function"], &waited["line"]), (&"worker".into(), &line("waits").into()));
    assert_eq!((&waited["count"], &waited["share_percent"]), (&3.into(), &100.0.into()));
    let held = &hot["held_at"][0];
    assert_eq!((&held["function"], &held["line"]), (&"run".into(), &line("holds").into()));
    let frames = held["stack"]["frames"].as_array().expect("frames");
    assert!(frames.iter().any(|frame| frame["function"] == "main"), "{frames:?}");

    let waited = number(&process["waiting"]["waited_ns"]);
    assert!(waited >= number(&hot["wait"]["total_ns"]), "the sum of the threads has the lock's");
    let lived = number(&process["waiting"]["thread_ns"]);
    let percent = process["waiting"]["waited_percent"].as_f64().expect("a number");
    assert!((percent - waited as f64 * 100.0 / lived as f64).abs() < 1e-6);
    // Main slept for 200 ms in no wait that is seen.
    let waiting = |field: &str| number(&process["waiting"][field]);
    let rest = lived - waited - waiting("idled_ns");
    assert!(rest >= waiting("ran_ns") + 150_000_000, "{:#}", process["waiting"]);
    assert!(waiting("ran_ns") > 0 && waiting("ran_ns") <= 2 * number(&report["cpu_ns"]));
    let machine = &report["machine"];
    assert!(machine["date"].as_str().is_some_and(|date| date.ends_with('Z')), "{machine:#}");
    assert!(report["host"].is_string() && machine["kernel"].is_string(), "{machine:#}");
    let filled = named(&process["idle"], "filled");
    assert_eq!(
        (&filled["kind"], &filled["waited_at"][0]["line"]),
        (&"condition".into(), &line("idles").into())
    );
}

#[test]
fn locks_of_the_heap_are_named_by_their_origin_one_by_one_or_together() {
    let Some(single) = json(&["--sort", "acquisitions"], &[]) else { return };
    let origin = format!("from make_lock() at worst.c:{}", line("made"));
    let locks = &single["processes"][0]["locks"];
    for serial in 1..=4 {
        let lock = named(locks, &format!("mutex {origin}, #{serial}"));
        assert_eq!((&lock["acquisitions"], &lock["type"]), (&3.into(), &"recursive mutex".into()));
        assert_eq!(lock["attributes"], serde_json::json!(["recursive"]));
    }
    let Some(classes) = json(&["--by-class", "--sort", "acquisitions"], &[]) else { return };
    let class = named(&classes["processes"][0]["locks"], &format!("mutexes {origin}"));
    assert_eq!((&class["locks"], &class["acquisitions"]), (&4.into(), &12.into()));
    assert_eq!(class["address"], Value::Null);
    let Some(short) = json(&["--top", "1", "--sort", "acquisitions"], &[]) else { return };
    let process = &short["processes"][0];
    assert_eq!(process["locks"].as_array().map(Vec::len), Some(1));
    assert_eq!(process["more"]["locks"], 5);
}

#[test]
fn the_text_goes_to_standard_error_and_has_no_escapes() {
    let Some(outcome) = report(&[], &[]) else { return };
    assert_eq!(outcome.stdout, "ready\n", "it belongs to the program");
    assert!(!outcome.stderr.contains('\x1b'));
    for part in [
        "The worst of 6 locks by total waiting".to_owned(),
        "  1  hot (mutex)".to_owned(),
        format!("waited   100%  worker() at worst.c:{}", line("waits")),
        "worker-2 (worker, ".to_owned(),
        "filled (condition), at run() at worst.c:".to_owned(),
    ] {
        assert!(outcome.stderr.contains(&part), "{part}\n---\n{}", outcome.stderr);
    }
    // The workers hold it, too, for as long as it takes them to give it back.
    let mut words = outcome.stderr.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let place = format!("worst.c:{}", line("holds"));
    let held = words.find(|words| words.first() == Some(&"held") && words.last() == Some(&&*place));
    let share: f64 = held.expect("a line")[1].trim_end_matches('%').parse().expect("a share");
    assert!(share > 90.0, "{}", outcome.stderr);
}

#[test]
fn a_program_without_waits_gets_one_line_or_none() {
    let Some(outcome) = report(&[], &["quiet"]) else { return };
    assert!(
        outcome.stderr.starts_with("lockstead: no thread waited for a lock (1 acquisition, 1 lock")
    );
    assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    let Some(silent) = report(&["--no-report"], &["quiet"]) else { return };
    assert_eq!((silent.stdout.as_str(), silent.stderr.as_str()), ("", ""));
}

#[test]
fn a_forked_child_has_a_report_of_its_own() {
    let Some(report) = json(&[], &["fork"]) else { return };
    let processes = report["processes"].as_array().expect("processes");
    assert_eq!(processes.len(), 2, "{report:#}");
    for process in processes {
        assert_eq!(process["locks"][0]["name"], "hot");
        assert_eq!(process["locks"][0]["contended"], 3);
    }
    let parents: Vec<_> = processes.iter().map(|process| &process["parent"]).collect();
    assert!(processes.iter().any(|process| parents.contains(&&process["pid"])), "{parents:?}");
}

#[test]
fn the_page_stands_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.html");
    if report(&["--html", text(&file)], &[]).is_none() {
        return;
    }
    let page = std::fs::read_to_string(&file).expect("the page was written");
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(&page, options).expect("well-formed");
    let texts: String = document.descendants().filter_map(|node| node.text()).collect();
    for part in ["hot", "worker() at worst.c", "main() at ", "Idle waits", "worker-2", "· Linux "]
    {
        assert!(texts.contains(part), "{part}");
    }
    assert!(document.descendants().filter(|node| node.tag_name().name() == "svg").count() >= 4);
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_the_program_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("no/report");
    let same = folder.path().join("both");
    for (options, why) in [
        (vec!["--json", "-"], "standard output belongs to the program"),
        (vec!["--html", text(&missing)], "cannot write in"),
        (vec!["--json", text(folder.path())], "directory"),
        (vec!["--json", text(&same), "--html", text(&same)], "writes this file"),
    ] {
        let command = [&["run"], options.as_slice(), &["--", "echo", "it ran"]].concat();
        let outcome = crate::common::run(&command);
        assert_eq!(outcome.status, 2, "{outcome:?}");
        assert_eq!(outcome.stdout, "", "{options:?}");
        assert!(outcome.stderr.contains(why), "{why}: {}", outcome.stderr);
    }
    assert_eq!(entries(folder.path()), [""; 0], "no trace is left");
}

#[test]
fn devices_are_written_to_and_files_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.json");
    std::fs::write(&file, "old").expect("written");
    let options = ["--no-report", "--json", text(&file), "--html", "/dev/null"];
    if report(&options, &["quiet"]).is_none() {
        return;
    }
    let json = std::fs::read_to_string(&file).expect("still there");
    assert!(serde_json::from_str::<Value>(&json).is_ok(), "{json}");
}
