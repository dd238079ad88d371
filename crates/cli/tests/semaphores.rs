//! `lockstead run --semaphores`: what is said of semaphores in all their uses.

mod support;

use serde_json::{Value, json};
use support::{Told, place, places, told};

/// Expects one origin that cannot be a mutex, for these reasons.
fn excluded(told: &Told, reasons: &[&str]) -> Value {
    let origin = told.only();
    assert_eq!(origin["verdict"], "no-mutex", "{origin:#}");
    assert_eq!(Told::reasons(origin), reasons);
    assert!(!origin["next"].as_array().expect("steps").is_empty());
    told.says("Cannot be mutexes");
    assert!(!told.text.contains("Could be mutexes"), "{}", told.text);
    origin.clone()
}

#[test]
fn one_that_serves_as_a_mutex_is_told_with_all_its_places() {
    let Some(told) = told("mutex") else { return };
    let origin = told.only();
    assert_eq!((&origin["verdict"], &origin["name"]), (&"mutex".into(), &"sem".into()));
    assert_eq!((&origin["reasons"], &origin["missing"]), (&json!([]), &Value::Null));
    assert_eq!((&origin["taken"], &origin["given"]), (&302.into(), &302.into()));
    assert_eq!((&origin["refused"], &origin["timed_out"]), (&1.into(), &2.into()));
    assert_eq!((&origin["value"], &origin["highest"]), (&1.into(), &1.into()));
    assert_eq!(origin["several_threads"], true);
    assert_eq!(origin["initialised"], place("mutex", "begins with one"));
    assert_eq!(places(&origin["taken_at"])[0], (place("locker", "locks").as_str(), 300));
    assert_eq!(places(&origin["given_at"])[0], (place("locker", "unlocks").as_str(), 300));
    assert_eq!((&origin["count_reads"], origin["semaphores"].as_u64()), (&1.into(), Some(1)));
    assert_eq!(origin["count_read_at"], place("mutex", "counts"));
    // All three were waited for.
    assert!(origin["contended"].as_u64() >= Some(3), "{origin:#}");
    assert!(origin["waited_ns"].as_u64() >= origin["longest_wait_ns"].as_u64());
    assert!(origin["longest_wait_ns"].as_u64() > Some(0), "{origin:#}");
    for part in [
        "1 semaphore: could be mutexes 1, could not 0, too little seen 0",
        "taken 302 times by several threads, given 302 times",
        "docs/migration.md",
        "trylock",
        "lock_timeout",
        "is_locked",
    ] {
        told.says(part);
    }
}

#[test]
fn one_thread_alone_proves_little() {
    let Some(told) = told("alone") else { return };
    assert_eq!(
        (&told.only()["verdict"], &told.only()["several_threads"]),
        (&"mutex".into(), &false.into())
    );
    told.says("only one thread took it");
}

#[test]
fn those_that_live_shortly_on_stacks_are_all_counted() {
    let Some(told) = told("stack") else { return };
    let origin = told.only();
    assert_eq!((&origin["verdict"], &origin["semaphores"]), (&"mutex".into(), &2000.into()));
    assert_eq!((&origin["taken"], &origin["given"]), (&2000.into(), &2000.into()));
    assert_eq!((&origin["several_threads"], &origin["left_taken"]), (&false.into(), &0.into()));
}

#[test]
fn forked_children_have_those_of_their_parent() {
    let Some(told) = told("forks") else { return };
    let origin = told.only();
    assert_eq!((&origin["verdict"], &origin["semaphores"]), (&"mutex".into(), &4.into()));
    assert_eq!(origin["processes"].as_array().map(Vec::len), Some(4));
    assert_eq!(origin["initialised"], place("forks", "before the fork"));
    assert_eq!((&origin["taken"], &origin["value"]), (&700.into(), &1.into()));
    assert_eq!(origin["several_threads"], true, "in the children");
}

#[test]
fn one_that_begins_with_none_is_a_message() {
    let Some(told) = told("message") else { return };
    let origin = excluded(&told, &["begins-taken", "given-by-another"]);
    assert_eq!(told.act(&origin, "begins-taken")["at"], place("message", "begins with none"));
    let act = told.act(&origin, "given-by-another");
    assert_eq!((&act["at"], &act["count"]), (&place("tells", "tells").into(), &3.into()));
    assert_eq!(act["other"], Value::Null, "nobody had it the first time");
    told.says("with no token");
}

#[test]
fn one_that_begins_with_several_counts() {
    let Some(told) = told("counts") else { return };
    let origin = excluded(&told, &["begins-above-one", "rises-above-one", "taken-twice"]);
    let act = told.act(&origin, "begins-above-one");
    assert_eq!(
        (&act["at"], &act["number"]),
        (&place("counts", "begins with three").into(), &3.into())
    );
    assert_eq!((&origin["value"], &origin["largest_value"]), (&3.into(), &3.into()));
    told.says("with 3 tokens");
    told.says("it counts: keep the semaphore");
}

#[test]
fn one_whose_count_rises_counts() {
    let Some(told) = told("rises") else { return };
    let origin = excluded(&told, &["rises-above-one", "taken-twice"]);
    let act = told.act(&origin, "rises-above-one");
    assert_eq!((&act["at"], &act["number"]), (&place("rises", "rises").into(), &2.into()));
    let act = told.act(&origin, "taken-twice");
    assert_eq!(act["at"], place("rises", "takes the second"));
    assert_eq!(origin["highest"], 2);
}

#[test]
fn one_that_another_thread_gives_names_both() {
    let Some(told) = told("another") else { return };
    let origin = excluded(&told, &["given-by-another"]);
    let act = told.act(&origin, "given-by-another");
    assert_eq!(
        (&act["at"], &act["thread"]["name"]),
        (&place("gives", "gives").into(), &"giver".into())
    );
    assert_eq!(act["other_at"], place("another", "had taken"));
    assert_eq!(act["other"]["name"], "main");
    assert!(act["stack"]["frames"].as_array().is_some_and(|frames| !frames.is_empty()));
    told.says("another thread gives it than the one that took it");
    told.says(&format!("had taken it at {}", place("another", "had taken")));
}

#[test]
fn one_in_a_signal_handler_is_told_whatever_the_thread_was_doing() {
    for (case, signal) in [("handlers", libc_number("USR1")), ("blocked", libc_number("ALRM"))] {
        let Some(told) = told(case) else { return };
        let origin = excluded(&told, &["in-handler"]);
        let act = told.act(&origin, "in-handler");
        assert_eq!(act["at"], place("handler", "in the handler"), "{case}");
        assert_eq!(act["number"], signal, "{case}");
        assert_eq!((&origin["taken"], &origin["given"]), (&2.into(), &1.into()), "{case}");
    }
}

/// Returns the numbers of x86-64 and aarch64, where all this runs.
fn libc_number(name: &str) -> u32 {
    if name == "USR1" { 10 } else { 14 }
}

#[test]
fn those_of_several_processes_are_none() {
    let Some(mapped) = told("shared") else { return };
    let origin = excluded(&mapped, &["process-shared"]);
    // The child, which may have lost sight of its parent, sees it by itself.
    let acts = origin["reasons"][0]["acts"].as_array().expect("acts");
    assert!(acts.iter().any(|act| act["at"] == place("shared", "for several")), "{acts:#?}");
    mapped.says("several processes can use it (2 of them)");
    assert_eq!(origin["processes"].as_array().map(Vec::len), Some(2));
    let Some(opened) = told("named") else { return };
    let origin = excluded(&opened, &["process-shared"]);
    assert_eq!(opened.act(&origin, "process-shared")["at"], place("named", "opens"));
    assert_eq!((&origin["named"], &origin["value"]), (&true.into(), &Value::Null));
    opened.says("opened by name");
}

#[test]
fn one_that_is_gone_while_taken_is_none() {
    let Some(told_of) = told("destroyed") else { return };
    let origin = excluded(&told_of, &["destroyed-taken"]);
    let act = told_of.act(&origin, "destroyed-taken");
    assert_eq!(act["at"], place("destroyed", "destroys"));
    assert_eq!(origin["left_taken"], 1);
    let Some(left) = told("left") else { return };
    let origin = excluded(&left, &["thread-ended"]);
    let act = left.act(&origin, "thread-ended");
    assert_eq!(
        (&act["at"], &act["thread"]["name"]),
        (&place("leaves", "leaves").into(), &"leaves".into())
    );
}

#[test]
fn of_several_of_one_origin_it_is_told_how_many() {
    let Some(told) = told("mixed") else { return };
    let origin = excluded(&told, &["given-by-another"]);
    assert_eq!(
        (&origin["semaphores"], &origin["reasons"][0]["semaphores"]),
        (&5.into(), &1.into())
    );
    assert_eq!(origin["initialised"], place("mixed", "five"));
    told.says("(1 of them)");
}

#[test]
fn one_that_a_child_inherits_with_several_tokens_counts() {
    let Some(told) = told("inherits") else { return };
    let origin = told.origins().iter().find(|origin| origin["taken"] == 1).expect("the child's");
    assert_eq!(origin["verdict"], "no-mutex");
    assert!(Told::reasons(origin).contains(&"rises-above-one"), "{origin:#}");
    assert_eq!(origin["initialised"], place("inherits", "the parent's"));
}

#[test]
fn what_was_hardly_used_is_left_open() {
    for (case, missing, words) in [
        ("unused", "never-used", "it was never used"),
        ("kept", "never-given", "it was never given back"),
        ("unknown", "unknown-threads", "threads used it that are not known"),
    ] {
        let Some(told) = told(case) else { return };
        let origin = told.only();
        assert_eq!((&origin["verdict"], &origin["missing"]), (&"unclear".into(), &missing.into()));
        told.says("Too little was seen");
        told.says(words);
    }
}

#[test]
fn a_program_without_any_is_told_so() {
    let Some(told) = told("none") else { return };
    assert!(told.origins().is_empty());
    told.says("lockstead: the program used no semaphore that can be seen");
    assert_eq!(told.text.lines().count(), 1, "{}", told.text);
}

#[test]
fn nobody_who_did_not_ask_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.json");
    let outcome = crate::common::run(&["run", "--json", crate::common::text(&file), "--", "true"]);
    if outcome.status != 0 {
        eprintln!("skipped: {}", outcome.stderr);
        return;
    }
    let report = std::fs::read_to_string(&file).expect("written");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["semaphores"], Value::Null);
    assert!(!outcome.stderr.contains("semaphore"), "{}", outcome.stderr);
}
