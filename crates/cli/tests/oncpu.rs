//! `lockstead oncpu`: started, shown, stopped, and refused with a reason.
//!
//! In a child that sees an empty `/run` of its own, so that nothing of the machine's is
//! touched or left.

#[path = "../../linux/tests/common/apart.rs"]
mod apart;
mod common;

use apart::apart;
use common::{Outcome, finish, lockstead, run};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;

const FOLDER: &str = "/run/lockstead/oncpu";

/// The command without any privilege.
fn as_nobody(args: &[&str]) -> Outcome {
    let mut command = lockstead(args);
    command.uid(65_534).gid(65_534);
    finish(command.spawn().expect("the command starts"))
}

fn status() -> (i32, Value) {
    let outcome = run(&["oncpu", "status", "--json"]);
    let json: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    common::documented(&json);
    (outcome.status, json)
}

#[test]
fn the_table_is_started_shown_and_stopped() {
    apart("the_table_is_started_shown_and_stopped", || {
        let (code, json) = status();
        assert_eq!((code, &json["kept"], &json["bytes"]), (3, &false.into(), &Value::Null));
        assert_eq!(run(&["oncpu", "status"]).status, 3);

        let started = run(&["oncpu", "start"]);
        if started.status != 0 {
            assert!(!Path::new("/run/lockstead").exists(), "{started:?}");
            println!("skipped: {}", started.stderr.trim());
            return;
        }
        assert!(started.stdout.contains(FOLDER) && started.stderr.is_empty(), "{started:?}");
        let (code, json) = status();
        assert_eq!((code, &json["kept"], &json["path"]), (0, &true.into(), &FOLDER.into()));
        assert!(json["started"].as_str().is_some_and(|at| at.ends_with('Z')), "{json}");
        assert_eq!(run(&["oncpu", "start"]).stdout, started.stdout, "a second start");

        for (args, wanted) in [(&["oncpu", "status"][..], 0), (&["oncpu", "stop"], 1)] {
            let outcome = as_nobody(args);
            assert_eq!(outcome.status, wanted, "{args:?} as nobody: {outcome:?}");
        }
        let features = as_nobody(&["features", "--json"]);
        let features: Value = serde_json::from_str(&features.stdout).expect("JSON");
        let table = features["facilities"]
            .as_array()
            .and_then(|all| all.iter().find(|facility| facility["name"] == "oncpu_table").cloned());
        assert_eq!(table.expect("listed")["in_use"], true, "locks do not use it");

        let stopped = run(&["oncpu", "stop"]);
        assert_eq!((stopped.status, stopped.stderr.as_str()), (0, ""), "{stopped:?}");
        assert!(!Path::new("/run/lockstead").exists(), "something is left");
        assert_eq!(status().0, 3);
        assert_eq!(run(&["oncpu", "stop"]).status, 0, "a second stop");
    });
}

#[test]
fn a_start_without_privileges_says_what_is_missing_and_leaves_nothing() {
    apart("a_start_without_privileges_says_what_is_missing_and_leaves_nothing", || {
        let outcome = as_nobody(&["oncpu", "start"]);
        assert_eq!(outcome.status, 1, "{outcome:?}");
        assert!(outcome.stdout.is_empty(), "{outcome:?}");
        let said = outcome.stderr.contains("CAP_BPF") || outcome.stderr.contains("BTF");
        assert!(said && outcome.stderr.lines().count() == 1, "{outcome:?}");
        assert!(!Path::new("/run/lockstead").exists(), "something is left");
    });
}

/// Starts the table, or says why it cannot be.
fn starts() -> bool {
    let started = run(&["oncpu", "start"]);
    if started.status != 0 {
        println!("skipped: {}", started.stderr.trim());
    }
    started.status == 0
}

const CHECK: [&str; 5] = ["oncpu", "check", "--seconds", "0.1", "--json"];

#[test]
fn sources_are_held_against_the_table() {
    apart("sources_are_held_against_the_table", || {
        let refused = as_nobody(&CHECK);
        assert_eq!((refused.status, refused.stdout.as_str()), (1, ""), "{refused:?}");
        assert!(refused.stderr.contains("no table to compare with"), "{refused:?}");

        // A table of its own, which is gone afterwards.
        let own = run(&CHECK);
        if own.status != 0 {
            println!("skipped: {}", own.stderr.trim());
            return;
        }
        assert!(!Path::new("/run/lockstead").exists(), "something is left");
        let own: Value = serde_json::from_str(&own.stdout).expect("JSON");
        common::documented(&own);
        assert!(own["start_ms"].is_number() && own["switch_added_ns"].is_number(), "{own}");

        // One that is kept is left alone, and anybody may compare with it.
        assert!(starts());
        let kept = as_nobody(&CHECK);
        assert_eq!(kept.status, 0, "{kept:?}");
        let kept: Value = serde_json::from_str(&kept.stdout).expect("JSON");
        assert!(kept["start_ms"].is_null() && kept["switch_ns"].is_null(), "{kept}");
        let sources = kept["sources"].as_array().expect("sources");
        let names: Vec<_> = sources.iter().map(|source| source["source"].as_str()).collect();
        assert_eq!(names, ["table", "processor", "clock", "both"].map(Some));
        assert_eq!((status().0, run(&["oncpu", "stop"]).status), (0, 0));
    });
}

#[test]
fn a_table_that_is_stopped_meanwhile_is_no_truth() {
    apart("a_table_that_is_stopped_meanwhile_is_no_truth", || {
        if !starts() {
            return;
        }
        let mut check = lockstead(&["oncpu", "check", "--seconds", "1"]);
        let mut check = check.spawn().expect("the command starts");
        // It is well on its way when it says so.
        let said = BufReader::new(check.stderr.take().expect("a pipe"));
        let step = said.lines().map_while(Result::ok).find(|line| line.starts_with("step"));
        assert!(step.is_some(), "it ended early");
        assert_eq!(run(&["oncpu", "stop"]).status, 0);
        let outcome = finish(check);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (1, ""), "{outcome:?}");
    });
}

#[test]
fn a_stranger_in_the_table_s_place_is_named_and_can_be_removed() {
    apart("a_stranger_in_the_table_s_place_is_named_and_can_be_removed", || {
        std::fs::create_dir_all(FOLDER).expect("a folder");
        std::fs::write(format!("{FOLDER}/table"), "no table").expect("a file");
        for what in ["status", "start"] {
            let outcome = run(&["oncpu", what]);
            assert_eq!(outcome.status, 1, "{outcome:?}");
            assert!(outcome.stderr.contains("oncpu stop"), "{outcome:?}");
        }
        let refused = as_nobody(&["oncpu", "stop"]);
        assert!(refused.status == 1 && refused.stderr.contains("this needs root"), "{refused:?}");
        assert_eq!(run(&["oncpu", "stop"]).status, 0);
        assert!(!Path::new("/run/lockstead").exists(), "something is left");
    });
}

#[test]
fn help_and_wrong_usage() {
    let help = run(&["oncpu", "--help"]);
    assert_eq!(help.status, 0);
    for wanted in ["start", "stop", "status", "Exit status:", "CAP_BPF"] {
        assert!(help.stdout.contains(wanted), "{wanted}: {}", help.stdout);
    }
    assert_eq!(run(&["oncpu"]).status, 2);
    assert_eq!(run(&["oncpu", "restart"]).status, 2);
    assert_eq!(run(&["oncpu", "start", "--json"]).status, 2);
}
