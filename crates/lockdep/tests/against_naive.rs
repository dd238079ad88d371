//! Whatever happens, the graph finds what looking at everything finds.

mod naive;

use lockstead_lockdep::{
    ClassId, Excuse, GateLock, Graph, Inversion, InversionKind, Level, Limits, LockId, Mode,
};
use naive::{
    Seen, Shortest, is_cycle, is_habit, is_new_kind, is_tree, of_step, order, potential, proves,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

const LOCKS: u32 = 6;
/// Numbers of gates whose life is over begin here.
const DEAD: u32 = 1000;

#[derive(Clone, Debug)]
enum Event {
    Add(Seen),
    Forget(u32),
}

fn mode(with_readers: bool) -> BoxedStrategy<Mode> {
    if with_readers {
        prop_oneof![Just(Mode::Write), Just(Mode::Read), Just(Mode::ReadRecursive)].boxed()
    } else {
        Just(Mode::Write).boxed()
    }
}

fn seen(with_readers: bool, threads: u32) -> impl Strategy<Value = Seen> {
    let gate = (0..LOCKS, proptest::bool::weighted(0.3));
    (
        (0..LOCKS, 1..LOCKS),
        (mode(with_readers), mode(with_readers)),
        0..threads,
        proptest::collection::vec(gate, 0..2),
        proptest::bool::weighted(0.1),
    )
        .prop_map(|((from, other), (from_mode, to_mode), thread, gates, alone)| {
            let to = (from + other) % LOCKS;
            let gates = gates.into_iter().filter(|&(lock, _)| lock != from && lock != to);
            let gates =
                gates.map(|(lock, shared)| GateLock { lock: LockId(lock), shared }).collect();
            Seen { from, to, from_mode, to_mode, thread, gates, alone, site: 0 }
        })
}

fn events(with_readers: bool) -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        12 => seen(with_readers, 4).prop_map(Event::Add),
        1 => (0..LOCKS).prop_map(Event::Forget),
    ];
    proptest::collection::vec(event, 0..40)
}

/// Returns what was seen, given what a finding says about it: gates that are dead by now are not
/// shown.
fn original(all: &[Seen], shown: &Seen) -> Option<Seen> {
    let is = |seen: &&Seen| {
        let gates = seen.gates.iter().filter(|gate| gate.lock.0 < DEAD).copied();
        Seen { gates: gates.collect(), ..(*seen).clone() } == *shown
    };
    all.iter().find(is).cloned()
}

fn cause(finding: &Inversion) -> Vec<u32> {
    let mut cause: Vec<u32> = finding.steps.iter().map(|step| step.from_class.id.0).collect();
    cause.sort_unstable();
    cause.dedup();
    cause
}

/// Tells whether the expected cycle is among the findings, or what as short a one says was known
/// before or is said by a longer one of a higher level.
fn is_told(
    expected: &Shortest,
    level: Level,
    known: &BTreeMap<Vec<u32>, Level>,
    findings: &[&Inversion],
) -> bool {
    let Some((length, causes)) = expected else { return true };
    findings.iter().any(|f| f.level >= level && f.steps.len() == *length)
        || causes.iter().any(|c| known.get(c).is_some_and(|known| *known >= level))
        || findings.iter().any(|f| f.level > level && causes.contains(&cause(f)))
}

fn check(events: &[Event], classes: u32) -> Result<(), TestCaseError> {
    let class = |lock: u32| lock % classes;
    let mut graph = Graph::new(Limits::default());
    for lock in 0..LOCKS {
        prop_assert!(graph.declare(LockId(lock), ClassId(class(lock)), 0));
    }
    let mut live: Vec<Seen> = Vec::new();
    let mut ever: Vec<Seen> = Vec::new();
    // Edges of classes, which outlive their locks.
    let mut of_classes: Vec<Seen> = Vec::new();
    let mut known: BTreeMap<Vec<u32>, Level> = BTreeMap::new();
    let mut lives = 0;
    for (site, event) in events.iter().enumerate() {
        let new = match event {
            Event::Forget(lock) => {
                graph.forget(LockId(*lock));
                live.retain(|seen| seen.from != *lock && seen.to != *lock);
                prop_assert!(graph.declare(LockId(*lock), ClassId(class(*lock)), 0));
                // It is another lock, though it has the same number.
                lives += 1;
                for gate in live.iter_mut().flat_map(|seen| &mut seen.gates) {
                    if gate.lock.0 == *lock {
                        gate.lock.0 = DEAD + lives;
                    }
                }
                continue;
            }
            Event::Add(new) => &Seen { site: site as u32, ..new.clone() },
        };
        let mut findings = Vec::new();
        graph.add(&new.edge(), &mut findings);
        if graph.losses().witnesses > 0 {
            // From here on it need not know all.
            return Ok(());
        }
        let grows = is_new_kind(&live, new);
        let covered = live.iter().any(|seen| seen.covers(new));
        live.push(new.clone());
        ever.push(new.clone());
        let of_locks: Vec<&Inversion> =
            findings.iter().filter(|f| f.kind == InversionKind::Cycle).collect();
        for finding in &of_locks {
            let cycle: Option<Vec<Seen>> =
                finding.steps.iter().map(|step| original(&live, &of_step(step))).collect();
            prop_assert!(cycle.is_some(), "never seen: {finding:?}");
            let cycle = cycle.unwrap_or_default();
            prop_assert!(is_cycle(&cycle), "{finding:?}");
            prop_assert_eq!((cycle[0].from, cycle[0].to), (new.from, new.to));
            prop_assert_eq!(proves(&cycle), finding.level == Level::Potential, "{:?}", finding);
            prop_assert_eq!(finding.excuse.is_none(), finding.level == Level::Potential);
        }
        let expected = if covered { None } else { potential(&live, new, &class) };
        prop_assert!(
            is_told(&expected, Level::Potential, &known, &of_locks),
            "{expected:?} {findings:?}"
        );
        if grows {
            let expected = order(&live, new, &class);
            prop_assert!(
                is_told(&expected, Level::Order, &known, &of_locks),
                "{expected:?} {findings:?}"
            );
        }
        for finding in &of_locks {
            let old = known.insert(cause(finding), finding.level);
            prop_assert!(old.is_none_or(|old| old < finding.level), "twice: {finding:?}");
        }
        let of_class = Seen { from: class(new.from), to: class(new.to), ..new.clone() };
        let of_classes_found: Vec<&Inversion> =
            findings.iter().filter(|f| f.kind == InversionKind::Classes).collect();
        let mut expected = None;
        if of_class.from != of_class.to {
            let grows = is_new_kind(&of_classes, &of_class);
            of_classes.push(of_class.clone());
            if grows {
                expected = order(&of_classes, &of_class, &|class| class);
            }
        }
        prop_assert!(
            is_told(&expected, Level::Order, &known, &of_classes_found),
            "{expected:?} {findings:?}"
        );
        for finding in &of_classes_found {
            if finding.level == Level::Potential {
                let old = known.insert(cause(finding), Level::Potential);
                prop_assert!(old.is_none_or(|old| old == Level::Order), "twice: {finding:?}");
                let steps: Vec<Seen> = finding.steps.iter().map(of_step).collect();
                prop_assert!(is_habit(&steps, &ever, &class), "{finding:?}");
                prop_assert!(lives > 0 || !is_tree(&steps, &live, &class), "{finding:?}");
                continue;
            }
            prop_assert!(expected.is_some());
            prop_assert_eq!(finding.excuse, Some(Excuse::OtherInstances));
            let cycle = finding.steps.iter().map(|step| Seen {
                from: step.from_class.id.0,
                to: step.to_class.id.0,
                ..of_step(step)
            });
            let cycle: Vec<Seen> = cycle.collect();
            prop_assert!(is_cycle(&cycle), "{finding:?}");
            prop_assert!(known.insert(cause(finding), Level::Order).is_none());
        }
    }
    prop_assert_eq!(graph.losses().searches, 0);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn of_mutexes(events in events(false), classes in 1..=LOCKS) {
        check(&events, classes)?;
    }

    #[test]
    fn of_reader_writer_locks(events in events(true), classes in 1..=LOCKS) {
        check(&events, classes)?;
    }
}
