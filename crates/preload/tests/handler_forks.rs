//! A child that a signal handler has forked goes on with what the signal has
//! interrupted, be it the library's work on its parent's ledger, or the beginning of a
//! thread.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::support::{Library, Observed, compile, view};

fn children_that_a_handler_forks_go_on(library: Library) {
    let Some(program) = compile("handler_forks") else { return };
    for follow in [true, false] {
        let mut observed = Observed::start_with(library, &program, &[], follow);
        observed.reach("forked");
        assert!(observed.address("forks") >= 170);
        view::assert_quiet(&observed.ledger());
        observed.go_on();
        assert!(observed.end().1.success());
    }
}

with_both! { children_that_a_handler_forks_go_on }
