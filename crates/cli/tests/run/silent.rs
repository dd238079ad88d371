//! Programs in which nothing is wrong: under `lockstead run` they say and return
//! what they do without it, and lockstead says nothing.

use crate::programs::{Ended, library, program, skip, start, under};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

fn natively(program: &[&OsStr]) -> Ended {
    let mut command = Command::new(program[0]);
    command.args(&program[1..]);
    start(command).end()
}

/// Asserts that a program does the same with lockstead and without.
fn unharmed(program: &[&OsStr]) {
    let without = natively(program);
    for flags in [&["--no-report"][..], &["--no-report", "--no-follow"]] {
        let with = under(flags, program).end();
        assert_eq!(with.stdout, without.stdout, "{flags:?} {program:?}: {}", with.stderr);
        assert_eq!(with.stderr, without.stderr, "{flags:?} {program:?}");
        assert_eq!(with.status, without.status, "{flags:?} {program:?}");
    }
}

/// Asserts the same of a program of `quiet.c`, which says what its status is.
fn quiet(kind: &str) {
    let Some(quiet) = program("quiet.c") else { return };
    let program = [quiet.as_os_str(), kind.as_ref()];
    let status = natively(&program).status.code();
    assert!(status.is_some_and(|code| (40..60).contains(&code)), "{kind}: {status:?}");
    unharmed(&program);
}

macro_rules! quiet {
    ($($name:ident: $kind:literal;)*) => { $(
        #[test]
        fn $name() {
            quiet($kind);
        }
    )* };
}

quiet! {
    recursive_and_checking_mutexes: "types";
    robust_mutexes_whose_owners_die: "robust";
    cancelled_waits: "cancellation";
    two_thousand_short_threads_with_destructors_that_lock: "threads";
    signal_handlers_that_post_and_lock: "signals";
    jumps_out_of_waits: "longjmp";
    children_without_exec: "forks";
    spawned_children: "starts";
    a_program_that_closes_all_descriptors: "closes";
    no_descriptor_is_added: "descriptors";
    a_program_that_goes_to_jail: "jail";
    locks_that_are_freed_with_and_without_destruction: "heap";
    mutexes_that_another_thread_releases: "foreign";
    locks_of_all_kinds_in_good_order: "order";
}

#[test]
fn locks_before_and_after_main_and_in_malloc() {
    let Some(early) = program("early.c") else { return };
    unharmed(&[early.as_os_str()]);
}

#[test]
fn a_library_that_is_closed_again_and_again() {
    let (Some(loads), Some(plugin)) = (program("loads.c"), library("plugin.c")) else { return };
    unharmed(&[loads.as_os_str(), plugin.as_os_str(), "work".as_ref()]);
}

#[test]
fn other_allocators_in_the_same_ld_preload() {
    let Some(quiet) = program("quiet.c") else { return };
    let folder = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let folder = Path::new(&folder);
    for allocator in ["libjemalloc.so.2", "libtcmalloc_minimal.so.4"] {
        let allocator = folder.join(allocator);
        if !allocator.exists() {
            skip(&format!("{} is not installed", allocator.display()));
            continue;
        }
        for kind in ["threads", "heap", "forks"] {
            let run = |mut command: Command| {
                command.env("LD_PRELOAD", &allocator);
                start(command).end()
            };
            let mut command = Command::new(&quiet);
            command.arg(kind);
            let without = run(command);
            let mut command = Command::new(env!("CARGO_BIN_EXE_lockstead"));
            command.args(["run", "--no-report", "--"]).arg(&quiet).arg(kind);
            let with = run(command);
            assert_eq!(
                (with.stdout, with.stderr, with.status),
                (without.stdout, without.stderr, without.status),
                "{} {kind}",
                allocator.display()
            );
        }
    }
}
