//! Whatever runs on a thread pointer that is not the C library's is left alone: it
//! does what it does without the library, and nothing of it is recorded.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::support::{Library, Observed, compile, run_natively, view};

fn children_on_thread_pointers_of_their_own_are_left_alone(library: Library) {
    let Some(program) = compile("foreign") else { return };
    let (said, native) = run_natively(&program, &[]);
    assert!(native.success() && said.ends_with("done\n"), "natively: {native}, {said}");
    let mut observed = Observed::start(library, &program, &["stop"]);
    observed.reach("held");
    let ledger = observed.ledger();
    let threads = view::threads(&ledger);
    assert_eq!(threads.len(), 1, "no child has a record");
    let held: Vec<_> = view::held(&threads[0]).iter().map(|holding| holding.address).collect();
    assert_eq!(held, [observed.address("of_parent")]);
    observed.go_on();
    observed.reach("beside");
    let wait = |observed: &Observed| {
        view::named(&observed.ledger(), "waits").and_then(|thread| view::wait(&thread))
    };
    let before = observed.until("a wait", || wait(&observed));
    observed.go_on();
    observed.reach("locked beside");
    assert_eq!(wait(&observed), Some(before), "the child has ended its parent's wait");
    observed.go_on();
    let (said, status) = observed.end();
    assert!(status.success() && said == "done\n", "{status}, {said}");
}

with_both! { children_on_thread_pointers_of_their_own_are_left_alone }
