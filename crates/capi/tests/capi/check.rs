//! The checking build: what is done wrong is said, with the places; what is done right
//! is not.

use crate::common::{checked as run, compiler, marked, passes, program};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const DEBUG: &[&str] = &["-DLKS_DEBUG"];

fn misuse() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| program("c/misuse.c", compiler(false), "gnu11", DEBUG))
}

/// Returns `misuse.c:LINE` of the line with this comment.
fn place(comment: &str) -> String {
    marked("misuse.c", comment)
}

#[test]
fn each_misuse_ends_the_process_and_says_what_and_where() {
    let program = misuse();
    for (case, what, places) in [
        ("null", "null pointer", &["NULL"][..]),
        ("null-semaphore", "null pointer", &["NULL SEMAPHORE"]),
        ("null-condition", "null pointer", &["NULL CONDITION"]),
        ("destroyed", "use after destruction", &["DESTROYED HERE", "USED HERE"]),
        ("thread", "unlock by another thread", &["TAKEN HERE", "WRONG THREAD"]),
        ("free", "unlock of an unlocked lock", &["FREE"]),
        ("recursive", "recursion", &["FIRST", "SECOND"]),
        ("reader", "another way of holding", &["NOT A WRITER"]),
        ("init", "initialised while held", &["HELD"]),
        ("destroy", "destroyed while held", &["HELD TOO"]),
        ("kind", "another kind of lock", &["NO SEMAPHORE"]),
        ("condition", "condition wait with an unlocked mutex", &["NOT HELD"]),
    ] {
        let (output, said) = run(program, case, None);
        assert!(!output.status.success(), "{case}: went on: {said}");
        assert!(said.contains(&format!("RULE: {what}\n")), "{case}: {said}");
        for comment in places {
            assert!(said.contains(&place(comment)), "{case}: no {}: {said}", place(comment));
        }
    }
    let (_, said) = run(program, "thread", None);
    assert!(said.contains("mutex `mutex`"), "the argument of init is the name: {said}");
}

#[test]
fn told_to_warn_the_process_goes_on_where_it_can() {
    let program = misuse();
    for case in ["free", "recursive", "reader", "kind", "destroyed", "condition"] {
        let (output, said) = run(program, case, Some("warn"));
        assert!(output.status.success(), "{case}: {said}");
        assert!(said.contains("RULE: "), "{case}: {said}");
    }
}

#[test]
fn orders_that_can_deadlock_are_reported() {
    let (output, said) = run(misuse(), "order", None);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("POTENTIAL: lock order inversion of 2 locks"), "{said}");
    for comment in ["FORWARD", "BACKWARD"] {
        assert!(said.contains(&place(comment)), "{said}");
    }
}

#[test]
fn what_is_done_right_goes_without_a_word() {
    for (source, standard) in [
        ("c/semaphore.c", "gnu11"),
        ("c/cond.c", "gnu11"),
        ("c/threads.c", "gnu11"),
        ("c/kernel.c", "gnu11"),
        ("cpp/standard.cc", "c++17"),
    ] {
        let program = program(source, compiler(source.ends_with(".cc")), standard, DEBUG);
        passes(&program);
        let (_, said) = run(&program, "", None);
        assert_eq!(said, "", "{source}");
    }
}
