//! The programs of the other tests: those that do nothing wrong are left in
//! peace, and those that do only what is known.

use super::found::findings;
use crate::programs::{library, program, start, under};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a program bare and checked: it must do the same, and the first lines of
/// the findings must be these.
fn comes_to(program: &Path, arguments: &[&OsStr], heads: &[&str]) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(arguments);
    let bare = start(command).end();
    let mut words = vec![program.as_os_str()];
    words.extend(arguments);
    let checked = under(&["--check", "--no-report"], &words).end();
    let found: Vec<_> = findings(&checked.stderr).into_iter().map(|finding| finding.0).collect();
    let status = if heads.is_empty() { bare.status.code() } else { Some(3) };
    if found == heads && checked.stdout == bare.stdout && checked.status.code() == status {
        return Ok(());
    }
    let name = program.file_name().unwrap_or_default();
    Err(format!("{name:?} {arguments:?}, not {heads:?}:\nbare: {bare:?}\nchecked: {checked:?}"))
}

/// Runs a program once for each of these: arguments, and what is found.
fn each_comes_to(source: &str, runs: &[(&[&str], &[&str])]) {
    let Some(program) = program(source) else { return };
    let wrong: Vec<_> = runs
        .iter()
        .filter_map(|(arguments, heads)| {
            let arguments: Vec<_> = arguments.iter().map(OsStr::new).collect();
            comes_to(&program, &arguments, heads).err()
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

const TWO: &str = "POTENTIAL: lock order inversion of 2 locks";
const THREE: &str = "POTENTIAL: lock order inversion of 3 locks";

#[test]
fn programs_in_which_nothing_is_wrong() {
    each_comes_to(
        "quiet.c",
        &[
            (&["robust"], &[]),
            (&["cancellation"], &[]),
            (&["threads"], &[]),
            (&["signals"], &[]),
            (&["longjmp"], &[]),
            (&["forks"], &[]),
            (&["starts"], &[]),
            (&["closes"], &[]),
            (&["descriptors"], &[]),
            (&["jail"], &[]),
            (&["heap"], &[]),
            (&["order"], &[]),
        ],
    );
}

#[test]
fn a_mutex_that_another_thread_releases_a_hundred_times() {
    each_comes_to("quiet.c", &[(&["foreign"], &["RULE: unlock by another thread"])]);
}

#[test]
fn programs_that_look_deadlocked() {
    each_comes_to(
        "lookalikes.c",
        &[
            (&["livelock"], &[]),
            (&["readers"], &[]),
            (&["handles"], &[]),
            (&["jail"], &[]),
            (&["crowd"], &[]),
        ],
    );
}

#[test]
fn orders_of_deadlocks_that_do_not_close() {
    each_comes_to(
        "deadlocks.c",
        &[
            (&["three", "orderly"], &[THREE]),
            (&["self", "orderly"], &[]),
            (&["upgrade", "orderly"], &[]),
            (&["readers", "orderly"], &[TWO]),
            (&["spin", "orderly"], &[TWO]),
            (&["join", "orderly"], &[]),
        ],
    );
}

#[test]
fn locks_before_and_after_main_and_in_malloc() {
    each_comes_to("early.c", &[(&[], &[])]);
}

#[test]
fn a_library_that_is_closed_again_and_again() {
    let (Some(loads), Some(plugin)) = (program("loads.c"), library("plugin.c")) else { return };
    let arguments: [PathBuf; 2] = [plugin, "work".into()];
    let done = comes_to(&loads, &arguments.each_ref().map(|a| a.as_os_str()), &[]);
    assert_eq!(done, Ok(()));
}
