//! The checking build's rules for wait/wound mutexes and for doing something once.

use crate::common::{checked, compiler, marked, program};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A rule, the case that breaks it, and the places that the message must name.
const CASES: &[(&str, &str, &[&str])] = &[
    ("unlock", "unlock by another thread", &["TAKEN", "WRONG THREAD"]),
    ("free", "unlock of an unlocked lock", &["FREE"]),
    ("class", "context of another class", &["OF RED", "BLUE", "IN BLUE"]),
    ("ended", "use of an ended context", &["ENDED", "AFTER THE END"]),
    ("ended-twice", "use of an ended context", &["ENDED AGAIN"]),
    ("never", "no context", &["NEVER BEGUN"]),
    ("thread", "context of another thread", &["BEGUN", "WRONG CONTEXT"]),
    ("done", "acquisition after done", &["DONE", "AFTER DONE"]),
    ("done-twice", "done twice", &["DONE FIRST", "DONE AGAIN"]),
    ("no-back-off", "no backing off after a refusal", &["REFUSED", "STILL HOLDS"]),
    ("slow-holding-refused", "no backing off after a refusal", &["REFUSED", "STILL HOLDS A"]),
    ("other-after-refusal", "another lock after a refusal", &["REFUSED", "ANOTHER FIRST"]),
    ("slow-holding", "lock_slow while holding", &["BEGUN", "SLOW HOLDING"]),
    ("slow", "lock_slow without a refusal", &["BEGUN", "SLOW FOR NOTHING"]),
    ("alone", "lock taken alone beside a context", &["BEGUN", "ALONE"]),
    ("recursive", "recursion", &["FIRST", "SECOND"]),
    ("two", "second context of a class", &["BEGUN", "TWO"]),
    ("again", "context begun again", &["BEGUN", "BEGUN AGAIN"]),
    ("unreleased", "context ended while holding", &["ALL", "UNRELEASED"]),
    ("destroyed", "use after destruction", &["DESTROYED", "USED"]),
    ("init", "initialised while held", &["HELD", "INITIALISED"]),
    ("destroy", "destroyed while held", &["TRIED", "DESTROYED HELD"]),
    ("kind", "another kind of lock", &["NOT A WW"]),
    ("null", "null pointer", &["NULL"]),
    ("null-context", "null pointer", &["NULL CONTEXT"]),
    ("null-class", "null pointer", &["NULL CLASS"]),
    ("exit-lock", "thread exit while holding", &["FORGOTTEN"]),
    ("exit-context", "thread exit with a context", &["BEGUN"]),
    ("once-again", "recursion", &["BEGUN ONCE", "BEGUN TWICE"]),
    ("once-other", "end of a turn of another", &["MINE", "NOT THEIRS"]),
    ("once-nobody", "end of a turn of another", &["NOBODY'S"]),
    ("once-null", "null pointer", &["NULL ONCE"]),
];

fn misuse() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| program("c/misuse_ww.c", compiler(false), "gnu11", &["-DLKS_DEBUG"]))
}

#[test]
fn each_misuse_ends_the_process_and_says_what_and_where() {
    for (case, what, places) in CASES {
        let (output, said) = checked(misuse(), case, None);
        assert!(!output.status.success(), "{case}: went on: {said}");
        assert!(said.contains(&format!("RULE: {what}\n")), "{case}: {said}");
        for comment in *places {
            let place = marked("misuse_ww.c", comment);
            // Not the beginning of a longer number.
            let named = said.split(&place).skip(1);
            let named = named.filter(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()));
            assert!(named.count() > 0, "{case}: no {place} ({comment}): {said}");
        }
    }
}

/// Each case then checks that the call did nothing and that what follows works.
#[test]
fn told_to_warn_the_process_goes_on() {
    for (case, what, _) in CASES {
        let (output, said) = checked(misuse(), case, Some("warn"));
        assert!(output.status.success(), "{case}: {said}");
        assert!(said.contains(&format!("RULE: {what}\n")), "{case}: {said}");
    }
}

#[test]
fn a_turn_is_part_of_a_cycle_of_waits() {
    let (output, said) = checked(misuse(), "once-cycle", None);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("DEADLOCK: 2 threads wait for each other\n"), "{said}");
    for comment in ["TURN", "MUTEX", "WAITS FOR THE MUTEX", "WAITS FOR THE TURN"] {
        assert!(said.contains(&marked("misuse_ww.c", comment)), "{comment}: {said}");
    }
}
