//! The checking build finds threads that wait for each other, and locks that end with
//! their threads.

use crate::common::{checked, compiler, marked, program};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

fn cycles() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| program("c/cycles.c", compiler(false), "gnu11", &["-DLKS_DEBUG"]))
}

#[test]
fn threads_that_wait_for_each_other_are_named_and_end_the_process() {
    for (case, count) in [("two", 2), ("three", 3), ("rwlock", 2)] {
        let (output, said) = checked(cycles(), case, None);
        assert!(!output.status.success(), "{case}: {said}");
        let headline = format!("DEADLOCK: {count} threads wait for each other\n");
        assert!(said.contains(&headline), "{case}: {said}");
        let (_, said) = said.split_once(&headline).expect("just seen");
        if case != "rwlock" {
            for comment in ["HELD", "WANTED"] {
                let place = marked("cycles.c", comment);
                assert_eq!(said.matches(&place).count(), count, "{case}, {comment}: {said}");
            }
        }
    }
}

/// An order that can deadlock is told of; a deadlock that is none is not.
#[test]
fn a_wait_that_ends_by_itself_closes_no_cycle() {
    let (output, said) = checked(cycles(), "patient", None);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("DEADLOCK"), "{said}");
}

#[test]
fn a_thread_that_ends_with_a_lock_is_reported() {
    for (case, comment) in [("leaver", "LEFT"), ("reader", "READ AND LEFT")] {
        let (output, said) = checked(cycles(), case, None);
        assert!(!output.status.success(), "{case}: {said}");
        assert!(said.contains("RULE: thread exit while holding\n"), "{case}: {said}");
        assert!(said.contains(&marked("cycles.c", comment)), "{case}: {said}");
        let (output, said) = checked(cycles(), case, Some("warn"));
        assert!(output.status.success(), "{case}: {said}");
    }
}
