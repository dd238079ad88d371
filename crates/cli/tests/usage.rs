//! Bad usage: status 2, the option by name, what is allowed, nothing on
//! standard output and nothing left behind.

use crate::common::{entries, run, succeed};

/// Runs with a folder as its temporary one and expects status 2 and `words`.
fn refuse(args: &[&str], words: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let child = crate::common::lockstead(args)
        .env("TMPDIR", folder.path())
        .current_dir(folder.path())
        .spawn()
        .expect("the command starts");
    let outcome = crate::common::finish(child);
    assert_eq!(outcome.status, 2, "{args:?}: {outcome:?}");
    assert_eq!(outcome.stdout, "", "{args:?}");
    for word in words {
        assert!(outcome.stderr.contains(word), "{args:?}: no {word:?} in {}", outcome.stderr);
    }
    assert_eq!(entries(folder.path()), [""; 0], "{args:?} left files");
}

#[test]
fn mistyped_options_before_a_program_are_not_its_name() {
    for (args, wrong, tip) in [
        (&["run", "--chek", "--", "/bin/true"][..], "--chek", "'--check'"),
        (&["run", "--chek", "/bin/true"], "--chek", "'--check'"),
        (&["run", "--check", "--stric", "--", "/bin/true"], "--stric", "'--strict'"),
        (&["run", "--jsno", "x.json", "/bin/true"], "--jsno", "'--json'"),
        (&["run", "--jsno=x.json", "--", "/bin/true"], "--jsno", "'--json'"),
        // Nothing is like these, and a program may have such a name.
        (&["run", "-x", "--", "/bin/true"], "'-x'", "'-- -x'"),
        (&["run", "-no-such-program"], "'-n'", "'-- -n"),
    ] {
        refuse(args, &[wrong, tip, "lockstead run", "--help"]);
    }
    refuse(&["run", "--check"], &["PROGRAM"]);
    refuse(&["run", "--check", "--"], &["PROGRAM"]);
}

#[test]
fn what_begins_with_a_hyphen_is_the_programs_behind_its_name_or_two_hyphens() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("--check");
    let own_name = "#!/bin/sh\nprintf '%s ' \"$@\"\n";
    std::fs::write(&script, own_name).expect("a script");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("its mode");
    for (args, expected) in [
        (&["--", "--check", "--strict", "--", "-x"][..], "--strict -- -x "),
        (&["--", "./--check", "--", "--"], "-- -- "),
        (&["./--check", "--chek", "--json", "-", "--", "--strict"], "--chek --json - -- --strict "),
        (&["--no-follow", "./--check", "--help", "--no-report"], "--help --no-report "),
    ] {
        let child = crate::common::lockstead(&[&["run", "--no-report"], args].concat())
            .env("PATH", folder.path())
            .current_dir(folder.path())
            .spawn()
            .expect("the command starts");
        let outcome = crate::common::finish(child);
        assert_eq!((outcome.status, &*outcome.stdout), (0, expected), "{args:?}: {outcome:?}");
    }
    // Only a hyphen: a name, and of nothing here.
    assert_eq!(run(&["run", "-"]).status, 127);
}

#[test]
fn options_that_do_not_exist() {
    refuse(&["pipes"], &["pipes"]);
    refuse(&["dump", "--task", "4"], &["--task"]);
    refuse(&[], &["Usage"]);
}

#[test]
fn help_and_version() {
    let help = succeed(&["--help"]).stdout;
    for word in ["Exit status", "130", "demo", "bench", "features", "plot"] {
        assert!(help.contains(word), "{help}");
    }
    assert!(succeed(&["--version"]).stdout.starts_with("lockstead 0."));
    for command in ["features", "run", "dump"] {
        let help = succeed(&[command, "--help"]).stdout;
        assert!(help.contains("Examples:"), "{command:?}: {help}");
        assert_eq!(succeed(&["help", command]).stdout, help);
    }
    assert_eq!(run(&["help", "pipes"]).status, 2);
}
