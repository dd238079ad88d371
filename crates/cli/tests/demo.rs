//! The demonstration, and the features.

use crate::common::{run, succeed, text};
use serde_json::Value;

#[test]
fn the_demo_shows_a_deadlock_as_it_closes_and_a_program_that_hangs() {
    if std::process::Command::new("cc").arg("--version").output().is_err() {
        eprintln!("skipped: there is no C compiler");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let outcome = run(&["demo", "--seconds=0.2", "--dir", text(folder.path())]);
    if outcome.status == 127 && outcome.stderr.contains("lockstead-bench") {
        eprintln!("skipped: lockstead-bench is not built; `cargo test --workspace` builds it");
        return;
    }
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let (under_run, rest) = outcome.stdout.split_once("2. a Rust program").expect("C and Rust");
    let (rust, rest) = rest.split_once("3. a Python program").expect("Rust and Python");
    let (python, rest) = rest.split_once("4. a program").expect("Python and the one that hangs");
    shows(
        under_run,
        &[
            "lockstead: DEADLOCK: 2 threads wait for each other, in transfer",
            "thread \"saver\"",
            "thread \"spender\"",
            "waits for savings.lock",
            "holds current.lock",
            "transfer() at transfer.c:",
        ],
        &["auditor", "journal"],
    );
    if is_there("rustc", rust) {
        shows(
            rust,
            &[
                "lockstead: DEADLOCK: 2 threads wait for each other, in orders",
                "thread \"seller\"",
                "thread \"counter\"",
                "waits for Rust std::sync::Mutex",
                "the landing pad of orders::sell() would unlock it",
                "orders::count() at orders.rs:34",
            ],
            &["clerk"],
        );
    }
    if is_there("python3", python) {
        shows(
            python,
            &[
                "lockstead: DEADLOCK: 2 threads wait for each other, in python",
                "threading.Lock",
                "cook() at kitchen.py:20",
                "wash() at kitchen.py:27",
            ],
            &["serve"],
        );
    }
    let (dumped, _) = rest.split_once("5. creat").expect("the measurements");
    shows(
        dumped,
        &["lockstead: DEADLOCK: 3 threads", "\"reader\"", "\"parser\"", "\"writer\"", "stage[1]"],
        &["heartbeat"],
    );
}

/// Asserts that a part of the demonstration has each of `words` and nothing of `bystanders`.
#[track_caller]
fn shows(part: &str, words: &[&str], bystanders: &[&str]) {
    let (_, printed) = part.split_once('$').expect("a command is shown");
    for word in words {
        assert!(printed.contains(word), "no {word:?} in\n{part}");
    }
    for bystander in bystanders {
        assert!(!printed.contains(bystander), "{bystander} in\n{part}");
    }
}

/// Tells whether a tool that a part needs works here; the part must say so if it does not.
#[track_caller]
fn is_there(tool: &str, part: &str) -> bool {
    let answer = std::process::Command::new(tool).arg("--version").output();
    let works = answer.is_ok_and(|answer| answer.status.success());
    assert_eq!(!works, part.contains("left out"), "{part}");
    if !works {
        eprintln!("skipped: there is no {tool}");
    }
    works
}

#[test]
fn features_say_what_is_in_use_and_what_falls_back() {
    let table = succeed(&["features"]).stdout;
    let json: Value = serde_json::from_str(&succeed(&["features", "--json"]).stdout).expect("JSON");
    crate::common::documented(&json);
    assert!(json["machine"]["kernel"].is_string());
    assert!(json["processors"]["effective"].as_u64().is_some_and(|n| n >= 1));
    assert!(json["seccomp"].is_string());
    let facilities = json["facilities"].as_array().expect("facilities");
    assert!(facilities.iter().any(|f| f["in_use"] == true), "nothing is in use: {facilities:?}");
    for facility in facilities {
        let name = facility["name"].as_str().expect("a name");
        assert!(table.contains(name), "{name} is not in the table:\n{table}");
        assert!(facility["offered"].is_boolean() && facility["in_use"].is_boolean());
        assert!(facility["in_use"] == false || facility["offered"] == true, "{facility}");
        for key in ["detail", "fallback"] {
            let text = facility[key].as_str().expect(key);
            assert!(!text.is_empty(), "{facility}");
            assert!(
                key == "detail"
                    || facility["in_use"] == true
                    || table.contains(text.trim_end_matches('.'))
            );
        }
    }
    assert!(json["capabilities"].as_array().is_some_and(|all| !all.is_empty()));
    let Some(locks) = json["locks"].as_array() else {
        assert!(table.contains("there is no lockstead-bench"), "{table}");
        return;
    };
    let absent = json["locks_absent"].as_array().expect("locks_absent").len();
    assert_eq!(locks.len() + absent, 17);
}

#[test]
fn colour_is_for_terminals_and_for_those_who_want_it() {
    let run = |variables: &[(&str, &str)]| {
        let mut command = crate::common::lockstead(&["features"]);
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").envs(variables.iter().copied());
        crate::common::finish(command.spawn().expect("the command starts"))
            .stdout
            .contains('\u{1b}')
    };
    assert!(!run(&[]), "colour into a pipe");
    assert!(run(&[("CLICOLOR_FORCE", "1")]), "no colour at all: the rest tests nothing");
    assert!(!run(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
}
