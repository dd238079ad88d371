//! How often the holder may acquire again.

use lockstead::rt::RtRecursiveMutex;
use std::time::Duration;

#[test]
fn the_last_guard_releases_in_whatever_order_they_go() {
    let mutex = RtRecursiveMutex::new(());
    assert_eq!(mutex.depth(), 0);
    let first = mutex.lock();
    let second = mutex.lock_timeout(Duration::ZERO).expect("the caller's own");
    let third = mutex.try_lock().expect("the caller's own");
    assert_eq!(mutex.depth(), 3);
    drop(first);
    drop(third);
    assert_eq!(mutex.depth(), 1);
    std::thread::scope(|s| {
        s.spawn(|| {
            assert!(mutex.try_lock().is_none());
            assert_eq!(mutex.depth(), 0, "another thread's guards do not count");
        });
    });
    drop(second);
    assert!(!mutex.is_locked());
    std::thread::scope(|s| {
        s.spawn(|| assert!(mutex.try_lock().is_some()));
    });
}

#[test]
fn depth_is_no_limit_for_a_recursion_that_the_stack_bears() {
    let mutex = RtRecursiveMutex::new(());
    let guards: Vec<_> = (0..100_000).map(|_| mutex.lock()).collect();
    assert_eq!(mutex.depth(), 100_000);
    drop(guards);
    assert!(!mutex.is_locked());
}
