//! The subcommands of `lockstead-bench`: found beside the command or in PATH, and missed.

use crate::common::{Outcome, finish, start_copy};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a copy of the command that has no neighbours, with `path` as PATH.
fn alone(folder: &Path, path: &Path, args: &[&str]) -> Outcome {
    let copy = folder.join("lockstead");
    fs::copy(env!("CARGO_BIN_EXE_lockstead"), &copy).expect("a copy");
    let mut command = Command::new(copy);
    command.args(args).env("PATH", path).env_remove("CARGO");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(start_copy(&mut command))
}

/// Puts a program of this name there that prints its arguments and ends with status 7.
fn program(folder: &Path) {
    let file = folder.join("lockstead-bench");
    fs::write(&file, "#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 7\n").expect("a script");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("its mode");
}

#[test]
fn its_arguments_and_status_are_handed_on() {
    let (folder, path) =
        (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("one"));
    program(path.path());
    for (args, expected) in [
        (&["bench", "vfs", "--json", "-x=1"][..], "<bench><vfs><--json><-x=1>"),
        (&["bench"], "<bench>"),
        (&["--color", "never", "sim", "--list"], "<--color=never><sim><--list>"),
        (&["plot", "-", "-o", "-"], "<plot><-><-o><->"),
        (&["sim", "--help"], "<sim><--help>"),
        (&["oncpu", "check", "--seconds", "1"], "<oncpu><check><--seconds><1>"),
        (&["help", "bench", "vfs"], "<bench><vfs><--help>"),
        (&["help", "oncpu", "check"], "<oncpu><check><--help>"),
    ] {
        let outcome = alone(folder.path(), path.path(), args);
        assert_eq!((outcome.status, &*outcome.stdout), (7, expected), "{args:?}: {outcome:?}");
    }
    // The neighbour comes first.
    program(folder.path());
    fs::write(path.path().join("lockstead-bench"), "no program").expect("a file");
    assert_eq!(alone(folder.path(), path.path(), &["explain"]).stdout, "<explain>");
}

#[test]
fn without_it_the_command_says_what_is_missing() {
    let (folder, path) =
        (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("one"));
    for args in [&["demo"][..], &["bench", "vfs"], &["help", "sim"], &["oncpu", "check"]] {
        let outcome = alone(folder.path(), path.path(), args);
        assert_eq!((outcome.status, &*outcome.stdout), (127, ""), "{args:?}: {outcome:?}");
        for word in ["lockstead-bench", "PATH", "cargo install --path bench"] {
            assert!(outcome.stderr.contains(word), "no {word}: {outcome:?}");
        }
    }
    let features = alone(folder.path(), path.path(), &["features"]);
    assert_eq!(features.status, 0, "{features:?}");
    assert!(features.stdout.contains("there is no lockstead-bench"), "{features:?}");
    let help = alone(folder.path(), path.path(), &["help", "oncpu"]);
    assert!(help.stdout.contains("check"), "{help:?}");
}
