//! What the library records of futex words, and that calls of the kernel go through as ever.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::support::{Library, Observed, compile, run_natively, view};
use lockstead_ledger::Ledger;
use lockstead_ledger::ledger::LedgerPart;
use lockstead_ledger::lock::{Extension, FUTEX_WORDS, ObjectKind, RecordLife, attribute};
use lockstead_ledger::publish::WaitKind;
use std::sync::atomic::Ordering::Relaxed;

/// Threads by name; the word that each sleeps on, the lock, and how.
const WAITS: &[(&str, &str, &str, WaitKind)] = &[
    ("plain", "plain", "plain", WaitKind::FUTEX),
    ("bits", "bits", "bits", WaitKind::FUTEX.timed()),
    ("pi", "pi", "pi", WaitKind::FUTEX),
    ("parked", "parked.word", "lock", WaitKind::FUTEX),
];

fn statistics<'a>(ledger: &Ledger<'a>, address: u64) -> &'a Extension {
    let lock = ledger.find_lock(address).and_then(|index| ledger.lock(index)).expect("a record");
    ledger.existing_extension(lock).expect("statistics")
}

fn sleeps_and_wakes_are_recorded(library: Library) {
    let Some(program) = compile("futexes") else { return };
    let mut observed = Observed::start(library, &program, &[]);
    observed.reach("waiting");
    let ledger = observed.ledger();
    for &(waiter, word, lock, how) in WAITS {
        let wait = observed.until(waiter, || {
            let thread = view::named(&ledger, waiter)?;
            view::wait(&thread).filter(|wait| wait.how.kind() == WaitKind::FUTEX)
        });
        assert_eq!(wait.how, how, "{waiter}");
        assert_eq!(wait.target, observed.address(word), "{waiter}");
        let beside = if word == lock { 0 } else { observed.address(lock) };
        assert_eq!(wait.companion, beside, "{waiter}");
        assert_eq!(wait.deadline != 0, how.is_timed(), "{waiter}");
        assert!(ledger.stack(wait.stack).expect("where it waits").returns().count() >= 2);
        let attributes = if beside == 0 { 0 } else { attribute::BESIDE };
        let shape = view::shape(&ledger, observed.address(lock));
        assert_eq!(shape, (ObjectKind::Futex, RecordLife::Live, attributes), "{waiter}");
        let index = ledger.find_lock(observed.address(lock));
        assert_eq!(ledger.lock_of(&wait), index, "{waiter}");
    }
    observed.go_on();
    observed.reach("woken");
    let ledger = observed.ledger();
    for &(waiter, _, lock, _) in WAITS {
        let facts = view::facts(&ledger, observed.address(lock));
        assert_eq!((facts.contended, facts.waits, facts.timed_out), (1, 1, 0), "{waiter}");
        let statistics = statistics(&ledger, observed.address(lock));
        let woken: u64 = ledger.shares(&statistics.held_at).map(|share| share.read().2).sum();
        assert!(woken >= 1, "{waiter}");
        assert!(ledger.shares(&statistics.held_at).all(|share| share.read().0 != 0), "{waiter}");
    }
    let changed = ledger.find_lock(observed.address("changed"));
    let changed = changed.and_then(|index| ledger.lock(index)).expect("it was about to wait");
    assert!(ledger.existing_extension(changed).is_none(), "the word had changed: no wait");
    assert_eq!(ledger.find_lock(observed.address("unheard")), None);
    observed.go_on();
    assert!(observed.end().1.success());
}

fn many_words_have_few_records(library: Library) {
    let Some(program) = compile("futexes") else { return };
    let mut observed = Observed::start(library, &program, &["many"]);
    observed.reach("done");
    let ledger = observed.ledger();
    let used = ledger.used(LedgerPart::Locks) as u32;
    assert!((FUTEX_WORDS..FUTEX_WORDS + 8).contains(&used), "{used} records");
    assert!(ledger.find_lock(observed.address("first")).is_some());
    assert_eq!(ledger.find_lock(observed.address("last")), None);
    let rest = (1..used).filter_map(|index| ledger.lock(index)).find(|it| it.is_of_many_words());
    let rest = ledger.existing_extension(rest.expect("one for the rest")).expect("statistics");
    assert_eq!(rest.timed_out.load(Relaxed), 10_000 - u64::from(FUTEX_WORDS));
    observed.go_on();
    assert!(observed.end().1.success());
}

fn calls_of_the_kernel_go_through_as_ever(library: Library) {
    let Some(program) = compile("futexes") else { return };
    let (said, status) = run_natively(&program, &["attacks"]);
    assert!(status.success() && said == "all the same\n", "{said}");
    let mut observed = Observed::start(library, &program, &["attacks"]);
    let (said, status) = observed.end();
    assert!(status.success() && said == "all the same\n", "{said} {status}");
    // Nobody is left who seems to wait: neither the cancelled thread nor the one that has left.
    let ledger = observed.ledger();
    for thread in view::threads(&ledger) {
        assert_eq!(view::wait(&thread), None);
    }
}

with_both! { sleeps_and_wakes_are_recorded, many_words_have_few_records, calls_of_the_kernel_go_through_as_ever }
