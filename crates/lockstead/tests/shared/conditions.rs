//! The condition variable, among threads.

use crate::support::{Watchdog, segment};
use lockstead::CancelToken;
use lockstead::shared::{
    Locked, Segment, Shareable, SharedCondvar, SharedError, SharedMutex, Waited,
};
use lockstead_core::robust::RobustMachine;
use lockstead_linux::Linux;
use std::thread;
use std::time::{Duration, Instant};

#[derive(Shareable)]
#[repr(C)]
struct Queue {
    count: SharedMutex<u32>,
    other: SharedMutex<u32>,
    more: SharedCondvar,
    fewer: SharedCondvar,
}

#[test]
fn from_hand_to_hand() {
    let _watchdog = Watchdog::new("from_hand_to_hand");
    let segment = segment::<Queue>();
    let queue = segment.root();
    let turns = 2000;
    thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                for _ in 0..turns {
                    let count = queue.count.lock().unwrap().acquired().unwrap();
                    let count = queue.fewer.wait_while(count, |count| *count == 3).unwrap();
                    *count.acquired().unwrap() += 1;
                    queue.more.notify_one();
                }
            });
            s.spawn(|| {
                for _ in 0..turns {
                    let count = queue.count.lock().unwrap().acquired().unwrap();
                    let count = queue.more.wait_while(count, |count| *count == 0).unwrap();
                    *count.acquired().unwrap() -= 1;
                    queue.fewer.notify_all();
                }
            });
        }
    });
    assert_eq!(*queue.count.lock().unwrap().acquired().unwrap(), 0);
}

#[test]
fn every_wait_can_end() {
    let _watchdog = Watchdog::new("every_wait_can_end");
    let segment = segment::<Queue>();
    let queue = segment.root();
    let (short, token) = (Duration::from_millis(20), CancelToken::new());
    token.cancel();
    let take = || queue.count.lock().unwrap().acquired().unwrap();
    // A wait may end early for no reason; not for a wrong one.
    let ends = |waited: Waited<_>, with| {
        assert!(matches!(waited.mutex, Locked::Acquired(_)));
        assert!(waited.ended.is_none() || waited.ended == Some(with), "{:?}", waited.ended);
        waited.ended.is_some()
    };
    let late = SharedError::TimedOut;
    while !ends(queue.more.wait_timeout(take(), short).unwrap(), late) {}
    while !ends(queue.more.wait_until(take(), Instant::now() + short).unwrap(), late) {}
    while !ends(queue.more.wait_killable(take(), &token).unwrap(), SharedError::Cancelled) {}
    let start = Instant::now();
    let waited = queue.more.wait_while_timeout(take(), short, |_| true).unwrap();
    assert_eq!(waited.ended, Some(late));
    assert!(start.elapsed() >= short);
    let waited = queue.more.wait_while_timeout(take_from(waited), short, |_| false).unwrap();
    assert_eq!(waited.ended, None);
}

fn take_from<G: lockstead::shared::HeldGuard>(waited: Waited<G>) -> G {
    waited.mutex.acquired().expect("nobody died")
}

/// Until its guard is dropped who was notified has named the doorbell; not longer.
#[test]
fn what_is_owed_to_the_others_is_owed_until_the_release() {
    let _watchdog = Watchdog::new("what_is_owed_to_the_others_is_owed_until_the_release");
    let segment = segment::<Queue>();
    let queue = segment.root();
    let named = || {
        let named = Linux::at_death_wake(None);
        Linux::at_death_wake(named);
        named
    };
    let short = Duration::from_millis(1);
    let guard = queue.count.lock().unwrap().acquired().unwrap();
    assert_eq!(named(), None);
    let guard = take_from(queue.more.wait_timeout(guard, short).unwrap());
    assert!(named().is_some());
    let guard = take_from(queue.more.wait_timeout(guard, short).unwrap());
    let other = queue.other.lock().unwrap().acquired().unwrap();
    drop(other);
    assert!(named().is_some());
    drop(guard);
    assert_eq!(named(), None);
}

#[test]
fn an_owner_that_died_meanwhile_is_reported() {
    let _watchdog = Watchdog::new("an_owner_that_died_meanwhile_is_reported");
    let segment = segment::<Queue>();
    let queue = segment.root();
    let waiting = queue.count.lock().unwrap().acquired().unwrap();
    thread::scope(|s| {
        s.spawn(|| {
            let mut count = queue.count.lock().unwrap().acquired().unwrap();
            *count = 1;
            queue.more.notify_all();
            core::mem::forget(count);
        });
        let locked = queue.more.wait_while(waiting, |count| *count == 0).unwrap();
        assert!(matches!(locked, Locked::OwnerDied(_)));
        drop(locked);
    });
    assert!(matches!(queue.count.lock().unwrap(), Locked::NotRecoverable));
}

#[test]
fn both_are_of_one_segment() {
    let (one, other): (Segment<Queue>, Segment<Queue>) = (segment(), segment());
    let lower = |a: &Queue, b: &Queue| core::ptr::from_ref(a) < core::ptr::from_ref(b);
    let (low, high) = if lower(one.root(), other.root()) { (&one, &other) } else { (&other, &one) };
    let guard = high.root().count.lock().unwrap().acquired().unwrap();
    let refused = low.root().more.wait(guard).map(drop);
    assert_eq!(refused, Err(SharedError::NotInSegment));
    assert!(!high.root().count.is_locked());
}

/// Works in whichever order the mutexes are released.
#[test]
fn what_is_owed_for_several_mutexes_ends_with_the_last_of_them() {
    let _watchdog = Watchdog::new("what_is_owed_for_several_mutexes_ends_with_the_last_of_them");
    let segment = segment::<Queue>();
    let queue = segment.root();
    let named = || {
        let named = Linux::at_death_wake(None);
        Linux::at_death_wake(named);
        named
    };
    let short = Duration::from_millis(1);
    for last_first in [false, true] {
        let take = |mutex| {
            let guard = SharedMutex::<u32>::lock(mutex).unwrap().acquired().unwrap();
            take_from(queue.more.wait_timeout(guard, short).unwrap())
        };
        let (one, other) = (take(&queue.count), take(&queue.other));
        let (first, last) = if last_first { (other, one) } else { (one, other) };
        drop(first);
        assert!(named().is_some(), "the other one owes still");
        drop(last);
        assert_eq!(named(), None);
        segment.leave().expect("it does nothing there");
    }
}

#[test]
fn a_condition_of_another_segment_is_refused() {
    let _watchdog = Watchdog::new("a_condition_of_another_segment_is_refused");
    let segments = [segment::<Queue>(), segment::<Queue>()];
    let roots = [segments[0].root(), segments[1].root()];
    for (here, there) in [(0, 1), (1, 0)] {
        let guard = roots[here].count.lock().unwrap().acquired().unwrap();
        let waited = roots[there].more.wait_timeout(guard, Duration::from_millis(1));
        assert!(matches!(waited, Err(SharedError::NotInSegment)));
        assert!(!roots[here].count.is_locked());
    }
}
