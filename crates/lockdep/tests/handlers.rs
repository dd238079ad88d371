//! The two worlds of a signal.

use lockstead_lockdep::{
    ClassId, Excuse, GateLock, Graph, Inversion, InversionKind, Level, Limits, LockId, Mode,
    OrderEdge, SignalUse, SignalWorld, SiteId, ThreadId,
};
use proptest::prelude::*;

use Mode::{Read, ReadRecursive, Write};
use SignalWorld::{Handler, Open};

const SIGNAL: u8 = 10;

fn usage(world: SignalWorld, thread: u32) -> SignalUse {
    let site = SiteId(if world == Open { 1 } else { 2 });
    SignalUse { signal: SIGNAL, world, mode: Write, site, thread: ThreadId(thread) }
}

fn edge(thread: u32, from: u32, to: u32) -> OrderEdge<'static> {
    OrderEdge {
        from: LockId(from),
        to: LockId(to),
        from_mode: Write,
        to_mode: Write,
        from_site: SiteId(3),
        to_site: SiteId(4),
        thread: ThreadId(thread),
        gates: &[],
        alone: false,
        tried_from: false,
        timed_to: false,
    }
}

/// Returns a graph in which each lock has a class of its own.
fn graph(locks: u32) -> Graph {
    let mut graph = Graph::new(Limits::default());
    for lock in 0..locks {
        graph.declare(LockId(lock), ClassId(lock), 0);
    }
    graph
}

fn used(graph: &mut Graph, lock: u32, usage: SignalUse) -> Vec<Inversion> {
    let mut findings = Vec::new();
    graph.used(LockId(lock), usage, &mut findings);
    findings
}

fn add(graph: &mut Graph, edge: &OrderEdge<'_>) -> Vec<Inversion> {
    let mut findings = Vec::new();
    graph.add(edge, &mut findings);
    findings
}

/// Returns the locks of a way that ends in the handler of our signal.
fn way(finding: &Inversion) -> Vec<(u32, u32)> {
    assert!(matches!(finding.kind, InversionKind::Handler { signal: SIGNAL, .. }), "{finding:?}");
    finding.steps.iter().map(|step| (step.from.0, step.to.0)).collect()
}

#[test]
fn a_lock_of_both_worlds() {
    for first in [Handler, Open] {
        let second = if first == Open { Handler } else { Open };
        let mut graph = graph(1);
        assert_eq!(used(&mut graph, 0, usage(first, 1)), []);
        let found = used(&mut graph, 0, usage(second, 1));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].level, found[0].excuse), (Level::Potential, None));
        assert_eq!(way(&found[0]), [(0, 0)]);
        let witness = &found[0].steps[0].witness;
        assert_eq!((witness.from_site, witness.to_site), (SiteId(1), SiteId(2)));
        assert_eq!(used(&mut graph, 0, usage(second, 2)), [], "once");
    }
}

#[test]
fn other_signals_are_other_worlds() {
    let mut graph = graph(1);
    used(&mut graph, 0, usage(Handler, 1));
    assert_eq!(used(&mut graph, 0, SignalUse { signal: 64, ..usage(Open, 1) }), []);
    assert_eq!(used(&mut graph, 0, SignalUse { signal: 0, ..usage(Open, 1) }), []);
    assert_eq!(graph.losses().undeclared, 1, "there is no signal 0");
}

#[test]
fn a_recursive_reader_in_a_handler_waits_behind_a_writer_only() {
    let found = |handler: Mode, open: Mode| {
        let mut graph = graph(1);
        used(&mut graph, 0, SignalUse { mode: handler, ..usage(Handler, 1) });
        used(&mut graph, 0, SignalUse { mode: open, ..usage(Open, 1) }).len()
    };
    assert_eq!((found(ReadRecursive, Read), found(ReadRecursive, ReadRecursive)), (0, 0));
    assert_eq!((found(ReadRecursive, Write), found(Write, Read), found(Read, Read)), (1, 1, 1));
}

/// Adds the three facts that make a way, in whichever order they come.
#[test]
fn an_order_that_connects_the_worlds() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut graph = graph(3);
        let mut found = Vec::new();
        for fact in order {
            assert_eq!(found, [], "{order:?}");
            found = match fact {
                0 => used(&mut graph, 0, usage(Handler, 9)),
                1 => [edge(2, 0, 1), edge(3, 1, 2)].map(|e| add(&mut graph, &e)).concat(),
                _ => used(&mut graph, 2, usage(Open, 1)),
            };
        }
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].level, found[0].excuse), (Level::Potential, None));
        assert_eq!(way(&found[0]), [(0, 1), (1, 2), (2, 0)]);
        assert_eq!(found[0].steps[2].witness.thread, ThreadId(1));
        assert_eq!(found[0].kind, InversionKind::Handler { signal: SIGNAL, thread: ThreadId(9) });
    }
}

#[test]
fn one_thread_cannot_wait_for_what_it_interrupts_until_another_one_does() {
    let mut graph = graph(2);
    used(&mut graph, 0, usage(Handler, 1));
    add(&mut graph, &edge(1, 0, 1));
    let found = used(&mut graph, 1, usage(Open, 1));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].level, found[0].excuse), (Level::Order, Some(Excuse::OneThread)));
    let found = add(&mut graph, &edge(2, 0, 1));
    assert_eq!(found.len(), 1, "another thread asks");
    assert_eq!((found[0].level, way(&found[0])), (Level::Potential, vec![(0, 1), (1, 0)]));
    assert_eq!(add(&mut graph, &edge(3, 0, 1)), []);
}

#[test]
fn a_second_holder_is_worth_telling() {
    let mut graph = graph(2);
    used(&mut graph, 0, usage(Handler, 1));
    add(&mut graph, &edge(1, 0, 1));
    used(&mut graph, 1, usage(Open, 1));
    let found = used(&mut graph, 1, usage(Open, 2));
    assert_eq!(found.iter().map(|f| f.level).collect::<Vec<_>>(), [Level::Potential]);
    assert_eq!(found[0].steps[1].witness.thread, ThreadId(2));
}

#[test]
fn classes_have_worlds_too() {
    let mut graph = Graph::new(Limits::default());
    for lock in 0..4 {
        graph.declare(LockId(lock), ClassId(lock % 2), 0);
    }
    used(&mut graph, 0, usage(Handler, 1));
    let found = used(&mut graph, 2, usage(Open, 1));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].level, found[0].excuse), (Level::Order, Some(Excuse::OtherInstances)));
    assert_eq!(way(&found[0]), [(2, 0)]);
    // By way of another class.
    used(&mut graph, 1, usage(Open, 1));
    let found = add(&mut graph, &edge(2, 2, 3));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].level, way(&found[0])), (Level::Order, vec![(2, 3), (1, 0)]));
    // The same locks.
    let found = add(&mut graph, &edge(2, 0, 1));
    assert_eq!((found.len(), found[0].level), (1, Level::Potential));
}

#[test]
fn a_dead_lock_is_of_no_world() {
    let mut graph = graph(3);
    used(&mut graph, 0, usage(Handler, 1));
    add(&mut graph, &edge(1, 0, 1));
    graph.forget(LockId(0));
    let of_locks = |found: Vec<Inversion>| found.iter().all(|f| f.level == Level::Order);
    assert!(of_locks(used(&mut graph, 1, usage(Open, 2))));
    graph.declare(LockId(0), ClassId(9), 0);
    assert_eq!(used(&mut graph, 0, usage(Open, 2)), []);
    // The way that was there leaves nothing that hides a new one.
    used(&mut graph, 2, usage(Handler, 1));
    let found = add(&mut graph, &edge(3, 2, 1));
    assert_eq!(found.iter().map(|f| f.level).max(), Some(Level::Potential), "{found:?}");
}

#[test]
fn a_gate_excuses_a_way_too() {
    let mut graph = graph(4);
    let gate = [GateLock { lock: LockId(3), shared: false }];
    used(&mut graph, 0, usage(Handler, 9));
    add(&mut graph, &OrderEdge { gates: &gate, ..edge(1, 0, 1) });
    add(&mut graph, &OrderEdge { gates: &gate, ..edge(2, 1, 2) });
    let found = used(&mut graph, 2, usage(Open, 3));
    assert_eq!(found[0].excuse, Some(Excuse::Gate(LockId(3))));
}

/// An event of the property below.
#[derive(Clone, Debug)]
enum Event {
    Edge(u32, u32, Mode, Mode),
    Used(u32, SignalWorld, Mode),
    Forget(u32),
}

const LOCKS: u32 = 6;

fn event() -> impl Strategy<Value = Event> {
    let mode = || prop_oneof![Just(Write), Just(Read), Just(ReadRecursive)];
    prop_oneof![
        6 => (0..LOCKS, 1..LOCKS, mode(), mode())
            .prop_map(|(from, other, a, b)| Event::Edge(from, (from + other) % LOCKS, a, b)),
        2 => (0..LOCKS, mode()).prop_map(|(lock, mode)| Event::Used(lock, Handler, mode)),
        2 => (0..LOCKS, mode()).prop_map(|(lock, mode)| Event::Used(lock, Open, mode)),
        1 => (0..LOCKS).prop_map(Event::Forget),
    ]
}

fn waits(asked: Mode, held: Mode) -> bool {
    asked != ReadRecursive || held == Write
}

/// Tells whether a lock that is asked for in the mode leads to one that is open.
fn connected(events: &[Event], lock: u32, mode: Mode, seen: &mut Vec<(u32, bool)>) -> bool {
    let state = (lock, mode == ReadRecursive);
    if seen.contains(&state) {
        return false;
    }
    seen.push(state);
    events.iter().any(|event| match *event {
        Event::Used(at, Open, held) => at == lock && waits(mode, held),
        Event::Edge(from, to, held, asked) => {
            from == lock && waits(mode, held) && connected(events, to, asked, seen)
        }
        _ => false,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// As soon as the worlds are connected, and not before, this is found.
    #[test]
    fn connected_worlds_are_found(events in proptest::collection::vec(event(), 0..30)) {
        // No class is within the limit: only the locks themselves count.
        let mut graph = Graph::new(Limits { classes: 0, ..Limits::default() });
        for lock in 0..LOCKS {
            graph.declare(LockId(lock), ClassId(0), 0);
        }
        let mut live: Vec<Event> = Vec::new();
        for event in events {
            match event {
                Event::Edge(from, to, from_mode, to_mode) => {
                    let edge = OrderEdge { from_mode, to_mode, ..edge(1, from, to) };
                    let found = add(&mut graph, &edge);
                    live.push(event.clone());
                    judge(&live, found)?;
                }
                Event::Used(lock, world, mode) => {
                    let found = used(&mut graph, lock, SignalUse { mode, ..usage(world, 2) });
                    live.push(event.clone());
                    judge(&live, found)?;
                }
                Event::Forget(lock) => {
                    graph.forget(LockId(lock));
                    graph.declare(LockId(lock), ClassId(0), 0);
                    live.retain(|event| match *event {
                        Event::Edge(from, to, ..) => from != lock && to != lock,
                        Event::Used(at, ..) | Event::Forget(at) => at != lock,
                    });
                }
            }
            // All are one class: what is found once is not found again.
            if live.iter().any(|event| matches!(event, Event::Used(lock, Handler, mode)
                if connected(&live, *lock, *mode, &mut Vec::new())))
            {
                return Ok(());
            }
        }
    }
}

fn judge(live: &[Event], found: Vec<Inversion>) -> Result<(), TestCaseError> {
    let connected = live.iter().any(|event| match *event {
        Event::Used(lock, Handler, mode) => connected(live, lock, mode, &mut Vec::new()),
        _ => false,
    });
    let found = found.iter().any(|found| matches!(found.kind, InversionKind::Handler { .. }));
    prop_assert_eq!(found, connected);
    Ok(())
}
