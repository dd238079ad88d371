//! Which conditions serve as locks, by what was counted of them.

use lockstead_ledger::handing::Handing;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Returns what a lock comes to, changed by `change`.
fn with(change: impl Fn(&Handing)) -> Handing {
    let handing = Handing::new();
    for (count, number) in [
        (&handing.signals, 400),
        (&handing.after_wait, 100),
        (&handing.taken, 90),
        (&handing.again, 30),
        (&handing.judged, 640),
        (&handing.broken, 20),
        (&handing.ungiven, 80),
        (&handing.overlapping, 5),
    ] {
        count.store(number, Relaxed);
    }
    change(&handing);
    handing
}

#[test]
fn each_rule_has_to_be_kept() {
    assert!(with(|_| ()).is_lock());
    type Count = fn(&Handing) -> &AtomicU64;
    let broken: [(Count, u64); 5] = [
        (|handing| &handing.broken, 21),
        (|handing| &handing.ungiven, 91),
        (|handing| &handing.overlapping, 6),
        (|handing| &handing.again, 0),
        (|handing| &handing.taken, 3),
    ];
    for (number, (count, value)) in broken.into_iter().enumerate() {
        assert!(!with(|handing| count(handing).store(value, Relaxed)).is_lock(), "{number}");
    }
    assert!(!Handing::new().is_lock(), "of nothing nothing is known");
}

#[test]
fn what_is_buried_keeps_what_is_known_of_it() {
    let (one, other) = (with(|_| ()), with(|handing| handing.mutex.store(0x1000, Relaxed)));
    one.absorb(&other);
    assert_eq!((one.taken.load(Relaxed), one.mutex.load(Relaxed)), (180, 0x1000));
    assert_eq!((other.taken.load(Relaxed), other.mutex.load(Relaxed)), (0, 0));
    assert!(one.is_lock() && !other.is_lock());
}
