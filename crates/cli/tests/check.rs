//! `lockstead run --check`: each rule and each shape of lock order is reported,
//! with its names and lines, and correct programs are left in peace.
//!
//! What is expected stands beside each case in `programs/check`; `check.h` there
//! says how.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod expected;
mod found;
mod not_yet;
mod others;
mod suite;

use suite::suite;

macro_rules! suites {
    ($($name:ident: $source:literal;)*) => {
        $(
            #[test]
            fn $name() {
                suite($source);
            }
        )*

        /// Each program has a test.
        #[test]
        fn no_program_is_left_out() {
            suite::all_are_run(&[$($source),*]);
        }
    };
}

suites! {
    shapes_of_lock_order: "shapes.c";
    readers_and_writers: "readers.c";
    orders_with_an_excuse: "excuses.c";
    orders_of_locks_of_one_origin: "habits.c";
    one_lock_after_another_in_the_same_memory: "lives.c";
    locks_on_stacks_of_all_kinds: "stacks.c";
    what_is_known_hides_nothing_new: "remembered.c";
    deadlocks_that_shipped: "historical.c";
    owners_recursion_and_ends: "rules.c";
    rules_for_locks_of_other_kinds: "kinds.c";
    memory_of_locks: "memory.c";
    locks_that_were_freed_or_written_over: "ruined.c";
    signal_handlers: "signals.c";
    fork_join_and_conditions: "around.c";
    children_other_programs_and_ends: "children.c";
    semaphores: "semaphores.c";
    calls_that_block: "sleepy.c";
    correct_programs: "clean.c";
    the_standard_library_of_cpp: "standard.cpp";
}
