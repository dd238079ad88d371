//! Programs in Python that hang, with each interpreter that there is.

use crate::common::run;
use crate::programs::{Running, skip, start, under};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Nothing here takes longer, unless it hangs.
const DEADLINE: Duration = Duration::from_secs(120);

/// The interpreters to try, beside those on the path: a list like that of `PATH`.
const MORE: &str = "LOCKSTEAD_TEST_PYTHONS";

/// Returns the interpreters, each version once.
fn interpreters() -> Vec<PathBuf> {
    // What is on the path may be a script that takes its time.
    static FOUND: LazyLock<Vec<PathBuf>> = LazyLock::new(sought);
    FOUND.clone()
}

fn sought() -> Vec<PathBuf> {
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

/// Returns the version of an interpreter.
fn version(interpreter: &Path) -> (u32, u32) {
    let ask = "import sys; print(*sys.version_info[:2])";
    let said = Command::new(interpreter).args(["-c", ask]).output().expect("it starts");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let mut numbers = said.split_whitespace().filter_map(|number| number.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
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

/// A function of `ended.py`, the line in which it waits, and what for.
const ENDED: &[(&str, u64, &str)] = &[
    ("wants", 15, "threading.Lock"),
    ("wants_recursive", 20, "threading.RLock"),
    ("waits_for_condition", 26, "threading.Condition"),
    ("gets", 30, "queue.Queue"),
    ("gets_simple", 34, "queue.SimpleQueue"),
    ("waits_for_event", 38, "threading.Event"),
    ("takes_turns", 43, "threading.Lock"),
    ("takes_turns", 45, "threading.Lock"),
];

/// Returns the rows of the process in its report, what it printed, and the report as text.
fn rows_of_ended(interpreter: &Path, seconds: f64) -> (Vec<Value>, String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("run.json");
    let program = source("ended.py");
    let outcome = run(&[
        "run",
        "--top",
        "99",
        // So that those are there, too, for which nobody waited.
        "--sort",
        "acquisitions",
        "--json",
        &json.to_string_lossy(),
        "--",
        &interpreter.to_string_lossy(),
        &program.to_string_lossy(),
        &seconds.to_string(),
    ]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let text = std::fs::read_to_string(json).expect("a report");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    crate::common::documented(&report);
    let process = &report["processes"][0];
    let rows = ["locks", "idle"].map(|list| process[list].as_array().cloned().unwrap_or_default());
    (rows.concat(), outcome.stdout, outcome.stderr)
}

/// Returns the function, the line and the kind of the program's places in Python of these rows.
fn places_of<'r>(rows: impl Iterator<Item = &'r Value>) -> BTreeSet<(String, u64, String)> {
    let places = rows.filter_map(|row| row["python"]["places"].as_array()).flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // A thread may wait for the GIL before its first line.
    let is_own = |place: &&Value| text(&place["file"]).ends_with("/ended.py");
    let place = |place: &Value| {
        let line = place["line"].as_u64().unwrap_or(0);
        (text(&place["function"]), line, text(&place["waits_for"]))
    };
    places.filter(is_own).map(place).collect()
}

#[test]
fn the_exit_report_has_the_frames_of_python_of_waits_that_have_ended() {
    let begun = Instant::now();
    for interpreter in interpreters() {
        // A wait that no look has met has no frames: then the waits are to last longer.
        let mut seconds = 0.4;
        let (rows, said, text) = loop {
            let found = rows_of_ended(&interpreter, seconds);
            let places = places_of(found.0.iter());
            let is_met = |&(function, line, kind): &(&str, u64, &str)| {
                places.contains(&(function.to_owned(), line, kind.to_owned()))
            };
            if ENDED.iter().all(is_met) {
                break found;
            }
            assert!(begun.elapsed() < DEADLINE, "{interpreter:?}: {places:?}\n{}", found.2);
            println!("{interpreter:?}: of {seconds} s not all were met: {places:?}");
            seconds *= 2.0;
        };
        // Each place was met with nothing else than what it waits for, or the GIL.
        for (function, line, kind) in places_of(rows.iter()) {
            let mut known = ENDED.iter().filter(|known| known.0 == function);
            // Not told is not wrong.
            let is_right = kind.is_empty()
                || kind == "the GIL"
                || function == "<module>"
                || known.any(|&(_, at, what)| (at, what) == (line, &*kind));
            assert!(is_right, "{interpreter:?}: {function} in line {line} waits for {kind}");
        }
        // No lock has the lines of another one.
        let own = said.split_whitespace().zip([15, 43, 45]);
        let own = own.map(|(address, line)| (format!("threading.Lock at {address}"), line));
        let mut named = 0;
        for (name, line) in own {
            let row = rows.iter().filter(|row| row["name"] == *name);
            let lines: BTreeSet<u64> = places_of(row).into_iter().map(|place| place.1).collect();
            named += lines.len();
            assert!(lines.is_empty() || lines == BTreeSet::from([line]), "{name}: {lines:?}");
        }
        let version = version(&interpreter);
        assert!(named == 3 || version >= (3, 13), "{interpreter:?}: {text}");
        let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
        let gil: Vec<&&str> = names.iter().filter(|name| name.starts_with("the GIL of ")).collect();
        let different: BTreeSet<_> = gil.iter().collect();
        assert!(gil.len() >= 3 && different.len() == gil.len(), "{interpreter:?}: {names:?}");
        for line in [
            "wants_recursive() at ended.py:20",
            "gets() at ended.py:30, by ",
            "  frames of Python by ",
        ] {
            assert!(text.contains(line), "{interpreter:?}: no {line:?} in {text}");
        }
    }
}
