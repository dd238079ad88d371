//! Locks that several processes share: who has one in another process, and cycles through both.

use crate::common::PAUSE;
use crate::programs::{Running, blocked, line, only, program, under};

fn start(flags: &[&str], how: &str) -> Option<Running> {
    let between = program("between.c")?;
    Some(under(flags, &[between.as_os_str(), how.as_ref()]))
}

fn at(function: &str, mark: &str) -> String {
    format!("{function}() at {}", line("between.c", mark))
}

#[test]
fn threads_of_two_processes_that_wait_for_each_other() {
    // The program's end is the command's doing, which has to say so.
    let flags = ["--no-report", "--watch", "off", "--on-deadlock", "kill"];
    let Some(running) = start(&flags, "cycle") else { return };
    let ended = running.end();
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    let found = only(&ended.stderr, "DEADLOCK");
    assert!(ended.stderr.contains("2 threads wait for each other, in 2 processes\n"), "{ended:?}");
    assert_eq!(found.len(), 2, "{}", ended.stderr);
    let mut places: Vec<(&str, &str)> =
        found.iter().map(|member| (&*member.holds_at[0], &*member.waits_at[0])).collect();
    places.sort_unstable();
    let child = (at("child", "right-first"), at("child", "left-then"));
    let parent = (at("main", "left-first"), at("main", "right-then"));
    let expected = [(&*child.0, &*child.1), (&*parent.0, &*parent.1)];
    assert_eq!(places, expected, "{}", ended.stderr);
}

#[test]
fn an_owner_in_another_process_is_described_as_one_of_ones_own() {
    let Some(running) = start(&["--no-report", "--watch", "150ms"], "held") else { return };
    running.expect("lockstead: BLOCKED", 1);
    let ended = running.terminate();
    // For how long is known of one hold in many, and of those that last.
    let report = &blocked(&ended.stderr)[0].replace("held for # by", "held by");
    let (took, keeps) = (at("child", "right-first"), at("child", "keeps"));
    for part in [
        "held by thread \"main\" (tid #) of between (pid #), acquired at:\n",
        &took,
        &format!("is now in the system call {PAUSE}:\n"),
        &keeps,
    ] {
        assert!(report.contains(part), "no {part:?} in {report}");
    }
    assert!(!report.contains("has ended"), "{report}");
}

#[test]
fn an_owner_whose_process_has_ended_is_said_to_have() {
    let Some(running) = start(&["--no-report", "--watch", "150ms"], "ended") else { return };
    running.expect("lockstead: BLOCKED", 1);
    let ended = running.terminate();
    let report = &blocked(&ended.stderr)[0];
    assert!(report.contains("which has ended, or is in another PID namespace"), "{report}");
}
