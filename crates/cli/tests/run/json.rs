//! Findings in the report as JSON.

use crate::common::{PAUSE, documented, text};
use crate::programs::{line, program, under};
use serde_json::{Value, json};

/// Returns what `lockstead run FLAGS --json FILE -- SOURCE ARGUMENTS` finds, and its standard
/// error.
fn findings(flags: &[&str], source: &str, argument: &str) -> Option<(Vec<Value>, String)> {
    let program = program(source)?;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.json");
    let flags = [flags, &["--no-report", "--json", text(&file)]].concat();
    let running = under(&flags, &[program.as_os_str(), argument.as_ref()]);
    running.expect("lockstead: ", 1);
    let ended = running.terminate();
    let report = std::fs::read_to_string(&file).expect("the report was written");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    documented(&report);
    let found = report["findings"].as_array().expect("a list").clone();
    for finding in &found {
        assert_eq!(finding["pid"], report["processes"][0]["pid"]);
        let text = finding["text"].as_str().expect("text");
        assert!(ended.stderr.contains(text), "{text}\n---\n{}", ended.stderr);
        assert_eq!(finding["title"].as_str(), text.lines().next());
        assert!(finding["at_ns"].as_u64().is_some_and(|at| at > 0), "{finding:#}");
    }
    Some((found, ended.stderr))
}

/// Returns `function:line` of the first frame of the program.
fn site(stack: &Value) -> String {
    let frames = stack["frames"].as_array().expect("frames");
    let frame = frames.iter().find(|frame| frame["line"].is_u64()).expect("a place");
    format!(
        "{}() at {}:{}",
        frame["function"].as_str().expect("a name"),
        frame["file"].as_str().and_then(|file| file.rsplit('/').next()).expect("a file"),
        frame["line"]
    )
}

fn at(source: &str, function: &str, mark: &str) -> String {
    format!("{function}() at {}", line(source, mark))
}

#[test]
fn a_deadlock_has_its_threads_in_the_order_of_waiting() {
    let Some((found, stderr)) = findings(&[], "abba.c", "") else { return };
    assert_eq!(found.len(), 1, "{stderr}");
    assert_eq!(found[0]["kind"], "deadlock");
    let threads = found[0]["threads"].as_array().expect("threads");
    assert_eq!(threads.len(), 2, "{threads:#?}");
    let expected = [
        ("transfer", "journal", "lock_journal", "journal", "accounts", "lock_accounts", "accounts"),
        ("audit", "accounts", "lock_accounts", "accounts", "journal", "lock_journal", "journal"),
    ];
    for (name, wants, waits_in, waits_mark, has, holds_in, holds_mark) in expected {
        let at_ = |function: &str, mark: &str| at("abba.c", function, mark);
        let place = threads.iter().position(|thread| thread["name"] == name).expect("the thread");
        let (thread, next) = (&threads[place], &threads[1 - place]);
        let (waits, holds) = (&thread["waits"], &thread["holds"]);
        assert!(thread["tid"].is_u64() && thread["doing"].is_null(), "{thread:#}");
        assert_eq!(thread["ended"], false);
        assert_eq!((&waits["how"], &waits["timed"]), (&json!("mutex"), &json!(false)));
        assert_eq!((&waits["thread"], &waits["behind_writer"]), (&Value::Null, &json!(false)));
        assert_eq!(
            (&waits["lock"]["name"], &waits["lock"]["type"]),
            (&json!(wants), &json!("mutex"))
        );
        assert_eq!(waits["lock"]["address"], next["holds"]["lock"]["address"]);
        assert!(waits["waited_ns"].is_u64(), "{waits:#}");
        assert_eq!(site(&waits["stack"]), at_(waits_in, waits_mark));
        assert_eq!((&holds["lock"]["name"], &holds["shared"]), (&json!(has), &json!(false)));
        assert_eq!(site(&holds["stack"]), at_(holds_in, holds_mark));
    }
}

#[test]
fn a_cycle_of_readers_and_joins_says_how_each_waits() {
    let Some((found, _)) = findings(&[], "deadlocks.c", "join") else { return };
    let threads = found[0]["threads"].as_array().expect("threads");
    let of = |name: &str| threads.iter().find(|thread| thread["name"] == name).expect("the thread");
    let (joiner, worker) = (of("joiner"), of("worker"));
    assert_eq!((&joiner["waits"]["how"], &joiner["waits"]["lock"]), (&json!("join"), &Value::Null));
    assert_eq!(joiner["waits"]["thread"], worker["tid"]);
    assert_eq!(worker["holds"], Value::Null);
    let Some((found, _)) = findings(&[], "deadlocks.c", "again") else { return };
    let threads = found[0]["threads"].as_array().expect("threads");
    let of = |name: &str| threads.iter().find(|thread| thread["name"] == name).expect("the thread");
    let (reader, writer) = (of("reader"), of("writer"));
    assert_eq!(
        (&reader["waits"]["how"], &writer["waits"]["how"]),
        (&json!("read"), &json!("write"))
    );
    assert_eq!(reader["waits"]["behind_writer"], true);
    assert_eq!(reader["holds"]["shared"], true);
    assert_eq!(reader["holds"]["lock"]["type"], "writers-first rwlock");
}

#[test]
fn a_wait_that_lasts_has_its_owners_and_what_they_do() {
    let flags = ["--watch", "150ms"];
    let Some((found, stderr)) = findings(&flags, "owners.c", "waits") else { return };
    let blocked = found.iter().find(|found| found["threads"][0]["name"] == "wants");
    let blocked = blocked.unwrap_or_else(|| panic!("{stderr}"));
    assert_eq!(blocked["kind"], "blocked");
    let threads = blocked["threads"].as_array().expect("threads");
    let names: Vec<_> = threads.iter().map(|thread| &thread["name"]).collect();
    assert_eq!(names, ["wants", "owner", "last"]);
    let (wants, owner, last) = (&threads[0], &threads[1], &threads[2]);
    assert!(wants["waits"]["waited_ns"].as_u64().is_some_and(|ns| ns >= 150_000_000), "{wants:#}");
    assert_eq!(
        (&wants["waits"]["lock"]["name"], &wants["holds"]),
        (&json!("wanted"), &Value::Null)
    );
    assert_eq!(
        (&owner["holds"]["lock"]["name"], &owner["waits"]["lock"]["name"]),
        (&json!("wanted"), &json!("other"))
    );
    assert_eq!(site(&owner["holds"]["stack"]), at("owners.c", "waits", "waits-holds"));
    assert_eq!(owner["doing"], Value::Null);
    assert_eq!(last["holds"]["lock"]["name"], "other");
    assert_eq!(last["doing"]["what"], format!("is now in the system call {PAUSE}"));
    assert!(last["doing"]["stack"]["frames"].as_array().is_some_and(|frames| !frames.is_empty()));
}

/// Eight at a time: more than a thousand of them use the records of those before them.
#[test]
fn threads_that_ran_one_after_the_other_are_no_peak() {
    let Some(quiet) = program("quiet.c") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.json");
    let flags = ["--no-report", "--json", text(&file)];
    under(&flags, &[quiet.as_os_str(), "threads".as_ref()]).end();
    let report = std::fs::read_to_string(&file).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let threads = &report["processes"][0]["threads"];
    assert_eq!(threads["created"], 2001);
    assert!((2..=9).contains(&threads["peak"].as_u64().expect("a number")), "{threads:#}");
}

#[test]
fn each_kind_of_threads_has_its_part_in_each_lock() {
    let Some(program) = program("hands.c") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.json");
    let flags = ["--no-report", "--sort", "acquisitions", "--json", text(&file)];
    assert!(under(&flags, &[program.as_os_str()]).end().status.success());
    let report: Value =
        serde_json::from_str(&std::fs::read_to_string(&file).expect("a report")).expect("JSON");
    documented(&report);
    let process = &report["processes"][0];
    let kinds = process["threads"]["kinds"].as_array().expect("kinds");
    let mut kinds: Vec<_> = kinds.iter().map(|kind| (&kind["start"], &kind["threads"])).collect();
    kinds.sort_by_key(|(start, _)| start.to_string());
    let expected = [(json!("consumer"), json!(2)), (json!("main"), json!(1))];
    let expected = [&expected[..], &[(json!("producer"), json!(1))]].concat();
    assert!(kinds.iter().copied().eq(expected.iter().map(|(a, b)| (a, b))), "{kinds:?}");

    let all =
        || ["locks", "idle"].iter().flat_map(|list| process[list].as_array().expect("a list"));
    let object = |name: &str| all().find(|object| object["name"] == name).expect("it was used");
    let count = |object: &Value, start: &str, what: &str| {
        let roles = object["roles"].as_array().expect("roles");
        let role = roles.iter().find(|role| role["start"] == start).expect("it took part");
        role[what].as_u64().expect("a number")
    };
    let (store, filled, emptied) = (object("store"), object("filled"), object("emptied"));
    assert_eq!(store["acquisitions"], 3, "what the conditions take back counts there");
    // The producer signals each item and waits for none; whoever takes the last one signals once more,
    // Each consumer wakes the other one when all are there.
    assert_eq!([count(filled, "consumer", "gives"), count(emptied, "producer", "gives")], [2, 0]);
    // And signals for each item; as it begins, too, perhaps before anybody has waited: not all of those count.
    let signals = count(emptied, "consumer", "gives");
    assert!((100..=102).contains(&signals), "{signals}");
    // Each holds the mutex once by itself, and once more after each wait.
    for (start, by_itself, waits_at) in [("producer", 1, emptied), ("consumer", 2, filled)] {
        let (holds, waits) = (count(store, start, "holds"), count(waits_at, start, "waits"));
        assert!(waits > 0 && holds == by_itself + waits, "{start}: {holds} holds, {waits} waits");
    }
}
