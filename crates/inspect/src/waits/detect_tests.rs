//! What is found, and that it is found once.

use super::*;
use lockstead_ledger::publish::Waiting;
use proptest::prelude::*;
use std::collections::BTreeSet;

pub(crate) fn waiter(
    thread: u32,
    how: WaitKind,
    target: u64,
    held: &[(u64, Flags)],
) -> LastingWaiter {
    let waiting = Waiting { how, stack: 7, target, since: 0, deadline: 0, companion: 0 };
    let held = held
        .iter()
        .map(|&(address, flags)| Holding { address, flags, stack: 9, ..Holding::default() })
        .collect();
    LastingWaiter { thread, tid: 100 + thread, episode: Episode(1), waiting, held }
}

#[derive(Default)]
struct Known {
    handles: HashMap<u64, u32>,
    writers_first: bool,
    taking_back: bool,
    /// Reader-writer locks, with the rights to become their writers.
    rights: Vec<(u64, u64)>,
}

impl DetectionContext for Known {
    fn joined(&self, waiter: &LastingWaiter) -> Option<u32> {
        self.handles.get(&waiter.waiting.target).copied()
    }
    fn writers_first(&self, _: u64) -> bool {
        self.writers_first
    }
    fn right_of(&self, held: u64) -> Option<u64> {
        self.rights.iter().find(|(_, right)| *right == held).map(|(lock, _)| *lock)
    }
    fn is_read_upgradably(&self, lock: u64) -> bool {
        self.rights.iter().any(|(of, _)| *of == lock)
    }
    fn is_taking_back(&self, _: &LastingWaiter) -> bool {
        self.taking_back
    }
}

fn find(detector: &Detector, waiters: &[LastingWaiter], known: &Known) -> Vec<Vec<u32>> {
    let found = detector.find(waiters.iter(), known);
    found.iter().map(|f| f.members.iter().map(|m| m.waiter.thread).collect()).collect()
}

const PLAIN: Flags = Flags::NONE;

#[test]
fn who_reads_upgradably_bars_writers_and_its_like_and_becomes_one_itself() {
    let known = Known { rights: vec![(20, 27)], writers_first: true, ..Known::default() };
    let find = |waiters: &[LastingWaiter]| find(&Detector::default(), waiters, &known);
    let upgradable = WaitKind::READ.upgradable();
    for (how, cycles) in [(WaitKind::WRITE, 1), (upgradable, 1), (WaitKind::READ, 0)] {
        let waiters =
            [waiter(1, WaitKind::MUTEX, 10, &[(27, PLAIN)]), waiter(2, how, 20, &[(10, PLAIN)])];
        assert_eq!(find(&waiters).len(), cycles, "{how:?}");
    }
    // A plain reader is in the way of who becomes the writer, and that one in no way of itself.
    let upgrades = waiter(1, WaitKind::WRITE, 20, &[(27, PLAIN), (10, PLAIN)]);
    assert!(find(std::slice::from_ref(&upgrades)).is_empty());
    let reader = waiter(2, WaitKind::MUTEX, 10, &[(20, Flags::READ)]);
    assert_eq!(find(&[upgrades, reader]), [[1, 2]]);
}

#[test]
fn each_member_comes_with_what_the_one_before_wants() {
    let waiters = [
        waiter(1, WaitKind::MUTEX, 20, &[(10, PLAIN), (30, PLAIN)]),
        waiter(2, WaitKind::SPIN, 10, &[(20, PLAIN)]),
    ];
    let found = Detector::default().find(waiters.iter(), &Known::default());
    let [cycle] = &found[..] else { panic!("{found:?}") };
    assert!(!cycle.timed);
    let locks: Vec<_> =
        cycle.members.iter().map(|m| (m.lock.unwrap(), m.holding.unwrap().address)).collect();
    assert_eq!(locks, [(20, 10), (10, 20)]);
}

#[test]
fn a_lent_mutex_is_not_held() {
    let waiters = [
        waiter(1, WaitKind::MUTEX, 20, &[(10, PLAIN)]),
        waiter(2, WaitKind::MUTEX, 10, &[(20, PLAIN.and(Flags::LENT))]),
    ];
    assert!(find(&Detector::default(), &waiters, &Known::default()).is_empty());
}

#[test]
fn getting_the_mutex_back_counts_without_the_deadline_of_the_condition() {
    let mut back = waiter(2, WaitKind::CONDITION.timed(), 99, &[(20, PLAIN), (10, Flags::LENT)]);
    back.waiting.companion = 10;
    let waiters = [waiter(1, WaitKind::MUTEX, 20, &[(10, PLAIN)]), back];
    let asleep = Known::default();
    assert!(find(&Detector::default(), &waiters, &asleep).is_empty());
    let awake = Known { taking_back: true, ..Known::default() };
    let found = Detector::default().find(waiters.iter(), &awake);
    assert!(found.len() == 1 && !found[0].timed, "{found:?}");
    assert_eq!(found[0].members[1].lock, Some(10));
}

#[test]
fn joins_lead_to_the_thread_with_the_handle() {
    let waiters =
        [waiter(1, WaitKind::JOIN, 0x7f00, &[(10, PLAIN)]), waiter(2, WaitKind::MUTEX, 10, &[])];
    let known = Known { handles: [(0x7f00, 2)].into(), ..Known::default() };
    let found = Detector::default().find(waiters.iter(), &known);
    assert_eq!(found[0].members[0].lock, None);
    assert_eq!(found[0].members[1].holding, None, "it is joined, it holds nothing of the cycle");
    assert!(find(&Detector::default(), &waiters, &Known::default()).is_empty(), "a handle unknown");
}

#[test]
fn a_reader_waits_for_a_queue_only_where_writers_come_first() {
    // Thread 1 reads 10 and wants to read it again; writer 2 stands in between.
    let waiters =
        [waiter(1, WaitKind::READ, 10, &[(10, Flags::READ)]), waiter(2, WaitKind::WRITE, 10, &[])];
    assert!(find(&Detector::default(), &waiters, &Known::default()).is_empty());
    let first = Known { writers_first: true, ..Known::default() };
    let found = Detector::default().find(waiters.iter(), &first);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].members.len(), 2);
    assert_eq!(found[0].members[1].holding, None, "the writer holds nothing, it queues");
}

#[test]
fn reported_once_and_followers_are_no_news() {
    let mut waiters = vec![
        waiter(1, WaitKind::MUTEX, 20, &[(10, PLAIN)]),
        waiter(2, WaitKind::MUTEX, 10, &[(20, PLAIN)]),
    ];
    let mut detector = Detector::default();
    let found = detector.find(waiters.iter(), &Known::default());
    assert!(detector.note(&found[0]) && detector.is_dead(&waiters[0]));
    waiters.push(waiter(3, WaitKind::MUTEX, 10, &[(30, PLAIN)]));
    waiters.push(waiter(4, WaitKind::MUTEX, 30, &[(40, PLAIN)]));
    assert!(find(&detector, &waiters, &Known::default()).is_empty());
    assert!(!detector.is_dead(&waiters[2]));
    // The same threads in later waits are another deadlock.
    waiters.iter_mut().for_each(|w| w.episode = Episode(3));
    assert_eq!(find(&detector, &waiters, &Known::default()), [[1, 2]]);
}

#[test]
fn a_cycle_that_ends_by_time_out_is_reported_once_and_counted() {
    let mut waiters = [
        waiter(1, WaitKind::MUTEX.timed(), 20, &[(10, PLAIN)]),
        waiter(2, WaitKind::MUTEX, 10, &[(20, PLAIN)]),
    ];
    let mut detector = Detector::default();
    for round in 0..5 {
        waiters.iter_mut().for_each(|w| w.episode = Episode(round * 2 + 1));
        let found = detector.find(waiters.iter(), &Known::default());
        assert!(found.len() == 1 && found[0].timed);
        assert_eq!(detector.note(&found[0]), round == 0);
        assert!(find(&detector, &waiters, &Known::default()).is_empty());
    }
    assert_eq!(detector.recurrences(), 4);
    assert!(!detector.is_dead(&waiters[0]));
}

#[test]
fn a_time_out_does_not_hide_a_deadlock() {
    // Writer 1 waits for readers 2 and 3; only 2 will give up.
    let waiters = [
        waiter(1, WaitKind::WRITE, 20, &[(10, PLAIN)]),
        waiter(2, WaitKind::MUTEX.timed(), 10, &[(20, Flags::READ)]),
        waiter(3, WaitKind::MUTEX, 10, &[(20, Flags::READ)]),
    ];
    let found = Detector::default().find(waiters.iter(), &Known::default());
    let found: Vec<_> = found.iter().map(|f| (f.timed, f.members[1].waiter.thread)).collect();
    assert_eq!(found, [(false, 3), (true, 2)]);
}

/// Returns the one cycle that following each thread's single wait leads into, if it leads into one,
/// for mutexes alone: what a reader with a pencil would do.
fn by_hand(waiters: &[LastingWaiter]) -> BTreeSet<BTreeSet<u32>> {
    let next = |thread: u32| {
        let lock = waiters.iter().find(|w| w.thread == thread)?.waiting.target;
        Some(waiters.iter().find(|w| w.held.iter().any(|h| h.address == lock))?.thread)
    };
    let mut cycles = BTreeSet::new();
    for start in waiters {
        let mut path = vec![start.thread];
        while let Some(thread) = next(path[path.len() - 1]) {
            if let Some(at) = path.iter().position(|&seen| seen == thread) {
                cycles.insert(path[at..].iter().copied().collect());
                break;
            }
            path.push(thread);
        }
    }
    cycles
}

proptest! {
    /// Threads begin to wait one after the other, in any order; at each step what is found is
    /// noted. In the end every cycle was found exactly once.
    #[test]
    fn every_cycle_exactly_once(
        owners in proptest::collection::vec(0..8_u32, 8),
        wants in proptest::collection::vec(0..8_u64, 8),
        order in Just((0..8_u32).collect::<Vec<_>>()).prop_shuffle(),
        step in 1..4_usize,
    ) {
        let all: Vec<LastingWaiter> = order
            .iter()
            .map(|&thread| {
                let held: Vec<_> = (0..8)
                    .filter(|&lock| owners[lock as usize] == thread)
                    .map(|lock| (lock + 1, PLAIN))
                    .collect();
                waiter(thread, WaitKind::MUTEX, wants[thread as usize] + 1, &held)
            })
            .collect();
        let mut detector = Detector::default();
        let mut seen = Vec::new();
        for end in (0..=all.len()).step_by(step).chain([all.len()]) {
            for found in detector.find(all[..end].iter(), &Known::default()) {
                prop_assert!(detector.note(&found));
                seen.push(found.members.iter().map(|m| m.waiter.thread).collect::<BTreeSet<_>>());
            }
        }
        let once: BTreeSet<_> = seen.iter().cloned().collect();
        prop_assert_eq!(once.len(), seen.len());
        prop_assert_eq!(once, by_hand(&all));
    }
}
