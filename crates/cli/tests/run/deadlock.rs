//! Deadlocks of all kinds: the whole report, once, with the right names and
//! lines, and nobody else in it. The same calls in good order: silence.

use crate::programs::{Member, library_in, line, only, program, start, under};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

/// What is expected of a thread: name, what it waits for, mark of that line, what
/// it holds, mark of that line.
pub(crate) type Expected = (&'static str, &'static str, &'static str, &'static str, &'static str);

pub(crate) fn member(source: &str, functions: &[&str], expected: Expected) -> Member {
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

/// Runs `deadlocks KIND`, which must be reported as these members, in any order;
/// `functions` are `function=thread`. Then the same in good order.
fn report(kind: &str, functions: &[&str], expected: &[Expected]) {
    let Some(deadlocks) = program("deadlocks.c") else { return };
    let running = under(&["--no-report"], &[deadlocks.as_os_str(), kind.as_ref()]);
    running.expect("lockstead: DEADLOCK", 1);
    let ended = running.terminate();
    let mut found = only(&ended.stderr, "DEADLOCK");
    found.sort_by(|a, b| a.name.cmp(&b.name));
    for member in &mut found {
        // The number of a joined thread.
        if let Some(at) = member.waits.find(" (tid ") {
            member.waits.truncate(at);
        }
    }
    let mut wanted: Vec<_> =
        expected.iter().map(|&e| member("deadlocks.c", functions, e)).collect();
    wanted.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(found, wanted, "{kind}:\n{}", ended.stderr);
    in_order(&[kind]);
}

/// Runs `deadlocks ARGUMENTS orderly`, of which nothing is said.
fn in_order(arguments: &[&str]) {
    let Some(deadlocks) = program("deadlocks.c") else { return };
    let mut command = vec![deadlocks.as_os_str()];
    command.extend(arguments.iter().map(std::ffi::OsStr::new));
    command.push("orderly".as_ref());
    let ended = under(&["--no-report"], &command).end();
    assert_eq!((&*ended.stdout, &*ended.stderr), ("in order\n", ""), "{arguments:?}");
    assert_eq!(ended.status.code(), Some(8), "{arguments:?}");
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
    let words = "lockstead: DEADLOCK: 2 threads wait for each other, in abba (pid ";
    assert!(head.starts_with(words), "{head}");
    for absent in ["bystander", "behind", "calm", "crowded"] {
        assert!(!ended.stderr.contains(absent), "{absent} in:\n{}", ended.stderr);
    }
    assert_eq!(ended.stdout, "");
    assert_eq!(ended.status.signal(), Some(libc::SIGTERM));
}

#[test]
fn three_mutexes() {
    report(
        "three",
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
    report("upgrade", &["upgrade=upgrader"], &[expected]);
}

#[test]
fn a_reader_and_a_writer() {
    report(
        "readers",
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
    report(
        "join",
        &["joins=joiner", "works=worker"],
        &[
            (
                "joiner",
                "for the end of thread \"worker\"",
                "joins-waits",
                "one (mutex)",
                "joins-holds",
            ),
            ("worker", "for one (mutex)", "works-waits", "", ""),
        ],
    );
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
    in_order(&["exec"]);
    let orderly = [deadlocks.as_os_str(), "fork".as_ref(), "orderly".as_ref()];
    let ended = under(&["--no-report"], &orderly).end();
    assert_eq!((ended.status.code(), &*ended.stderr), (Some(6), ""));
    // Not followed, not seen.
    let flags = ["--no-report", "--no-follow"];
    let running = under(&flags, &[deadlocks.as_os_str(), "fork".as_ref()]);
    running.settle();
    assert_eq!(running.terminate().stderr, "");
}

#[test]
fn a_cycle_of_a_thousand() {
    const LINKS: usize = 1000;
    let Some(deadlocks) = program("deadlocks.c") else { return };
    let links = LINKS.to_string();
    let running =
        under(&["--no-report"], &[deadlocks.as_os_str(), "cycle".as_ref(), links.as_ref()]);
    running.expect("lockstead: DEADLOCK", 1);
    let ended = running.terminate();
    let found = only(&ended.stderr, "DEADLOCK");
    assert_eq!(found.len(), LINKS);
    let held: std::collections::HashSet<_> = found.iter().map(|m| &*m.holds).collect();
    assert_eq!(held.len(), LINKS);
    in_order(&["cycle", "100"]);
    for (at, member) in found.iter().enumerate() {
        let next = &found[(at + 1) % LINKS];
        assert_eq!(member.waits, format!("for {}", next.holds));
    }
}

/// Finds a deadlock of locks whose words for a mutex are not glibc's.
#[test]
fn a_cycle_of_mutexes_of_another_library_is_one_too() {
    let (Some(program), Some(library)) = (program("below.c"), library_in("below.c")) else {
        return;
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstead"));
    command.args(["run", "--no-report", "--on-deadlock", "kill", "--"]).arg(program);
    command.env("LD_PRELOAD", library);
    let ended = start(command).end();
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    assert!(ended.stderr.contains("DEADLOCK: 2 threads wait for each other"), "{}", ended.stderr);
    assert!(ended.stderr.contains("  It rests on the calls that"), "{}", ended.stderr);
}
