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

/// Says why a storm was not possible here, if it was not for what this system lacks, or does not permit.
fn may_not(errors: &str, has_clocks: bool) -> bool {
    let says = |any: &[&str]| any.iter().any(|why| errors.contains(why));
    // The last one: a limit of no user namespaces at all.
    let right = says(&["not permitted", "Permission denied", "No space left"]);
    let may_not = if errors.contains("cannot make network namespaces") {
        right || says(&["ip: No such file", "not supported", "Unknown device type"])
    } else {
        // Invalid is also what a mistake of the storm's is, so it counts only where there is nothing to be
        // asked for: a kernel without namespaces of time.
        errors.contains("cannot start a client")
            && (right || (!has_clocks && errors.contains("Invalid argument")))
    };
    if may_not {
        println!("skipped: {}", errors.trim());
    }
    may_not
}

#[test]
fn an_argument_that_is_invalid_is_no_missing_right() {
    let invalid = "error: cannot start a client: Invalid argument (os error 22)";
    assert!(!may_not(invalid, true));
    assert!(may_not(invalid, false));
    assert!(may_not("error: cannot start a client: Operation not permitted (os error 1)", true));
    let network =
        |why| format!("error: cannot make network namespaces ({why}); --namespaces needs");
    assert!(may_not(&network("ip: RTNETLINK answers: Operation not permitted"), true));
    assert!(!may_not(&network("ip: Error: argument \"c0\" is wrong"), true));
}

#[test]
fn locks_hold_in_networks_of_their_own_among_clocks_that_differ() {
    let words = ["--namespaces", "--clocks", "--locks", "4", "--clients", "8", "--every", "1"];
    let words = [&words[..], &["--seconds", "4", "--seed", "3", "--json"]].concat();
    let Some((status, output, errors)) = storm(&words) else { return };
    if may_not(&errors, std::path::Path::new("/proc/self/ns/time").exists()) {
        return;
    }
    assert_eq!(status, Some(0), "{output}{errors}");
    let report: serde_json::Value = serde_json::from_str(&output).expect("JSON");
    assert_eq!((&report["served"], &report["ended"]), (&8.into(), &8.into()), "{output}");
    assert_ne!(report["faults"].as_object().map(serde_json::Map::len), Some(0), "{output}");
}

/// A clock of the wall that is another one at each look, by up to a month; says by a file that it was
/// asked for.
const STEPS: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
    long failed = syscall(SYS_clock_gettime, clock, time);
    if (!failed && clock == CLOCK_REALTIME) {
        const char *file = getenv("LOCKSTEAD_TEST_STEPS");
        if (file) close(open(file, O_CREAT | O_WRONLY, 0600));
        time->tv_sec += (rand() % 61 - 30) * 86400L;
    }
    return (int)failed;
}
"#;

#[test]
fn nothing_depends_on_the_clock_of_the_wall() {
    if member::program().is_none() {
        println!("skipped: etcd is not installed");
        return;
    }
    let folder = std::env::temp_dir().join(format!("lockstead-steps-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (source, library) = (folder.join("steps.c"), folder.join("steps.so"));
    std::fs::write(&source, STEPS).expect("a file");
    let cc =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    if !cc.is_ok_and(|status| status.success()) {
        println!("skipped: no C compiler");
        return;
    }
    let asked = folder.join("asked");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstead-cluster"));
    command.args(["storm", "--members", "1", "--locks", "4", "--clients", "8", "--every", "2"]);
    command.args(["--seconds", "4"]);
    command.env("LD_PRELOAD", &library).env("LOCKSTEAD_TEST_STEPS", &asked);
    let output = command.output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(asked.is_file(), "no client has looked at the clock that is stepped");
    let _ = std::fs::remove_dir_all(folder);
}
