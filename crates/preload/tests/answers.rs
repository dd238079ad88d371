//! A program that calls every function, above all where its answer is not plain,
//! gets the same answers with the library under it.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::support::{Library, Observed, compile, run_natively};
use lockstead_ledger::ledger::LedgerPart;

fn assert_same_answers(library: Library, name: &str, lines: usize) {
    let Some(program) = compile(name) else { return };
    let (expected, end) = run_natively(&program, &[]);
    assert!(expected.lines().count() > lines, "{name} said too little: {end}");
    let mut observed = Observed::start(library, &program, &[]);
    let (answers, status) = observed.end();
    for (number, (ours, real)) in answers.lines().zip(expected.lines()).enumerate() {
        assert_eq!(ours, real, "line {} of {name}", number + 1);
    }
    assert_eq!(answers.len(), expected.len(), "{name}");
    assert_eq!(status, end);
    // It was really there.
    assert!(observed.ledger().used(LedgerPart::Locks) > 10);
}

fn answers_of_locks_are_those_of_the_real_functions(library: Library) {
    assert_same_answers(library, "answers", 450);
}

fn answers_of_threads_are_those_of_the_real_functions(library: Library) {
    assert_same_answers(library, "answers_threads", 250);
}

fn answers_in_processes_are_those_of_the_real_functions(library: Library) {
    assert_same_answers(library, "answers_processes", 350);
}

fn the_programs_allocator_is_asked_for_what_the_real_functions_ask(library: Library) {
    assert_same_answers(library, "allocations", 90);
}

with_both! { answers_of_locks_are_those_of_the_real_functions, answers_of_threads_are_those_of_the_real_functions, answers_in_processes_are_those_of_the_real_functions, the_programs_allocator_is_asked_for_what_the_real_functions_ask }
