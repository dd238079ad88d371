//! Each way to acquire a mutex: it succeeds when it can, gives up when it must,
//! and leaves the mutex working.

use crate::support::Watchdog;
use lockstead::{CancelToken, Cancelled, Mutex, MutexGuard, Named, NamedMutex, TimedOut};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

type Form = for<'a> fn(&'a Mutex<u64>) -> Option<MutexGuard<'a, u64>>;

static NEVER: CancelToken = CancelToken::new();

const WAITING: [(&str, Form); 7] = [
    ("lock", |m| Some(m.lock())),
    ("lock_nested", |m| Some(m.lock_nested(1))),
    ("lock_timeout", |m| m.lock_timeout(Duration::from_secs(3600)).ok()),
    ("lock_until", |m| m.lock_until(Instant::now() + Duration::from_secs(3600)).ok()),
    ("lock_interruptible", |m| m.lock_interruptible().ok()),
    ("lock_interruptible_nested", |m| m.lock_interruptible_nested(2).ok()),
    ("lock_killable", |m| m.lock_killable(&NEVER).ok()),
];

#[test]
fn every_form_excludes_every_other() {
    let _watchdog = Watchdog::new("every_form_excludes_every_other");
    const ROUNDS: u64 = 3_000;
    let mutex = Mutex::new(0);
    let inside = AtomicU32::new(0);
    let section = |mut guard: MutexGuard<'_, u64>| {
        assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "two holders");
        *guard += 1;
        if guard.is_multiple_of(512) {
            // A holder that sleeps, so that others go to sleep too.
            thread::sleep(Duration::from_micros(50));
        }
        inside.fetch_sub(1, Ordering::Relaxed);
    };
    thread::scope(|s| {
        for (name, form) in WAITING {
            let (mutex, section) = (&mutex, &section);
            s.spawn(move || {
                for _ in 0..ROUNDS {
                    section(form(mutex).unwrap_or_else(|| panic!("{name} gave up")));
                }
            });
        }
        s.spawn(|| {
            for _ in 0..ROUNDS {
                loop {
                    if let Some(guard) = mutex.try_lock() {
                        section(guard);
                        break;
                    }
                    thread::yield_now();
                }
            }
        });
    });
    assert!(!mutex.is_locked());
    assert_eq!(mutex.into_inner(), ROUNDS * (WAITING.len() as u64 + 1));
}

#[test]
fn every_form_takes_a_free_mutex() {
    let mutex = Mutex::new(0);
    for (name, form) in WAITING {
        *form(&mutex).unwrap_or_else(|| panic!("{name} gave up on a free mutex")) += 1;
        assert!(!mutex.is_locked(), "{name}: still locked after the guard was dropped");
    }
    *mutex.try_lock().expect("free") += 1;
    assert_eq!(mutex.into_inner(), WAITING.len() as u64 + 1);
}

#[test]
fn a_timeout_ends_the_wait_not_early_and_the_mutex_works_after() {
    let _watchdog = Watchdog::new("a_timeout_ends_the_wait");
    let mutex = Mutex::new(0);
    // Below the bound after which a waiter asks for the handoff, and beyond.
    for wait in [Duration::ZERO, Duration::from_micros(200), Duration::from_millis(20)] {
        let held = mutex.lock();
        thread::scope(|s| {
            s.spawn(|| {
                let began = Instant::now();
                assert_eq!(mutex.lock_timeout(wait).err(), Some(TimedOut));
                assert!(began.elapsed() >= wait, "gave up after {:?}", began.elapsed());
                let deadline = Instant::now() + wait;
                assert_eq!(mutex.lock_until(deadline).err(), Some(TimedOut));
                assert!(Instant::now() >= deadline);
                assert!(mutex.try_lock().is_none());
            });
        });
        drop(held);
        assert!(mutex.lock_timeout(wait).is_ok(), "free, so no reason to time out");
        thread::scope(|s| {
            s.spawn(|| *mutex.lock() += 1);
        });
    }
    assert_eq!(mutex.into_inner(), 3);
}

#[test]
fn a_deadline_in_the_past_still_takes_a_free_mutex() {
    let mutex = Mutex::new(());
    let past = Instant::now();
    while Instant::now() <= past {}
    assert!(mutex.lock_until(past).is_ok());
}

/// Waiters that give up at random moments must pass on the wake-ups they
/// consumed: if one did not, the patient waiters would hang.
#[test]
fn waiters_that_give_up_lose_no_wake_up() {
    let _watchdog = Watchdog::new("waiters_that_give_up_lose_no_wake_up");
    const ENOUGH: u64 = 400;
    let mutex = Mutex::new(0u64);
    let (given_up, attempts) = (AtomicU64::new(0), AtomicU64::new(0));
    let enough = || given_up.load(Ordering::Relaxed) >= ENOUGH;
    thread::scope(|s| {
        for me in 0..3u64 {
            let (mutex, given_up, attempts, enough) = (&mutex, &given_up, &attempts, &enough);
            s.spawn(move || {
                for round in 0.. {
                    if enough() {
                        break;
                    }
                    attempts.fetch_add(1, Ordering::Relaxed);
                    match mutex.lock_timeout(Duration::from_micros((round * 7 + me * 31) % 150)) {
                        Ok(mut guard) => *guard += 1,
                        Err(TimedOut) => {
                            given_up.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
            s.spawn(move || {
                while !enough() {
                    attempts.fetch_add(1, Ordering::Relaxed);
                    let mut guard = mutex.lock();
                    *guard += 1;
                    thread::sleep(Duration::from_micros(20));
                }
            });
        }
    });
    assert_eq!(mutex.into_inner() + given_up.into_inner(), attempts.into_inner());
}

#[test]
fn the_owner_is_the_holder() {
    let mutex = Mutex::new(());
    assert!(mutex.owner().is_none());
    let guard = mutex.lock();
    let mine = mutex.owner().expect("held");
    assert!(mutex.is_locked() && mine.is_current() && !mine.is_lost());
    // SAFETY: `gettid` takes no argument and cannot fail.
    let tid = u32::try_from(unsafe { libc::gettid() }).expect("a thread id");
    assert_eq!(mine.thread_id(), Some(tid));
    assert_eq!(mine.to_string(), format!("thread {tid}"));
    thread::scope(|s| {
        s.spawn(|| {
            let seen = mutex.owner().expect("held");
            assert!(!seen.is_current());
            assert_eq!((seen, seen.thread_id()), (mine, Some(tid)));
        });
    });
    drop(guard);
    assert!(mutex.owner().is_none() && !mutex.is_locked());
}

#[test]
fn a_leaked_guard_leaves_the_mutex_locked() {
    let mutex = Mutex::new(5);
    std::mem::forget(mutex.lock());
    assert!(mutex.is_locked());
    assert!(mutex.try_lock().is_none());
    thread::scope(|s| {
        s.spawn(|| assert!(mutex.lock_timeout(Duration::from_millis(1)).is_err()));
    });
    assert_eq!(mutex.into_inner(), 5);
}

#[test]
fn debug_shows_the_data_or_says_locked_and_never_waits() {
    let mutex = NamedMutex::named("cache", 7);
    assert_eq!(format!("{mutex:?}"), r#"Mutex { name: "cache", data: 7, .. }"#);
    let guard = mutex.lock();
    assert_eq!(format!("{mutex:?}"), r#"Mutex { name: "cache", data: <locked>, .. }"#);
    assert_eq!(format!("{guard:?} {guard}"), "7 7");
    assert_eq!(format!("{:?}", Mutex::new('a')), "Mutex { data: 'a', .. }");
}

#[test]
fn data_may_be_unsized_defaulted_converted_and_reached_without_locking() {
    let boxed: Box<Mutex<[u8]>> = Box::new(Mutex::new([1, 2, 3]));
    boxed.lock()[1] = 9;
    assert_eq!(*boxed.lock(), [1, 9, 3]);

    let mut text = Mutex::from(String::from("a"));
    text.get_mut().push('b');
    assert_eq!(text.into_inner(), "ab");

    let named: Mutex<u8, Named> = Mutex::default();
    assert_eq!((*named.lock(), named.name()), (0, None));
}

#[test]
fn a_mapped_guard_releases_the_whole_mutex() {
    let mutex = Mutex::new((1, [2, 3]));
    let array = MutexGuard::map(mutex.lock(), |both| &mut both.1);
    let mut last = lockstead::MappedMutexGuard::map(array, |array| &mut array[1]);
    *last += 10;
    assert_eq!(format!("{last:?} {last}"), "13 13");
    assert!(mutex.is_locked());
    drop(last);
    assert_eq!(*mutex.try_lock().expect("released"), (1, [2, 13]));
}

#[test]
fn a_panic_while_mapping_releases() {
    let mutex = Mutex::new(1);
    crate::support::panic_of(|| {
        let guard = MutexGuard::map(mutex.lock(), |value: &mut i32| {
            assert_eq!(*value, 2, "{}", "on purpose");
            value
        });
        drop(guard);
    });
    assert!(!mutex.is_locked());
}

#[test]
fn a_fired_token_refuses_only_to_wait() {
    let token = CancelToken::new();
    token.cancel();
    let mutex = Mutex::new(());
    let guard = mutex.lock_killable(&token).expect("a free mutex needs no waiting");
    thread::scope(|s| {
        s.spawn(|| assert_eq!(mutex.lock_killable(&token).err(), Some(Cancelled)));
    });
    drop(guard);
}
