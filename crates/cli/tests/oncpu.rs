//! `lockstead oncpu`: started, shown, stopped, and refused with a reason.
//!
//! In a child that sees an empty `/run` of its own, so that nothing of the machine's is
//! touched or left.

#[path = "../../linux/tests/common/apart.rs"]
mod apart;

use crate::common::{Outcome, finish, lockstead, run};
use apart::apart;
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::Path;

const FOLDER: &str = "/run/lockstead/oncpu";

/// Runs the command without any privilege.
fn as_nobody(args: &[&str]) -> Outcome {
    let mut command = lockstead(args);
    command.uid(65_534).gid(65_534);
    finish(command.spawn().expect("the command starts"))
}

fn status() -> (i32, Value) {
    let outcome = run(&["oncpu", "status", "--json"]);
    let json: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    crate::common::documented(&json);
    (outcome.status, json)
}

#[test]
fn the_table_is_started_shown_and_stopped() {
    apart("oncpu::the_table_is_started_shown_and_stopped", || {
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
    apart("oncpu::a_start_without_privileges_says_what_is_missing_and_leaves_nothing", || {
        let outcome = as_nobody(&["oncpu", "start"]);
        assert_eq!(outcome.status, 1, "{outcome:?}");
        assert!(outcome.stdout.is_empty(), "{outcome:?}");
        let said = outcome.stderr.contains("CAP_BPF") || outcome.stderr.contains("BTF");
        assert!(said && outcome.stderr.lines().count() == 1, "{outcome:?}");
        assert!(!Path::new("/run/lockstead").exists(), "something is left");
    });
}

#[test]
fn a_stranger_in_the_table_s_place_is_named_and_can_be_removed() {
    apart("oncpu::a_stranger_in_the_table_s_place_is_named_and_can_be_removed", || {
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
