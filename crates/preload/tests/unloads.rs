//! Files that stay where they are have one record each, whatever is unloaded beside them.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::support::{Library, Observed, compile, view};
use lockstead_ledger::ledger::LedgerPart;
use std::sync::atomic::Ordering::Relaxed;

const TIMES: u64 = 200;

fn files_that_stay_are_noted_once(library: Library) {
    let Some(program) = compile("unloads") else { return };
    let mut observed = Observed::start(library, &program, &[]);
    observed.reach("over");
    let ledger = observed.ledger();
    view::assert_quiet(&ledger);
    assert_eq!(ledger.header().unloads.load(Relaxed), 2 * TIMES);
    let locks = observed.address("locks");
    let size = size_of::<libc::pthread_mutex_t>() as u64;
    let module = |index| {
        let lock = ledger.find_lock(locks + index * size).and_then(|lock| ledger.lock(lock));
        lock.expect("known").module.load(Relaxed)
    };
    assert!((1..TIMES).all(|index| module(index) == module(0) && module(0) != 0));
    // The program, the C library, and what the compiler puts under a program.
    let used = ledger.used(LedgerPart::Modules);
    assert!(used < 10, "{used}");
    observed.go_on();
    assert!(observed.end().1.success());
}

with_both! { files_that_stay_are_noted_once }
