//! The same tests for the locks of both interfaces: with nobody who listens they do what the real
//! ones do.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

macro_rules! tests {
    ($module:ident, $locks:ident) => {
        mod $module {
            use super::*;
            use crate::$locks::*;

            static LOCK: Mutex<u32> = Mutex::new(1);

            #[test]
            fn a_lock_is_larger_by_a_word_and_has_no_destructor() {
                assert_eq!((size_of::<Mutex<()>>(), size_of::<RwLock<()>>()), (16, 16));
                assert_eq!((size_of::<Condvar>(), size_of::<Once>()), (16, 16));
                assert!(!std::mem::needs_drop::<(Mutex<u8>, RwLock<u8>, Condvar, Once)>());
            }

            #[test]
            fn one_thread_at_a_time_has_a_mutex() {
                let held = LOCK.lock();
                assert!(LOCK.try_lock().is_none() && LOCK.is_locked());
                assert!(LOCK.try_lock_for(Duration::from_millis(1)).is_none());
                let part = MutexGuard::map(held, |value| value);
                assert!(LOCK.try_lock_until(Instant::now()).is_none());
                drop(part);
                MutexGuard::unlock_fair(LOCK.lock());
                let mut bumped = LOCK.try_lock().expect("it is free");
                MutexGuard::bump(&mut bumped);
                MutexGuard::unlocked(&mut bumped, || assert!(LOCK.try_lock().is_some()));
                drop(bumped);
                let fair = FairMutex::new(5);
                assert_eq!(*fair.lock(), 5);
                let again = ReentrantMutex::new(7);
                let held = again.lock();
                assert_eq!(*held, *again.lock());
                let (mutex, other) = (Arc::new(Mutex::new(0)), 1000);
                let workers: Vec<_> = (0..4)
                    .map(|_| {
                        let mutex = mutex.clone();
                        thread::spawn(move || (0..other).for_each(|_| *mutex.lock() += 1))
                    })
                    .collect();
                workers.into_iter().for_each(|worker| worker.join().expect("it ends"));
                assert_eq!(*mutex.lock(), 4000);
            }

            #[test]
            fn a_condition_gives_the_mutex_back_and_takes_it_again() {
                let shared = Arc::new((Mutex::new(false), Condvar::new()));
                let mut ready = shared.0.lock();
                let other = shared.clone();
                let worker = thread::spawn(move || {
                    *other.0.lock() = true;
                    other.1.notify_all()
                });
                while !*ready {
                    shared.1.wait(&mut ready);
                }
                worker.join().expect("it ends");
                let soon = Duration::from_millis(1);
                assert!(shared.1.wait_for(&mut ready, soon).timed_out());
                assert!(shared.1.wait_until(&mut ready, Instant::now()).timed_out());
                shared.1.wait_while(&mut ready, |ready| !*ready);
                assert!(!shared.1.wait_while_for(&mut ready, |ready| !*ready, soon).timed_out());
                let late = shared.1.wait_while_until(&mut ready, |_| true, Instant::now() + soon);
                assert!(late.timed_out());
                assert!(shared.0.is_locked() && !shared.1.notify_one());
            }

            #[test]
            fn a_once_is_done_once() {
                let (once, mut done) = (Once::new(), 0);
                (0..3).for_each(|_| once.call_once(|| done += 1));
                once.call_once_force(|_| done += 1);
                assert_eq!((done, once.state()), (1, OnceState::Done));
            }

            #[test]
            fn readers_share_and_writers_do_not() {
                let lock = RwLock::new(1);
                let reads = (lock.read(), lock.read());
                assert!(lock.try_write().is_none() && lock.try_read().is_some());
                assert!(lock.try_write_for(Duration::from_millis(1)).is_none());
                let upgradable = lock.upgradable_read();
                assert!(lock.try_upgradable_read().is_none());
                assert!(lock.try_upgradable_read_for(Duration::from_millis(1)).is_none());
                let upgradable = RwLockUpgradableReadGuard::try_upgrade(upgradable);
                let upgradable = upgradable.expect_err("others read");
                let soon = Duration::from_millis(1);
                let upgradable = RwLockUpgradableReadGuard::try_upgrade_for(upgradable, soon);
                let upgradable = upgradable.expect_err("others read still");
                drop(reads);
                let writes = RwLockUpgradableReadGuard::upgrade(upgradable);
                assert!(lock.try_read().is_none() && lock.is_locked_exclusive());
                let upgradable = RwLockWriteGuard::downgrade_to_upgradable(writes);
                let read = RwLockUpgradableReadGuard::downgrade(upgradable);
                assert!(lock.try_write_until(Instant::now()).is_none());
                RwLockReadGuard::unlock_fair(read);
                let read = RwLockWriteGuard::downgrade(lock.write());
                assert!(lock.try_read_for(Duration::from_millis(1)).is_some());
                assert!(lock.try_read_until(Instant::now()).is_some());
                drop(read);
                assert_eq!(lock.into_inner(), 1);
            }
        }
    };
}

tests!(of_lock_api_0_5, with_guards);
tests!(of_lock_api_0_4, with_markers);

#[test]
fn a_recursive_reader_passes() {
    let lock = crate::with_markers::RwLock::new(1);
    let first = lock.read();
    assert_eq!(*lock.read_recursive(), *first);
    assert!(lock.try_read_recursive().is_some());
    assert!(lock.try_read_recursive_for(Duration::from_millis(1)).is_some());
}
