//! The mutex, among threads.

use crate::support::{Watchdog, Watched, before_it_looks_again, eventually, segment};
use lockstead::CancelToken;
use lockstead::shared::{Locked, Segment, SegmentOptions, Shareable, SharedError, SharedMutex};
use lockstead_core::robust::word::RESERVED;
use lockstead_linux::shared::party;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Shareable)]
#[repr(C)]
struct Pairs {
    pairs: [SharedMutex<[u64; 2]>; 2],
    reached: AtomicU32,
}

#[test]
fn one_at_a_time() {
    let _watchdog = Watchdog::new("one_at_a_time");
    let segment = segment::<Pairs>();
    let pairs = &segment.root().pairs;
    thread::scope(|s| {
        for thread in 0..6 {
            s.spawn(move || {
                for turn in 0..5000 {
                    let mut pair = match (thread + turn) % 4 {
                        0 => pairs[0].lock_timeout(Duration::from_secs(60)),
                        1 => pairs[0].lock_until(Instant::now() + Duration::from_secs(60)),
                        _ => pairs[0].lock(),
                    }
                    .unwrap()
                    .acquired()
                    .unwrap();
                    pair[0] += 1;
                    pair[1] += 1;
                    assert_eq!(pair[0], pair[1]);
                }
            });
        }
    });
    assert_eq!(*pairs[0].lock().unwrap().acquired().unwrap(), [30_000; 2]);
}

#[test]
fn every_wait_can_end() {
    let _watchdog = Watchdog::new("every_wait_can_end");
    let segment = segment::<Pairs>();
    let root = segment.root();
    let held = root.pairs[0].lock().unwrap();
    thread::scope(|s| {
        let lock = &root.pairs[0];
        let refused = move |outcome: Result<Locked<_>, SharedError>| {
            outcome.map(|_: Locked<lockstead::shared::SharedMutexGuard<'_, [u64; 2]>>| ())
        };
        s.spawn(move || {
            assert_eq!(refused(lock.try_lock()), Err(SharedError::Held));
            let (start, short) = (Instant::now(), Duration::from_millis(30));
            assert_eq!(refused(lock.lock_timeout(short)), Err(SharedError::TimedOut));
            assert!(start.elapsed() >= short);
            let deadline = Instant::now() + short;
            assert_eq!(refused(lock.lock_until(deadline)), Err(SharedError::TimedOut));
            assert!(Instant::now() >= deadline);
            let token = CancelToken::new();
            let watched = Watched::default();
            thread::scope(|s| {
                let waiter = s.spawn(|| {
                    watched.begins();
                    refused(lock.lock_killable(&token))
                });
                watched.sleeps();
                token.cancel();
                assert_eq!(waiter.join().unwrap(), Err(SharedError::Cancelled));
            });
        });
        assert_eq!(refused(lock.lock()), Err(SharedError::Recursive));
        assert_eq!(refused(lock.try_lock()), Err(SharedError::Recursive));
    });
    drop(held);
    let token = CancelToken::new();
    token.cancel();
    assert!(root.pairs[0].lock_killable(&token).is_ok(), "free: nothing to wait for");
}

extern "C" fn handler(_: libc::c_int) {}

#[test]
fn a_signal_ends_an_interruptible_wait() {
    let _watchdog = Watchdog::new("a_signal_ends_an_interruptible_wait");
    // SAFETY: a handler that does nothing, for a signal nothing else here uses.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGUSR2, &action, core::ptr::null_mut()), 0);
    }
    let segment = segment::<Pairs>();
    let root = segment.root();
    let held = root.pairs[0].lock().unwrap();
    thread::scope(|s| {
        let waiter = s.spawn(|| {
            // SAFETY: `gettid` takes no argument and cannot fail.
            root.reached.store(unsafe { libc::gettid() } as u32, Ordering::Release);
            root.pairs[0].lock_interruptible().map(|_| ())
        });
        eventually(|| root.reached.load(Ordering::Acquire) != 0);
        let thread = root.reached.load(Ordering::Acquire) as libc::pid_t;
        eventually(|| {
            // SAFETY: the call sends a signal that has a handler to a thread of this process.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGUSR2) };
            waiter.is_finished()
        });
        assert_eq!(waiter.join().unwrap(), Err(SharedError::Interrupted));
    });
    drop(held);
}

#[test]
fn a_thread_that_ends_with_a_lock_has_died() {
    let _watchdog = Watchdog::new("a_thread_that_ends_with_a_lock_has_died");
    let segment = segment::<Pairs>();
    let lock = &segment.root().pairs[1];
    thread::scope(|s| {
        let dying = s.spawn(|| {
            let mut pair = lock.lock().unwrap().acquired().unwrap();
            pair[0] = 1;
            core::mem::forget(pair);
        });
        dying.join().unwrap();
        let pair = lock.lock().unwrap();
        assert!(pair.is_inconsistent());
        let pair = pair.recover(|pair| pair[1] = pair[0]).unwrap();
        assert_eq!(*pair, [1, 1]);
    });
    let pair = lock.lock().unwrap().acquired().expect("declared consistent");
    assert_eq!(*pair, [1, 1]);
}

#[test]
fn what_is_not_repaired_is_lost() {
    let _watchdog = Watchdog::new("what_is_not_repaired_is_lost");
    let segment = segment::<Pairs>();
    let [one, other] = &segment.root().pairs;
    die_with(one);
    assert!(one.lock().unwrap().acquired().is_none());
    assert!(matches!(one.lock().unwrap(), Locked::NotRecoverable));
    assert!(matches!(one.try_lock().unwrap(), Locked::NotRecoverable));
    let refused = one.lock().unwrap().recover(|_| panic!("nothing to repair"));
    assert!(refused.is_err());

    die_with(other);
    let repair = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let _ = other.lock().unwrap().recover(|_| panic!("cannot repair it"));
    }));
    assert!(repair.is_err());
    assert!(matches!(other.lock().unwrap(), Locked::NotRecoverable));
    assert!(!other.is_locked());
}

/// Has a thread die with the lock.
fn die_with(lock: &SharedMutex<[u64; 2]>) {
    thread::scope(|s| {
        s.spawn(|| core::mem::forget(lock.lock().unwrap())).join().unwrap();
    });
}

#[test]
fn waiters_of_a_lost_lock_are_all_told() {
    let _watchdog = Watchdog::new("waiters_of_a_lost_lock_are_all_told");
    let segment = segment::<Pairs>();
    let lock = &segment.root().pairs[0];
    die_with(lock);
    let dying = loop {
        if let Locked::OwnerDied(dying) = lock.lock().unwrap() {
            break dying;
        }
    };
    let watched = [(); 4].map(|()| Watched::default());
    thread::scope(|s| {
        let waiters = watched.each_ref().map(|watched| {
            s.spawn(|| {
                watched.begins();
                matches!(lock.lock().unwrap(), Locked::NotRecoverable)
            })
        });
        watched.iter().for_each(Watched::sleeps);
        drop(dying);
        assert!(waiters.into_iter().all(|waiter| waiter.join().unwrap()));
    });
}

#[test]
fn a_thread_that_died_with_many_locks_leaves_none_locked() {
    let _watchdog = Watchdog::new("a_thread_that_died_with_many_locks_leaves_none_locked");
    let options = SegmentOptions::new().participants(4);
    let segment = Segment::<[SharedMutex<u32>; 10_000]>::memfd("many", &options).unwrap();
    let locks = segment.root();
    thread::scope(|s| {
        s.spawn(|| locks.iter().for_each(|lock| core::mem::forget(lock.lock().unwrap())));
    });
    for lock in locks {
        assert!(matches!(lock.lock().unwrap(), Locked::OwnerDied(_)));
    }
}

/// Who waits longest sleeps at a place of its own.
#[test]
fn a_handoff_waiter_is_woken_when_the_lock_is_lost() {
    let _watchdog = Watchdog::new("a_handoff_waiter_is_woken_when_the_lock_is_lost");
    let told = || {
        let segment = segment::<[SharedMutex<u64>; 2]>();
        let lock = &segment.root()[0];
        thread::scope(|s| {
            s.spawn(|| core::mem::forget(lock.lock().unwrap()));
        });
        let left = lock.lock().expect("a slot");
        assert!(matches!(left, Locked::OwnerDied(_)));
        let watched = Watched::default();
        thread::scope(|s| {
            let waiter = s.spawn(|| {
                watched.begins();
                assert!(matches!(lock.lock(), Ok(Locked::NotRecoverable)));
            });
            watched.sleeps();
            // It becomes the hand-off waiter when it looks again after some milliseconds.
            let at = core::ptr::from_ref(lock).addr();
            // SAFETY: SEGMENT-MAPPED: the lock's word, an atomic, in the segment of this test.
            let word = unsafe { &*core::ptr::with_exposed_provenance::<AtomicU32>(at) };
            eventually(|| {
                party(at).expect("a slot").domain.wake_everybody();
                word.load(Ordering::Relaxed) & RESERVED != 0
            });
            watched.sleeps();
            let start = Instant::now();
            drop(left);
            waiter.join().expect("it was told");
            start
        })
    };
    assert!(before_it_looks_again(told));
}
