//! The storm finds what is broken: evidence that cannot fail is none. Where etcd is not installed, skipped.

use lockstead_cluster::member;
use std::process::Command;

/// Returns status, output and errors of a storm, or `None` where it cannot be.
fn storm(words: &[&str]) -> Option<(Option<i32>, String, String)> {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return None;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstead-cluster"));
    let output = command.arg("storm").args(words).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((output.status.code(), text(&output.stdout), text(&output.stderr)))
}

/// Enough locks for one of them to be hit where it matters at once.
const WIDE: [&str; 8] = ["--members", "1", "--locks", "6", "--clients", "12", "--every", "1"];

#[test]
fn a_register_that_accepts_every_token_is_found() {
    let words = [&WIDE[..], &["--seconds", "40", "--broken", "register"]].concat();
    let Some((status, output, errors)) = storm(&words) else { return };
    assert_eq!(status, Some(1), "{output}{errors}");
    assert!(errors.contains("was accepted after a read by"), "{output}{errors}");
}

#[test]
fn owners_that_do_not_look_at_their_deadline_are_found() {
    let words = [&WIDE[..], &["--seconds", "40", "--broken", "guard"]].concat();
    let Some((status, output, errors)) = storm(&words) else { return };
    assert_eq!(status, Some(1), "{output}{errors}");
    assert!(errors.contains("after this one was in"), "{output}{errors}");
}

#[test]
fn a_storm_that_refused_no_write_says_that_it_is_no_evidence() {
    let calm = ["--members", "1", "--locks", "1", "--clients", "2", "--seconds", "0.5"];
    let words = [&calm[..], &["--every", "10000"]].concat();
    let Some((status, output, errors)) = storm(&words) else { return };
    assert_eq!(status, Some(0), "{output}{errors}");
    assert!(output.contains("no evidence of fencing: the register had no write"), "{output}");
    assert!(output.contains("2 of 2 clients served"), "{output}");
}
