//! `lockstead why`.

use super::{numberless, under_check};
use crate::common::{run, text};
use crate::programs::line;
use std::fs;

#[test]
fn a_chain_is_shown_with_both_stacks_of_each_step() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("r.json");
    let Some(_) = under_check(&["--json", text(&file)], &["path"]) else { return };
    let why = |first: &str, second: &str| run(&["why", first, second, text(&file)]);
    let found = why("accounts", "queue");
    assert_eq!(found.status, 0, "{found:?}");
    let shown = numberless(&found.stdout);
    let plain: Vec<&str> = shown.lines().filter(|line| !line.starts_with("      ")).collect();
    let wanted = [
        "accounts comes before queue in checked (pid #), in 2 steps",
        "  1. thread \"transfer\" (tid #)",
        "    asks for journal (mutex), at:",
        "    holds accounts (mutex), acquired at:",
        "  2. thread \"post\" (tid #)",
        "    asks for queue (mutex), at:",
        "    holds journal (mutex), acquired at:",
    ];
    assert_eq!(plain, wanted, "{shown}");
    for (function, mark) in [
        ("transfer", "transfer-wants"),
        ("transfer", "transfer-has"),
        ("post", "post-wants"),
        ("post", "post-has"),
    ] {
        let site = format!("      {function}() at {}\n", line("checked.c", mark));
        assert!(shown.contains(&site), "{site}: {shown}");
    }
    // A part of one name will do.
    assert_eq!(why("acc", "que").stdout, found.stdout);

    let back = why("queue", "accounts");
    assert_eq!(back.status, 1, "{back:?}");
    assert!(back.stderr.contains("nobody was seen to hold queue"), "{back:?}");
    let several = why("u", "queue");
    assert_eq!(several.status, 2, "{several:?}");
    for word in ["`u` is part of several names", "\n  accounts\n", "\n  queue\n", "\n  journal\n"] {
        assert!(several.stderr.contains(word), "{word}: {several:?}");
    }
    let none = why("queue", "nowhere");
    assert_eq!(none.status, 2, "{none:?}");
    assert!(none.stderr.contains("`nowhere` is no lock of this report"), "{none:?}");
}

#[test]
fn an_inversion_is_said_to_be_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("r.json");
    let Some(_) = under_check(&["--json", text(&file)], &["crossed"]) else { return };
    let found = run(&["why", "accounts", "journal", text(&file)]);
    let end = "The other way round as well: lockstead why journal accounts\n";
    assert!(found.stdout.ends_with(end), "{found:?}");
}

#[test]
fn what_is_no_report_is_said_to_be_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("r.json");
    for (content, words) in [
        ("{}", "is no report of `lockstead run --check --json FILE`"),
        ("{\"schema\": \"lockstead-dump\"}", "is a report of lockstead-dump"),
        ("{\"schema\": \"lockstead-run\"}", "has no order of locks"),
    ] {
        fs::write(&file, content).expect("written");
        let outcome = run(&["why", "a", "b", text(&file)]);
        assert_eq!(outcome.status, 1, "{outcome:?}");
        assert!(outcome.stderr.contains(words), "{outcome:?}");
    }
    let absent = folder.path().join("absent");
    assert_eq!(run(&["why", "a", "b", text(&absent)]).status, 1);
}
