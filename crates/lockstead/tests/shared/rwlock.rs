//! The reader-writer lock, among threads.

use crate::support::{Watchdog, eventually, segment};
use lockstead::CancelToken;
use lockstead::shared::{Locked, Segment, SegmentOptions, SharedError, SharedRwLock};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

type Locks = [SharedRwLock<[u64; 2]>; 8];

#[test]
fn writers_are_alone() {
    let _watchdog = Watchdog::new("writers_are_alone");
    let segment = segment::<Locks>();
    let lock = &segment.root()[0];
    thread::scope(|s| {
        for thread in 0..4 {
            s.spawn(move || {
                for turn in 0..3000 {
                    if (thread + turn) % 3 == 0 {
                        let mut pair = lock.write().unwrap().acquired().unwrap();
                        pair[0] += 1;
                        pair[1] += 1;
                    } else {
                        let pair = lock.read().unwrap().acquired().unwrap();
                        assert_eq!(pair[0], pair[1]);
                    }
                }
            });
        }
    });
    assert_eq!(*lock.read().unwrap().acquired().unwrap(), [4000; 2]);
}

#[test]
fn readers_are_not() {
    let _watchdog = Watchdog::new("readers_are_not");
    let segment = segment::<Locks>();
    let lock = &segment.root()[0];
    let together = Barrier::new(4);
    thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                let read = lock.read().unwrap();
                together.wait();
                assert!(matches!(read, Locked::Acquired(_)));
            });
        }
    });
}

#[test]
fn every_wait_can_end() {
    let _watchdog = Watchdog::new("every_wait_can_end");
    let segment = segment::<Locks>();
    let lock = &segment.root()[0];
    let short = Duration::from_millis(20);
    let (stopped, token) = (Err(SharedError::TimedOut), CancelToken::new());
    token.cancel();
    let written = lock.write().unwrap();
    thread::scope(|s| {
        s.spawn(|| {
            assert_eq!(lock.try_read().map(drop), Err(SharedError::Held));
            assert_eq!(lock.read_timeout(short).map(drop), stopped);
            assert_eq!(lock.read_until(Instant::now() + short).map(drop), stopped);
            assert_eq!(lock.read_killable(&token).map(drop), Err(SharedError::Cancelled));
        });
    });
    assert_eq!(lock.read().map(drop), Err(SharedError::Recursive));
    drop(written);
    let read = lock.read().unwrap();
    thread::scope(|s| {
        s.spawn(|| {
            assert_eq!(lock.try_write().map(drop), Err(SharedError::Held));
            assert_eq!(lock.write_timeout(short).map(drop), stopped);
            assert_eq!(lock.write_until(Instant::now() + short).map(drop), stopped);
            assert_eq!(lock.write_killable(&token).map(drop), Err(SharedError::Cancelled));
            assert_eq!(lock.try_read().map(drop), Ok(()), "a writer that gave up is gone");
        });
    });
    assert_eq!(lock.write().map(drop), Err(SharedError::Recursive));
    drop(read);
    assert_eq!(lock.write().map(drop), Ok(()));
}

/// Without a claim a reader is alone; it reads nevertheless, as many locks as it likes.
#[test]
fn there_is_no_limit_on_the_locks_that_a_thread_reads_under() {
    let _watchdog = Watchdog::new("there_is_no_limit_on_the_locks_that_a_thread_reads_under");
    for claims in [0, 2] {
        let options = SegmentOptions::new().claims(claims);
        let segment = Segment::<Locks>::memfd("few", &options).expect("a segment");
        let locks = segment.root();
        let read: Vec<_> =
            locks.iter().map(|lock| lock.read().unwrap().acquired().unwrap()).collect();
        thread::scope(|s| {
            s.spawn(|| {
                for (at, lock) in locks.iter().enumerate() {
                    assert_eq!(lock.try_write().map(drop), Err(SharedError::Held));
                    let other = lock.try_read().map(drop);
                    let alone = at >= claims as usize;
                    assert_eq!(other, if alone { Err(SharedError::Held) } else { Ok(()) });
                }
            });
        });
        drop(read);
        for lock in locks {
            assert_eq!(lock.try_write().map(drop), Ok(()));
        }
        // The claims are there again.
        let read = locks.iter().take(claims as usize).map(|lock| lock.read().unwrap());
        let read: Vec<_> = read.collect();
        thread::scope(|s| {
            s.spawn(|| {
                for lock in locks.iter().take(claims as usize) {
                    assert_eq!(lock.try_read().map(drop), Ok(()));
                }
            });
        });
        drop(read);
    }
}

/// Each segment's claims are counted for themselves, in as many segments as there are.
#[test]
fn many_segments_at_once() {
    let _watchdog = Watchdog::new("many_segments_at_once");
    let segments: Vec<_> = (0..12).map(|_| segment::<Locks>()).collect();
    let read = segments.iter().map(|segment| segment.root()[3].read().unwrap());
    let read: Vec<_> = read.map(|read| read.acquired().unwrap()).collect();
    thread::scope(|s| {
        s.spawn(|| {
            for segment in &segments {
                assert_eq!(segment.root()[3].try_write().map(drop), Err(SharedError::Held));
                assert_eq!(segment.root()[3].try_read().map(drop), Ok(()), "not alone");
            }
        });
    });
    drop(read);
    for segment in &segments {
        assert_eq!(segment.root()[3].try_write().map(drop), Ok(()));
    }
}

#[test]
fn the_death_of_a_reader_costs_nothing() {
    let _watchdog = Watchdog::new("the_death_of_a_reader_costs_nothing");
    let segment = segment::<Locks>();
    let lock = &segment.root()[0];
    thread::scope(|s| {
        s.spawn(|| core::mem::forget(lock.read().unwrap()));
        // Its share may have to be waited for: until the kernel says that it is dead.
    });
    assert!(matches!(lock.write().unwrap(), Locked::Acquired(_)));
}

#[test]
fn what_a_dead_writer_left_a_reader_repairs() {
    let _watchdog = Watchdog::new("what_a_dead_writer_left_a_reader_repairs");
    let segment = segment::<Locks>();
    let lock = &segment.root()[0];
    let die = || {
        thread::scope(|s| {
            s.spawn(|| {
                let mut pair = lock.write().unwrap().acquired().unwrap();
                pair[0] += 1;
                core::mem::forget(pair);
            });
        });
    };
    die();
    let Locked::OwnerDied(mut pair) = lock.read().unwrap() else { panic!("an owner died") };
    thread::scope(|s| {
        s.spawn(|| assert_eq!(lock.try_read().map(drop), Err(SharedError::Held)));
    });
    pair[1] = pair[0];
    let pair = pair.mark_consistent();
    assert_eq!(*pair, [1, 1]);
    drop(pair);
    assert_eq!(*lock.read().unwrap().acquired().unwrap(), [1, 1]);
    die();
    let pair = lock.write().unwrap().recover(|pair| pair[1] = pair[0]).unwrap();
    assert_eq!(*pair, [2, 2]);
    drop(pair);
    die();
    drop(lock.read().unwrap());
    assert!(matches!(lock.read().unwrap(), Locked::NotRecoverable));
    assert!(matches!(lock.write().unwrap(), Locked::NotRecoverable));
}

/// Each would wait for the other.
#[test]
fn two_that_read_and_want_to_write_are_both_refused() {
    let _watchdog = Watchdog::new("two_that_read_and_want_to_write_are_both_refused");
    let segment = segment::<Locks>();
    let lock = &segment.root()[0];
    let (reading, over) = (Barrier::new(2), Barrier::new(2));
    let both = || {
        let read = lock.read().unwrap();
        reading.wait();
        let refused = [lock.write().map(drop), lock.try_write().map(drop)];
        over.wait();
        drop(read);
        assert_eq!(refused, [Err(SharedError::Recursive); 2]);
    };
    thread::scope(|s| {
        s.spawn(both);
        s.spawn(both);
    });
    assert_eq!(lock.try_write().map(drop), Ok(()));
}

/// It would wait for a writer that waits for it.
#[test]
fn who_reads_and_reads_again_behind_a_writer_is_refused() {
    let _watchdog = Watchdog::new("who_reads_and_reads_again_behind_a_writer_is_refused");
    let segment = segment::<Locks>();
    let lock = &segment.root()[0];
    let read = lock.read().unwrap();
    thread::scope(|s| {
        s.spawn(|| assert_eq!(lock.write().map(drop), Ok(())));
        eventually(|| match lock.read_timeout(Duration::from_secs(30)) {
            Ok(_) => false,
            Err(refused) => {
                assert_eq!(refused, SharedError::Recursive);
                true
            }
        });
        drop(read);
    });
}
