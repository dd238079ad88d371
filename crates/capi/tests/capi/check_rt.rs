//! The checking build of the real-time mutexes: what is done wrong is said, with the
//! places; what is done right is not.

use crate::common::{checked, compiler, marked, program};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

fn misuse() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| program("c/misuse_rt.c", compiler(false), "gnu11", &["-DLKS_DEBUG"]))
}

#[test]
fn each_misuse_ends_the_process_or_is_warned_of() {
    for (case, what, places) in [
        ("null", "null pointer", &["NULL"][..]),
        ("null-unlock", "null pointer", &["NULL UNLOCK"]),
        ("null-init", "null pointer", &["NULL INIT"]),
        ("destroyed", "use after destruction", &["DESTROYED HERE", "USED HERE"]),
        ("thread", "unlock by another thread", &["TAKEN HERE", "WRONG THREAD"]),
        ("thread-recursive", "unlock by another thread", &["TAKEN HERE TOO", "WRONG THREAD TOO"]),
        ("free", "unlock of an unlocked lock", &["FREE"]),
        ("often", "unlock of an unlocked lock", &["ONCE TOO OFTEN"]),
        ("recursive", "recursion", &["FIRST", "SECOND"]),
        ("init", "initialised while held", &["HELD"]),
        ("destroy", "destroyed while held", &["HELD TOO"]),
        ("kind", "another kind of lock", &["NO SUCH"]),
    ] {
        for setting in [None, Some("warn")] {
            let (output, said) = checked(misuse(), case, setting);
            assert_eq!(output.status.success(), setting.is_some(), "{case}: {said}");
            assert!(said.contains(&format!("RULE: {what}\n")), "{case}: {said}");
            for comment in places {
                let place = marked("misuse_rt.c", comment);
                assert!(said.contains(&place), "{case}: no {place}: {said}");
            }
        }
    }
}

#[test]
fn orders_that_can_deadlock_are_reported() {
    let (output, said) = checked(misuse(), "order", None);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("POTENTIAL: lock order inversion of 2 locks"), "{said}");
    for comment in ["FORWARD", "BACKWARD"] {
        assert!(said.contains(&marked("misuse_rt.c", comment)), "{said}");
    }
}

#[test]
fn what_is_done_right_goes_without_a_word() {
    let (output, said) = checked(misuse(), "well", None);
    assert!(output.status.success(), "{said}");
    assert_eq!(said, "");
}
