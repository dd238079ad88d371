//! One lock of a program that runs: its sums, and whose they are when its address has another one.

use super::{Area, MS, Plain, birth, lock};
use lockstead_inspect::report::OneLock;
use lockstead_ledger::lock::ObjectKind;
use std::sync::atomic::Ordering::Relaxed;

fn places(of: &[lockstead_inspect::report::model::ReportSite]) -> Vec<(&str, u64, u64)> {
    of.iter().map(|site| (site.site.as_str(), site.count, site.total_ns)).collect()
}

#[test]
fn a_lock_has_its_times_and_places_while_it_lives() {
    let area = Area::new();
    let ledger = area.ledger();
    let index = lock(&ledger, 0x8000, 0x40, 10, &[3 * MS, MS, 5 * MS]);
    let statistics = ledger.extension(index).unwrap();
    let holder = ledger.intern_stack(&[0x300, 0x99], 0);
    statistics.hold.add(2 * MS, 1, holder);
    ledger.add_share(&statistics.held_at, holder, 1, 2 * MS);
    let generation = ledger.lock(index).unwrap().generation.load(Relaxed);
    let one = OneLock::read(&ledger, &mut Plain, index, generation).expect("it lives");
    assert_eq!((one.type_name.as_str(), one.address), ("mutex", 0x8000));
    assert_eq!((one.wait.count, one.wait.total_ns, one.wait.max_ns), (3, 9 * MS, 5 * MS));
    assert_eq!((one.hold.count, one.hold.total_ns), (1, 2 * MS));
    let waited = [("f100() at x.c:256", 2, 8 * MS), ("f101() at x.c:257", 1, MS)];
    assert_eq!(places(&one.waited_at), waited);
    assert_eq!(places(&one.held_at), [("f300() at x.c:768", 1, 2 * MS)]);
    assert!(one.woken_at.is_empty());
    assert!(one.initialised_at.is_some());
    // Of the next life of its address it has nothing, and that nothing of this one.
    assert!(OneLock::read(&ledger, &mut Plain, index, generation + 1).is_none());
    ledger.destroy_lock(0x8000);
    let next = ledger.init_lock(&birth(&ledger, 0x8000, ObjectKind::Mutex, 0x41)).unwrap();
    assert!(OneLock::read(&ledger, &mut Plain, index, generation).is_none());
    let generation = ledger.lock(next).unwrap().generation.load(Relaxed);
    let one = OneLock::read(&ledger, &mut Plain, next, generation).expect("it lives");
    assert_eq!((one.wait.count, places(&one.waited_at)), (0, Vec::new()));
}

#[test]
fn a_futex_word_has_who_woke_its_waiters_and_no_holders() {
    let area = Area::new();
    let ledger = area.ledger();
    let index = ledger.init_lock(&birth(&ledger, 0x9000, ObjectKind::Futex, 0)).unwrap();
    let statistics = ledger.extension(index).unwrap();
    let [often, seldom] = [0x500, 0x501].map(|at| ledger.intern_stack(&[at, 0x99], 0));
    ledger.add_share(&statistics.held_at, seldom, 1, 0);
    ledger.add_share(&statistics.held_at, often, 4, 0);
    let generation = ledger.lock(index).unwrap().generation.load(Relaxed);
    let one = OneLock::read(&ledger, &mut Plain, index, generation).expect("it lives");
    assert!(one.held_at.is_empty());
    assert_eq!(places(&one.woken_at), [("f500() at x.c:1280", 4, 0), ("f501() at x.c:1281", 1, 0)]);
}
