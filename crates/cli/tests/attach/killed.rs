//! A command that is killed between any two changes that it makes to the process: what it has left is
//! taken out.

use super::{Running, attach, until};
use crate::common::{lockstead, text};
use crate::programs;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

/// The number of places, spread over all the calls of an attach.
const PLACES: u64 = 12;

/// Attaches, with the library in the command that counts or ends it; returns whether that was killed.
pub(super) fn is_killed(pid: &str, library: &Path, (name, value): (&str, &str)) -> bool {
    let mut command = lockstead(&["attach", pid, "--for", "10ms", "--no-report"]);
    let mut child = command.env("LD_PRELOAD", library).env(name, value).spawn().expect("it starts");
    // What it says fits into the pipe.
    until("the command ends", || child.try_wait().expect("a child").is_some());
    let output = child.wait_with_output().expect("it has ended");
    let is_killed = output.status.signal() == Some(libc::SIGKILL);
    assert!(is_killed || output.status.success(), "{output:?}");
    is_killed
}

/// Attaches, and returns how many calls the command has made by which it changes the process.
pub(super) fn calls(pid: &str, library: &Path) -> u64 {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("count");
    assert!(!is_killed(pid, library, ("DIES_COUNT", text(&file))));
    let count = fs::read_to_string(&file).expect("it was loaded into the command");
    count.parse().expect("a number")
}

#[test]
fn what_a_command_leaves_that_is_killed_anywhere_is_taken_out() {
    let Some(library) = programs::library("attach/dies.c") else { return };
    let Some(mut running) = Running::busy("1") else { return };
    let pid = running.pid();
    if attach(&[&pid, "--for", "10ms", "--no-report"]).is_none() {
        return;
    }
    let before = running.traces();
    let count = calls(&pid, &library);
    assert!(count > 100, "an attach makes many calls: {count}");
    let (mut killed, mut taken_out) = (0, 0);
    for place in 0..PLACES {
        // The number of calls is not the same each time.
        let at = (1 + place * (count - 1) / PLACES).to_string();
        killed += u64::from(is_killed(&pid, &library, ("DIES_AT", at.as_str())));
        let cleaned = attach(&["--detach", &pid]).expect("it was permitted before");
        taken_out += u64::from(cleaned.stderr.contains("took out what was left"));
        assert_eq!(running.traces(), before, "killed at call {at} of {count}: {cleaned:?}");
        running.goes_on();
    }
    assert!(killed >= PLACES / 2 && taken_out >= PLACES / 4, "{killed} {taken_out}");
    running.ends_well();
}
