//! What is refused, and what is said instead.

use crate::common::{run, text};

#[test]
fn flags_that_need_check_say_so() {
    for flags in
        [&["--strict"][..], &["--sleepy"], &["--suppressions", "x"], &["--sarif", "/dev/null"]]
    {
        let outcome = run(&[&["run"], flags, &["--", "true"]].concat());
        assert_eq!(outcome.status, 2, "{flags:?}: {outcome:?}");
        let words = format!("'{}' is about what --check finds; add --check", flags[0]);
        assert!(outcome.stderr.contains(&words), "{outcome:?}");
    }
}

#[test]
fn a_report_of_a_run_that_did_not_check_is_not_a_clean_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("x.json");
    for (flags, status) in [(&["--check"][..], 0), (&[], 1)] {
        let flags = [&["run", "--no-report"], flags, &["--json", text(&file), "--", "true"]];
        assert_eq!(run(&flags.concat()).status, 0);
        let outcome = run(&["check", text(&file)]);
        assert_eq!((outcome.status, &*outcome.stdout), (status, ""), "{outcome:?}");
        assert_eq!(outcome.stderr.contains("made without --check"), status == 1, "{outcome:?}");
    }
}

#[test]
fn files_that_cannot_be_written_are_refused_first() {
    for option in ["--sarif", "--report-file"] {
        let outcome = run(&["run", "--check", option, "-", "--", "true"]);
        assert_eq!(outcome.status, 2, "{outcome:?}");
        assert!(outcome.stderr.contains("belongs to the program"), "{outcome:?}");
        let outcome = run(&["run", "--check", option, "/absent/x", "--", "true"]);
        assert_eq!(outcome.status, 2, "{outcome:?}");
        assert!(outcome.stderr.contains(option), "{outcome:?}");
    }
}

#[test]
fn two_reports_do_not_go_to_one_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("x");
    let flags = ["run", "--check", "--json", text(&file), "--sarif", text(&file), "--", "true"];
    let outcome = run(&flags);
    assert_eq!(outcome.status, 2, "{outcome:?}");
    assert!(outcome.stderr.contains("'--sarif': --json writes this file"), "{outcome:?}");
    assert!(!file.exists());
}

#[test]
fn all_rules_are_listed_with_what_they_mean() {
    let listed = run(&["check", "--list-rules"]);
    assert_eq!(listed.status, 0, "{listed:?}");
    let ids = listed.stdout.lines().filter(|line| !line.starts_with(' ')).count();
    assert_eq!((ids, listed.stdout.lines().count()), (28, 84));
    for id in ["deadlock\n", "lock-order-inversion\n", "use-in-a-child-of-a-lock-held-at-fork\n"] {
        assert!(listed.stdout.contains(id), "{id}");
    }
}

#[test]
fn a_report_is_needed_and_has_to_be_one() {
    let outcome = run(&["check"]);
    assert_eq!(outcome.status, 2, "{outcome:?}");
    assert!(outcome.stderr.contains("--list-rules"), "{outcome:?}");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("x.json");
    std::fs::write(&file, "[1").expect("written");
    let outcome = run(&["check", text(&file)]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
}
