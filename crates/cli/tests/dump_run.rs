//! `lockstead dump` on programs under `lockstead run`: all held locks and all
//! waits, from the ledger.

#[path = "dump/under.rs"]
mod under;

use crate::dump::support::plain;
use serde_json::Value;
use under::{Watched, at, timeless, watch};

fn text(watched: &Watched, waiting: usize, status: i32) -> String {
    let outcome = watched.settled(waiting, &[]);
    assert_eq!((outcome.status, outcome.stderr.as_str()), (status, ""), "{outcome:?}");
    timeless(&plain(&outcome.stdout))
}

#[test]
fn all_held_locks_and_all_waits() {
    let Some(watched) = watch("all", None) else { return };
    let text = text(&watched, 7, 0);
    let expected = format!(
        "process N (held): 12 threads, 7 wait, no deadlock found\n\n\
         waiting\n\
         \x20 thread \"writer\" waits for rwlock table to write, since T\n\
         \x20   held to read by thread \"reader-1\", for T, which is asleep in pause()\n\
         \x20   taken at\n\
         \x20     {reads}\n\
         \x20   held to read by thread \"reader-2\", for T, which is asleep in pause()\n\
         \x20   taken at\n\
         \x20     {reads}\n\
         \x20   waits at\n\
         \x20     {writes}\n\
         \x20 thread \"wants\" waits for mutex wanted, since T\n\
         \x20   held by thread \"keeper\", for T, which is asleep in pause()\n\
         \x20   taken at\n\
         \x20     {keeps}\n\
         \x20   waits at\n\
         \x20     {wants}\n\
         \x20 thread \"wants-timed\" waits for mutex wanted, since T (for T more)\n\
         \x20   held by thread \"keeper\", for T, which is asleep in pause()\n\
         \x20   taken at\n\
         \x20     {keeps}\n\
         \x20   waits at\n\
         \x20     {timed}\n\
         \x20 thread \"joiner\" waits for the end of thread \"keeper\", since T\n\
         \x20   waits at\n\
         \x20     {joins}\n\
         \x20 thread \"sem\" waits for semaphore permits, since T\n\
         \x20   a semaphore has no owner: who will post it cannot be told\n\
         \x20   waits at\n\
         \x20     {sem}\n\
         \x20 thread \"cond\" waits for condition variable ready, since T\n\
         \x20   waits at\n\
         \x20     {cond}\n\
         \x20 thread \"barrier\" waits for barrier gate, since T\n\
         \x20   waits at\n\
         \x20     {barrier}\n\n\
         holding\n\
         \x20 thread \"keeper\" is asleep in pause(), and holds\n\
         \x20   mutex quiet, for T, taken in {quiet}\n\
         \x20   mutex wanted, for T, taken in {keeps}\n\
         \x20   spin lock spin, for T, taken in {spin}\n\
         \x20   mutex from {make}, #1 (recursive), for T, taken in {heaped}\n\
         \x20     {rest}\n\
         \x20     {kept}\n\
         \x20 thread \"reader-1\" is asleep in pause(), and holds\n\
         \x20   rwlock table to read, for T, taken in {reads}\n\
         \x20     {rest}\n\
         \x20     {read}\n\
         \x20 thread \"reader-2\" is asleep in pause(), and holds\n\
         \x20   rwlock table to read, for T, taken in {reads}\n\
         \x20     {rest}\n\
         \x20     {read}\n\n\
         not shown: 2 threads, neither waiting for a lock nor holding one (--all shows them)\n",
        reads = at("reads", "rdlock"),
        writes = at("writes", "wrlock"),
        keeps = at("keeps", "lock(&wanted"),
        quiet = at("keeps", "lock(&quiet"),
        heaped = at("keeps", "lock(heaped"),
        spin = at("keeps", "spin_lock"),
        make = at("make", "mutex_init"),
        wants = at("wants", "lock(&wanted"),
        timed = at("wants_for_a_while", "timedlock"),
        joins = at("joins", "pthread_join"),
        sem = at("waits_sem", "sem_wait"),
        cond = at("waits_cond", "cond_wait"),
        barrier = at("waits_barrier", "barrier_wait"),
        rest = at("rest", "pause"),
        kept = at("keeps", "rest()"),
        read = at("reads", "rest()"),
    );
    assert_eq!(sorted(&text), sorted(&expected), "{text}");
    assert!(!text.contains("mutex guard"), "given back for the wait on the condition: {text}");
    let all = plain(&watched.dump(&["--all"]).stdout);
    assert!(all.contains("\"idle\" is asleep in pause()"), "{all}");
}

/// Returns the lines in an order of their own, for threads come in that of their ids, which wrap
/// around.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn a_spinning_thread_waits() {
    let Some(watched) = watch("spin", None) else { return };
    let text = text(&watched, 8, 0);
    let line = "thread \"spinner\" waits for spin lock spin, since T\n\
                \x20   held by thread \"keeper\", for T";
    assert!(text.contains(line), "{text}");
}

#[test]
fn nobody_holds_a_semaphore_that_no_taker_has_given_back() {
    let Some(watched) = watch("signal", None) else { return };
    let text = text(&watched, 1, 0);
    let line = "thread \"signalled\" waits for semaphore permits, since T\n\
                \x20   a semaphore has no owner: who will post it cannot be told";
    assert!(text.contains(line), "{text}");
    assert!(!text.contains("held by") && !text.contains("\nholding\n"), "{text}");
}

#[test]
fn a_deadlock_and_nobody_else() {
    let Some(watched) = watch("deadlock", None) else { return };
    let text = text(&watched, 2, 3);
    let first = format!("{}\n", at("front_then_heaped", "lock(&front"));
    let cycle = format!(
        "lockstead: DEADLOCK: 2 threads wait for each other\n\
         \x20 thread \"teller\"\n\
         \x20   waits for mutex from {make}, #1 (recursive mutex), since T, at:\n\
         \x20     {for_heaped}\n\
         \x20   holds front (mutex), acquired at:\n\
         \x20     {first}\
         \x20 thread \"auditor\"\n\
         \x20   waits for front (mutex), since T, at:\n\
         \x20     {for_front}\n\
         \x20   holds mutex from {make}, #1 (recursive mutex), acquired at:\n\
         \x20     {heaped}\n\n\
         holding\n",
        make = at("make", "mutex_init"),
        heaped = at("heaped_then_front", "lock(heaped"),
        for_heaped = at("front_then_heaped", "lock(heaped"),
        for_front = at("heaped_then_front", "lock(&front"),
    );
    let found = text.split_once("\n\n").and_then(|(_, rest)| rest.split_once("holding\n"));
    let (told, holding) = found.expect("two parts");
    assert_eq!(sorted(&format!("{told}holding\n")), sorted(&cycle), "{text}");
    assert!(holding.contains("thread \"teller\" waits, as above, and holds\n    mutex front, "));
    assert!(
        holding.contains("thread \"reader\" is asleep in pause(), and holds\n    rwlock table")
    );
    assert!(!text.contains("\"idle\""), "{text}");
}

#[test]
fn the_json_has_places_and_times() {
    let Some(watched) = watch("deadlock", None) else { return };
    watched.settled(2, &[]);
    let report = watched.json();
    crate::common::documented(&report);
    assert_eq!(report["source"], "ledger");
    assert_eq!(report["limits"], serde_json::json!([]));
    let of = |list: &str, name: &str| -> Value {
        let list = report[list].as_array().expect("an array");
        list.iter().find(|item| item["name"] == name).unwrap_or_else(|| panic!("{name}")).clone()
    };
    let (teller, auditor) = (of("threads", "teller"), of("threads", "auditor"));
    let mut members = [teller["tid"].as_u64(), auditor["tid"].as_u64()];
    members.sort_unstable();
    assert_eq!(report["cycles"][0]["verdict"], "deadlock");
    assert_eq!(report["cycles"][0]["threads"], serde_json::json!(members));
    let front = of("locks", "mutex front");
    assert_eq!(front["waiting"], serde_json::json!([auditor["tid"]]));
    assert_eq!(auditor["wait"]["target"]["address"], front["address"]);
    assert!(auditor["wait"]["waited_ns"].as_u64().is_some_and(|ns| ns > 0));
    let holder = &front["holders"][0];
    assert_eq!(holder["thread"], teller["tid"]);
    assert!(holder["held_ns"].as_u64() >= auditor["wait"]["waited_ns"].as_u64());
    let stack = &report["stacks"][holder["acquired"].as_u64().expect("an index") as usize];
    let functions = stack["frames"].as_array().expect("frames").iter();
    let functions: Vec<_> = functions.filter_map(|frame| frame["function"].as_str()).collect();
    assert!(functions.contains(&"front_then_heaped"), "{functions:?}");
    // Each stack once, though two threads hold the table from the same place.
    let stacks = report["stacks"].as_array().expect("an array");
    let distinct: std::collections::HashSet<String> =
        stacks.iter().map(ToString::to_string).collect();
    assert_eq!(distinct.len(), stacks.len());
}

#[test]
fn a_lock_that_its_thread_left_behind() {
    let Some(watched) = watch("leaked", None) else { return };
    let text = text(&watched, 1, 0);
    let expected = format!(
        "thread \"wants\" waits for mutex wanted, since T\n\
         \x20   held by N: that thread has ended without giving it back\n\
         \x20   taken at\n\
         \x20     {}\n",
        at("leaves", "lock(&wanted")
    );
    assert!(text.contains(&expected), "{text}");
}

#[test]
fn threads_that_go_on_are_in_no_cycle() {
    let Some(watched) = watch("lively", None) else { return };
    for _ in 0..20 {
        let report = watched.json();
        assert_eq!(report["cycles"], serde_json::json!([]), "{report:#}");
        let locks = report["locks"].as_array().expect("an array");
        for lock in locks.iter().filter(|lock| lock["held"] == "by") {
            assert!(lock["holders"].as_array().is_some_and(|h| !h.is_empty()), "{report:#}");
            assert!(lock["name"].as_str().is_some_and(|name| name.starts_with("mutex ")));
        }
    }
}

#[test]
fn without_its_command_the_memory_is_shown() {
    let Some(mut watched) = watch("deadlock", None) else { return };
    watched.settled(2, &[]);
    watched.abandon();
    let outcome = watched.settled(2, &[]);
    assert_eq!(outcome.status, 3, "{outcome:?}");
    for words in [
        "the ledger of the process cannot be had",
        "that watched the process has gone",
        "not in it",
    ] {
        assert!(outcome.stderr.contains(words), "{outcome:?}");
    }
    let text = plain(&outcome.stdout);
    assert!(text.contains("thread \"auditor\"\n    waits for front (mutex), at:"), "{text}");
    assert!(!text.contains("taken at") && !text.contains("rwlock table"), "{text}");
}

#[test]
fn a_process_that_forbids_being_read_has_a_ledger_all_the_same() {
    // SAFETY: `geteuid` takes no argument and cannot fail.
    let user = (unsafe { libc::geteuid() } == 0).then_some(65534);
    let Some(watched) = watch("secret", user) else { return };
    let outcome = watched.settled(7, &[]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    for words in ["only what the ledger has is shown", "marked as not to be read"] {
        assert!(outcome.stderr.contains(words), "{outcome:?}");
    }
    let text = timeless(&plain(&outcome.stdout));
    for words in [
        "12 threads, 7 wait, no deadlock found\n".to_owned(),
        "thread \"writer\" waits for rwlock table to write, since T\n".to_owned(),
        format!("mutex quiet, for T, taken in {}\n", at("keeps", "lock(&quiet")),
        format!("    waits at\n      {}\n", at("waits_sem", "sem_wait")),
        "not shown: 2 threads, neither waiting for a lock nor holding one".to_owned(),
    ] {
        assert!(text.contains(&words), "no {words:?} in {text}");
    }
}
