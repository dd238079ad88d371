//! Which edges between locks the library that checks leaves, and which it must not.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

use crate::support::{Library, Observed, compile};
use lockstead_ledger::ledger::LedgerPart;
use lockstead_ledger::order::{EdgeMode, SeenEdge};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;

/// A mutex of the program's arrays.
const MUTEX: u64 = size_of::<libc::pthread_mutex_t>() as u64;

struct Edges<'a> {
    observed: &'a Observed,
    edges: Vec<SeenEdge>,
}

impl<'a> Edges<'a> {
    fn of(observed: &'a Observed) -> Self {
        let ledger = observed.ledger();
        let edges = (0..ledger.used(LedgerPart::Edges)).map(|index| {
            let edge = ledger.edge(index).expect("in range");
            edge.expect("complete: the program stands still")
        });
        Edges { observed, edges: edges.collect() }
    }

    fn lock(&self, address: u64) -> u32 {
        self.observed.ledger().find_lock(address).expect("it was used")
    }

    fn of_addresses(&self, from: u64, to: u64) -> Vec<SeenEdge> {
        let (from, to) = (self.lock(from), self.lock(to));
        self.edges.iter().copied().filter(|edge| (edge.from, edge.to) == (from, to)).collect()
    }

    fn between(&self, from: &str, to: &str) -> Vec<SeenEdge> {
        self.of_addresses(self.observed.address(from), self.observed.address(to))
    }

    fn one(&self, from: &str, to: &str) -> SeenEdge {
        let edges = self.between(from, to);
        assert_eq!(edges.len(), 1, "{from} -> {to}: {edges:?}");
        edges[0]
    }

    fn none(&self, from: &str, to: &str) {
        let edges = self.between(from, to);
        assert_eq!(edges, [], "{from} -> {to}");
    }

    fn gates(&self, edge: &SeenEdge) -> Vec<(u32, bool)> {
        self.observed.ledger().lock_list(edge.gates).collect()
    }
}

#[test]
fn edges_are_left_once_and_where_they_must() {
    let Some(program) = compile("order") else { return };
    let mut observed = Observed::start(Library::Checking, &program, &[]);
    observed.reach("one thread");
    by_one_thread(&Edges::of(&observed));
    observed.go_on();
    observed.reach("several threads");
    by_several(&Edges::of(&observed));
    observed.go_on();
    observed.reach("contended");
    // The first thread waits for it now, or is about to.
    observed.until("the edge of a lock that is waited for", || {
        observed.ledger().find_lock(observed.address("contended_a"))?;
        let edges = Edges::of(&observed);
        edges.between("contended_a", "contended_b").first().copied()
    });
    observed.go_on();
    observed.reach("the end");
    let edges = Edges::of(&observed);
    edges.one("contended_a", "contended_b");
    let losses = &observed.ledger().header().losses;
    assert_eq!(losses.edges.load(Relaxed), 0);
    observed.go_on();
    assert!(observed.end().1.success());
}

fn by_one_thread(edges: &Edges<'_>) {
    let ledger = edges.observed.ledger();
    // A thousand times, one edge, with both stacks.
    let edge = edges.one("outer", "inner");
    assert!(edge.alone && !edge.in_handler && !edge.from_tried, "{edge:?}");
    assert_eq!((edge.from_mode, edge.to_mode), (EdgeMode::Write, EdgeMode::Write));
    assert_eq!(edge.gates, 0);
    assert_eq!(edge.thread, ledger.thread(0).expect("the first").record.serial.load(Relaxed));
    let stack = |id| ledger.stack(id).expect("stored").returns().collect::<Vec<_>>();
    let (from, to) = (stack(edge.from_stack), stack(edge.to_stack));
    assert!(from.len() > 3 && to.len() > 3, "{from:?}, {to:?}");
    // Both in the same function, by the same one of it, at two places.
    assert_eq!(from[0], to[0]);
    assert_ne!(from[1], to[1]);
    assert_eq!(from[2..], to[2..]);
    edges.none("inner", "outer");

    // None into what was tried, but out of it.
    edges.none("outer", "tried_in");
    assert!(edges.one("tried_in", "after_try").from_tried);
    let gate = edges.lock(edges.observed.address("tried_in"));
    assert_eq!(edges.gates(&edges.one("outer", "after_try")), [(gate, false)]);

    // Without the gate proves more than with it.
    let gated = edges.between("gated_a", "gated_b");
    let gates: Vec<_> = gated.iter().map(|edge| edges.gates(edge).len()).collect();
    assert_eq!(gates, [1, 0]);
    edges.one("gate", "gated_a");

    edges.one("recursive", "within");
    edges.none("within", "recursive");

    let hand = edges.observed.address("hand");
    for i in 0..4 {
        for j in 0..4 {
            let expected = usize::from(j == i + 1);
            let found = edges.of_addresses(hand + MUTEX * i, hand + MUTEX * j);
            assert_eq!(found.len(), expected, "hand {i} -> {j}: {found:?}");
            assert!(found.iter().all(|edge| edge.gates == 0), "{found:?}");
        }
    }

    let read = edges.one("readers", "writers");
    assert_eq!((read.from_mode, read.to_mode), (EdgeMode::ReadRecursive, EdgeMode::Read));
    let modes = |edges: Vec<SeenEdge>| edges.iter().map(|edge| edge.from_mode).collect::<Vec<_>>();
    assert_eq!(
        modes(edges.between("readers", "under_readers")),
        [EdgeMode::ReadRecursive, EdgeMode::Write],
        "by a reader and by a writer are two orders"
    );
    let spin = edges.one("under_readers", "spin");
    let gates: BTreeSet<_> = edges.gates(&spin).into_iter().collect();
    let shared = |name| (edges.lock(edges.observed.address(name)), true);
    assert_eq!(gates, BTreeSet::from([shared("readers"), shared("writers")]));

    let (outer, many) = (edges.observed.address("many_outer"), edges.observed.address("many"));
    for i in 0..4096 {
        assert_eq!(edges.of_addresses(outer, many + MUTEX * i).len(), 1, "{i}");
    }
    assert_eq!(edges.of_addresses(many, many + MUTEX).len(), 0);

    // Each with all that came before, and not more gates than can be stored.
    let deep = edges.observed.address("deep");
    let deep: Vec<u32> = (0..200).map(|i| edges.lock(deep + MUTEX * i)).collect();
    let all: BTreeSet<_> = edges.edges.iter().map(|edge| (edge.from, edge.to)).collect();
    for (i, &from) in deep.iter().enumerate() {
        for (j, &to) in deep.iter().enumerate() {
            assert_eq!(all.contains(&(from, to)), i < j, "{i} -> {j}");
        }
    }
    let last = edges.edges.iter().find(|edge| (edge.from, edge.to) == (deep[150], deep[199]));
    assert_eq!(edges.gates(last.expect("checked above")).len(), 128);

    // Two lives, one edge of each, and the word that the first is over.
    let (a, b) = ("reborn_a", "reborn_b");
    let reborn = edges.between(a, b);
    assert_eq!(reborn.len(), 2, "{reborn:?}");
    assert_ne!(reborn[0].from_generation, reborn[1].from_generation);
    assert_ne!(reborn[0].to_generation, reborn[1].to_generation);
    for (name, ended) in [
        (a, [reborn[0].from_generation, reborn[1].from_generation]),
        (b, [reborn[0].to_generation, reborn[1].to_generation]),
    ] {
        let ends = edges.between(name, name);
        assert!(ends.iter().map(|end| end.from_generation).eq(ended), "{name}: {ends:?}");
    }
    assert!(edges.edges.iter().all(|edge| edge.alone || edge.from == edge.to));
}

fn by_several(edges: &Edges<'_>) {
    let ledger = edges.observed.ledger();
    let found = edges.between("by_many_a", "by_many_b");
    let threads: BTreeSet<_> = found.iter().map(|edge| edge.thread).collect();
    assert!(threads.len() >= 4, "six threads did it: {found:?}");
    assert!(found.len() <= 6, "each at most once: {found:?}");
    assert!(found.iter().all(|edge| !edge.alone), "{found:?}");

    // Once while it was alone, once while it was not.
    let lone = edges.between("lone_a", "lone_b");
    assert_eq!(lone.iter().map(|edge| edge.alone).collect::<Vec<_>>(), [true, false]);
    assert!(edges.one("lone_b", "lone_a").alone, "all others have been joined");

    let signalled = edges.one("signalled_out", "signalled_in");
    assert_eq!(signalled.gates, 0);
    let out = edges.lock(edges.observed.address("signalled_out"));
    assert_eq!(edges.gates(&edges.one("signalled_in", "within")), [(out, false)]);

    edges.one("waited", "beside");
    let back = edges.one("beside", "waited");
    assert_ne!(back.to_stack, edges.one("waited", "beside").from_stack);
    assert_eq!(ledger.header().losses.edges.load(Relaxed), 0);
}
