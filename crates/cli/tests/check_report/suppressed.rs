//! Findings that are not wanted.

use super::{INVERSION, heads, under_check};
use crate::common::{run, text};
use std::fs;

#[test]
fn a_suggestion_suppresses_what_it_was_made_of() {
    let folder = tempfile::tempdir().expect("a folder");
    let [json, list] = ["r.json", "list.toml"].map(|name| folder.path().join(name));
    let Some(ended) = under_check(&["--json", text(&json)], &["crossed", "unlock"]) else {
        return;
    };
    assert_eq!(heads(&ended.stderr).len(), 2, "{}", ended.stderr);
    let suggested = run(&["check", "--suggest", text(&json)]);
    assert_eq!(suggested.status, 0, "{suggested:?}");
    let blocks = suggested.stdout.matches("[[suppress]]").count();
    assert_eq!(blocks, 2, "{}", suggested.stdout);
    assert!(suggested.stdout.contains(&format!("# {INVERSION}\n")), "{}", suggested.stdout);
    fs::write(&list, &suggested.stdout).expect("written");

    let flags = ["--suppressions", text(&list), "--json", text(&json)];
    let Some(ended) = under_check(&flags, &["crossed", "unlock", "fails"]) else { return };
    assert_eq!(heads(&ended.stderr), [""; 0], "{}", ended.stderr);
    assert!(ended.stderr.contains("nothing was found"), "{}", ended.stderr);
    assert!(ended.stderr.contains("\n  2 findings suppressed\n"), "{}", ended.stderr);
    assert_eq!(ended.status.code(), Some(7), "it is the program's again");
    // The report has them, and says by what they were left out.
    let report = fs::read_to_string(&json).expect("a report");
    assert!(report.contains(&format!("\"suppressed\": \"{}:", text(&list))), "{report}");

    // Of a program without them the file fits nothing, which is said.
    let Some(ended) = under_check(&["--suppressions", text(&list)], &["path"]) else { return };
    assert_eq!(ended.stderr.matches("this suppression fitted nothing").count(), 2);
    assert!(ended.stderr.contains(&format!("  {}:5: this", text(&list))), "{}", ended.stderr);
    assert_eq!(ended.status.code(), Some(0));
}

#[test]
fn what_is_wrong_with_a_file_is_said_before_the_program_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let list = folder.path().join("list.toml");
    fs::write(&list, "# mine\n[[suppress]]\nrule = \"recursoin\"\n").expect("written");
    let Some(ended) = under_check(&["--suppressions", text(&list)], &["path"]) else { return };
    assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(2), ""));
    let words = format!("error: {}:3: there is no rule `recursoin`", text(&list));
    assert!(ended.stderr.starts_with(&words), "{}", ended.stderr);
    let absent = folder.path().join("absent");
    let Some(ended) = under_check(&["--suppressions", text(&absent)], &["path"]) else { return };
    assert_eq!(ended.status.code(), Some(2));
    assert!(ended.stderr.contains("'--suppressions': No such file"), "{}", ended.stderr);
}

#[test]
fn a_kept_report_is_judged_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let [json, list] = ["r.json", "list.toml"].map(|name| folder.path().join(name));
    let Some(_) = under_check(&["--json", text(&json)], &["crossed", "unlock"]) else { return };
    let all = run(&["check", text(&json)]);
    assert_eq!((heads(&all.stdout).len(), all.status), (2, 3), "{all:?}");
    fs::write(&list, "[[suppress]]\nat = ['transfer']\n").expect("written");
    let rest = run(&["check", "--suppressions", text(&list), text(&json)]);
    assert_eq!(heads(&rest.stdout), ["lockstead: RULE: unlock of an unlocked lock"]);
    fs::write(&list, "[[suppress]]\nat = ['*.c']\n").expect("written");
    let none = run(&["check", "--suppressions", text(&list), text(&json)]);
    assert_eq!((none.stdout.as_str(), none.status), ("", 0), "{none:?}");
}
