//! Locks that programs make of a mutex and a condition, and what only looks like them.

use crate::common::{documented, text};
use crate::programs::{line, program, skip, under};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::path::Path;

/// Returns the report on the process that `words` run as.
fn report(words: &[&OsStr]) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.json");
    let ended = under(&["--no-report", "--json", text(&file)], words).end();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    let report = std::fs::read_to_string(&file).expect("the report was written");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    documented(&report);
    report["processes"][0].clone()
}

fn of_kind(kind: &str) -> Option<Value> {
    let handmade = program("handmade.c")?;
    Some(report(&[handmade.as_os_str(), kind.as_ref()]))
}

fn conditions(list: &Value) -> Vec<&Value> {
    let all = list.as_array().expect("a list").iter();
    all.filter(|entry| entry["kind"] == "condition").collect()
}

const LOCK: &str = "lock of a condition and a mutex";

#[test]
fn waiting_for_a_lock_of_a_mutex_and_a_condition_is_waiting() {
    for kind in ["lock", "late", "rare"] {
        let Some(process) = of_kind(kind) else { return };
        let [lock] = conditions(&process["locks"])[..] else { panic!("{kind}: {process:#}") };
        assert_eq!(
            (&lock["name"], &lock["type"], &lock["mutex"]),
            (&json!("changed"), &json!(LOCK), &json!("mutex")),
            "{kind}"
        );
        assert!(conditions(&process["idle"]).is_empty(), "{kind}: {:#}", process["idle"]);
        let number = |value: &Value| value.as_u64().expect("a number");
        let waited = number(&lock["wait"]["total_ns"]);
        assert!(waited > 0 && waited <= number(&process["waiting"]["waited_ns"]), "{process:#}");
        assert!(number(&lock["contended"]) > 0, "{lock:#}");
        assert!(number(&lock["acquisitions"]) >= number(&lock["contended"]), "{lock:#}");
        assert!(number(&lock["hold"]["max_ns"]) >= 1_000_000, "it naps with it: {lock:#}");
        for side in ["waited_at", "held_at"] {
            let site = lock[side][0]["site"].as_str().expect("a place");
            assert_eq!(site, format!("take() at {}", line("handmade.c", "takes")), "{kind}");
        }
    }
}

#[test]
fn waiting_for_work_turns_or_permits_is_idle() {
    for kind in ["queue", "shared", "jobs", "turns", "permits"] {
        let Some(process) = of_kind(kind) else { return };
        assert!(conditions(&process["locks"]).is_empty(), "{kind}: {:#}", process["locks"]);
        let idle = conditions(&process["idle"]);
        let changed = idle.iter().find(|entry| entry["name"] == "changed");
        let changed = changed.unwrap_or_else(|| panic!("{kind}: {:#}", process["idle"]));
        assert_eq!((&changed["type"], &changed["mutex"]), (&json!("condition"), &Value::Null));
    }
}

#[test]
fn conditions_that_live_shortly_are_one_row_for_the_place_that_made_them() {
    let Some(process) = of_kind("brief") else { return };
    let [all] = conditions(&process["idle"])[..] else { panic!("{:#}", process["idle"]) };
    let made = format!("conditions from wait_briefly() at {}", line("handmade.c", "made"));
    assert_eq!((&all["name"], &all["life"]), (&json!(made), &json!("several destroyed")));
    assert_eq!((&all["locks"], &all["wait"]["count"]), (&json!(1200), &json!(1200)));
}

/// Two threads that compute until the interpreter's lock has gone from one to the other so often.
const COMPUTE: &str = "
import threading
last, changes = [None], [0]
def compute(me):
    while changes[0] < 60:
        if last[0] != me:
            last[0] = me
            changes[0] += 1
threads = [threading.Thread(target=compute, args=(me,)) for me in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
";

#[test]
fn the_lock_of_pythons_interpreter_is_a_lock() {
    let python = Path::new("/usr/bin/python3");
    if !python.is_file() {
        return skip("no python3");
    }
    let process = report(&[python.as_os_str(), "-c".as_ref(), COMPUTE.as_ref()]);
    let locks = conditions(&process["locks"]);
    let [lock] = locks[..] else { panic!("{process:#}") };
    assert_eq!((&lock["type"], lock["mutex"].is_string()), (&json!(LOCK), true));
    // Two that compute want it all the time.
    let number = |value: &Value| value.as_u64().expect("a number");
    assert!(number(&lock["contended"]) >= 30, "{lock:#}");
    assert!(number(&process["waiting"]["waited_ns"]) >= number(&lock["wait"]["total_ns"]));
}
