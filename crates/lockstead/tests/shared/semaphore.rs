//! The semaphore, among threads.

use crate::support::{Watchdog, Watched, before_it_looks_again, segment};
use lockstead::CancelToken;
use lockstead::shared::{OnDeath, Segment, SegmentOptions, SharedError, SharedSemaphore, Taken};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

fn with(units: u32, on_death: OnDeath) -> Segment<SharedSemaphore> {
    let make = |root: &mut SharedSemaphore| *root = SharedSemaphore::new(units, on_death);
    Segment::memfd_with("units", &SegmentOptions::new().claims(3), make).expect("a segment")
}

#[test]
fn no_more_than_there_are() {
    let _watchdog = Watchdog::new("no_more_than_there_are");
    let segment = with(3, OnDeath::Return);
    let (semaphore, inside) = (segment.root(), AtomicU32::new(0));
    thread::scope(|s| {
        for units in [1, 1, 2, 3, 1, 2] {
            let inside = &inside;
            s.spawn(move || {
                for _ in 0..400 {
                    let permit = semaphore.acquire(units).unwrap().permit();
                    assert!(inside.fetch_add(units, Ordering::Relaxed) + units <= 3);
                    inside.fetch_sub(permit.units(), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!((semaphore.free(), semaphore.total()), (3, 3));
}

#[test]
fn every_wait_can_end() {
    let _watchdog = Watchdog::new("every_wait_can_end");
    let segment = with(1, OnDeath::Return);
    let semaphore = segment.root();
    let (short, token) = (Duration::from_millis(20), CancelToken::new());
    token.cancel();
    let permit = semaphore.acquire(1).unwrap();
    let late = Err(SharedError::TimedOut);
    assert_eq!(semaphore.try_acquire(1).map(drop), Err(SharedError::Held));
    assert_eq!(semaphore.acquire_timeout(1, short).map(drop), late);
    assert_eq!(semaphore.acquire_until(1, Instant::now() + short).map(drop), late);
    assert_eq!(semaphore.acquire_killable(1, &token).map(drop), Err(SharedError::Cancelled));
    drop(permit);
    assert_eq!(semaphore.free(), 1);
    assert_eq!(semaphore.acquire_timeout(2, short).map(drop), late);
}

#[test]
fn what_is_made_is_used_up() {
    let _watchdog = Watchdog::new("what_is_made_is_used_up");
    let segment = segment::<SharedSemaphore>();
    let semaphore = segment.root();
    thread::scope(|s| {
        s.spawn(|| {
            for _ in 0..1000 {
                assert!(semaphore.add(2).unwrap());
            }
        });
        for _ in 0..2 {
            s.spawn(|| {
                for _ in 0..1000 {
                    semaphore.acquire(1).unwrap().permit().consume();
                }
            });
        }
    });
    assert_eq!((semaphore.free(), semaphore.total()), (0, 0));
    assert!(semaphore.add(u32::MAX).unwrap());
    assert!(!semaphore.add(1).unwrap());
    assert_eq!(semaphore.free(), u32::MAX);
}

#[test]
fn a_thread_has_as_many_permits_as_claims() {
    let segment = with(9, OnDeath::Return);
    let semaphore = segment.root();
    let permits: Vec<_> = (0..3).map(|_| semaphore.acquire(1).unwrap().permit()).collect();
    assert_eq!(semaphore.acquire(1).map(drop), Err(SharedError::TooManyClaims));
    thread::scope(|s| {
        s.spawn(|| assert_eq!(semaphore.acquire(1).map(drop), Ok(())));
    });
    assert_eq!(semaphore.free(), 6);
    drop(permits);
    assert_eq!(semaphore.free(), 9);
}

#[test]
fn a_thread_has_all_its_claims_in_each_of_many_segments() {
    const MOST: usize = 192;
    let options = SegmentOptions::new().claims(MOST as u32);
    let make = |root: &mut SharedSemaphore| *root = SharedSemaphore::new(200, OnDeath::Return);
    let make = |_| Segment::memfd_with("many", &options, make).expect("a segment");
    let segments: Vec<Segment<SharedSemaphore>> = (0..10).map(make).collect();
    let take = |segment: &'static Segment<SharedSemaphore>, most: usize| -> Vec<_> {
        (0..most).map(|_| segment.root().acquire(1).unwrap().permit()).collect()
    };
    let segments: &'static [_] = segments.leak();
    let mut permits: Vec<_> = segments.iter().map(|segment| take(segment, MOST)).collect();
    for (segment, permits) in segments.iter().zip(&mut permits) {
        assert_eq!(segment.root().try_acquire(1).map(drop), Err(SharedError::TooManyClaims));
        let mut number = 0;
        permits.retain(|_| {
            number += 1;
            number % 3 != 0
        });
        assert_eq!(segment.root().free(), 200 - 128);
        permits.extend(take(segment, MOST - 128));
        assert_eq!(segment.root().try_acquire(1).map(drop), Err(SharedError::TooManyClaims));
    }
    drop(permits);
    assert!(segments.iter().all(|segment| segment.root().free() == 200));
}

#[test]
fn units_of_the_dead_are_free_again() {
    let _watchdog = Watchdog::new("units_of_the_dead_are_free_again");
    for on_death in [OnDeath::Return, OnDeath::Report] {
        let segment = with(4, on_death);
        let semaphore = segment.root();
        thread::scope(|s| {
            s.spawn(|| {
                core::mem::forget(semaphore.acquire(1).unwrap());
                core::mem::forget(semaphore.acquire(2).unwrap());
            });
        });
        // All four: three of them were the dead thread's.
        match (semaphore.acquire(4).unwrap(), on_death) {
            (Taken::Acquired(_), OnDeath::Return) => {}
            (Taken::HolderDied { permit, lost: 3 }, OnDeath::Report) => {
                assert_eq!(permit.units(), 4);
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(semaphore.acquire(4).unwrap(), Taken::Acquired(_)), "told once");
    }
}

/// One that wants more than there are keeps nothing from those that want less.
#[test]
fn who_wants_less_is_woken_past_who_wants_more() {
    let _watchdog = Watchdog::new("who_wants_less_is_woken_past_who_wants_more");
    let told = || {
        let segment = with(1, OnDeath::Return);
        let semaphore = segment.root();
        let had = semaphore.acquire(1).unwrap().permit();
        thread::scope(|s| {
            let wanting = |units, watched: &'static Watched| {
                let thread = s.spawn(move || {
                    watched.begins();
                    drop(semaphore.acquire(units).unwrap());
                });
                watched.sleeps();
                thread
            };
            wanting(2, Box::leak(Box::default()));
            let less = wanting(1, Box::leak(Box::default()));
            let start = Instant::now();
            drop(had);
            less.join().expect("it had one");
            let after = start.elapsed();
            assert!(semaphore.add(1).unwrap(), "for the other one");
            Instant::now().checked_sub(after).expect("since the system's start")
        })
    };
    assert!(before_it_looks_again(told));
}
