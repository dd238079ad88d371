//! A program that calls every function, above all where its answer is not plain,
//! gets the same answers with the library under it.

#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use crate::support::{Observed, compile, run_natively};
use lockstead_ledger::ledger::LedgerPart;

fn assert_same_answers(name: &str, lines: usize) {
    let Some(program) = compile(name) else { return };
    let (expected, end) = run_natively(&program, &[]);
    assert!(expected.lines().count() > lines, "{name} said too little: {end}");
    let mut observed = Observed::start(&program, &[]);
    let (answers, status) = observed.end();
    for (number, (ours, real)) in answers.lines().zip(expected.lines()).enumerate() {
        assert_eq!(ours, real, "line {} of {name}", number + 1);
    }
    assert_eq!(answers.len(), expected.len(), "{name}");
    assert_eq!(status, end);
    // It was really there.
    assert!(observed.ledger().used(LedgerPart::Locks) > 10);
}

#[test]
fn answers_of_locks_are_those_of_the_real_functions() {
    assert_same_answers("answers", 450);
}

#[test]
fn answers_of_threads_are_those_of_the_real_functions() {
    assert_same_answers("answers_threads", 250);
}

#[test]
fn answers_in_processes_are_those_of_the_real_functions() {
    assert_same_answers("answers_processes", 350);
}

#[test]
fn the_programs_allocator_is_asked_for_what_the_real_functions_ask() {
    assert_same_answers("allocations", 90);
}
