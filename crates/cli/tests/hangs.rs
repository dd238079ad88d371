//! Programs that hang and know why, in Rust, C and Python, optimised and stripped: nobody is named who does
//! not hold, and those are named whom the word of a lock or a landing pad names.
//!
//! `cargo run -p lockstead-hangs` has all of them, in more languages and built in more ways.

use lockstead_hangs::asking::{Mode, ask};
use lockstead_hangs::builds::{Builds, Program, SHIPPED, WAYS};
use lockstead_hangs::judgement::{Judgement, Verdict};
use std::path::Path;
use std::sync::LazyLock;

const LOCKSTEAD: &str = env!("CARGO_BIN_EXE_lockstead");

/// The programs, and the folder in which they lie.
static BUILT: LazyLock<(tempfile::TempDir, Builds)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let mut builds = Builds::new(folder.path().to_owned());
    builds.std(SHIPPED).expect("the Rust program compiles");
    builds.c(SHIPPED).expect("the C program compiles");
    let others = |family: &str| family != "C++20 atomic wait";
    builds.cpp_but(WAYS[0], others).expect("the C++ program compiles");
    builds.python().expect("the library for Python compiles");
    builds.skipped.iter().for_each(|reason| println!("skipped: {reason}"));
    (folder, builds)
});

/// Asks about a case of a program, if that was built, and looks for what is not so.
fn judged(family: &str, case: &str) -> Option<Judgement> {
    let programs: &[Program] = &BUILT.1.programs;
    let program = programs.iter().find(|program| program.family == family)?;
    match ask(Path::new(LOCKSTEAD), Mode::Dump, program, case) {
        Ok(judgement) => {
            assert!(judgement.wrong.is_empty(), "{family}, {case}: {:?}", judgement.wrong);
            Some(judgement)
        }
        Err(error) if error.contains("status: 1") => {
            println!("skipped: processes may not be read here: {error}");
            None
        }
        Err(error) => panic!("{family}, {case}: {error}"),
    }
}

#[test]
fn nobody_is_named_who_holds_nothing() {
    for case in [
        "dropped",
        "bystander",
        "condition",
        "condition_once",
        "taking_back",
        "working_off",
        "lost_wake_up",
        "leaked",
    ] {
        judged("Rust std", case);
    }
    judged("C", "lost_wake_up");
}

#[test]
fn who_lets_others_change_a_name_of_python_is_not_named() {
    for case in ["attribute_changed", "global_changed", "changed_in_manager", "by_alias"] {
        judged("Python", case);
    }
    let Some(judgement) = judged("Python", "in_slot") else { return };
    assert_eq!(judgement.right.get("pad"), Some(&2), "nobody changes it: {judgement:?}");
}

#[test]
fn a_guard_that_another_thread_would_empty_names_nobody() {
    let Some(judgement) = judged("C++20 atomic wait", "filled_by_another") else { return };
    assert_eq!((judgement.may_hold, judgement.owners()), (1, 2), "{judgement:?}");
}

#[test]
fn owners_in_words_are_named() {
    let Some(judgement) = judged("C", "pthread") else { return };
    assert_eq!(judgement.right.get("word"), Some(&2), "{judgement:?}");
    assert_eq!(judgement.verdict, Verdict::Deadlock);
}

#[test]
fn owners_with_landing_pads_are_named() {
    for case in
        ["abba", "field", "vector", "closure", "temporary", "deep", "ring", "dropped", "condition"]
    {
        let Some(judgement) = judged("Rust std", case) else { return };
        assert_eq!(judgement.right.get("pad"), Some(&judgement.owners()), "{case}: {judgement:?}");
        assert_eq!(judgement.verdict, Verdict::Deadlock, "{case}");
    }
}
