//! The checking build of the fair mutex: what is done wrong is said, with the places, also where calls
//! of the plain mutex meet it; what is done right is not.

use crate::common::{checked, compiler, marked, passes, program};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const DEBUG: &[&str] = &["-DLKS_DEBUG"];

fn misuse() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| program("c/misuse_fair.c", compiler(false), "gnu11", DEBUG))
}

#[test]
fn each_misuse_ends_the_process_or_is_warned_of() {
    for (case, what, places) in [
        ("null-try", "null pointer", &["NULL TRY"][..]),
        ("thread", "unlock by another thread", &["TAKEN HERE", "WRONG THREAD"]),
        ("free", "unlock of an unlocked lock", &["FREE"]),
        ("recursive", "recursion", &["FIRST", "SECOND"]),
        ("init", "initialised while held", &["HELD"]),
        ("destroy", "destroyed while held", &["HELD TOO"]),
        ("kind", "another kind of lock", &["NO SEMAPHORE"]),
        ("condition", "condition wait with an unlocked mutex", &["NOT HELD"]),
    ] {
        for setting in [None, Some("warn")] {
            let (output, said) = checked(misuse(), case, setting);
            assert_eq!(output.status.success(), setting.is_some(), "{case}: {said}");
            assert!(said.contains(&format!("RULE: {what}\n")), "{case}: {said}");
            for comment in places {
                let place = marked("misuse_fair.c", comment);
                assert!(said.contains(&place), "{case}: no {place}: {said}");
            }
        }
    }
}

#[test]
fn what_cannot_go_on_ends_the_process() {
    for (case, what, places) in [
        ("null", "null pointer", &["NULL"][..]),
        ("destroyed", "use after destruction", &["DESTROYED HERE", "USED HERE"]),
    ] {
        let (output, said) = checked(misuse(), case, None);
        assert!(!output.status.success() && said.contains(&format!("RULE: {what}\n")), "{said}");
        for comment in places {
            let place = marked("misuse_fair.c", comment);
            assert!(said.contains(&place), "{case}: no {place}: {said}");
        }
    }
}

/// One of the threads asks for one of the locks by the plain mutex's call: it is the same lock.
#[test]
fn orders_that_can_deadlock_are_reported() {
    let (output, said) = checked(misuse(), "order", None);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("POTENTIAL: lock order inversion of 2 locks"), "{said}");
    for comment in ["FORWARD", "BACKWARD"] {
        assert!(said.contains(&marked("misuse_fair.c", comment)), "{said}");
    }
}

#[test]
fn what_is_done_right_goes_without_a_word() {
    let program = program("c/fair.c", compiler(false), "gnu11", DEBUG);
    passes(&program);
    let (output, said) = checked(&program, "", None);
    assert!(output.status.success() && said.is_empty(), "{said}");
}
