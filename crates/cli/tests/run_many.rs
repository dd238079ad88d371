//! Programs that start many processes: none is kept open, and none is lost
//! without a word.
#![cfg(target_os = "linux")]

use crate::programs::{program, start};
use std::process::Command;

/// Returns what a run of `quiet types` so many times prints, with so many descriptors. `between`
/// stands after each.
fn started(times: usize, between: &str, descriptors: usize) -> Option<String> {
    let quiet = program("quiet.c")?;
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "ulimit -n $0; exec \"$@\""]).arg(descriptors.to_string());
    shell.arg(env!("CARGO_BIN_EXE_lockstead")).args(["run", "--", "/bin/sh", "-c"]);
    let numbers: Vec<String> = (0..times).map(|number| number.to_string()).collect();
    let script =
        format!("for i in {}; do \"$0\" types >&2 {between} done; wait", numbers.join(" "));
    let ended = start({
        shell.arg(script).arg(quiet);
        shell
    })
    .end();
    assert!(ended.status.success(), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
    Some(ended.stderr)
}

#[test]
fn processes_that_have_ended_take_no_descriptors() {
    let Some(said) = started(150, ";", 150) else { return };
    assert!(!said.contains("not watched"), "{said}");
    // The shell, and whatever of the others waited for nothing.
    assert!(said.contains("no thread waited for a lock"), "{said}");
}

#[test]
fn processes_for_which_there_is_no_descriptor_are_counted() {
    let Some(said) = started(30, "&", 12) else { return };
    let lost = said.lines().find(|line| line.starts_with("lockstead: not watched: process "));
    let lost = lost.unwrap_or_else(|| panic!("nothing lost:\n{said}"));
    assert!(lost.contains("ulimit -n"), "{lost}");
}
