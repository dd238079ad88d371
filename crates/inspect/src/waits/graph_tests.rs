//! The cycles against those of a search that tries every way.

use super::*;
use proptest::prelude::*;

fn wait(thread: GraphThread, wants: Wants) -> GraphWait {
    GraphWait { thread, wants, timed: false }
}

fn hold(thread: GraphThread, lock: GraphLock) -> GraphHold {
    GraphHold { thread, lock, mode: HoldMode::Alone }
}

fn reads(thread: GraphThread, lock: GraphLock) -> GraphHold {
    GraphHold { thread, lock, mode: HoldMode::Shared }
}

fn threads(found: &[Cycle]) -> Vec<Vec<GraphThread>> {
    found.iter().map(|cycle| cycle.members.iter().map(|wait| wait.thread).collect()).collect()
}

#[test]
fn bystanders_are_no_members() {
    let waits = [
        wait(1, Wants::Exclusive(20)),
        wait(2, Wants::Exclusive(10)),
        wait(3, Wants::Exclusive(10)),
        wait(4, Wants::Exclusive(30)),
    ];
    let holds = [hold(1, 10), hold(2, 20), hold(5, 30), hold(3, 40)];
    let found = cycles(&waits, &holds);
    assert_eq!(threads(&found), [[1, 2]]);
    assert_eq!(found[0].members, waits[..2]);
    assert!(!found[0].timed());
}

#[test]
fn a_thread_that_waits_for_itself_is_a_cycle_of_one() {
    assert_eq!(threads(&cycles(&[wait(7, Wants::Exclusive(1))], &[hold(7, 1)])), [[7]]);
    assert_eq!(threads(&cycles(&[wait(7, Wants::Exclusive(1))], &[reads(7, 1)])), [[7]]);
    assert_eq!(threads(&cycles(&[wait(7, Wants::Join(7))], &[])), [[7]]);
}

#[test]
fn joins_close_cycles() {
    let waits = [wait(2, Wants::Join(1)), wait(1, Wants::Exclusive(9)), wait(3, Wants::Join(4))];
    assert_eq!(threads(&cycles(&waits, &[hold(2, 9)])), [[1, 2]]);
}

#[test]
fn a_timed_wait_is_told() {
    let mut waits = [wait(1, Wants::Exclusive(2)), wait(2, Wants::Exclusive(1))];
    waits[1].timed = true;
    assert!(cycles(&waits, &[hold(1, 1), hold(2, 2)])[0].timed());
}

#[test]
fn readers_wait_for_writers_only() {
    // Held by reader 1, which waits for reader 2, which waits to read too.
    let waits = [wait(1, Wants::Exclusive(5)), wait(2, Wants::Shared(4))];
    let mut holds = vec![reads(1, 4), hold(2, 5)];
    assert_eq!(threads(&cycles(&waits, &holds)), [[0; 0]; 0], "nothing stands in its way");
    // A writer that is let in first closes it.
    let waiting_writer = [waits[0], waits[1], wait(3, Wants::Exclusive(4))];
    assert_eq!(threads(&cycles(&waiting_writer, &holds)), [[1, 2, 3]]);
    // So does a holder that is alone.
    holds[0].mode = HoldMode::Alone;
    assert_eq!(threads(&cycles(&waits, &holds)), [[1, 2]]);
}

#[test]
fn an_upgradable_reader_waits_for_its_like_and_for_who_has_closed_the_lock() {
    let (upgradable, plain) = (HoldMode::Upgradable, HoldMode::Shared);
    let holds = |mode| [GraphHold { thread: 1, lock: 4, mode }, hold(2, 5)];
    let waits = [wait(1, Wants::Exclusive(5)), wait(2, Wants::Upgradable(4))];
    assert_eq!(threads(&cycles(&waits, &holds(upgradable))), [[1, 2]]);
    assert_eq!(threads(&cycles(&waits, &holds(plain))), [[0; 0]; 0], "a reader lets it in");
    // Nor does one that becomes the writer wait for itself.
    let closing = [wait(1, Wants::Closing(4))];
    assert_eq!(threads(&cycles(&closing, &holds(upgradable))), [[0; 0]; 0]);
    for wants in [Wants::Upgradable, Wants::Shared] {
        let behind = [wait(1, Wants::Exclusive(5)), wait(2, wants(4)), wait(3, Wants::Closing(4))];
        assert_eq!(threads(&cycles(&behind, &holds(plain))), [[1, 2, 3]]);
    }
}

#[test]
fn any_of_several_holders_closes_a_cycle() {
    let waits = [
        wait(1, Wants::Exclusive(50)),
        wait(2, Wants::Exclusive(60)),
        wait(3, Wants::Exclusive(60)),
    ];
    let holds = [reads(2, 50), reads(3, 50), reads(9, 50), hold(1, 60)];
    assert_eq!(threads(&cycles(&waits, &holds)), [[1, 2], [1, 3]]);
}

#[test]
fn a_cycle_may_be_of_any_length() {
    const LENGTH: u32 = 20_000;
    let waits: Vec<_> =
        (0..LENGTH).map(|t| wait(t, Wants::Exclusive(u64::from((t + 1) % LENGTH)))).collect();
    let holds: Vec<_> = (0..LENGTH).map(|t| hold(t, u64::from(t))).collect();
    let found = cycles(&waits, &holds);
    assert_eq!(threads(&found), [(0..LENGTH).collect::<Vec<_>>()]);
}

/// Tells whether `before` stands behind `after`, by the words of the file's head.
fn behind(
    before: &GraphWait,
    after: GraphThread,
    waits: &[GraphWait],
    holds: &[GraphHold],
) -> bool {
    use HoldMode::{Alone, Shared, Upgradable};
    let held = |lock, modes: &[HoldMode]| {
        holds.iter().any(|hold| hold.lock == lock && modes.contains(&hold.mode))
    };
    let holds_it = |lock, modes: &[HoldMode]| {
        let mut its = holds.iter().filter(|hold| hold.thread == after && hold.lock == lock);
        its.any(|hold| modes.contains(&hold.mode))
    };
    let waits_so = |wants| waits.iter().any(|wait| wait.thread == after && wait.wants == wants);
    let is_closed = |lock| waits.iter().any(|wait| wait.wants == Wants::Closing(lock));
    match before.wants {
        Wants::Join(target) => target == after,
        Wants::Exclusive(lock) => holds_it(lock, &[Alone, Upgradable, Shared]),
        Wants::Closing(lock) => holds_it(lock, &[Shared]),
        Wants::Shared(lock) if held(lock, &[Alone]) => holds_it(lock, &[Alone]),
        Wants::Shared(lock) if is_closed(lock) => waits_so(Wants::Closing(lock)),
        Wants::Shared(lock) => !held(lock, &[Upgradable]) && waits_so(Wants::Exclusive(lock)),
        Wants::Upgradable(lock) if held(lock, &[Alone, Upgradable]) => {
            holds_it(lock, &[Alone, Upgradable])
        }
        Wants::Upgradable(lock) => waits_so(Wants::Closing(lock)),
    }
}

/// Returns every cycle of threads without a repetition of a thread or of a side of a lock, smallest
/// thread first.
fn every_cycle(waits: &[GraphWait], holds: &[GraphHold]) -> BTreeSet<Vec<GraphThread>> {
    fn extend(
        path: &mut Vec<GraphWait>,
        waits: &[GraphWait],
        holds: &[GraphHold],
        cycles: &mut BTreeSet<Vec<GraphThread>>,
    ) {
        let last = path[path.len() - 1];
        if behind(&last, path[0].thread, waits, holds) {
            cycles.insert(path.iter().map(|w| w.thread).collect());
        }
        for next in waits {
            let fresh = next.thread > path[0].thread
                && path.iter().all(|w| w.thread != next.thread)
                && path.iter().all(|w| w.wants != next.wants || matches!(w.wants, Wants::Join(_)));
            if fresh && behind(&last, next.thread, waits, holds) {
                path.push(*next);
                extend(path, waits, holds, cycles);
                path.pop();
            }
        }
    }
    let mut cycles = BTreeSet::new();
    for first in waits {
        extend(&mut vec![*first], waits, holds, &mut cycles);
    }
    cycles
}

fn any_wait(thread: GraphThread) -> impl Strategy<Value = Option<GraphWait>> {
    let wants = prop_oneof![
        3 => (0..5_u64).prop_map(Wants::Exclusive),
        2 => (0..5_u64).prop_map(Wants::Shared),
        1 => (0..5_u64).prop_map(Wants::Upgradable),
        1 => (0..5_u64).prop_map(Wants::Closing),
        1 => (0..8_u32).prop_map(Wants::Join),
    ];
    proptest::option::weighted(0.8, (wants, any::<bool>()))
        .prop_map(move |wait| wait.map(|(wants, timed)| GraphWait { thread, wants, timed }))
}

fn any_waits() -> impl Strategy<Value = Vec<GraphWait>> {
    (0..7_u32)
        .map(any_wait)
        .collect::<Vec<_>>()
        .prop_map(|waits| waits.into_iter().flatten().collect())
}

fn any_holds() -> impl Strategy<Value = Vec<GraphHold>> {
    let mode = prop_oneof![
        2 => Just(HoldMode::Alone),
        1 => Just(HoldMode::Upgradable),
        2 => Just(HoldMode::Shared),
    ];
    let hold = (0..8_u32, 0..5_u64, mode).prop_map(|(thread, lock, mode)| GraphHold {
        thread,
        lock,
        mode,
    });
    proptest::collection::vec(hold, 0..8)
}

proptest! {
    #[test]
    fn the_same_as_trying_every_way(waits in any_waits(), holds in any_holds()) {
        let found = threads(&cycles(&waits, &holds));
        let cycles = every_cycle(&waits, &holds);
        let once: BTreeSet<_> = found.iter().cloned().collect();
        prop_assert_eq!(once.len(), found.len(), "found twice");
        prop_assert!(once.is_subset(&cycles), "{:?} not in {:?}", once, cycles);
        let members = |cycles: &BTreeSet<Vec<_>>| -> BTreeSet<_> {
            cycles.iter().flatten().copied().collect()
        };
        prop_assert_eq!(members(&once), members(&cycles));
        let one_holder = (0..5).all(|lock| holds.iter().filter(|h| h.lock == lock).count() < 2);
        if one_holder && waits.iter().all(|w| !matches!(w.wants, Wants::Shared(_) | Wants::Upgradable(_))) {
            prop_assert_eq!(once, cycles);
        }
    }
}
