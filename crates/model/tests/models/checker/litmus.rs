//! The memory model against the classic litmus tests: each weak outcome is
//! found where the orderings allow it, and only there. Every test runs twice,
//! with the reductions and without, and both must find the same outcomes.

use lockstead_model::{Cell, Config, Coverage, FailureKind, Ordering, Scenario, U32, fence};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

/// Variables that threads share, and registers that the check reads.
#[derive(Debug)]
struct Litmus {
    x: U32,
    y: U32,
    data: Cell<u32>,
    r: [std::cell::Cell<u32>; 4],
}

impl Litmus {
    fn new() -> Self {
        Litmus { x: U32::ZERO, y: U32::ZERO, data: Cell::new(0), r: Default::default() }
    }
}

type Body = fn(&Litmus);

fn explore(threads: &[Body], reduce: bool) -> BTreeSet<[u32; 4]> {
    let outcomes = Rc::new(RefCell::new(BTreeSet::new()));
    let into = Rc::clone(&outcomes);
    let mut scenario = Scenario::new(Litmus::new);
    for &body in threads {
        scenario = scenario.thread(body);
    }
    let stats = scenario
        .after(move |l| {
            into.borrow_mut().insert(l.r.clone().map(|r| r.get()));
        })
        .check(&Config::new().reduce(reduce))
        .expect("a litmus test does not fail");
    assert_eq!(stats.coverage, Coverage::Complete);
    outcomes.take()
}

/// Returns the outcomes of the registers, over all executions.
fn outcomes(threads: &[Body]) -> BTreeSet<[u32; 4]> {
    let reduced = explore(threads, true);
    assert_eq!(reduced, explore(threads, false), "the reductions lost or invented an outcome");
    reduced
}

#[test]
fn message_passing_needs_release_and_acquire() {
    fn writer(l: &Litmus, order: Ordering) {
        l.x.store(1, Relaxed);
        l.y.store(1, order);
    }
    fn reader(l: &Litmus, order: Ordering) {
        l.r[0].set(l.y.load(order));
        l.r[1].set(l.x.load(Relaxed));
    }
    let broken = [1, 0, 0, 0];
    let strong: [Body; 2] = [|l| writer(l, Release), |l| reader(l, Acquire)];
    assert!(!outcomes(&strong).contains(&broken));
    assert_eq!(outcomes(&strong).len(), 3);
    let no_release: [Body; 2] = [|l| writer(l, Relaxed), |l| reader(l, Acquire)];
    assert!(outcomes(&no_release).contains(&broken));
    let no_acquire: [Body; 2] = [|l| writer(l, Release), |l| reader(l, Relaxed)];
    assert!(outcomes(&no_acquire).contains(&broken));
}

#[test]
fn message_passing_works_with_fences() {
    fn writer(l: &Litmus, order: Option<Ordering>) {
        l.x.store(1, Relaxed);
        if let Some(order) = order {
            fence(order);
        }
        l.y.store(1, Relaxed);
    }
    fn reader(l: &Litmus, order: Option<Ordering>) {
        l.r[0].set(l.y.load(Relaxed));
        if let Some(order) = order {
            fence(order);
        }
        l.r[1].set(l.x.load(Relaxed));
    }
    let broken = [1, 0, 0, 0];
    let both: [Body; 2] = [|l| writer(l, Some(Release)), |l| reader(l, Some(Acquire))];
    assert!(!outcomes(&both).contains(&broken));
    let first: [Body; 2] = [|l| writer(l, Some(Release)), |l| reader(l, None)];
    assert!(outcomes(&first).contains(&broken));
    let second: [Body; 2] = [|l| writer(l, None), |l| reader(l, Some(Acquire))];
    assert!(outcomes(&second).contains(&broken));
}

#[test]
fn store_buffering_is_seen_unless_sequentially_consistent() {
    fn side(l: &Litmus, me: usize, order: Ordering, between: bool) {
        let (mine, other) = if me == 0 { (&l.x, &l.y) } else { (&l.y, &l.x) };
        mine.store(1, if order == SeqCst { SeqCst } else { Release });
        if between {
            fence(SeqCst);
        }
        l.r[me].set(other.load(order));
    }
    let both_zero = [0, 0, 0, 0];
    let weak: [Body; 2] = [|l| side(l, 0, Acquire, false), |l| side(l, 1, Acquire, false)];
    assert!(outcomes(&weak).contains(&both_zero));
    let strong: [Body; 2] = [|l| side(l, 0, SeqCst, false), |l| side(l, 1, SeqCst, false)];
    assert!(!outcomes(&strong).contains(&both_zero));
    let fenced: [Body; 2] = [|l| side(l, 0, Relaxed, true), |l| side(l, 1, Relaxed, true)];
    assert!(!outcomes(&fenced).contains(&both_zero));
    let half: [Body; 2] = [|l| side(l, 0, Relaxed, true), |l| side(l, 1, Relaxed, false)];
    assert!(outcomes(&half).contains(&both_zero));
}

#[test]
fn reads_of_one_location_do_not_go_back() {
    let threads: [Body; 2] = [
        |l| {
            l.x.store(1, Relaxed);
            l.x.store(2, Relaxed);
        },
        |l| {
            l.r[0].set(l.x.load(Relaxed));
            l.r[1].set(l.x.load(Relaxed));
        },
    ];
    let found = outcomes(&threads);
    assert!(found.iter().all(|r| r[0] <= r[1]), "{found:?}");
    assert_eq!(found.len(), 6);
}

#[test]
fn own_writes_are_read_back() {
    let threads: [Body; 2] = [
        |l| {
            l.x.store(1, Relaxed);
            l.r[0].set(l.x.load(Relaxed));
        },
        |l| l.x.store(2, Relaxed),
    ];
    assert_eq!(outcomes(&threads), BTreeSet::from([[1, 0, 0, 0], [2, 0, 0, 0]]));
}

#[test]
fn load_buffering_is_not_explored() {
    // C++ allows both loads to read 1, some machines do it; the checker does
    // not show it (docs/verification.md).
    let threads: [Body; 2] = [
        |l| {
            l.r[0].set(l.x.load(Relaxed));
            l.y.store(1, Relaxed);
        },
        |l| {
            l.r[1].set(l.y.load(Relaxed));
            l.x.store(1, Relaxed);
        },
    ];
    let found = outcomes(&threads);
    assert!(!found.contains(&[1, 1, 0, 0]));
    assert_eq!(found.len(), 3);
}

#[test]
fn two_locations_may_end_with_the_first_stores() {
    // 2+2W: each location may end with 1, though each thread stores 2 last.
    fn side(first: &U32, second: &U32, order: Ordering) {
        first.store(1, Relaxed);
        second.store(2, order);
    }
    fn ends(x: Body, y: Body) -> BTreeSet<(u32, u32)> {
        let ends = Rc::new(RefCell::new(BTreeSet::new()));
        let into = Rc::clone(&ends);
        Scenario::new(Litmus::new)
            .thread(x)
            .thread(y)
            .after(move |l| {
                into.borrow_mut().insert((l.x.load(Relaxed), l.y.load(Relaxed)));
            })
            .check(&Config::new())
            .expect("no failure");
        ends.take()
    }
    let sequential = BTreeSet::from([(1, 2), (2, 1), (2, 2)]);
    let weak = ends(|l| side(&l.x, &l.y, Release), |l| side(&l.y, &l.x, Release));
    assert_eq!(weak, &sequential | &BTreeSet::from([(1, 1)]));
    let strong = ends(|l| side(&l.x, &l.y, SeqCst), |l| side(&l.y, &l.x, SeqCst));
    assert_eq!(strong, sequential);
}

#[test]
fn an_update_may_come_before_a_store_that_it_does_not_know() {
    // The store to x may be delayed past the update of y, unless the update
    // releases and the other side acquires.
    fn threads(order: Ordering) -> [Body; 2] {
        match order {
            Relaxed => [
                |l| {
                    l.x.store(1, Relaxed);
                    l.y.fetch_add(1, Relaxed);
                },
                |l| {
                    l.r[0].set(l.y.fetch_add(1, Relaxed));
                    l.r[1].set(l.x.fetch_add(2, Relaxed));
                },
            ],
            _ => [
                |l| {
                    l.x.store(1, Relaxed);
                    l.y.fetch_add(1, Release);
                },
                |l| {
                    l.r[0].set(l.y.fetch_add(1, Acquire));
                    l.r[1].set(l.x.fetch_add(2, Relaxed));
                },
            ],
        }
    }
    let delayed = [1, 0, 0, 0];
    assert!(outcomes(&threads(Relaxed)).contains(&delayed));
    assert!(!outcomes(&threads(AcqRel)).contains(&delayed));
}

#[test]
fn independent_reads_of_independent_writes() {
    fn reader(l: &Litmus, me: usize, order: Ordering) {
        let (first, second) = if me == 0 { (&l.x, &l.y) } else { (&l.y, &l.x) };
        l.r[2 * me].set(first.load(order));
        l.r[2 * me + 1].set(second.load(order));
    }
    let disagree = [1, 0, 1, 0];
    let acquire: [Body; 4] = [
        |l| l.x.store(1, Release),
        |l| l.y.store(1, Release),
        |l| reader(l, 0, Acquire),
        |l| reader(l, 1, Acquire),
    ];
    assert!(outcomes(&acquire).contains(&disagree));
    let sequential: [Body; 4] = [
        |l| l.x.store(1, SeqCst),
        |l| l.y.store(1, SeqCst),
        |l| reader(l, 0, SeqCst),
        |l| reader(l, 1, SeqCst),
    ];
    assert!(!outcomes(&sequential).contains(&disagree));
}

#[test]
fn a_release_sequence_goes_through_updates_and_not_through_stores() {
    fn threads(middle: Body) -> [Body; 3] {
        [
            |l| {
                l.y.store(1, Relaxed);
                l.x.store(1, Release);
            },
            middle,
            |l| {
                l.r[0].set(l.x.load(Acquire));
                l.r[1].set(l.y.load(Relaxed));
            },
        ]
    }
    let update = outcomes(&threads(|l| {
        l.x.fetch_add(1, Relaxed);
    }));
    // Two: the update read the release store.
    assert!(update.iter().any(|r| r[0] == 2 && r[1] == 1));
    assert!(!update.iter().any(|r| r[0] == 2 && r[1] == 0));
    let store = outcomes(&threads(|l| l.x.store(2, Relaxed)));
    assert!(store.iter().any(|r| r[0] == 2 && r[1] == 0));
}

#[test]
fn updates_read_the_newest_and_failed_exchanges_may_not() {
    let add: [Body; 2] =
        [|l| l.r[0].set(l.x.fetch_add(1, Relaxed)), |l| l.r[1].set(l.x.fetch_add(1, Relaxed))];
    assert_eq!(outcomes(&add), BTreeSet::from([[0, 1, 0, 0], [1, 0, 0, 0]]));

    // The exchange comes last in the schedule where r1 is 1, and may still
    // find the first value: a failed exchange is a load.
    let fail: [Body; 2] = [
        |l| {
            l.x.store(1, Relaxed);
            l.y.store(1, Relaxed);
        },
        |l| {
            l.r[0].set(l.y.load(Relaxed));
            l.r[1].set(l.x.compare_exchange(7, 8, AcqRel, Relaxed).unwrap_err());
        },
    ];
    assert!(outcomes(&fail).contains(&[1, 0, 0, 0]));
    assert!(outcomes(&fail).contains(&[1, 1, 0, 0]));
}

#[test]
fn a_race_on_a_plain_field_is_found() {
    for reduce in [true, false] {
        let failure = Scenario::new(Litmus::new)
            .threads(2, |l| l.data.set(1))
            .check(&Config::new().reduce(reduce))
            .expect_err("two unordered writes");
        assert_eq!(failure.kind, FailureKind::Race);
        let failure = Scenario::new(Litmus::new)
            .thread(|l| {
                l.data.set(1);
                l.x.store(1, Relaxed);
            })
            .thread(|l| {
                if l.x.load(Acquire) == 1 {
                    l.data.get();
                }
            })
            .check(&Config::new().reduce(reduce))
            .expect_err("published without release");
        assert_eq!(failure.kind, FailureKind::Race);
    }
    Scenario::new(Litmus::new)
        .thread(|l| {
            l.data.set(1);
            l.x.store(1, Release);
        })
        .thread(|l| {
            if l.x.load(Acquire) == 1 {
                assert_eq!(l.data.get(), 1);
            }
        })
        .check(&Config::new())
        .expect("published properly");
}

#[test]
fn two_reads_do_not_race() {
    Scenario::new(Litmus::new)
        .threads(3, |l| assert_eq!(l.data.get(), 0))
        .check(&Config::new())
        .expect("reads only");
}
