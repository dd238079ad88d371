//! Code that is generic over `lock_api` runs on these locks.

use crate::support::{Watchdog, panic_of};
use lock_api::{
    Condvar, Mutex, RawCondvarTimed, RawMutex, RawMutexTimed, RawRwLockDowngrade, RawRwLockTimed,
    RwLock, RwLockWriteGuard,
};
use std::thread;
use std::time::{Duration, Instant};

fn exclusion<R: RawMutex + Sync + Send>() {
    let mutex = Mutex::<R, u32>::new(0);
    thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for _ in 0..2_000 {
                    *mutex.lock() += 1;
                }
            });
        }
    });
    assert!(!mutex.is_locked());
    let guard = mutex.lock();
    assert!(mutex.is_locked() && mutex.try_lock().is_none());
    drop(guard);
    assert_eq!(mutex.into_inner(), 8_000);
}

fn timed<R: RawMutexTimed<Duration = Duration, Instant = Instant> + Sync + Send>() {
    let mutex = Mutex::<R, ()>::new(());
    let wait = Duration::from_millis(3);
    let guard = mutex.lock();
    thread::scope(|s| {
        s.spawn(|| {
            let began = Instant::now();
            assert!(mutex.try_lock_for(wait).is_none());
            assert!(began.elapsed() >= wait);
            assert!(mutex.try_lock_until(began).is_none());
        });
    });
    drop(guard);
    assert!(mutex.try_lock_for(Duration::ZERO).is_some());
    assert!(mutex.try_lock_until(Instant::now()).is_some());
}

#[test]
fn the_mutex_serves_generic_code() {
    let _watchdog = Watchdog::new("the_mutex_serves_generic_code");
    assert_eq!(size_of::<lockstead::lock_api::Mutex<()>>(), 8);
    exclusion::<lockstead::lock_api::RawMutex>();
    timed::<lockstead::lock_api::RawMutex>();
}

fn shared<R>()
where
    R: RawRwLockTimed<Duration = Duration, Instant = Instant> + RawRwLockDowngrade + Sync + Send,
{
    let lock = RwLock::<R, u32>::new(0);
    thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                for _ in 0..1_000 {
                    *lock.write() += 1;
                    assert!(*lock.read() > 0);
                }
            });
        }
    });
    let writing = lock.write();
    assert!(lock.is_locked() && lock.is_locked_exclusive());
    assert!(lock.try_read().is_none() && lock.try_write().is_none());
    let reading = RwLockWriteGuard::downgrade(writing);
    assert!(lock.is_locked() && !lock.is_locked_exclusive());
    thread::scope(|s| {
        s.spawn(|| {
            let began = Instant::now();
            let wait = Duration::from_millis(3);
            assert!(lock.try_write_for(wait).is_none());
            assert!(began.elapsed() >= wait);
            assert!(lock.try_write_until(began).is_none());
            assert!(lock.try_read_for(wait).is_some());
            assert!(lock.try_read_until(began).is_some());
        });
    });
    assert_eq!(*reading, 3_000);
    drop(reading);
    assert!(lock.try_write_for(Duration::ZERO).is_some() && !lock.is_locked());
}

#[test]
fn the_reader_writer_lock_serves_generic_code() {
    let _watchdog = Watchdog::new("the_reader_writer_lock_serves_generic_code");
    shared::<lockstead::lock_api::RawRwLock>();
}

fn notified<C>()
where
    C: RawCondvarTimed + Sync,
    C::RawMutex: RawMutexTimed<Duration = Duration, Instant = Instant> + Sync,
{
    let (turn, changed) = (Mutex::<C::RawMutex, u32>::new(0), Condvar::<C>::new());
    thread::scope(|s| {
        for me in 0..2 {
            let (turn, changed) = (&turn, &changed);
            s.spawn(move || {
                for _ in 0..500 {
                    let mut turn = turn.lock();
                    while *turn % 2 != me {
                        changed.wait(&mut turn);
                    }
                    *turn += 1;
                    changed.notify_all();
                }
            });
        }
    });
    let mut guard = turn.lock();
    assert_eq!(*guard, 1_000);
    let began = Instant::now();
    let wait = Duration::from_millis(3);
    while !changed.wait_for(&mut guard, wait).timed_out() {}
    assert!(began.elapsed() >= wait);
    assert!(turn.is_locked(), "returned without the mutex");
    // Those that have timed out may be counted, once.
    changed.notify_all();
    assert!(!changed.notify_one() && changed.notify_all() == 0);
}

#[test]
fn the_condition_variable_serves_generic_code() {
    let _watchdog = Watchdog::new("the_condition_variable_serves_generic_code");
    notified::<lockstead::lock_api::RawCondvar>();
}

#[test]
#[cfg_attr(feature = "send_guard", ignore = "a guard may be elsewhere: who asks again waits")]
fn recursion_panics_at_the_caller() {
    let mutex = lockstead::lock_api::Mutex::new(());
    let guard = mutex.lock();
    let message = panic_of(|| drop(mutex.lock()));
    assert!(message.starts_with("recursive locking"), "{message}");
    assert!(message.contains(file!()), "{message}");
    drop(guard);
    assert!(!mutex.is_locked());

    let lock = lockstead::lock_api::RwLock::new(());
    let guard = lock.write();
    let message = panic_of(|| drop(lock.read()));
    assert!(message.contains(file!()), "{message}");
    drop(guard);
}

#[cfg(feature = "lock_api_0_4")]
mod of_version_0_4 {
    use super::*;
    use lockstead::lock_api_0_4 as ours;

    #[test]
    fn the_mutex_serves_generic_code() {
        fn check<R>()
        where
            R: lock_api_0_4::RawMutexTimed<Duration = Duration, Instant = Instant> + Sync + Send,
        {
            let mutex = lock_api_0_4::Mutex::<R, u32>::new(0);
            thread::scope(|s| {
                for _ in 0..4 {
                    s.spawn(|| {
                        for _ in 0..2_000 {
                            *mutex.lock() += 1;
                        }
                    });
                }
            });
            let guard = mutex.lock();
            assert_eq!(*guard, 8_000);
            assert!(mutex.is_locked() && mutex.try_lock().is_none());
            thread::scope(|s| {
                s.spawn(|| {
                    let now = Instant::now();
                    assert!(mutex.try_lock_for(Duration::from_millis(2)).is_none());
                    assert!(mutex.try_lock_until(now).is_none());
                });
            });
            drop(guard);
            assert!(mutex.try_lock_for(Duration::ZERO).is_some() && !mutex.is_locked());
        }
        let _watchdog = Watchdog::new("of_version_0_4");
        assert_eq!(size_of::<ours::Mutex<()>>(), 8);
        check::<lockstead::lock_api::RawMutex>();
    }

    #[test]
    fn the_reader_writer_lock_serves_generic_code() {
        fn check<R>()
        where
            R: lock_api_0_4::RawRwLockTimed<Duration = Duration, Instant = Instant>
                + lock_api_0_4::RawRwLockDowngrade
                + Sync
                + Send,
        {
            let lock = lock_api_0_4::RwLock::<R, u32>::new(0);
            thread::scope(|s| {
                for _ in 0..3 {
                    s.spawn(|| {
                        for _ in 0..1_000 {
                            *lock.write() += 1;
                            assert!(*lock.read() > 0);
                        }
                    });
                }
            });
            let writing = lock.write();
            assert!(lock.is_locked_exclusive() && lock.try_read().is_none());
            let reading = lock_api_0_4::RwLockWriteGuard::downgrade(writing);
            assert!(!lock.is_locked_exclusive() && lock.try_write().is_none());
            thread::scope(|s| {
                s.spawn(|| {
                    let now = Instant::now();
                    assert!(lock.try_write_for(Duration::from_millis(2)).is_none());
                    assert!(lock.try_write_until(now).is_none());
                    assert!(lock.try_read_for(Duration::ZERO).is_some());
                    assert!(lock.try_read_until(now).is_some());
                });
            });
            assert_eq!(*reading, 3_000);
            drop(reading);
            assert!(!lock.is_locked());
        }
        let _watchdog = Watchdog::new("of_version_0_4: reader-writer lock");
        check::<lockstead::lock_api::RawRwLock>();
        assert_eq!(size_of::<ours::RwLock<()>>(), 16);
    }

    #[test]
    #[cfg_attr(feature = "send_guard", ignore = "a guard may be elsewhere: who asks again waits")]
    fn recursion_panics_at_the_caller() {
        let mutex = ours::Mutex::new(());
        let guard = mutex.lock();
        let message = panic_of(|| drop(mutex.lock()));
        assert!(message.contains(file!()), "{message}");
        drop(guard);
    }
}
