//! `lockstead whatif`: programs whose threads have different parts, what would help them, and the
//! gate.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn whatif(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_lockstead-bench");
    Command::new(program).arg("whatif").args(arguments).output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn write(folder: &Path, name: &str, report: &Value) -> PathBuf {
    let file = folder.join(name);
    std::fs::write(&file, report.to_string()).expect("written");
    file
}

fn role(start: &str, of: &[(&str, u64)]) -> Value {
    let mut role = json!({"start": start, "holds": 0, "held_ns": 0, "shared_holds": 0, "shared_ns": 0,
        "waits": 0, "waited_ns": 0, "gives": 0});
    for &(name, value) in of {
        role[name] = value.into();
    }
    role
}

fn lock(name: &str, kind: &str, acquisitions: u64, held: u64, roles: &[Value]) -> Value {
    json!({"name": name, "kind": kind, "locks": 1, "acquisitions": acquisitions, "timed_out": 0,
        "hold": {"count": acquisitions, "total_ns": held}, "wait": {"total_ns": 0}, "roles": roles})
}

fn kind(start: &str, threads: u64, ran: u64) -> Value {
    json!({"start": start, "threads": threads, "peak": threads, "lived_ns": threads * 1_000_000_000,
        "waited_ns": 0, "idled_ns": 0, "ran_ns": ran, "queued_ns": threads * 1_000_000_000 - ran})
}

fn report(kinds: &[Value], locks: &[Value], idle: &[Value]) -> Value {
    let ran: u64 = kinds.iter().filter_map(|kind| kind["ran_ns"].as_u64()).sum();
    json!({"schema": "lockstead-run", "processors": 1, "cpu_ns": ran, "wall_ns": 1_000_000_000_u64,
        "processes": [{"lived_ns": 1_000_000_000_u64, "threads": {"peak": 4, "kinds": kinds},
        "waiting": {"thread_ns": 4_000_000_000_u64, "waited_ns": 0, "idled_ns": 0, "ran_ns": ran},
        "locks": locks, "idle": idle}]})
}

/// Returns a second of one processor: a producer's 10 µs and a consumer's 40 for each of 20,000 items.
fn queue(gives: &[Value], producers: &str) -> Value {
    let kinds = [kind(producers, 1, 200_000_000), kind("consumer", 3, 800_000_000)];
    let roles = [role(producers, &[("holds", 20_000)]), role("consumer", &[("holds", 20_000)])];
    let filled = lock("filled", "condition", 0, 0, gives);
    report(&kinds, &[lock("queue.lock", "mutex", 40_000, 4_000_000, &roles)], &[filled])
}

fn points(file: &Path, more: &[&str]) -> Value {
    let name = file.to_str().expect("a plain name");
    let base = [name, "--json", "--seeds", "2", "--no-advice"];
    let machine: &[&str] = if more.contains(&"--machine") { &[] } else { &["--machine", "vm-2"] };
    let output = whatif(&[&base[..], machine, more].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn a_queue_is_what_lies_between_those_who_give_and_those_who_wait() {
    let folder = tempfile::tempdir().expect("a folder");
    let gives = [role("producer", &[("gives", 20_000)]), role("consumer", &[("waits", 900)])];
    let file = write(folder.path(), "queue.json", &queue(&gives, "producer"));
    let found = points(&file, &[]);
    assert_eq!(found["represented"][0]["gives"], "producer", "{found}");
    assert_eq!(found["represented"][0]["takes"], "consumer");
    let jobs =
        |at: usize| found["points"][at]["figures"]["jobs_per_second"].as_f64().expect("some");
    // 20,000 with one processor, and nearly twice that with two.
    assert!(jobs(0) > 17_000.0 && jobs(0) < 21_000.0, "{found}");
    assert!(jobs(1) > 32_000.0 && jobs(1) < 42_000.0, "{found}");
    let recorded = &found["recorded"];
    assert_eq!((&recorded["cores"], &recorded["jobs_per_second"]), (&1.into(), &20_000.0.into()));
    assert!(recorded["error_percent"].as_f64().expect("a number").abs() < 15.0, "{recorded}");
    // Many consumers wait for one producer, who makes 100,000 a second at most.
    let many = points(&file, &["--machine", "epyc-2x64", "--tasks", "60", "--cores", "64"]);
    let most = many["points"][0]["figures"]["jobs_per_second"].as_f64().expect("a number");
    assert!(most > 60_000.0 && most < 101_000.0, "{many}");
}

#[test]
fn what_is_no_queue_has_no_prediction() {
    let folder = tempfile::tempdir().expect("a folder");
    let ask = |roles: &[Value]| {
        let mut report = queue(roles, "producer");
        report["processes"][0]["idle"][0]["wait"]["total_ns"] = 900_000_000_u64.into();
        points(&write(folder.path(), "x.json", &report), &[])["points"][0].clone()
    };
    let both = [role("consumer", &[("gives", 20_000), ("waits", 900)])];
    let point = ask(&both);
    let why = point["not_predictable"].as_str().expect("a reason");
    assert!(why.contains("wait for each other") && why.contains("`filled` (22.5 %"), "{why}");
    assert!(point["figures"].is_null());
    let three = [role("a", &[("gives", 9)]), role("b", &[("gives", 9)]), both[0].clone()];
    assert!(ask(&three)["not_predictable"].is_string());
    // A recording whose simulation makes something else.
    let gives = [role("producer", &[("gives", 20_000)]), role("consumer", &[("waits", 900)])];
    let mut slow = queue(&gives, "producer");
    for kind in slow["processes"][0]["threads"]["kinds"].as_array_mut().expect("kinds") {
        kind["lived_ns"] = (kind["peak"].as_u64().expect("a number") * 10_000_000_000).into();
        kind["queued_ns"] = (kind["peak"].as_u64().expect("a number") * 9_900_000_000).into();
    }
    let found = points(&write(folder.path(), "slow.json", &slow), &[]);
    let why = found["points"][0]["not_predictable"].as_str().expect("a reason");
    assert!(why.contains("simulated as it was recorded"), "{why}");
}

/// Returns a second of threads that hold a lock for such a section of each 10 µs.
fn hot(section: u64, kind_of_lock: &str) -> Value {
    let of = match kind_of_lock {
        "rwlock" => [("shared_holds", 100_000), ("shared_ns", 100_000 * section)],
        _ => [("holds", 100_000), ("held_ns", 100_000 * section)],
    };
    let roles = [role("worker", &of)];
    let hot = lock("hot", kind_of_lock, 100_000, 100_000 * section, &roles);
    report(&[kind("worker", 4, 1_000_000_000)], &[hot], &[])
}

#[test]
fn readers_scale_and_owners_do_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let most = |kind: &str| {
        let file = write(folder.path(), "hot.json", &hot(5000, kind));
        let found = points(&file, &["--machine", "epyc-2x64", "--cores", "16"]);
        found["points"][0]["figures"]["jobs_per_second"].as_f64().expect("a number")
    };
    let (owners, readers) = (most("mutex"), most("rwlock"));
    assert!(owners < 210_000.0, "5 µs of each job are in one lock: {owners}");
    assert!(readers > 800_000.0, "{readers}");
}

#[test]
fn what_would_help_is_ranked_with_its_range() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = write(folder.path(), "hot.json", &hot(5000, "mutex"));
    let name = file.to_str().expect("a plain name");
    let page = folder.path().join("page.html");
    let base = [name, "--machine", "epyc-2x64", "--cores", "1,4,16", "--seeds", "3"];
    let page_name = page.to_str().expect("a plain name");
    let output = whatif(&[&base[..], &["--json", "--html", page_name]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let advice = found["advice"].as_array().expect("a list");
    let gain = |one: &Value| one["gains"].as_array().expect("gains").last().expect("one").clone();
    let percent = |one: &Value| gain(one)["gain_percent"].as_f64().expect("a number");
    assert!(advice.windows(2).all(|pair| percent(&pair[0]) >= percent(&pair[1])), "{advice:?}");
    let of = |words: &str| {
        let found =
            advice.iter().find(|one| one["change"].as_str().is_some_and(|c| c.contains(words)));
        percent(found.unwrap_or_else(|| panic!("{words}: {advice:?}")))
    };
    // Half of the section: twice the throughput of a lock that everybody waits for, but for the
    // time in which it changes hands.
    assert!((40.0..130.0).contains(&of("halved")), "{advice:?}");
    assert!(of("split in 8") > 100.0 && of("taken outside") > 100.0, "{advice:?}");
    for one in advice {
        let gain = gain(one);
        assert!(gain["lowest"].as_f64() <= gain["gain_percent"].as_f64(), "{gain}");
        assert!(gain["highest"].as_f64() >= gain["gain_percent"].as_f64(), "{gain}");
    }
    let law = &found["laws"][0];
    let serial = law["contention"].as_f64().expect("a number");
    assert!((0.2..1.0).contains(&serial), "half of each job is serial, and handing over is: {law}");
    let page = std::fs::read_to_string(&page).expect("written");
    assert!(page.contains("law of present") && page.contains("what would help"), "{page}");
}

#[test]
fn the_gate_fails_when_the_throughput_falls_by_more_than_is_allowed() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = write(folder.path(), "base.json", &hot(5000, "mutex"));
    let slower = write(folder.path(), "slower.json", &hot(7000, "mutex"));
    let name = |file: &Path| file.to_str().expect("a plain name").to_owned();
    let ask = |profile: &Path, more: &[&str]| {
        let (profile, base) = (name(profile), name(&base));
        let fixed = ["--machine", "epyc-2x64", "--cores", "16", "--seeds", "3", "--gate"];
        whatif(&[&[profile.as_str()], &fixed[..], &[base.as_str()], more].concat())
    };
    assert_eq!(ask(&base, &[]).status.code(), Some(0));
    let output = ask(&slower, &["--drop", "5", "--json"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("falls by"), "{}", text(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["failed"], true);
    let change = found["change_percent"].as_f64().expect("a number");
    assert!((-30.0..-5.0).contains(&change), "5 µs have become 7: {change}");
    assert_eq!(ask(&slower, &["--drop", "60"]).status.code(), Some(0));
    // Another lock is the busiest: nobody knows what a job is.
    let mut other = hot(5000, "mutex");
    other["processes"][0]["locks"][0]["name"] = "cold".into();
    let other = write(folder.path(), "other.json", &other);
    let output = ask(&other, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--work"), "{}", text(&output.stderr));
    assert_eq!(ask(&other, &["--work", "1000,1000"]).status.code(), Some(0));
    assert_eq!(ask(&other, &["--work", "1000,500"]).status.code(), Some(3));
}

#[test]
fn a_profile_becomes_a_workload() {
    let folder = tempfile::tempdir().expect("a folder");
    let gives = [role("producer", &[("gives", 20_000)]), role("consumer", &[("waits", 900)])];
    let file = write(folder.path(), "queue.json", &queue(&gives, "producer"));
    let workload = folder.path().join("queue.toml");
    let name = workload.to_str().expect("a plain name");
    points(&file, &["--workload", name]);
    let program = env!("CARGO_BIN_EXE_lockstead-bench");
    let arguments =
        ["sim", "run", "--machine", "vm-2", "--lock", "futex", "--json", "--workload", name];
    let output = Command::new(program).args(arguments).output().expect("it starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(found["jobs_per_second"].as_f64().expect("a number") > 1000.0, "{found}");
}
