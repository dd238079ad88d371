//! A program that limits its address space when it runs already gets what it would get
//! without the library; and what the library then cannot record is counted.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::support::{Library, Observed, compile, view};
use lockstead_ledger::ledger::LedgerPart;
use std::sync::atomic::Ordering::Relaxed;

/// The number of locks in the program.
const LOCKS: u64 = 100_000;

fn a_program_has_its_address_space_for_itself(library: Library) {
    let Some(program) = compile("limits") else { return };
    let mut observed = Observed::start(library, &program, &[]);
    observed.reach("done");
    view::assert_quiet(&observed.ledger());
    let ledger = observed.ledger();
    assert!(ledger.used(LedgerPart::Locks) as u64 > LOCKS / 24 * 24, "all are known");
    assert_eq!(view::facts(&ledger, observed.address("all")).acquisitions, 1);
    // The child has a ledger of its own.
    assert_eq!(observed.child().view().used(LedgerPart::Threads), 1);
    observed.go_on();
    assert!(observed.end().1.success());
}

fn a_forked_child_that_limits_itself_has_its_address_space_for_itself(library: Library) {
    let Some(program) = compile("limits") else { return };
    let mut observed = Observed::start(library, &program, &["child"]);
    observed.reach("done");
    let child = observed.child();
    assert!(child.view().used(LedgerPart::Locks) as u64 > LOCKS / 24 * 24, "all are known");
    observed.go_on();
    assert!(observed.end().1.success());
}

fn what_finds_no_room_is_counted(library: Library) {
    let Some(program) = compile("limits") else { return };
    let mut observed = Observed::start(library, &program, &["hard"]);
    observed.reach("done");
    let ledger = observed.ledger();
    let lost = ledger.header().losses.locks.load(Relaxed);
    let known = ledger.used(LedgerPart::Locks) as u64 - 1;
    assert!(lost > 0, "{known} are known");
    assert!(known + lost >= LOCKS, "{known} are known and {lost} counted");
    observed.go_on();
    assert!(observed.end().1.success());
}

with_both! { a_program_has_its_address_space_for_itself, a_forked_child_that_limits_itself_has_its_address_space_for_itself, what_finds_no_room_is_counted }
