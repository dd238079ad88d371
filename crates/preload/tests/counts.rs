//! What the library counts is exact, whatever the family, however the threads are
//! in each other's way, whether they have ended, and however many locks there are.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::support::view::Facts;
use crate::support::{Library, Observed, compile, view};
use lockstead_ledger::ledger::LedgerPart;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;

/// Acquisitions of a lock by each thread in each of its rounds through all.
const EACH_TIME: &[(&str, u64)] = &[
    ("plain", 2),
    ("tried", 1),
    ("timed", 1),
    ("recursive", 3),
    ("robust", 1),
    ("inheriting", 1),
    ("rwlock", 2),
    ("spin", 1),
    ("c11", 1),
    ("sem", 1),
];

fn facts(observed: &Observed, name: &str) -> Facts {
    view::facts(&observed.ledger(), observed.address(name))
}

/// Returns the acquisitions of all threads, by their own accounts.
fn of_threads(observed: &Observed) -> u64 {
    let own = |thread: &lockstead_ledger::thread::ThreadPart<'_>| {
        let kept = thread.known().map(|known| u64::from(known.count.load(Relaxed)));
        thread.record.acquisitions.load(Relaxed) + kept.sum::<u64>()
    };
    view::threads(&observed.ledger()).iter().map(own).sum()
}

/// Returns the acquisitions of all locks, by theirs.
fn of_locks(observed: &Observed) -> u64 {
    let ledger = observed.ledger();
    let locks = 1..ledger.used(LedgerPart::Locks) as u32;
    let addresses = locks.filter_map(|index| ledger.lock(index)).map(|l| l.address.load(Relaxed));
    // Two threads that see a lock first at one instant take a record each.
    let addresses: BTreeSet<u64> = addresses.collect();
    addresses.into_iter().map(|address| view::facts(&ledger, address).acquisitions).sum()
}

fn each_acquisition_counts_once(library: Library) {
    let Some(program) = compile("counts") else { return };
    let mut observed = Observed::start(library, &program, &[]);
    observed.reach("counted");
    let number = |name: &str| observed.address(name);
    let (threads, rounds) = (number("threads"), number("rounds"));
    for &(name, each) in EACH_TIME {
        let facts = facts(&observed, name);
        assert_eq!(facts.acquisitions, threads * number("times") * each, "{name}");
        assert!(facts.contended <= facts.acquisitions, "{name}: {facts:?}");
        assert_eq!(facts.refused, if name == "tried" { number("refused") } else { 0 }, "{name}");
        let timed_out = if name == "timed" { number("timed_out") } else { 0 };
        assert_eq!(facts.timed_out, timed_out, "{name}");
        // Short waits for a spin lock are counted, not timed.
        assert!(name == "spin" || facts.waits == facts.contended + timed_out, "{name}: {facts:?}");
    }
    let all_the_crowd = number("crowd");
    for i in 0..all_the_crowd {
        let facts = view::facts(
            &observed.ledger(),
            number("crowd_0") + size_of::<libc::pthread_mutex_t>() as u64 * i,
        );
        assert_eq!(facts.acquisitions, threads * rounds, "lock {i} of the crowd");
    }
    assert_eq!(facts(&observed, "of_short_lives").acquisitions, threads * number("short"));
    // A wait that gives a mutex back and takes it again is one holding of it.
    assert_eq!(facts(&observed, "of_condition").acquisitions, threads * rounds);
    let condition = facts(&observed, "cond");
    assert_eq!((condition.acquisitions, condition.contended), (number("waits"), number("waits")));
    // Of those that meet at a barrier the last does not wait.
    let barrier = facts(&observed, "barrier");
    assert_eq!(barrier.acquisitions, threads * rounds);
    assert_eq!(barrier.contended, (threads - 1) * rounds);
    assert_eq!(of_threads(&observed), of_locks(&observed));
    view::assert_quiet(&observed.ledger());
    observed.go_on();
    assert!(observed.end().1.success());
}

with_both! { each_acquisition_counts_once }
