//! What is done about a deadlock, in the program and in those it starts.

use crate::programs::{fixed, line, only, program, under};

#[test]
fn the_program_goes_on_or_is_aborted_or_killed() {
    let Some(ends) = program("ends.c") else { return };
    for flags in [&["--no-report"][..], &["--no-report", "--on-deadlock", "continue"]] {
        let running = under(flags, &[&ends]);
        running.expect("lockstead: DEADLOCK", 1);
        let ended = running.end();
        assert_eq!(only(&ended.stderr, "DEADLOCK").len(), 2, "{}", ended.stderr);
        assert_eq!((ended.status.code(), &*ended.stdout), (Some(7), "the rest goes on\n"));
    }
    // Its input stays open: it would not end by itself.
    for (what, stdout) in [("abort", "aborted\n"), ("kill", "")] {
        let running = under(&["--no-report", "--on-deadlock", what], &[&ends]);
        running.expect("lockstead: DEADLOCK", 1);
        let ended = running.end_with_open_input();
        assert_eq!(only(&ended.stderr, "DEADLOCK").len(), 2, "{}", ended.stderr);
        // Aborted, it could end as it liked: the deadlock is the cause.
        assert_eq!((ended.status.code(), &*ended.stdout), (Some(3), stdout), "{what}");
    }
}

#[test]
fn a_child_is_killed_for_its_own_deadlock_only() {
    let Some(deadlocks) = program("deadlocks.c") else { return };
    let fork = [deadlocks.as_os_str(), "fork".as_ref()];
    let ended = under(&["--no-report", "--on-deadlock", "kill"], &fork).end();
    assert_eq!(only(&ended.stderr, "DEADLOCK").len(), 3, "{}", ended.stderr);
    // The program saw its child killed, and ended by itself.
    assert_eq!(ended.status.code(), Some(7), "{ended:?}");
    let running = under(&["--no-report", "--no-follow"], &fork);
    running.settle();
    assert_eq!(running.terminate().stderr, "", "not followed, not seen");
}

#[test]
fn what_the_program_leaves_behind_is_watched_on_request() {
    let Some(deadlocks) = program("deadlocks.c") else { return };
    let daemon = [deadlocks.as_os_str(), "daemon".as_ref()];
    let ended = under(&["--no-report", "--wait-all", "--on-deadlock", "kill"], &daemon).end();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let found = only(&ended.stderr, "DEADLOCK");
    let place = format!("twice_in_child() at {}", line("deadlocks.c", "left-behind"));
    assert_eq!((found.len(), &*found[0].waits_at), (1, &[place][..]), "{}", ended.stderr);
}

/// Waits for a child as well that has not called yet when the program ends, or never does.
#[test]
fn what_the_program_leaves_behind_need_not_be_watched_to_be_waited_for() {
    let Some(behind) = fixed("behind.c") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let made = folder.path().join("made");
    let script = r#""$0" "$1""#;
    let shell = ["sh".as_ref(), "-c".as_ref(), script.as_ref(), behind.as_os_str(), made.as_ref()];
    let ended = under(&["--no-report", "--wait-all"], &shell).end();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(made.exists(), "what was left behind has ended");
}
