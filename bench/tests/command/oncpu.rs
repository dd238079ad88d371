//! `lockstead oncpu check`: the sources against the table.
//!
//! In a child that sees an empty `/run` of its own, so that nothing of the machine's is
//! touched or left.

#[path = "../../../crates/linux/tests/common/apart.rs"]
mod apart;

use crate::common::{Outcome, finish, lockstead, run};
use apart::apart;
use lockstead_linux::oncpu::status;
use lockstead_oncpu::{start, stop};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;

/// Runs the command without any privilege.
fn as_nobody(args: &[&str]) -> Outcome {
    let mut command = lockstead(args);
    command.uid(65_534).gid(65_534);
    finish(command.spawn().expect("the command starts"))
}

const CHECK: [&str; 5] = ["oncpu", "check", "--seconds", "0.1", "--json"];

#[test]
fn sources_are_held_against_the_table() {
    apart("oncpu::sources_are_held_against_the_table", || {
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
        crate::common::documented(&own);
        assert!(own["start_ms"].is_number() && own["switch_added_ns"].is_number(), "{own}");

        // One that is kept is left alone, and anybody may compare with it.
        start().expect("as before");
        let kept = as_nobody(&CHECK);
        assert_eq!(kept.status, 0, "{kept:?}");
        let kept: Value = serde_json::from_str(&kept.stdout).expect("JSON");
        assert!(kept["start_ms"].is_null() && kept["switch_ns"].is_null(), "{kept}");
        let sources = kept["sources"].as_array().expect("sources");
        let names: Vec<_> = sources.iter().map(|source| source["source"].as_str()).collect();
        assert_eq!(names, ["table", "processor", "clock", "both"].map(Some));
        let found = status().expect("readable");
        assert!(found.is_some_and(|table| table.kept), "the check has stopped it");
        assert!(stop().expect("stopped"));
    });
}

#[test]
fn a_table_that_is_stopped_meanwhile_is_no_truth() {
    apart("oncpu::a_table_that_is_stopped_meanwhile_is_no_truth", || {
        if let Err(why) = start() {
            println!("skipped: {why}");
            return;
        }
        let mut check = lockstead(&["oncpu", "check", "--seconds", "1"]);
        let mut check = check.spawn().expect("the command starts");
        // It is well on its way when it says so.
        let said = BufReader::new(check.stderr.take().expect("a pipe"));
        let step = said.lines().map_while(Result::ok).find(|line| line.starts_with("step"));
        assert!(step.is_some(), "it ended early");
        assert!(stop().expect("stopped"));
        let outcome = finish(check);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (1, ""), "{outcome:?}");
    });
}
