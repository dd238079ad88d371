//! Which observations of an edge are worth a record.

use lockstead_ledger::Birth;
use lockstead_ledger::header::LedgerLayout;
use lockstead_ledger::ledger::{Ledger, LedgerPart};
use lockstead_ledger::lock::{ObjectKind, RecordLife};
use lockstead_ledger::order::{EdgeMode, SeenEdge, gate};
use lockstead_ledger::witness::{EdgeKnowledge, MOST};
use std::alloc::{Layout as Memory, alloc_zeroed};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;

/// Returns the smallest ledger, for the time of the test program.
fn ledger() -> Ledger<'static> {
    let memory = Memory::from_size_align(LedgerLayout::SMALLEST as usize, 4096).expect("sound");
    // SAFETY: the size is not zero. The block is zeroed, as large as the layout, never
    // freed, and nobody else knows of it.
    unsafe {
        Ledger::create(alloc_zeroed(memory), LedgerLayout::divide(LedgerLayout::SMALLEST), 1, 1)
    }
}

fn edge(thread: u32) -> SeenEdge {
    SeenEdge {
        from: 1,
        from_generation: 1,
        from_mode: EdgeMode::Write,
        from_tried: false,
        to_timed: false,
        from_stack: 0,
        to: 2,
        to_generation: 1,
        to_mode: EdgeMode::Write,
        to_stack: 0,
        thread,
        tid: thread,
        gates: 0,
        alone: false,
        in_handler: false,
    }
}

fn gates(locks: &[u32]) -> Vec<u64> {
    locks.iter().map(|&lock| gate(lock, false)).collect()
}

/// Returns how many records these observations leave.
fn left(seen: &[(SeenEdge, &[u32])]) -> usize {
    let ledger = ledger();
    for (edge, locks) in seen {
        let _ = ledger.witness(*edge, &gates(locks));
    }
    ledger.used(LedgerPart::Edges)
}

#[test]
fn an_observation_is_left_once() {
    assert_eq!(left(&[(edge(1), &[]), (edge(1), &[]), (edge(1), &[7])]), 1);
    let other_life = SeenEdge { to_generation: 3, ..edge(1) };
    let by_reader = SeenEdge { from_mode: EdgeMode::Read, ..edge(1) };
    let back = SeenEdge { from: 2, to: 1, ..edge(1) };
    assert_eq!(left(&[(edge(1), &[]), (other_life, &[]), (by_reader, &[]), (back, &[])]), 4);
}

#[test]
fn fewer_gates_prove_more() {
    assert_eq!(left(&[(edge(1), &[5, 6]), (edge(1), &[5, 6, 7]), (edge(1), &[5, 6])]), 1);
    assert_eq!(left(&[(edge(1), &[5, 6]), (edge(1), &[5]), (edge(1), &[6]), (edge(1), &[])]), 4);
    assert_eq!(left(&[(edge(1), &[]), (edge(1), &[5]), (edge(1), &[6])]), 1);
    // A lock that readers share is another gate than one held alone.
    let ledger = ledger();
    let _ = ledger.witness(edge(1), &[gate(5, false)]);
    let _ = ledger.witness(edge(1), &[gate(5, true)]);
    assert_eq!(ledger.used(LedgerPart::Edges), 2);
    let read = |index| ledger.edge(index).expect("left").expect("complete");
    assert!(ledger.lock_list(read(0).gates).eq([(5, false)]));
    assert!(ledger.lock_list(read(1).gates).eq([(5, true)]));
}

#[test]
fn not_alone_proves_more_than_alone() {
    let alone = SeenEdge { alone: true, ..edge(1) };
    assert_eq!(left(&[(alone, &[]), (alone, &[]), (edge(1), &[]), (alone, &[])]), 2);
}

#[test]
fn without_a_deadline_proves_more_than_with_one() {
    let timed = SeenEdge { to_timed: true, ..edge(1) };
    assert_eq!(left(&[(timed, &[]), (timed, &[]), (edge(1), &[]), (timed, &[])]), 2);
}

#[test]
fn four_threads_witness_an_edge_and_then_all_know_it() {
    let ledger = ledger();
    for thread in 1..=4 {
        assert_eq!(ledger.witness(edge(thread), &[]), EdgeKnowledge::ToThis);
    }
    for thread in [1, 5, 6] {
        assert_eq!(ledger.witness(edge(thread), &[]), EdgeKnowledge::ToAll);
    }
    assert_eq!(ledger.used(LedgerPart::Edges), 4);
}

#[test]
fn an_edge_has_no_end_of_witnesses() {
    let ledger = ledger();
    for lock in 10..1000 {
        let _ = ledger.witness(edge(1), &gates(&[lock]));
    }
    assert_eq!(ledger.used(LedgerPart::Edges), MOST);
}

#[test]
fn threads_that_see_an_edge_at_once_leave_one_record_each_at_most() {
    let ledger = ledger();
    std::thread::scope(|scope| {
        for thread in 1..=4 {
            let ledger = &ledger;
            scope.spawn(move || {
                for to in 2..900 {
                    for _ in 0..2 {
                        let _ = ledger.witness(SeenEdge { to, ..edge(thread) }, &[]);
                    }
                }
            });
        }
    });
    let found: Vec<_> = (0..ledger.used(LedgerPart::Edges))
        .map(|index| ledger.edge(index).expect("left").expect("complete"))
        .map(|edge| (edge.to, edge.thread))
        .collect();
    let different: BTreeSet<_> = found.iter().copied().collect();
    assert_eq!(different.len(), 4 * 898, "each thread has witnessed each edge");
    // Twice only around the opening of a level of the table.
    assert!(found.len() < different.len() + 100, "{}", found.len());
    assert_eq!(ledger.header().losses.edges.load(Relaxed), 0);
}

#[test]
fn the_end_of_a_life_with_edges_is_said() {
    let ledger = ledger();
    let birth = |address| Birth {
        address,
        kind: ObjectKind::Mutex,
        attributes: 0,
        init_stack: 0,
        first_stack: 0,
        module: 0,
    };
    let [one, other, third] = [64, 128, 192].map(|it| ledger.use_lock(&birth(it)).expect("room"));
    let generation = |lock| ledger.lock(lock).expect("there").generation.load(Relaxed);
    let _ = ledger.witness(
        SeenEdge {
            from: one,
            from_generation: generation(one),
            to: other,
            to_generation: generation(other),
            ..edge(1)
        },
        &[],
    );
    let ended = [generation(one), generation(other)];
    ledger.destroy_lock(64);
    ledger.lose_lock(other);
    ledger.lose_lock(third);
    assert!(matches!(ledger.lock(other).expect("there").shape().1, RecordLife::Gone));
    let ends: Vec<_> = (1..ledger.used(LedgerPart::Edges))
        .map(|index| ledger.edge(index).expect("left").expect("complete"))
        .map(|edge| (edge.from, edge.to, edge.from_generation))
        .collect();
    assert_eq!(ends, [(one, one, ended[0]), (other, other, ended[1])], "the third had no edges");
}
