//! Deadlocks of all kinds in real programs under `lockstead run`: the whole
//! report, once, with the right names and lines, and nobody else in it.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod programs;

use programs::{Member, cycles, library, line, only, program, skip, under};
use std::collections::HashSet;
use std::path::Path;

/// What is expected of a thread: name, what it waits for, mark of that line, what
/// it holds, mark of that line.
type Expected = (&'static str, &'static str, &'static str, &'static str, &'static str);

fn member(source: &str, functions: &[&str], expected: Expected) -> Member {
    let (name, waits, waits_mark, holds, holds_mark) = expected;
    let site = |mark: &str| {
        let line = line(source, mark);
        let function = functions.iter().find(|f| f.split_once('=').is_some_and(|f| f.1 == name));
        let function = function.and_then(|f| f.split_once('=')).map_or(name, |f| f.0);
        vec![format!("{function}() at {line}")]
    };
    Member {
        name: name.into(),
        waits: waits.into(),
        waits_at: site(waits_mark),
        holds: holds.into(),
        holds_at: if holds_mark.is_empty() { Vec::new() } else { site(holds_mark) },
    }
}

/// Runs `deadlocks KIND` until it has reported; `functions` are `function=thread`.
fn report(kind: &str, head: &str, functions: &[&str], expected: &[Expected]) {
    let Some(deadlocks) = program("deadlocks.c") else { return };
    let running = under(&["--no-report"], &[deadlocks.as_os_str(), kind.as_ref()]);
    running.expect(&format!("lockstead: {head}"), 1);
    let ended = if head == "CYCLE" { running.end() } else { running.terminate() };
    let mut found = only(&ended.stderr, head);
    found.sort_by(|a, b| a.name.cmp(&b.name));
    let mut wanted: Vec<_> =
        expected.iter().map(|&e| member("deadlocks.c", functions, e)).collect();
    wanted.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(found, wanted, "{kind}:\n{}", ended.stderr);
}

#[test]
fn two_threads_in_both_orders_among_bystanders() {
    let Some(abba) = program("abba.c") else { return };
    let running = under(&["--no-report"], &[&abba]);
    running.expect("lockstead: DEADLOCK", 1);
    let ended = running.terminate();
    let at = |function: &str, mark: &str| format!("{function}() at {}", line("abba.c", mark));
    let wanted = [
        Member {
            name: "transfer".into(),
            waits: "for journal (mutex)".into(),
            waits_at: vec![at("lock_journal", "journal"), at("transfer", "transfer-second")],
            holds: "accounts (mutex)".into(),
            holds_at: vec![at("lock_accounts", "accounts"), at("transfer", "transfer-first")],
        },
        Member {
            name: "audit".into(),
            waits: "for accounts (mutex)".into(),
            waits_at: vec![at("lock_accounts", "accounts"), at("audit", "audit-second")],
            holds: "journal (mutex)".into(),
            holds_at: vec![at("lock_journal", "journal"), at("audit", "audit-first")],
        },
    ];
    assert_eq!(only(&ended.stderr, "DEADLOCK"), wanted, "{}", ended.stderr);
    let head = ended.stderr.lines().find(|line| line.contains("DEADLOCK")).unwrap_or_default();
    assert!(head.starts_with("lockstead: DEADLOCK of 2 threads in abba (pid "), "{head}");
    for absent in ["bystander", "behind", "calm", "crowded"] {
        assert!(!ended.stderr.contains(absent), "{absent} in:\n{}", ended.stderr);
    }
    assert_eq!(ended.stdout, "");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended.status), Some(libc::SIGTERM));
}

#[test]
fn three_mutexes() {
    report(
        "three",
        "DEADLOCK",
        &["a_of_three=a", "b_of_three=b", "c_of_three=c"],
        &[
            ("a", "for two (mutex)", "three-a-waits", "one (mutex)", "three-a-holds"),
            ("b", "for three (mutex)", "three-b-waits", "two (mutex)", "three-b-holds"),
            ("c", "for one (mutex)", "three-c-waits", "three (mutex)", "three-c-holds"),
        ],
    );
}

#[test]
fn a_mutex_its_thread_has() {
    report(
        "self",
        "DEADLOCK",
        &["lock_twice=self"],
        &[("self", "for one (mutex)", "self-waits", "one (mutex)", "self-holds")],
    );
}

#[test]
fn a_reader_that_wants_to_write() {
    let expected = (
        "upgrader",
        "to write table (rwlock)",
        "upgrade-waits",
        "table (rwlock) for reading",
        "upgrade-holds",
    );
    report("upgrade", "DEADLOCK", &["upgrade=upgrader"], &[expected]);
}

#[test]
fn a_reader_and_a_writer() {
    report(
        "readers",
        "DEADLOCK",
        &[],
        &[
            (
                "reader",
                "for one (mutex)",
                "reader-waits",
                "table (rwlock) for reading",
                "reader-holds",
            ),
            ("writer", "to write table (rwlock)", "writer-waits", "one (mutex)", "writer-holds"),
        ],
    );
}

#[test]
fn a_reader_that_reads_again_behind_a_writer() {
    report(
        "again",
        "DEADLOCK",
        &["reads_again=reader", "writes_between=writer"],
        &[
            (
                "reader",
                "to read eager (writers-first rwlock), behind a waiting writer",
                "again-waits",
                "eager (writers-first rwlock) for reading",
                "again-holds",
            ),
            ("writer", "to write eager (writers-first rwlock)", "between-waits", "", ""),
        ],
    );
}

#[test]
fn spin_locks() {
    report(
        "spin",
        "DEADLOCK",
        &["spin_left=left", "spin_right=right"],
        &[
            ("left", "for right (spin lock)", "left-waits", "left (spin lock)", "left-holds"),
            ("right", "for left (spin lock)", "right-waits", "right (spin lock)", "right-holds"),
        ],
    );
}

#[test]
fn a_mutex_that_comes_back_from_a_condition() {
    report(
        "condition",
        "DEADLOCK",
        &["waits_for_change=waiter", "changes=changer"],
        &[
            (
                "waiter",
                "for two (mutex), to have it back after a condition",
                "change-waits",
                "one (mutex)",
                "change-holds",
            ),
            ("changer", "for one (mutex)", "changes-waits", "two (mutex)", "changes-holds"),
        ],
    );
}

#[test]
fn a_join_of_a_thread_that_wants_what_the_joiner_has() {
    let Some(deadlocks) = program("deadlocks.c") else { return };
    let running = under(&["--no-report"], &[deadlocks.as_os_str(), "join".as_ref()]);
    running.expect("lockstead: DEADLOCK", 1);
    let ended = running.terminate();
    let mut found = only(&ended.stderr, "DEADLOCK");
    found.sort_by(|a, b| a.name.cmp(&b.name));
    let joiner = &mut found[0];
    assert!(joiner.waits.starts_with("for the end of thread \"worker\" (tid "), "{joiner:?}");
    joiner.waits = "for the end".into();
    let functions = ["joins=joiner", "works=worker"];
    let wanted = [
        ("joiner", "for the end", "joins-waits", "one (mutex)", "joins-holds"),
        ("worker", "for one (mutex)", "works-waits", "", ""),
    ];
    assert_eq!(found, wanted.map(|e| member("deadlocks.c", &functions, e)), "{}", ended.stderr);
}

#[test]
fn a_cycle_with_a_deadline_is_said_to_end() {
    let Some(deadlocks) = program("deadlocks.c") else { return };
    report(
        "timed",
        "CYCLE",
        &[],
        &[
            ("patient", "for two (mutex), timed", "patient-waits", "one (mutex)", "patient-holds"),
            ("stubborn", "for one (mutex)", "stubborn-waits", "two (mutex)", "stubborn-holds"),
        ],
    );
    let ended = under(&["--no-report"], &[deadlocks.as_os_str(), "timed".as_ref()]).end();
    assert_eq!((ended.status.code(), &*ended.stdout), (Some(5), "both came through\n"));
}

#[test]
fn in_a_forked_child_and_after_an_exec() {
    let Some(deadlocks) = program("deadlocks.c") else { return };
    for kind in ["fork", "exec"] {
        let running = under(&["--no-report"], &[deadlocks.as_os_str(), kind.as_ref()]);
        running.expect("lockstead: DEADLOCK", 1);
        let ended = running.terminate();
        let mut names: Vec<_> =
            only(&ended.stderr, "DEADLOCK").into_iter().map(|m| m.name).collect();
        names.sort();
        assert_eq!(names, ["a", "b", "c"], "{kind}:\n{}", ended.stderr);
        if let Some(child) = ended.stdout.strip_prefix("child ") {
            assert!(ended.stderr.contains(&format!("(pid {})", child.trim())), "{ended:?}");
        }
    }
    // Not followed, not seen.
    let flags = ["--no-report", "--no-follow"];
    let running = under(&flags, &[deadlocks.as_os_str(), "fork".as_ref()]);
    running.settle();
    assert_eq!(running.terminate().stderr, "");
}

#[test]
fn locks_are_called_by_symbol_member_and_birthplace() {
    let Some(named) = program("named.c") else { return };
    let running = under(&["--no-report"], &[&named]);
    running.expect("lockstead: DEADLOCK", 1);
    let ended = running.terminate();
    let held: HashSet<_> =
        only(&ended.stderr, "DEADLOCK").into_iter().map(|m| (m.name, m.holds)).collect();
    let cache = format!("mutex from cache_new() at {}, #2", line("named.c", "cache-init"));
    let wanted = [
        ("static", "journal (mutex)"),
        ("member", "registry+0x8 (mutex)"),
        ("heap", &cache),
        ("standard", "standard (C11 mutex)"),
    ];
    assert_eq!(held, wanted.map(|(name, lock)| (name.into(), lock.into())).into(), "{ended:?}");
}

#[test]
fn in_a_library_that_was_loaded_late() {
    let (Some(loads), Some(plugin)) = (program("loads.c"), library("plugin.c")) else { return };
    let running =
        under(&["--no-report"], &[loads.as_os_str(), plugin.as_os_str(), "stall".as_ref()]);
    running.expect("lockstead: DEADLOCK", 1);
    let ended = running.terminate();
    let functions = ["plugs=plugs"];
    let mut wanted = [
        (
            "plugs",
            "for socket_lock in plugin (mutex)",
            "plug-waits",
            "plug in plugin (mutex)",
            "plug-holds",
        ),
        (
            "sockets",
            "for plug in plugin (mutex)",
            "socket-waits",
            "socket_lock in plugin (mutex)",
            "socket-holds",
        ),
    ]
    .map(|e| member("plugin.c", &functions, e));
    wanted.sort_by(|a, b| a.name.cmp(&b.name));
    let mut found = only(&ended.stderr, "DEADLOCK");
    found.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(found, wanted, "{}", ended.stderr);
}

#[test]
fn in_cpp_by_qualified_names() {
    let Some(crossed) = program("crossed.cpp") else { return };
    let running = under(&["--no-report"], &[&crossed]);
    running.expect("lockstead: DEADLOCK", 1);
    let ended = running.terminate();
    let found = only(&ended.stderr, "DEADLOCK");
    let held: HashSet<_> = found.iter().map(|m| &*m.holds).collect();
    assert_eq!(held, ["bank::savings (mutex)", "bank::checking (mutex)"].into(), "{found:?}");
    for member in &found {
        let has = |sites: &[String], mark: &str| {
            let end = line("crossed.cpp", mark);
            sites.iter().any(|s| s.starts_with("bank::Transfer::run(") && s.ends_with(&end))
        };
        assert!(has(&member.waits_at, "cpp-waits") && has(&member.holds_at, "cpp-holds"));
    }
}

#[test]
fn a_cycle_of_a_thousand() {
    const LINKS: usize = 1000;
    let Some(deadlocks) = program("deadlocks.c") else { return };
    let links = LINKS.to_string();
    let running =
        under(&["--no-report"], &[deadlocks.as_os_str(), "ring".as_ref(), links.as_ref()]);
    running.expect("lockstead: DEADLOCK", 1);
    let ended = running.terminate();
    let found = only(&ended.stderr, "DEADLOCK");
    assert_eq!(found.len(), LINKS);
    let held: HashSet<_> = found.iter().map(|m| &*m.holds).collect();
    assert_eq!(held.len(), LINKS);
    for (at, member) in found.iter().enumerate() {
        let next = &found[(at + 1) % LINKS];
        assert_eq!(member.waits, format!("for {}", next.holds));
    }
}

/// Two threads that close a cycle at one instant, again and again.
#[test]
fn cycles_closed_by_two_at_one_instant_are_each_reported_once() {
    let Some(instant) = program("instant.c") else { return };
    for (kind, times) in [("threads", 250), ("processes", 25)] {
        let count = times.to_string();
        let running =
            under(&["--no-report"], &[instant.as_os_str(), kind.as_ref(), count.as_ref()]);
        running.expect("lockstead: DEADLOCK", times);
        let ended = running.terminate();
        let found = cycles(&ended.stderr, "DEADLOCK");
        assert_eq!(found.len(), times, "{kind}");
        assert!(found.iter().all(|members| members.len() == 2), "{kind}");
        let tids: HashSet<_> =
            ended.stderr.lines().filter(|l| l.starts_with("  thread ")).collect();
        assert_eq!(tids.len(), 2 * times, "{kind}: a thread in two reports");
    }
}

#[test]
fn python_threads_with_locks_of_their_own_are_run() {
    let script = "import threading, time\n\
        a, b, met = threading.Lock(), threading.Lock(), threading.Barrier(2)\n\
        def cross(first, second):\n    with first:\n        met.wait()\n        \
        second.acquire(timeout=0.5)\n\
        pair = [threading.Thread(target=cross, args=x) for x in ((a, b), (b, a))]\n\
        [t.start() for t in pair]; [t.join() for t in pair]\n\
        print('both gave up')\n";
    let python = Path::new("/usr/bin/python3");
    let python = if python.exists() { python } else { Path::new("python3") };
    if std::process::Command::new(python).arg("--version").output().is_err() {
        return skip("no python3");
    }
    let ended =
        under(&["--no-report"], &[python.as_os_str(), "-c".as_ref(), script.as_ref()]).end();
    assert_eq!(ended.stdout, "both gave up\n", "{}", ended.stderr);
    assert_eq!(ended.status.code(), Some(0));
    // Python's locks are semaphores, which have no owner.
    assert!(!ended.stderr.contains("DEADLOCK"), "{}", ended.stderr);
}
