//! Code that is generic over `lock_api` runs on these locks.

use crate::support::{Watchdog, panic_of};
use lock_api::{Mutex, RawMutex, RawMutexTimed};
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

#[test]
fn recursion_panics_at_the_caller() {
    let mutex = lockstead::lock_api::Mutex::new(());
    let guard = mutex.lock();
    let message = panic_of(|| drop(mutex.lock()));
    assert!(message.starts_with("recursive locking"), "{message}");
    assert!(message.contains(file!()), "{message}");
    drop(guard);
    assert!(!mutex.is_locked());
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
    fn recursion_panics_at_the_caller() {
        let mutex = ours::Mutex::new(());
        let guard = mutex.lock();
        let message = panic_of(|| drop(mutex.lock()));
        assert!(message.contains(file!()), "{message}");
        drop(guard);
    }
}
