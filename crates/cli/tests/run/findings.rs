//! Deadlocks, cycles that end, and waits that last.

use crate::support::{findings, line, plain, watched};

/// The one finding of a program that is ended for its deadlock.
fn deadlock(program: &str) -> Option<String> {
    let outcome = watched(&["--on-deadlock", "kill"], &[program])?;
    assert_eq!(outcome.status, 3, "{outcome:?}");
    assert_eq!(outcome.stdout, "");
    let found = findings(&outcome.stderr);
    assert_eq!(found.len(), 1, "{program}: {}", outcome.stderr);
    assert!(found[0].lines().count() <= 40, "too long for a screen:\n{}", found[0]);
    Some(plain(&found[0]))
}

#[test]
fn two_threads_and_two_mutexes_and_nobody_else() {
    let Some(text) = deadlock("abba") else { return };
    let site = |function: &str, remark: &str| format!("{function}() at {}", line(remark));
    let call = format!("teller() at locks.c:{}", {
        let holds = line("teller holds");
        holds.rsplit(':').next().unwrap().parse::<u32>().unwrap() + 2
    });
    let expected = [
        "lockstead: DEADLOCK of 2 threads in locks (pid #)",
        "  thread \"teller\" (tid #)",
        "    waits for accounts+0x38 (mutex), since #s, at:",
        &format!("      {}", site("take_account", "teller waits")),
        &format!("      {call}"),
        "    holds audit (mutex), acquired at:",
        &format!("      {}", site("teller", "teller holds")),
        "  thread \"auditor\" (tid #)",
        "    waits for audit (mutex), since #s, at:",
        &format!("      {}", site("auditor", "auditor waits")),
        "    holds accounts+0x38 (mutex), acquired at:",
        &format!("      {}", site("auditor", "auditor holds")),
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected, "{text}");
}

/// Expects a deadlock of so many threads with all these parts.
fn expect(program: &str, threads: usize, parts: &[&str]) {
    let Some(text) = deadlock(program) else { return };
    let count = if threads == 1 { "1 thread ".into() } else { format!("{threads} threads ") };
    assert!(text.starts_with(&format!("lockstead: DEADLOCK of {count}")), "{text}");
    assert_eq!(text.matches("  thread \"").count(), threads, "{text}");
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}

#[test]
fn one_thread_and_one_mutex() {
    expect("self", 1, &["waits for audit (mutex)", &line("once"), &line("twice")]);
}

#[test]
fn a_reader_that_wants_to_write() {
    let held = "holds table (rwlock) for reading";
    expect("upgrade", 1, &["waits to write table", held, &line("reads"), &line("upgrades")]);
}

#[test]
fn a_join() {
    let parts = ["waits for the end of thread \"joined\"", &line("joiner waits")];
    expect("join", 2, &parts);
    expect("join", 2, &[&line("joiner holds"), &line("joined waits")]);
}

#[test]
fn a_spin_lock() {
    expect("spin", 2, &["waits for spin (spin lock)", "holds spin (spin lock)", &line("spins")]);
}

#[test]
fn a_reader_in_the_way_of_a_writer() {
    let held = "holds table (rwlock) for reading";
    expect("rwlock", 2, &["waits to write table", held, &line("writer waits")]);
}

#[test]
fn a_second_read_behind_a_writer() {
    let waits = "waits to read fair (writers-first rwlock), behind a waiting writer";
    let lines = [line("first read"), line("second read"), line("writer between")];
    expect("fair", 2, &[waits, &lines[0], &lines[1], &lines[2]]);
}

#[test]
fn a_mutex_that_a_condition_does_not_get_back() {
    let waits = "waits for audit (mutex), to have it back after a condition";
    expect("condition", 2, &[waits, &line("takes back"), "holds bystanders (mutex)"]);
}

#[test]
fn many_closed_at_the_same_instant_are_reported_once_each() {
    const ROUNDS: usize = 60;
    let Some(outcome) = watched(&[], &["rounds", &ROUNDS.to_string()]) else { return };
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let found = findings(&outcome.stderr);
    assert_eq!(found.len(), ROUNDS, "{}", outcome.stderr);
    assert!(found.iter().all(|text| text.starts_with("lockstead: DEADLOCK of 2 threads")));
    let mut threads: Vec<&str> = outcome
        .stderr
        .lines()
        .filter(|line| line.starts_with("  thread"))
        .map(|line| &line[line.find("(tid").expect("a number")..])
        .collect();
    assert_eq!(threads.len(), 2 * ROUNDS);
    threads.sort_unstable();
    threads.dedup();
    assert_eq!(threads.len(), 2 * ROUNDS, "a thread is in two deadlocks");
}

#[test]
fn a_cycle_that_a_time_out_opens_is_no_deadlock() {
    let Some(outcome) = watched(&["--on-deadlock", "kill"], &["timed"]) else { return };
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let found = findings(&outcome.stderr);
    assert!(found[0].starts_with("lockstead: CYCLE of 2 threads"), "{}", outcome.stderr);
    assert!(found[0].lines().next().unwrap().ends_with("ends by time-out"));
    assert!(found[0].contains("with a time-out, at:"), "{}", found[0]);
    assert!(!outcome.stderr.contains("DEADLOCK"), "{}", outcome.stderr);
    assert_eq!(outcome.stderr.matches("CYCLE").count(), 1, "{}", outcome.stderr);
    // The same threads close it twice more.
    assert!(outcome.stderr.contains("2 more times"), "{}", outcome.stderr);
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    let Some(outcome) = watched(&[], &["clean"]) else { return };
    assert_eq!((outcome.status, &*outcome.stdout), (5, "clean\n"));
    assert_eq!(outcome.stderr, "");
}

#[test]
fn a_wait_that_lasts_comes_with_its_owner_and_what_that_does() {
    let Some(outcome) = watched(&["--watch", "150ms"], &["blocked"]) else { return };
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let found = findings(&outcome.stderr);
    // The wait of 600 ms is due at 150 and 300, and not before it doubles again.
    assert!((1..=2).contains(&found.len()), "{}", outcome.stderr);
    for text in found {
        let text = plain(&text);
        assert!(text.starts_with("lockstead: BLOCKED for #s: thread \"locks\""), "{text}");
        let parts = [
            "waits for audit (mutex)\n",
            &line("main waits"),
            "held by thread \"dozer\" (tid #), acquired at:",
            &line("dozer holds"),
            "is now in the system call clock_nanosleep:",
            &line("dozer sleeps"),
        ];
        for part in parts {
            assert!(text.contains(part), "no {part:?} in:\n{text}");
        }
    }
}

#[test]
fn a_lock_that_its_owner_took_along() {
    let Some(outcome) = watched(&["--watch", "100ms"], &["leaked"]) else { return };
    let text = plain(&findings(&outcome.stderr)[0]);
    assert!(text.contains("which has ended without releasing it"), "{text}");
    assert!(text.contains(&line("leaker holds")), "{text}");
}

#[test]
fn children_are_followed_through_fork_and_exec() {
    for program in ["children", "fork"] {
        let Some(outcome) = watched(&["--on-deadlock", "kill"], &[program]) else { return };
        // The child was ended, not the program, whose status counts.
        assert_eq!(outcome.status, 0, "{outcome:?}");
        let found = findings(&outcome.stderr);
        assert_eq!(found.len(), 1, "{}", outcome.stderr);
        assert!(found[0].contains("DEADLOCK of 1 thread"), "{}", outcome.stderr);
    }
    let outcome = watched(&["--no-follow"], &["children"]).expect("as before");
    assert_eq!((outcome.status, &*outcome.stderr), (0, ""));
}

#[test]
fn what_the_program_leaves_behind_is_watched_on_request() {
    let Some(outcome) = watched(&["--wait-all", "--on-deadlock", "kill"], &["daemon"]) else {
        return;
    };
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(outcome.stderr.contains(&line("in the daemon")), "{}", outcome.stderr);
}
