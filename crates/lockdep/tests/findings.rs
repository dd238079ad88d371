//! What is found, at which level, how often, and with which proof.

use lockstead_lockdep::{
    ClassId, Excuse, GateLock, Graph, Inversion, InversionKind, Level, Limits, LockClass, LockId,
    Mode, OrderEdge, SiteId, ThreadId,
};

use Mode::{Read, ReadRecursive, Write};

/// Returns an edge by thread 1, 2, ... between locks 0, 1, ...
fn edge(thread: u32, from: u32, to: u32) -> OrderEdge<'static> {
    OrderEdge {
        from: LockId(from),
        to: LockId(to),
        from_mode: Write,
        to_mode: Write,
        from_site: SiteId(100 * thread + from),
        to_site: SiteId(100 * thread + to),
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
        assert!(graph.declare(LockId(lock), ClassId(lock), 0));
    }
    graph
}

fn add(graph: &mut Graph, edge: &OrderEdge<'_>) -> Vec<Inversion> {
    let mut findings = Vec::new();
    graph.add(edge, &mut findings);
    findings
}

/// Returns the one finding that the last of the edges makes.
fn only(graph: &mut Graph, edges: &[OrderEdge<'_>]) -> Inversion {
    let (last, others) = edges.split_last().expect("edges");
    for edge in others {
        assert_eq!(add(graph, edge), []);
    }
    let mut findings = add(graph, last);
    assert_eq!(findings.len(), 1, "{findings:?}");
    findings.remove(0)
}

fn locks(finding: &Inversion) -> Vec<u32> {
    finding.steps.iter().map(|step| step.from.0).collect()
}

#[test]
fn two_threads_in_opposite_order() {
    let found = only(&mut graph(2), &[edge(1, 0, 1), edge(2, 1, 0)]);
    assert_eq!((found.level, found.kind), (Level::Potential, InversionKind::Cycle));
    assert_eq!((locks(&found), found.excuse), (vec![1, 0], None));
    let step = &found.steps[1];
    assert_eq!((step.from, step.to, step.witness.thread), (LockId(0), LockId(1), ThreadId(1)));
    assert_eq!((step.witness.from_site, step.witness.to_site), (SiteId(100), SiteId(101)));
}

#[test]
fn one_thread_in_both_orders() {
    let found = only(&mut graph(2), &[edge(1, 0, 1), edge(1, 1, 0)]);
    assert_eq!((found.level, found.excuse), (Level::Order, Some(Excuse::OneThread)));
}

#[test]
fn a_second_thread_makes_it_a_potential_deadlock() {
    let mut graph = graph(2);
    only(&mut graph, &[edge(1, 0, 1), edge(1, 1, 0)]);
    let found = only(&mut graph, &[edge(2, 0, 1)]);
    assert_eq!((found.level, found.steps.len()), (Level::Potential, 2));
    assert_eq!(add(&mut graph, &edge(3, 1, 0)), [], "and that once");
}

#[test]
fn a_common_gate_excuses_until_somebody_goes_without() {
    let mut graph = graph(4);
    let gate = [GateLock { lock: LockId(2), shared: false }];
    let both = [gate[0], GateLock { lock: LockId(3), shared: false }];
    let found = only(
        &mut graph,
        &[OrderEdge { gates: &gate, ..edge(1, 0, 1) }, OrderEdge { gates: &both, ..edge(2, 1, 0) }],
    );
    assert_eq!((found.level, found.excuse), (Level::Order, Some(Excuse::Gate(LockId(2)))));
    assert_eq!(found.steps[0].witness.gates.len(), 2);
    let found = only(&mut graph, &[edge(1, 0, 1)]);
    assert_eq!(found.level, Level::Potential);
}

#[test]
fn two_readers_of_a_gate_do_not_exclude_each_other() {
    let reader = [GateLock { lock: LockId(2), shared: true }];
    let writer = [GateLock { lock: LockId(2), shared: false }];
    let level = |first: &[GateLock], second: &[GateLock]| {
        let first = OrderEdge { gates: first, ..edge(1, 0, 1) };
        let second = OrderEdge { gates: second, ..edge(2, 1, 0) };
        only(&mut graph(3), &[first, second]).level
    };
    assert_eq!(level(&reader, &reader), Level::Potential);
    assert_eq!(level(&reader, &writer), Level::Order);
    assert_eq!(level(&writer, &reader), Level::Order);
}

#[test]
fn what_happened_before_there_were_threads_excuses() {
    let mut graph = graph(2);
    let alone = OrderEdge { alone: true, ..edge(1, 0, 1) };
    let found = only(&mut graph, &[alone, edge(2, 1, 0)]);
    assert_eq!((found.level, found.excuse), (Level::Order, Some(Excuse::Alone)));
    assert_eq!(only(&mut graph, &[edge(1, 0, 1)]).level, Level::Potential);
}

#[test]
fn three_threads_are_needed_for_three_locks() {
    let cycle = [edge(1, 0, 1), edge(2, 1, 2), edge(1, 2, 0)];
    let mut graph = graph(3);
    assert_eq!(only(&mut graph, &cycle).excuse, Some(Excuse::OneThread));
    let found = only(&mut graph, &[edge(3, 0, 1)]);
    assert_eq!((found.level, found.steps.len()), (Level::Potential, 3));
}

#[test]
fn a_lock_of_the_cycle_may_be_the_gate() {
    // Who asks for 1 holds 2 too: nobody else can hold 2 then.
    let gate = [GateLock { lock: LockId(2), shared: false }];
    let mut graph = graph(3);
    let found = only(
        &mut graph,
        &[OrderEdge { gates: &gate, ..edge(1, 0, 1) }, edge(2, 1, 2), edge(3, 2, 0)],
    );
    assert_eq!((found.level, found.excuse), (Level::Order, Some(Excuse::Gate(LockId(2)))));
    // But who holds 2 and asks for 1 is a cycle with the second.
    let found = only(&mut graph, &[edge(1, 2, 1)]);
    assert_eq!((found.level, locks(&found)), (Level::Potential, vec![2, 1]));
}

#[test]
fn the_shortest_cycle_is_the_proof() {
    let mut graph = graph(6);
    for edge in [edge(1, 0, 1), edge(2, 1, 2), edge(3, 2, 3), edge(4, 3, 4), edge(5, 1, 4)] {
        assert_eq!(add(&mut graph, &edge), []);
    }
    let found = only(&mut graph, &[edge(6, 4, 0)]);
    assert_eq!(locks(&found), [4, 0, 1]);
    let way = graph.path(LockId(0), LockId(4)).expect("a way");
    assert_eq!(way.iter().map(|step| step.to.0).collect::<Vec<_>>(), [1, 4]);
    assert_eq!(graph.path(LockId(5), LockId(0)), None);
}

#[test]
fn a_longer_cycle_is_the_proof_where_the_shortest_one_proves_nothing() {
    let mut graph = graph(3);
    // 0 before 1 by thread 1 directly, and by 2 and 3 through lock 2.
    for edge in [edge(1, 0, 1), edge(2, 0, 2), edge(3, 2, 1)] {
        assert_eq!(add(&mut graph, &edge), []);
    }
    let findings = add(&mut graph, &edge(1, 1, 0));
    let said: Vec<_> = findings.iter().map(|f| (f.level, f.steps.len())).collect();
    assert_eq!(said, [(Level::Potential, 3), (Level::Order, 2)]);
}

#[test]
fn thousands_of_philosophers_are_one_cause() {
    let count = 3000;
    let mut graph = Graph::new(Limits::default());
    for fork in 0..count {
        graph.declare(LockId(fork), ClassId(7), 0);
    }
    let table: Vec<OrderEdge<'_>> = (0..count).map(|n| edge(n, n, (n + 1) % count)).collect();
    let found = only(&mut graph, &table);
    assert_eq!((found.level, found.steps.len()), (Level::Potential, count as usize));
    for n in 0..count {
        assert_eq!(add(&mut graph, &edge(n + 1, (n + 1) % count, n)), [], "the same cause");
    }
    assert!(graph.losses().is_empty(), "{:?}", graph.losses());
}

/// Returns what the second of two opposite edges by two threads makes of their modes.
fn with_readers(first: (Mode, Mode), second: (Mode, Mode)) -> usize {
    let mut graph = graph(2);
    let mut findings = Vec::new();
    for (edge, (from_mode, to_mode)) in [(edge(1, 0, 1), first), (edge(2, 1, 0), second)] {
        graph.add(&OrderEdge { from_mode, to_mode, ..edge }, &mut findings);
    }
    findings.len()
}

#[test]
fn a_recursive_reader_waits_behind_no_reader() {
    // Both locks are asked for recursively and held by readers.
    assert_eq!(with_readers((Read, ReadRecursive), (Read, ReadRecursive)), 0);
    assert_eq!(with_readers((ReadRecursive, ReadRecursive), (ReadRecursive, ReadRecursive)), 0);
    // One place that holds nobody up is enough.
    assert_eq!(with_readers((Write, Write), (Read, ReadRecursive)), 1, "behind a writer");
    assert_eq!(with_readers((Read, Write), (Write, ReadRecursive)), 0, "0 is held by a reader");
    assert_eq!(with_readers((Write, ReadRecursive), (Read, Write)), 0, "1 is held by a reader");
}

#[test]
fn a_plain_reader_waits_behind_a_reader_since_a_writer_may_wait() {
    assert_eq!(with_readers((Read, Read), (Read, Read)), 1);
    assert_eq!(with_readers((ReadRecursive, Read), (ReadRecursive, Read)), 1);
    assert_eq!(with_readers((Read, Write), (Read, Write)), 1, "a writer behind readers");
    assert_eq!(with_readers((Read, Read), (Read, ReadRecursive)), 0);
}

#[test]
fn any_request_waits_behind_a_writer() {
    for asked in [Write, Read, ReadRecursive] {
        assert_eq!(with_readers((Write, asked), (Write, Write)), 1);
        assert_eq!(with_readers((Write, asked), (Write, ReadRecursive)), 1);
    }
}

#[test]
fn a_weak_place_inside_a_longer_cycle_breaks_it() {
    let cycle = |through: Mode| {
        let mut graph = graph(3);
        let mut findings = Vec::new();
        graph.add(&OrderEdge { to_mode: ReadRecursive, ..edge(1, 0, 1) }, &mut findings);
        graph.add(&OrderEdge { from_mode: through, ..edge(2, 1, 2) }, &mut findings);
        graph.add(&edge(3, 2, 0), &mut findings);
        findings.len()
    };
    assert_eq!((cycle(Write), cycle(Read), cycle(ReadRecursive)), (1, 0, 0));
}

#[test]
fn the_strong_cycle_that_a_second_mode_makes_is_found() {
    let mut graph = graph(2);
    let reader = OrderEdge { from_mode: Read, to_mode: ReadRecursive, ..edge(1, 0, 1) };
    assert_eq!(add(&mut graph, &reader), []);
    assert_eq!(add(&mut graph, &OrderEdge { from_mode: Read, ..edge(2, 1, 0) }), []);
    let found = only(&mut graph, &[edge(1, 0, 1)]);
    assert_eq!((found.level, found.steps.len()), (Level::Potential, 2));
}

#[test]
fn no_cycle_leads_through_a_dead_lock() {
    let mut graph = graph(3);
    for edge in [edge(1, 0, 1), edge(2, 1, 2)] {
        assert_eq!(add(&mut graph, &edge), []);
    }
    graph.forget(LockId(1));
    assert_eq!(graph.edges().count(), 0);
    assert!(graph.declare(LockId(1), ClassId(9), 0), "its number is free");
    assert_eq!(graph.path(LockId(0), LockId(2)), None);
    let findings = add(&mut graph, &edge(3, 2, 0));
    assert!(findings.iter().all(|found| found.kind == InversionKind::Classes), "{findings:?}");
    assert_eq!(add(&mut graph, &edge(3, 1, 0)), []);
}

#[test]
fn the_order_of_classes_outlives_their_locks() {
    let mut graph = Graph::new(Limits::default());
    let declare = |graph: &mut Graph, lock, class| graph.declare(LockId(lock), ClassId(class), 0);
    declare(&mut graph, 0, 0);
    declare(&mut graph, 1, 1);
    assert_eq!(add(&mut graph, &edge(1, 0, 1)), []);
    graph.forget(LockId(1));
    declare(&mut graph, 2, 1);
    let found = only(&mut graph, &[edge(2, 2, 0)]);
    assert_eq!((found.level, found.kind), (Level::Order, InversionKind::Classes));
    assert_eq!(found.excuse, Some(Excuse::OtherInstances));
    assert_eq!(found.steps[1].to_class, LockClass { id: ClassId(1), subclass: 0 });
    assert_eq!(found.steps[1].to, LockId(1), "the one that was seen");
    // The same locks, the same classes: more.
    let found = only(&mut graph, &[edge(1, 0, 2)]);
    assert_eq!((found.level, found.kind), (Level::Potential, InversionKind::Cycle));
    let [x, y] = [0, 1].map(|id| LockClass { id: ClassId(id), subclass: 0 });
    assert_eq!(graph.class_path(x, y).map(|way| way.len()), Some(1));
    assert_eq!(graph.class_edges().count(), 2);
}

/// Lists are 0 to 9, of one class, objects 10 to 19, gates 20 to 29.
fn lists_and_objects() -> Graph {
    let mut graph = Graph::new(Limits::default());
    for lock in 0..30 {
        graph.declare(LockId(lock), ClassId(lock / 10), 0);
    }
    graph
}

/// Returns the edge with the place at which a thread makes it: a call for each.
fn at(site: u32, edge: OrderEdge<'static>) -> OrderEdge<'static> {
    OrderEdge { from_site: SiteId(site), to_site: SiteId(site + 100), ..edge }
}

/// Returns the level at which these edges are reported at last; each comes from a call of its
/// thread.
fn worst(graph: &mut Graph, edges: &[OrderEdge<'_>]) -> Option<(Level, InversionKind)> {
    let found =
        edges.iter().flat_map(|edge| add(graph, edge)).map(|found| (found.level, found.kind));
    found.max_by_key(|(level, _)| *level)
}

const HABITS: Option<(Level, InversionKind)> = Some((Level::Potential, InversionKind::Classes));
const DOUBTS: Option<(Level, InversionKind)> = Some((Level::Order, InversionKind::Classes));

#[test]
fn two_orders_of_classes_that_are_habits_may_meet() {
    let habits = [(1, 0, 10), (1, 1, 11), (2, 12, 2), (2, 13, 3)];
    let edges = habits.map(|(thread, from, to)| at(thread, edge(thread, from, to)));
    assert_eq!(worst(&mut lists_and_objects(), &edges), HABITS);
    for left_out in 0..edges.len() {
        let mut fewer = edges.to_vec();
        fewer.remove(left_out);
        assert_eq!(worst(&mut lists_and_objects(), &fewer), DOUBTS, "without {left_out}");
    }
    // One list and many objects, each with one order.
    let habits = [(1, 0, 10), (1, 0, 11), (2, 12, 0), (2, 13, 0)];
    let edges = habits.map(|(thread, from, to)| at(thread, edge(thread, from, to)));
    assert_eq!(worst(&mut lists_and_objects(), &edges), HABITS);
}

#[test]
fn what_speaks_against_two_habits() {
    let habits = [(1, 0, 10), (1, 1, 11), (2, 12, 2), (2, 13, 3)];
    let with = |change: &dyn Fn(usize, OrderEdge<'static>) -> OrderEdge<'static>| {
        let edges = habits.map(|(thread, from, to)| at(thread, edge(thread, from, to)));
        let edges: Vec<_> = edges.into_iter().enumerate().map(|(i, e)| change(i, e)).collect();
        worst(&mut lists_and_objects(), &edges)
    };
    assert_eq!(with(&|_, edge| edge), HABITS);
    assert_eq!(with(&|_, edge| OrderEdge { thread: ThreadId(1), ..edge }), DOUBTS, "one thread");
    assert_eq!(with(&|i, edge| OrderEdge { alone: i > 1, ..edge }), DOUBTS, "no other thread");
    assert_eq!(with(&|_, edge| at(7, edge)), DOUBTS, "one code for both orders");
    const SAME: &[GateLock] = &[GateLock { lock: LockId(20), shared: false }];
    const LIKE: &[GateLock] = &[GateLock { lock: LockId(21), shared: false }];
    assert_eq!(with(&|_, edge| OrderEdge { gates: SAME, ..edge }), DOUBTS, "a gate");
    let each = |i, edge| OrderEdge { gates: if i < 2 { SAME } else { LIKE }, ..edge };
    assert_eq!(with(&each), DOUBTS, "each has its gate");
    let one = |i, edge| OrderEdge { gates: if i < 2 { SAME } else { &[] }, ..edge };
    assert_eq!(with(&one), HABITS, "only one of them has a gate");
}

#[test]
fn trees_of_two_classes_are_none() {
    // A directory before its list, the list before what is in it, which is a directory again.
    let tree = [(1, 10, 0), (2, 0, 11), (1, 12, 1), (2, 1, 13), (2, 0, 14), (1, 13, 2), (2, 2, 15)];
    let edges = tree.map(|(thread, from, to)| at(thread, edge(thread, from, to)));
    assert_eq!(worst(&mut lists_and_objects(), &edges), DOUBTS);
    // Its locks may be dead by then.
    let mut graph = lists_and_objects();
    for edge in &edges[..2] {
        add(&mut graph, edge);
    }
    graph.forget(LockId(0));
    let rest = [(1, 12, 1), (1, 13, 2), (2, 3, 14), (2, 4, 15)];
    let rest = rest.map(|(thread, from, to)| at(thread, edge(thread, from, to)));
    assert_eq!(worst(&mut graph, &rest), None);
}

#[test]
fn locks_of_one_class_nest_as_they_like() {
    let mut graph = Graph::new(Limits::default());
    for lock in 0..4 {
        graph.declare(LockId(lock), ClassId(5), 0);
    }
    for edge in [edge(1, 0, 1), edge(2, 2, 1), edge(1, 3, 2), edge(2, 3, 0)] {
        assert_eq!(add(&mut graph, &edge), []);
    }
    assert_eq!(only(&mut graph, &[edge(3, 1, 3)]).level, Level::Potential, "but not in a cycle");
}

#[test]
fn a_subclass_says_which_nests_in_which() {
    let mut graph = Graph::new(Limits::default());
    for lock in 0..4 {
        graph.declare(LockId(lock), ClassId(5), (lock % 2) as u8);
    }
    let found = only(&mut graph, &[edge(1, 0, 1), edge(2, 2, 1), edge(2, 3, 2)]);
    assert_eq!((found.level, found.kind), (Level::Order, InversionKind::Classes));
    let subclasses: Vec<u8> = found.steps.iter().map(|step| step.from_class.subclass).collect();
    assert_eq!(subclasses, [1, 0]);
}

#[test]
fn a_lock_and_itself_have_no_order() {
    let mut graph = graph(1);
    assert_eq!(add(&mut graph, &edge(1, 0, 0)), []);
    assert_eq!(graph.edges().count(), 0);
}

#[test]
fn what_does_not_fit_is_counted() {
    let mut graph = Graph::new(Limits { locks: 3, edges: 2, classes: 2 });
    assert!((0..3).all(|lock| graph.declare(LockId(lock), ClassId(lock), 0)));
    assert!(!graph.declare(LockId(3), ClassId(0), 0));
    assert!(graph.declare(LockId(0), ClassId(0), 0), "it is there already");
    for edge in [edge(1, 0, 1), edge(1, 1, 2), edge(1, 0, 2), edge(1, 0, 3), edge(1, 0, 1)] {
        add(&mut graph, &edge);
    }
    let losses = graph.losses();
    assert_eq!((losses.locks, losses.edges, losses.classes), (1, 1, 1));
    assert_eq!((losses.undeclared, losses.witnesses, losses.searches), (1, 0, 0));
    assert!(!losses.is_empty());
    graph.forget(LockId(2));
    assert!(graph.declare(LockId(3), ClassId(2), 0), "there is room again");
    assert_eq!(add(&mut graph, &edge(1, 1, 3)), []);
    assert_eq!(graph.losses().edges, 1);
}

#[test]
fn the_lock_it_had_by_trylock_is_held_like_any_other() {
    let found =
        only(&mut graph(2), &[OrderEdge { tried_from: true, ..edge(1, 0, 1) }, edge(2, 1, 0)]);
    assert_eq!(found.level, Level::Potential);
    assert!(found.steps[1].witness.tried_from);
}
