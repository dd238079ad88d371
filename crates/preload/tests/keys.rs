//! A program has all keys of values for threads for itself, and what their destructors
//! do is recorded to the last.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::support::{Library, Observed, compile, run_natively, view};

fn all_keys_are_the_programs(library: Library) {
    let Some(program) = compile("keys") else { return };
    let (expected, status) = run_natively(&program, &[]);
    assert!(status.success(), "natively: {status}, {expected}");
    let mut observed = Observed::start(library, &program, &[]);
    let (said, status) = observed.end();
    assert_eq!((said.as_str(), status.success()), (expected.as_str(), true));
    view::assert_quiet(&observed.ledger());
}

fn locks_in_the_destructors_of_all_keys_are_seen(library: Library) {
    let Some(program) = compile("keys") else { return };
    let mut observed = Observed::start(library, &program, &["stop"]);
    observed.reach("done");
    let facts = view::facts(&observed.ledger(), observed.address("late"));
    assert_eq!(facts.acquisitions, observed.address("locked"));
    view::assert_quiet(&observed.ledger());
    observed.go_on();
    assert!(observed.end().1.success());
}

with_both! { all_keys_are_the_programs, locks_in_the_destructors_of_all_keys_are_seen }
