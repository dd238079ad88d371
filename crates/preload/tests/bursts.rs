//! The records of threads that end at the same time, however many, are used again.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::support::{Library, Observed, compile, view};
use lockstead_ledger::ledger::LedgerPart;
use lockstead_ledger::thread::state;
use std::sync::atomic::Ordering::Relaxed;

const ROUNDS: u64 = 12;
const THREADS: u64 = 300;
/// So many records are kept for the report, whoever has ended.
const KEPT: u64 = 1024;

fn records_of_threads_that_end_together_are_used_again(library: Library) {
    let Some(program) = compile("bursts") else { return };
    let mut observed = Observed::start(library, &program, &[]);
    observed.reach("over");
    let ledger = observed.ledger();
    view::assert_quiet(&ledger);
    let used = ledger.used(LedgerPart::Threads) as u64;
    assert_eq!(used, KEPT, "no further one is taken while others are spare");
    let counter = view::facts(&ledger, observed.address("counter"));
    assert_eq!(counter.acquisitions, ROUNDS * THREADS);
    let threads = view::threads(&ledger).into_iter();
    let ended = threads.filter(|thread| thread.record.state.load(Relaxed) == state::ENDED);
    let ended = ended.count() as u64;
    assert_eq!(ledger.header().retired.threads.load(Relaxed) + ended, ROUNDS * THREADS);
    observed.go_on();
    assert!(observed.end().1.success());
}

with_both! { records_of_threads_that_end_together_are_used_again }
