//! Reader-writer locks.

use crate::support::{Watchdog, Watched, eventually, panic_of};
use lockstead::{CancelToken, Cancelled, NamedRwLock, RwLock, RwLockWriteGuard, TimedOut};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn writers_exclude_everybody_and_readers_share() {
    let _watchdog = Watchdog::new("writers_exclude_everybody");
    let lock = RwLock::new(0u64);
    // Readers inside, or -1 for a writer.
    let inside = AtomicI32::new(0);
    let token = CancelToken::new();
    let hour = Duration::from_secs(3600);
    thread::scope(|s| {
        for me in 0..3 {
            let (lock, inside, token) = (&lock, &inside, &token);
            s.spawn(move || {
                for round in 0..1_000 {
                    let mut guard = match (round + me) % 5 {
                        0 => lock.write(),
                        1 => lock.write_timeout(hour).expect("not for an hour"),
                        2 => lock.write_until(Instant::now() + hour).expect("not for an hour"),
                        3 => lock.write_interruptible().expect("no signals"),
                        _ => lock.write_killable(token).expect("not fired"),
                    };
                    assert_eq!(inside.swap(-1, Ordering::Relaxed), 0);
                    *guard += 1;
                    assert_eq!(inside.swap(0, Ordering::Relaxed), -1);
                }
            });
            s.spawn(move || {
                for round in 0..1_000 {
                    let guard = match (round + me) % 5 {
                        0 => lock.read(),
                        1 => lock.read_timeout(hour).expect("not for an hour"),
                        2 => lock.read_until(Instant::now() + hour).expect("not for an hour"),
                        3 => lock.read_interruptible().expect("no signals"),
                        _ => lock.read_killable(token).expect("not fired"),
                    };
                    assert!(inside.fetch_add(1, Ordering::Relaxed) >= 0);
                    let before = *guard;
                    thread::yield_now();
                    assert_eq!(*guard, before);
                    inside.fetch_sub(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert!(!lock.is_locked());
    assert_eq!(lock.into_inner(), 3_000);
}

#[test]
fn readers_are_inside_together() {
    let _watchdog = Watchdog::new("readers_are_inside_together");
    let lock = RwLock::new(());
    let inside = AtomicU32::new(0);
    thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                let _guard = lock.read();
                inside.fetch_add(1, Ordering::Relaxed);
                eventually(|| inside.load(Ordering::Relaxed) == 3);
            });
        }
    });
}

#[test]
fn waits_end_and_the_lock_works_after() {
    let _watchdog = Watchdog::new("waits_end_and_the_lock_works_after");
    let lock = RwLock::new(1);
    let wait = Duration::from_millis(5);
    let token = CancelToken::new();
    token.cancel();
    let others = |check: &(dyn Fn() + Sync)| thread::scope(|s| drop(s.spawn(check)));

    let writing = lock.write();
    others(&|| {
        let began = Instant::now();
        assert_eq!(lock.read_timeout(wait).err(), Some(TimedOut));
        assert_eq!(lock.write_timeout(wait).err(), Some(TimedOut));
        assert!(began.elapsed() >= 2 * wait);
        assert_eq!(lock.read_until(began).err(), Some(TimedOut));
        assert_eq!(lock.write_until(began).err(), Some(TimedOut));
        assert_eq!(lock.read_killable(&token).err(), Some(Cancelled));
        assert_eq!(lock.write_killable(&token).err(), Some(Cancelled));
        assert!(lock.try_read().is_none() && lock.try_write().is_none());
    });
    drop(writing);

    let reading = lock.read();
    others(&|| {
        assert_eq!(lock.write_timeout(wait).err(), Some(TimedOut));
        assert_eq!(lock.write_killable(&token).err(), Some(Cancelled));
        assert!(lock.try_write().is_none());
        assert!(lock.read_killable(&token).is_ok(), "nobody writes");
        assert_eq!(lock.readers(), 1);
    });
    drop(reading);

    *lock.write() += 1;
    assert_eq!(*lock.read(), 2);
}

/// Readers that overlap all the time do not keep a writer out, nor writers a
/// reader.
#[test]
fn neither_side_starves() {
    let _watchdog = Watchdog::new("neither_side_starves");
    let lock = RwLock::new(0);
    let over = AtomicBool::new(false);
    thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let guard = lock.read();
                    thread::sleep(Duration::from_micros(300));
                    drop(guard);
                }
            });
        }
        for _ in 0..20 {
            *lock.write() += 1;
        }
        over.store(true, Ordering::Relaxed);
    });
    let over = AtomicBool::new(false);
    thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let guard = lock.write();
                    thread::sleep(Duration::from_micros(300));
                    drop(guard);
                }
            });
        }
        for _ in 0..20 {
            assert_eq!(*lock.read(), 20);
        }
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_writer_goes_on_as_a_reader() {
    let _watchdog = Watchdog::new("a_writer_goes_on_as_a_reader");
    let lock = RwLock::new(0);
    let written = AtomicBool::new(false);
    let waiting = [(); 2].map(|()| Watched::default());
    thread::scope(|s| {
        let mut writing = lock.write();
        s.spawn(|| {
            waiting[0].begins();
            *lock.write() += 10;
            written.store(true, Ordering::Relaxed);
        });
        s.spawn(|| {
            waiting[1].begins();
            assert!(*lock.read() > 0);
        });
        waiting.iter().for_each(Watched::sleeps);
        *writing = 1;
        let reading = RwLockWriteGuard::downgrade(writing);
        assert!(lock.writer().is_none() && lock.readers() >= 1);
        waiting[0].sleeps();
        assert_eq!(*reading, 1, "a writer came in between");
        assert!(!written.load(Ordering::Relaxed));
        drop(reading);
    });
    assert_eq!(lock.into_inner(), 11);
}

#[test]
fn recursion_under_a_writer_panics_with_the_name() {
    let _watchdog = Watchdog::new("recursion_under_a_writer_panics");
    let lock = NamedRwLock::named("routes", 0u8);
    assert!(lock.acquired_at().is_none());
    let guard = lock.write();
    assert!(lock.writer().is_some_and(lockstead::Owner::is_current));
    let calls: [&dyn Fn(); 3] = [&|| drop(lock.read()), &|| drop(lock.write()), &|| {
        drop(lock.read_timeout(Duration::from_secs(3600)))
    }];
    for call in calls {
        let message = panic_of(call);
        for part in ["recursive locking", "`routes`", "u8", file!()] {
            assert!(message.contains(part), "{part} is missing in: {message}");
        }
    }
    assert!(lock.try_read().is_none());
    drop(guard);
    assert_eq!(lock.acquired_at().map(|site| site.file()), Some(file!()));
    assert!(!lock.is_locked());
}

#[test]
#[cfg_attr(feature = "check", ignore = "a book of a million holds")]
fn a_reader_too_many_panics() {
    let lock = RwLock::new(0u8);
    while let Some(guard) = lock.try_read() {
        std::mem::forget(guard);
    }
    assert_eq!(lock.readers(), 1_048_575);
    let calls: [&dyn Fn(); 2] =
        [&|| drop(lock.read()), &|| drop(lock.read_timeout(Duration::from_secs(3600)))];
    for call in calls {
        let message = panic_of(call);
        for part in ["too many readers", "1048575", "u8", file!()] {
            assert!(message.contains(part), "{part} is missing in: {message}");
        }
    }
}

#[test]
fn data_may_be_unsized_shown_and_reached_without_locking() {
    let mut boxed: Box<RwLock<[u8]>> = Box::new(RwLock::new([1, 2]));
    boxed.get_mut()[0] = 3;
    boxed.write()[1] = 4;
    assert_eq!(*boxed.read(), [3, 4]);
    assert_eq!(format!("{boxed:?}"), "RwLock { data: [3, 4], .. }");
    let guard = boxed.write();
    assert_eq!(format!("{boxed:?} {guard:?}"), "RwLock { data: <locked>, .. } [3, 4]");
    drop(guard);
    assert_eq!(
        format!("{} {:?}", RwLock::from(5).read(), RwLock::<u8>::default()),
        "5 RwLock { data: 0, .. }"
    );
}
