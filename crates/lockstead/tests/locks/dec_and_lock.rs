//! Dropping a reference count to zero under a lock.

use crate::support::{Watchdog, panic_of};
use lockstead::{Counter, Mutex, dec_and_lock};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread;

#[test]
fn locks_only_when_the_counter_may_reach_zero() {
    fn check(counter: &impl Counter, value: &dyn Fn() -> u64) {
        let mutex = Mutex::new(());
        let held = mutex.lock();
        // With the mutex held by this thread a lock attempt would panic.
        assert!(dec_and_lock(counter, &mutex).is_none());
        assert!(dec_and_lock(counter, &mutex).is_none());
        assert_eq!(value(), 1);
        drop(held);
        let guard = dec_and_lock(counter, &mutex).expect("the last reference");
        assert!(mutex.is_locked());
        assert_eq!(value(), 0);
        drop(guard);
    }
    let (a, b, c) = (AtomicU32::new(3), AtomicU64::new(3), AtomicUsize::new(3));
    check(&a, &|| a.load(Ordering::Relaxed).into());
    check(&b, &|| b.load(Ordering::Relaxed));
    check(&c, &|| c.load(Ordering::Relaxed) as u64);
}

#[test]
fn a_reference_dropped_twice_panics_and_changes_nothing() {
    let mutex = Mutex::new(());
    let counter = AtomicU32::new(0);
    let message = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        drop(dec_and_lock(&counter, &mutex))
    }))
    .expect_err("must panic");
    let message = message.downcast_ref::<&str>().expect("a message");
    assert!(message.contains("zero already"), "{message}");
    assert_eq!(counter.load(Ordering::Relaxed), 0);
    assert!(!mutex.is_locked());
}

#[test]
fn a_wide_counter_is_compared_whole() {
    let mutex = Mutex::new(());
    let counter = AtomicU64::new((1 << 32) + 1);
    assert!(dec_and_lock(&counter, &mutex).is_none());
    assert_eq!(counter.into_inner(), 1 << 32);
}

#[test]
fn of_racing_threads_exactly_one_sees_zero() {
    let _watchdog = Watchdog::new("of_racing_threads_exactly_one_sees_zero");
    const THREADS: u32 = 4;
    for _ in 0..300 {
        let mutex = Mutex::new(0);
        let counter = AtomicU32::new(THREADS);
        thread::scope(|s| {
            for _ in 0..THREADS {
                s.spawn(|| {
                    if let Some(mut zeros) = dec_and_lock(&counter, &mutex) {
                        assert_eq!(counter.load(Ordering::Relaxed), 0);
                        *zeros += 1;
                    }
                });
            }
        });
        assert_eq!(mutex.into_inner(), 1);
    }
}

/// Shows the use that it is made for: look-ups revive an object as long as it is in the table, the
/// last reference removes it, and nobody ever finds a dead one.
#[test]
fn look_ups_that_race_with_the_last_drop_never_find_a_dead_object() {
    let _watchdog = Watchdog::new("look_ups_that_race_with_the_last_drop");
    struct Object {
        references: AtomicUsize,
        dead: AtomicU32,
    }
    let table: Mutex<HashMap<u32, Arc<Object>>> = Mutex::new(HashMap::new());
    let removed = AtomicU32::new(0);
    thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for round in 0..3_000 {
                    let key = round % 2;
                    let object = {
                        let mut table = table.lock();
                        let object = table.entry(key).or_insert_with(|| {
                            Arc::new(Object {
                                references: AtomicUsize::new(0),
                                dead: AtomicU32::new(0),
                            })
                        });
                        object.references.fetch_add(1, Ordering::Relaxed);
                        Arc::clone(object)
                    };
                    assert_eq!(object.dead.load(Ordering::Relaxed), 0, "found a dead object");
                    if let Some(mut table) = dec_and_lock(&object.references, &table) {
                        object.dead.store(1, Ordering::Relaxed);
                        table.remove(&key);
                        removed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert!(table.into_inner().is_empty(), "somebody did not see zero");
    assert!(removed.into_inner() > 0);
}

#[test]
fn recursion_is_shown_at_the_caller() {
    let mutex = Mutex::new(());
    let counter = AtomicU32::new(1);
    let guard = mutex.lock();
    let message = panic_of(|| drop(dec_and_lock(&counter, &mutex)));
    assert!(message.contains(file!()), "{message}");
    assert_eq!(counter.into_inner(), 1, "the reference is still held");
    drop(guard);
}
