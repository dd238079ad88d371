//! What programs that were written for `std::sync` rely on.

use crate::support::{Watchdog, panic_of};
use lockstead::sync::{Arc, Condvar, LazyLock, Mutex, Once, OnceLock, RwLock, TryLockError};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// Defines the test for one of two modules: std's own types keep this file honest.
macro_rules! shape {
    ($name:ident, $sync:path) => {
        mod $name {
            use std::time::Duration;
            use sync::{Arc, Condvar, LazyLock, Mutex, Once, OnceLock, RwLock};
            use $sync as sync;

            static LAZY: LazyLock<Vec<u32>> = LazyLock::new(|| vec![1]);
            static CELL: OnceLock<u32> = OnceLock::new();
            static ONCE: Once = Once::new();

            #[test]
            fn has_the_shape_of_std() {
                let pair = Arc::new((Mutex::new(0), Condvar::new()));
                let guard = pair.0.lock().unwrap();
                let (guard, late) = pair.1.wait_timeout(guard, Duration::ZERO).unwrap();
                assert!(late.timed_out());
                let (guard, late) =
                    pair.1.wait_timeout_while(guard, Duration::ZERO, |n| *n == 0).unwrap();
                assert!(late.timed_out());
                let mut guard = pair.1.wait_while(guard, |n| *n != 0).unwrap();
                *guard += 1;
                drop(guard);
                pair.1.notify_one();
                pair.1.notify_all();
                assert!(pair.0.try_lock().is_ok() && !pair.0.is_poisoned());
                pair.0.clear_poison();
                let lock = RwLock::new(1);
                assert_eq!(*lock.read().unwrap() + *lock.try_read().unwrap(), 2);
                *lock.write().unwrap() += 1;
                assert_eq!(lock.into_inner().unwrap(), 2);
                assert_eq!((LAZY.len(), *CELL.get_or_init(|| 3)), (1, 3));
                ONCE.call_once_force(|state| assert!(!state.is_poisoned()));
                ONCE.call_once(|| unreachable!());
                assert!(ONCE.is_completed());
            }
        }
    };
}
shape!(real, std::sync);
shape!(ours, lockstead::sync);

const fn is_unwind_safe<T: UnwindSafe + RefUnwindSafe>() {}

const _: () = {
    // With data that is not: a lock may be looked at after a panic.
    type Data = std::cell::UnsafeCell<u32>;
    is_unwind_safe::<lockstead::Mutex<Data>>();
    is_unwind_safe::<lockstead::RwLock<Data>>();
    is_unwind_safe::<Mutex<Data>>();
    is_unwind_safe::<RwLock<Data>>();
    is_unwind_safe::<lockstead::Condvar>();
    is_unwind_safe::<Condvar>();
    is_unwind_safe::<lockstead::Once>();
    is_unwind_safe::<OnceLock<u32>>();
    is_unwind_safe::<LazyLock<u32>>();
};

#[test]
fn a_writer_that_panics_poisons_and_a_reader_does_not() {
    let lock = Arc::new(RwLock::new(1));
    let of_reader = Arc::clone(&lock);
    let reader = thread::spawn(move || {
        let _reading = of_reader.read().unwrap();
        panic!("on purpose");
    });
    assert!(reader.join().is_err() && !lock.is_poisoned());
    let of_writer = Arc::clone(&lock);
    let writer = thread::spawn(move || {
        let _writing = of_writer.write().unwrap();
        panic!("on purpose");
    });
    assert!(writer.join().is_err() && lock.is_poisoned());
    assert!(lock.write().is_err());
    let reading = lock.read().unwrap_or_else(|poisoned| poisoned.into_inner());
    assert!(matches!(lock.try_write(), Err(TryLockError::WouldBlock)));
    drop(reading);
    assert!(matches!(lock.try_read(), Err(TryLockError::Poisoned(_))));
    assert!(lock.read_timeout(Duration::ZERO).is_ok_and(|guard| guard.is_err()));
    lock.clear_poison();
    assert!(lock.read().is_ok() && lock.write_timeout(Duration::ZERO).is_ok());
}

#[test]
fn a_wait_tells_of_poison() {
    let _watchdog = Watchdog::new("a_wait_tells_of_poison");
    let pair = (Mutex::new(()), Condvar::new());
    thread::scope(|s| {
        let guard = pair.0.lock().unwrap();
        let spoils = s.spawn(|| {
            let _guard = pair.0.lock();
            pair.1.notify_one();
            panic!("on purpose");
        });
        let mut waited = pair.1.wait(guard);
        // A wait may end for no reason.
        while let Ok(guard) = waited {
            waited = pair
                .1
                .wait_timeout(guard, Duration::from_millis(1))
                .map(|(guard, _)| guard)
                .map_err(|poisoned| std::sync::PoisonError::new(poisoned.into_inner().0));
        }
        drop(waited);
        assert!(spoils.join().is_err());
    });
}

#[test]
fn lazy_data_is_made_once_and_lost_by_a_panic() {
    let made = AtomicU32::new(0);
    let lazy = LazyLock::new(|| made.fetch_add(1, Ordering::Relaxed) + 7);
    assert_eq!(format!("{lazy:?}"), "LazyLock(<uninit>)");
    thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| assert_eq!(*lazy, 7));
        }
    });
    assert_eq!((made.load(Ordering::Relaxed), format!("{lazy:?}")), (1, "LazyLock(7)".into()));
    let broken: LazyLock<u32, _> = LazyLock::new(|| panic!("{}", String::from("first")));
    assert_eq!(panic_of(|| *broken), "first");
    let again = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| *broken));
    let payload = again.expect_err("poisoned");
    assert!(payload.downcast_ref::<&str>().is_some_and(|text| text.contains("poisoned")));
}

#[test]
fn a_once_is_run_by_one() {
    let (once, runs) = (Once::new(), AtomicU32::new(0));
    thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                once.call_once(|| {
                    runs.fetch_add(1, Ordering::Relaxed);
                });
            });
        }
    });
    assert_eq!(runs.into_inner(), 1);
}
