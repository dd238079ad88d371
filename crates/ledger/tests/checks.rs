//! What a run that checks leaves in the ledger, and how it is read.

use lockstead_ledger::header::LedgerLayout;
use lockstead_ledger::ledger::{Ledger, LedgerPart};
use lockstead_ledger::order::{EdgeMode, SeenEdge, gate};
use lockstead_ledger::violation::{Rule, SeenViolation};
use std::alloc::{Layout as Memory, alloc_zeroed};
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

fn edge(to: u32) -> SeenEdge {
    SeenEdge {
        from: 1,
        from_generation: 2,
        from_mode: EdgeMode::Read,
        from_tried: true,
        to_timed: true,
        from_stack: 3,
        to,
        to_generation: 4,
        to_mode: EdgeMode::ReadRecursive,
        to_stack: 5,
        thread: 6,
        tid: 7,
        gates: 8,
        alone: true,
        in_handler: false,
    }
}

#[test]
fn edges_are_read_as_they_were_left() {
    let ledger = ledger();
    assert_eq!(ledger.edge(0), None);
    let other = SeenEdge {
        from_mode: EdgeMode::Write,
        from_tried: false,
        to_timed: false,
        to_mode: EdgeMode::Write,
        alone: false,
        in_handler: true,
        ..edge(9)
    };
    for edge in [edge(8), other] {
        ledger.add_edge(&edge);
    }
    assert_eq!(ledger.edge(0), Some(Some(edge(8))));
    assert_eq!(ledger.edge(1), Some(Some(other)));
    assert_eq!(ledger.edge(2), None);
    // One that is claimed and not filled yet.
    assert_eq!(ledger.claim(LedgerPart::Edges, 1), Some(2));
    assert_eq!(ledger.edge(2), Some(None));
}

#[test]
fn edges_and_violations_without_room_are_counted() {
    let ledger = ledger();
    let room = ledger.layout().edges.capacity;
    assert!(room >= 1000);
    for to in 0..room + 3 {
        ledger.add_edge(&edge(to as u32));
    }
    assert_eq!(ledger.used(LedgerPart::Edges) as u64, room);
    assert_eq!(ledger.header().losses.edges.load(Relaxed), 3);
    let room = ledger.layout().violations.capacity;
    let added =
        (0..room + 2).filter(|_| ledger.add_violation(&violation(Rule::Freed)).is_some()).count();
    assert_eq!(added as u64, room);
    assert_eq!(ledger.header().losses.violations.load(Relaxed), 2);
}

fn violation(rule: Rule) -> SeenViolation {
    SeenViolation {
        rule,
        lock: 1,
        generation: 2,
        address: 3,
        stack: 4,
        thread: 5,
        tid: 6,
        other_tid: 7,
        other_stack: 8,
        other_lock: 9,
        number: 10,
        weak: (rule as u32).is_multiple_of(2),
    }
}

#[test]
fn violations_of_all_rules_are_read_as_they_were_left() {
    let ledger = ledger();
    let recorded = || Rule::ALL.iter().copied().filter(|rule| rule.story().is_some());
    for (number, rule) in recorded().enumerate() {
        assert_eq!(ledger.add_violation(&violation(rule)), Some(number));
        let record = ledger.violation(number).expect("it is there");
        assert_eq!(record.read(), Some(violation(rule)));
    }
    assert!(ledger.violation(recorded().count()).is_none());
    let number = ledger.add_violation(&violation(Rule::Deadlock)).expect("room");
    assert_eq!(
        ledger.violation(number).expect("it is there").read(),
        None,
        "no library decides it"
    );
}

#[test]
fn lists_of_locks_are_stored_once() {
    let ledger = ledger();
    let list = ledger.intern_lock_list(&[3, 1, 2]);
    assert_eq!(ledger.intern_lock_list(&[3, 1, 2]), list);
    assert_ne!(ledger.intern_lock_list(&[1, 2, 3]), list);
    assert!(ledger.lock_list(list).eq([(3, false), (1, false), (2, false)]));
    let shared = ledger.intern_lock_list(&[gate(3, true), gate(1, false)]);
    assert!(ledger.lock_list(shared).eq([(3, true), (1, false)]));
    assert_eq!(ledger.intern_lock_list(&[]), 0);
    assert_eq!(ledger.lock_list(0).count(), 0);
    // A stack of calls is no list, whatever its numbers are.
    let stack = ledger.intern_stack(&[3, 1, 2], 0);
    assert_ne!(stack, list);
    assert_eq!(ledger.lock_list(stack).count(), 0);
}

#[test]
fn there_is_room_for_what_was_promised() {
    let layout = LedgerLayout::divide(LedgerLayout::LARGEST);
    assert!(layout.edges.capacity >= 4 << 20, "{} edges", layout.edges.capacity);
    assert!(layout.locks.capacity >= 1 << 20, "{} locks", layout.locks.capacity);
    assert!(layout.classes.capacity >= 1 << 16, "{} classes", layout.classes.capacity);
}
