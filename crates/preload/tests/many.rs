//! A thread that uses more locks than find room in its first pages loses no
//! acquisition, neither of a lock's count nor of its own.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::support::{Library, Observed, compile, view};
use lockstead_ledger::Ledger;
use lockstead_ledger::thread::{ThreadPart, state};
use std::sync::atomic::Ordering::Relaxed;

const MANY: u64 = 6000;

/// Returns what the program does with lock `i` in its last life, and in all.
fn expected(i: u64) -> (u64, u64) {
    let first = (i % 7 + 1) * if i.is_multiple_of(2) { 2 } else { 1 };
    if i.is_multiple_of(10) { (3, first + 3) } else { (first, first) }
}

fn of_thread(thread: &ThreadPart<'_>) -> u64 {
    let kept = thread.known().map(|known| u64::from(known.count.load(Relaxed)));
    thread.record.acquisitions.load(Relaxed) + kept.sum::<u64>()
}

fn check(observed: &Observed, ledger: &Ledger<'_>, thread: &ThreadPart<'_>) {
    let (many, often) = (observed.address("many"), observed.address("often"));
    for i in 0..MANY {
        let facts = view::facts(ledger, many + i * 64);
        assert_eq!(facts.acquisitions, expected(i).0, "lock {i}");
    }
    let passes: u64 = (0..MANY).map(|i| i % 7 + 1).sum();
    assert_eq!(view::facts(ledger, often).acquisitions, passes);
    let all: u64 = (0..MANY).map(|i| expected(i).1).sum();
    assert_eq!(of_thread(thread), all + passes);
}

fn counts_of_many_locks_are_exact_before_and_after_their_thread_ends(library: Library) {
    let Some(program) = compile("many") else { return };
    let mut observed = Observed::start(library, &program, &[]);
    observed.reach("used");
    let ledger = observed.ledger();
    let thread = observed.until("the thread's name", || view::named(&ledger, "user"));
    check(&observed, &ledger, &thread);
    // All sets are in use, and none but those of pages that are noted.
    let pages = thread.record.far_pages.load(Relaxed).count_ones() as usize;
    assert!((32..=64).contains(&pages), "{pages}");
    assert_eq!(size_of_val(thread.far), 64 * 4096);
    observed.go_on();
    observed.reach("ended");
    let ledger = observed.ledger();
    let thread = view::threads(&ledger)[1];
    assert_eq!(thread.record.state.load(Relaxed), state::ENDED);
    // Who joins a thread asks the library that checks what it has taken.
    let gone = |address: u64| address == 0 || library == Library::Checking;
    assert!(thread.known().all(|known| gone(known.address.load(Relaxed))));
    let counts = thread.known().filter(|known| known.address.load(Relaxed) != 0);
    assert!(counts.map(|known| known.count.load(Relaxed)).all(|count| count == 0));
    check(&observed, &ledger, &thread);
    view::assert_quiet(&ledger);
    observed.go_on();
    assert!(observed.end().1.success());
}

fn locks_that_others_release_leave_no_entries_behind(library: Library) {
    let Some(program) = compile("many") else { return };
    let mut observed = Observed::start(library, &program, &["handed"]);
    observed.reach("handed over");
    let ledger = observed.ledger();
    let thread = &view::threads(&ledger)[0];
    assert_eq!(thread.record.held_dropped.load(Relaxed), 0);
    let held: Vec<_> = view::held(thread).iter().map(|holding| holding.address).collect();
    assert_eq!(held, [observed.address("often"), observed.address("many") + 7 * 64]);
    observed.go_on();
    assert!(observed.end().1.success());
}

with_both! { counts_of_many_locks_are_exact_before_and_after_their_thread_ends, locks_that_others_release_leave_no_entries_behind }
