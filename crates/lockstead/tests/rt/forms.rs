//! The forms of acquisition, and that they exclude.

use super::{Watchdog, tid, until, until_asleep};
use lockstead::rt::{NamedRtMutex, RtMutex, RtMutexGuard, RtRecursiveMutex, inherits};
use lockstead::{CancelToken, Cancelled, TimedOut};
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::{Duration, Instant};

#[test]
fn threads_exclude_each_other_by_any_form() {
    let _watchdog = Watchdog::new("threads_exclude_each_other_by_any_form");
    const ROUNDS: u64 = 3_000;
    let mutex = RtMutex::new(0_u64);
    let token = CancelToken::new();
    std::thread::scope(|s| {
        s.spawn(|| (0..ROUNDS).for_each(|_| *mutex.lock() += 1));
        s.spawn(|| {
            for _ in 0..ROUNDS {
                *mutex.lock_timeout(Duration::from_secs(60)).expect("soon") += 1;
            }
        });
        s.spawn(|| {
            for _ in 0..ROUNDS {
                *mutex.lock_killable(&token).expect("not fired") += 1;
            }
        });
        s.spawn(|| {
            let mut left = ROUNDS;
            while left > 0 {
                match mutex.try_lock() {
                    Some(mut value) => {
                        *value += 1;
                        left -= 1;
                    }
                    None => std::thread::yield_now(),
                }
            }
        });
    });
    assert!(!mutex.is_locked() && mutex.owner().is_none());
    assert_eq!(mutex.into_inner(), 4 * ROUNDS);
}

#[test]
fn recursive_mutexes_exclude_other_threads() {
    let _watchdog = Watchdog::new("recursive_mutexes_exclude_other_threads");
    let mutex = RtRecursiveMutex::new(Cell::new(0));
    std::thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                for _ in 0..2_000 {
                    let outer = mutex.lock();
                    let seen = outer.get();
                    mutex.lock().set(seen + 1);
                }
            });
        }
    });
    assert_eq!(mutex.into_inner().get(), 6_000);
}

/// Runs `meanwhile` while another thread holds `mutex`, whose number it gets.
fn while_held(mutex: &RtMutex<u32>, meanwhile: impl FnOnce(u32)) {
    let (held, is_held) = mpsc::channel();
    let (over, is_over) = mpsc::channel::<()>();
    std::thread::scope(|s| {
        s.spawn(move || {
            let guard = mutex.lock();
            held.send(tid()).expect("the test waits");
            // Ends with an error when the test drops its end.
            let _ = is_over.recv();
            drop(guard);
        });
        meanwhile(is_held.recv().expect("held"));
        drop(over);
    });
}

#[test]
fn waits_end_with_their_time_and_not_before() {
    let _watchdog = Watchdog::new("waits_end_with_their_time_and_not_before");
    let mutex = RtMutex::new(1);
    while_held(&mutex, |holder| {
        let owner = mutex.owner().expect("held");
        assert_eq!((owner.thread_id(), owner.is_current()), (Some(holder), false));
        assert!(mutex.try_lock().is_none());
        let time = Duration::from_millis(20);
        let begin = Instant::now();
        assert!(matches!(mutex.lock_timeout(time), Err(TimedOut)));
        assert!(begin.elapsed() >= time);
        assert!(matches!(mutex.lock_timeout(Duration::ZERO), Err(TimedOut)));
        let deadline = Instant::now() + time;
        assert!(matches!(mutex.lock_until(deadline), Err(TimedOut)));
        assert!(Instant::now() >= deadline);
    });
    // Those who gave up left nothing behind.
    assert_eq!(mutex.lock_timeout(Duration::ZERO).map(|value| *value), Ok(1));
}

#[test]
fn a_token_ends_a_wait() {
    let _watchdog = Watchdog::new("a_token_ends_a_wait");
    let mutex = RtMutex::new(1);
    let token = CancelToken::new();
    while_held(&mutex, |_| {
        let number = AtomicU32::new(0);
        std::thread::scope(|s| {
            let waiter = s.spawn(|| {
                number.store(tid(), Relaxed);
                mutex.lock_killable(&token).map(|_| ())
            });
            until("the waiter is there", || number.load(Relaxed) != 0);
            until_asleep(number.load(Relaxed));
            token.cancel();
            assert_eq!(waiter.join().expect("no panic"), Err(Cancelled));
        });
    });
    assert!(mutex.lock_killable(&token).is_ok(), "a free lock is taken all the same");
}

#[test]
fn guards_show_their_data_and_can_be_narrowed() {
    let mutex = NamedRtMutex::named("gain", (1, String::from("a")));
    let mut name = RtMutexGuard::map(mutex.lock(), |both| &mut both.1);
    name.push('b');
    assert_eq!(mutex.acquired_at().expect("locked before").file(), file!());
    assert!(mutex.is_locked());
    assert_eq!(format!("{mutex:?}"), "RtMutex { name: \"gain\", data: <locked>, .. }");
    drop(name);
    assert_eq!(format!("{mutex:?}"), "RtMutex { name: \"gain\", data: (1, \"ab\"), .. }");
    assert_eq!(mutex.name(), Some("gain"));
}

#[test]
fn a_panic_releases_and_does_not_poison() {
    let mutex = RtMutex::new(1);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        *mutex.lock() = 2;
        let _guard = mutex.lock_timeout(Duration::ZERO).expect("free");
        std::panic::resume_unwind(Box::new(()));
    }));
    assert!(caught.is_err());
    assert_eq!(*mutex.lock(), 2);
}

#[test]
fn errno_survives_the_slow_paths() {
    let mutex = RtMutex::new(1);
    while_held(&mutex, |_| {
        // SAFETY: `errno` is the calling thread's own, and lives as long as it.
        unsafe { *libc::__errno_location() = 77 };
        assert!(mutex.lock_timeout(Duration::from_millis(1)).is_err());
        // SAFETY: `errno` is the calling thread's own, as above.
        assert_eq!(unsafe { *libc::__errno_location() }, 77);
        let _ = inherits();
        // SAFETY: `errno` is the calling thread's own, as above.
        assert_eq!(unsafe { *libc::__errno_location() }, 77);
    });
}
