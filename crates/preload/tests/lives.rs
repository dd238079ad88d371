//! Locks whose memory goes without a word to the library end their lives: the next
//! lock there is another one.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::support::{Library, Observed, compile};
use lockstead_ledger::ledger::LedgerPart;
use lockstead_ledger::order::SeenEdge;

/// The size of a mutex.
const MUTEX: u64 = size_of::<libc::pthread_mutex_t>() as u64;

/// How the memory of two mutexes goes.
const WAYS: &[&str] = &[
    "freed",
    "freed_by_other",
    "within",
    "moved",
    "unmapped",
    "mapped_over",
    "remapped",
    "frame",
    "frame_of_other",
    "called_again",
    "ended",
];

#[test]
fn memory_that_goes_takes_its_locks_along() {
    let Some(program) = compile("lives") else { return };
    let mut observed = Observed::start(Library::Checking, &program, &[]);
    observed.reach("the end");
    let ledger = observed.ledger();
    let edges: Vec<SeenEdge> = (0..ledger.used(LedgerPart::Edges))
        .map(|index| ledger.edge(index).expect("in range").expect("complete"))
        .collect();
    let between = |from: u64, to: u64| {
        let index = |address| ledger.find_lock(address).expect("it was used");
        let (from, to) = (index(from), index(to));
        edges.iter().filter(move |edge| (edge.from, edge.to) == (from, to))
    };
    for name in WAYS {
        let left = observed.address(name);
        let right = left + MUTEX;
        let first: Vec<_> = between(right, left).map(|edge| edge.to_generation).collect();
        let second: Vec<_> = between(left, right).map(|edge| edge.from_generation).collect();
        assert!(!first.is_empty() && !second.is_empty(), "{name}");
        assert!(first.iter().all(|life| !second.contains(life)), "{name}: {first:?} {second:?}");
        assert!(between(left, left).count() >= 1, "{name}: nobody says that it is over");
    }
    let kept = observed.address("kept");
    let one = between(kept + MUTEX, kept).next().expect("left");
    let other = between(kept, kept + MUTEX).next().expect("left");
    assert_eq!(
        (one.to_generation, one.from_generation),
        (other.from_generation, other.to_generation)
    );
    assert_eq!(between(kept, kept).count(), 0);
    assert_eq!(ledger.used(LedgerPart::Violations), 0, "nothing was held");
    observed.go_on();
    assert!(observed.end().1.success());
}
