//! Programs in Python that hang, with each interpreter that there is.

use crate::common::run;
use crate::programs::{Running, skip, start, under};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Nothing here takes longer, unless it hangs.
const DEADLINE: Duration = Duration::from_secs(120);

/// The interpreters to try, beside those on the path: a list like that of `PATH`.
const MORE: &str = "LOCKSTEAD_TEST_PYTHONS";

/// Returns the interpreters, each version once.
fn interpreters() -> Vec<PathBuf> {
    let more = std::env::var_os(MORE).unwrap_or_default();
    let named = (9..=14).map(|minor| PathBuf::from(format!("python3.{minor}")));
    let all = std::env::split_paths(&more).chain(["python3".into()]).chain(named);
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for candidate in all.filter(|path| !path.as_os_str().is_empty()) {
        // What is on the path may be a script that chooses one.
        let ask = "import sys; print(sys.version_info[:2], sys.executable)";
        let Ok(said) = Command::new(&candidate).args(["-c", ask]).output() else { continue };
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let Some((version, path)) = said.trim().split_once(") ") else { continue };
        if Path::new(path).exists() && seen.insert(version.to_owned()) {
            found.push(path.into());
        }
    }
    if found.is_empty() {
        skip("there is no python3");
    }
    println!("interpreters: {found:?}");
    found
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/python").join(name)
}

fn started(interpreter: &Path, name: &str) -> Running {
    let mut command = Command::new(interpreter);
    command.arg(source(name));
    start(command)
}

/// Dumps a process until what is shown passes.
fn dump_until(running: &Running, flags: &[&str], passes: impl Fn(&str) -> bool) -> (i32, String) {
    let begun = Instant::now();
    let pid = running.pid().to_string();
    loop {
        let found = run(&[&["dump", &pid], flags].concat());
        if passes(&found.stdout) {
            return (found.status, found.stdout);
        }
        assert!(begun.elapsed() < DEADLINE, "{}\n{}", found.stdout, found.stderr);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_ring_of_python_locks_is_a_deadlock_under_run_and_in_a_dump() {
    for interpreter in interpreters() {
        let program = [interpreter.as_path(), &source("crossed.py")];
        let running = under(&["--no-report", "--on-deadlock", "kill"], &program);
        let ended = running.end_with_open_input();
        assert_eq!(ended.status.code(), Some(3), "{interpreter:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.matches("DEADLOCK").count(), 1, "{}", ended.stderr);
        let running = started(&interpreter, "crossed.py");
        let (status, shown) = dump_until(&running, &[], |text| text.contains("DEADLOCK: 2 "));
        assert_eq!(status, 3, "{shown}");
        for text in [&ended.stderr, &shown] {
            for line in [
                "waits for threading.Lock at 0x",
                "guard: left() at crossed.py:11 is inside `with`",
                "guard: right() at crossed.py:18 is inside `with`",
                "      left() at crossed.py:11\n",
                "      right() at crossed.py:18\n",
            ] {
                assert!(text.contains(line), "{interpreter:?}: no {line:?} in {text}");
            }
        }
        // In 3.9 to 3.14 by three different ways.
        assert!(shown.contains("waits for the end of thread "), "{interpreter:?}: {shown}");
    }
}

#[test]
fn a_ring_through_the_interpreter_itself_is_a_deadlock() {
    for interpreter in interpreters() {
        let running = started(&interpreter, "interpreter.py");
        let (status, shown) = dump_until(&running, &[], |text| text.contains("DEADLOCK: 2 "));
        assert_eq!(status, 3, "{interpreter:?}: {shown}");
        for line in
            ["waits for the GIL, at:\n", "waits for mutex at 0x", "left() at interpreter.py:"]
        {
            assert!(shown.contains(line), "{interpreter:?}: no {line:?} in {shown}");
        }
    }
}

#[test]
fn a_wait_for_a_native_mutex_that_lasts_is_told_with_the_frames_of_python() {
    let Some(interpreter) = interpreters().into_iter().next() else { return };
    let program = [interpreter.as_path(), &source("blocked.py")];
    let running = under(&["--no-report", "--watch", "1s"], &program);
    running.expect("lockstead: BLOCKED: ", 1);
    running.expect("      wants() at blocked.py:18\n", 1);
    running.terminate();
}

/// A thread by its function, what it waits for, the function of who holds that, and the evidence;
/// `?` where it must not be told.
const WAITS: &[(&str, &str, &str, &str)] = &[
    ("wants", "threading.Lock", "keeps", "guard"),
    ("wants_recursive", "threading.RLock", "keeps_recursive", "word"),
    ("wants_bare", "threading.Lock", "keeps_bare", "likely"),
    ("wants_lent", "threading.Lock", "borrows", "likely"),
    ("wants_generated", "threading.Lock", "keeps_generated", "guard"),
    ("wants_tried", "threading.Lock", "keeps_tried", "pad"),
    ("wants_managed", "threading.Lock", "keeps_managed", "guard"),
    ("wants_iterated", "threading.Lock", "keeps_iterated", "likely"),
    ("wants_suspended", "threading.Lock", "?", ""),
    ("waits_for_condition", "threading.Condition", "", ""),
    ("wants_condition", "threading.Lock", "keeps_condition", "guard"),
    ("takes_twice", "threading.Lock", "takes_twice", "guard"),
    ("gets", "queue.Queue", "", ""),
    ("gets_simple", "queue.SimpleQueue", "", ""),
    ("waits_for_event", "threading.Event", "", ""),
    ("wants_unit", "threading.Semaphore", "", ""),
    ("meets", "threading.Barrier", "", ""),
];

/// Returns the outermost function of the program that a thread is in.
fn function(thread: &Value) -> Option<&str> {
    let frames = thread["python"]["frames"].as_array()?;
    let of_program =
        |frame: &&Value| frame["file"].as_str().is_some_and(|f| f.ends_with("waits.py"));
    let name = frames.iter().rev().find(of_program)?["function"].as_str()?;
    Some(name.rsplit('.').next().unwrap_or(name))
}

/// Returns what a thread of this function waits for, the function of the holder, and the evidence.
fn wait_of(found: &Value, name: &str) -> Option<[String; 3]> {
    let threads = found["threads"].as_array()?;
    let thread = threads.iter().find(|thread| function(thread) == Some(name))?;
    let address = &thread["wait"]["target"]["address"];
    let lock = found["locks"].as_array()?.iter().find(|lock| lock["address"] == *address)?;
    let (holder, evidence) = match lock["held"].as_str()? {
        "by" => {
            let found = lock["holders"].as_array()?.first()?;
            let holder = threads.iter().find(|thread| thread["tid"] == found["thread"])?;
            (function(holder)?, found["evidence"].as_str()?)
        }
        "never" => ("", ""),
        _ => ("?", ""),
    };
    Some([lock["kind"].as_str()?, holder, evidence].map(str::to_owned))
}

#[test]
fn each_kind_of_wait_is_named_and_only_who_holds_a_lock_is_called_its_holder() {
    for interpreter in interpreters() {
        let running = started(&interpreter, "waits.py");
        running.expect_line();
        let complete = |text: &str| {
            let found: Value = serde_json::from_str(text).expect("JSON");
            let is_there = |&(name, kind, ..): &(&str, &str, &str, &str)| {
                wait_of(&found, name).is_some_and(|[found, ..]| found == kind)
            };
            WAITS.iter().all(is_there)
        };
        let (status, shown) = dump_until(&running, &["--json"], complete);
        assert_eq!(status, 3, "a thread waits for itself: {shown}");
        let found: Value = serde_json::from_str(&shown).expect("JSON");
        crate::common::documented(&found);
        for &(name, kind, holder, evidence) in WAITS {
            let expected = Some([kind, holder, evidence].map(str::to_owned));
            assert_eq!(wait_of(&found, name), expected, "{interpreter:?}: {name}");
        }
        for line in [
            ", whose handler at line ",
            "it was taken in a suspended generator, iterates() at waits.py:",
        ] {
            assert!(shown.contains(line), "{interpreter:?}: no {line:?} in {shown}");
        }
        let cycles = found["cycles"].as_array().expect("a list");
        assert_eq!(cycles.len(), 1, "{interpreter:?}: {cycles:?}");
    }
}
