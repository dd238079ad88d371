//! What programs that were written for `parking_lot` rely on, with the module of that name.

use crate::support::{Watchdog, eventually};
use lockstead::parking_lot::{
    self, Condvar, FairMutex, Mutex, MutexGuard, Once, OnceState, ReentrantMutex, RwLock,
    RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard, const_fair_mutex, const_mutex,
    const_reentrant_mutex, const_rwlock,
};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(2);

#[test]
fn an_upgradable_reader_excludes_writers_and_its_like() {
    let lock = RwLock::new(1);
    let reading = lock.upgradable_read();
    assert!(lock.is_locked() && !lock.is_locked_exclusive());
    assert_eq!(*lock.try_read().expect("readers come beside"), 1);
    thread::scope(|s| {
        s.spawn(|| {
            assert!(lock.try_upgradable_read().is_none() && lock.try_write().is_none());
            assert!(lock.try_upgradable_read_for(SHORT).is_none());
            assert!(lock.try_write_until(Instant::now() + SHORT).is_none());
            assert!(lock.try_read().is_some(), "giving up leaves nothing behind");
        });
    });
    drop(reading);
    assert!(lock.try_write().is_some() && lock.try_upgradable_read().is_some());
}

#[test]
fn an_upgrade_waits_for_readers_and_lets_no_writer_between() {
    let _watchdog = Watchdog::new("an_upgrade_waits_for_readers_and_lets_no_writer_between");
    let lock = RwLock::new(0_u64);
    thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                for _ in 0..300 {
                    let reading = lock.upgradable_read();
                    let before = *reading;
                    thread::yield_now();
                    let mut writing = RwLockUpgradableReadGuard::upgrade(reading);
                    assert_eq!(*writing, before, "somebody wrote in between");
                    *writing += 1;
                    // And down again, one step at a time.
                    let reading = RwLockWriteGuard::downgrade_to_upgradable(writing);
                    assert_eq!(*reading, before + 1);
                    let reading = RwLockUpgradableReadGuard::downgrade(reading);
                    assert!(*reading > before);
                }
            });
        }
        s.spawn(|| {
            for _ in 0..300 {
                *lock.write() += 1;
                assert!(*lock.read() > 0);
            }
        });
    });
    assert_eq!(lock.into_inner(), 1200);
}

#[test]
fn an_upgrade_that_is_tried_leaves_the_read_as_it_was() {
    let lock = RwLock::new(1);
    let reader = lock.read();
    let reading = lock.upgradable_read();
    let reading = RwLockUpgradableReadGuard::try_upgrade(reading).expect_err("a reader is there");
    let late = RwLockUpgradableReadGuard::try_upgrade_for(reading, SHORT);
    let reading = late.expect_err("a reader is there");
    assert!(lock.try_upgradable_read().is_none() && lock.try_read().is_some());
    drop(reader);
    let mut writing = RwLockUpgradableReadGuard::try_upgrade(reading).expect("alone");
    *writing += 1;
    assert!(lock.try_read().is_none() && lock.is_locked_exclusive());
    drop(writing);
    assert_eq!(*lock.upgradable_read(), 2);
    let result = lock.upgradable_read().with_upgraded(|data| {
        *data += 1;
        *data
    });
    assert_eq!(result, 3);
}

/// A reader beside an upgradable one is not kept off by writers that wait, however long.
#[test]
fn readers_come_beside_an_upgradable_one_past_the_bound_of_writers() {
    let _watchdog = Watchdog::new("readers_come_beside_an_upgradable_one");
    let lock = RwLock::new(1);
    let writer_waits = AtomicU32::new(0);
    thread::scope(|s| {
        let reading = lock.upgradable_read();
        s.spawn(|| {
            writer_waits.store(1, Ordering::Release);
            *lock.write() += 1;
        });
        eventually(|| writer_waits.load(Ordering::Acquire) == 1);
        // Many bounds of a waiter (3 ms).
        let until = Instant::now() + Duration::from_millis(30);
        while Instant::now() < until {
            let beside = s.spawn(|| *lock.read());
            assert_eq!(beside.join().expect("no panic"), 1);
        }
        drop(reading);
    });
    assert_eq!(*lock.read(), 2);
}

#[test]
fn a_recursive_reader_passes_a_writer_that_waits() {
    let _watchdog = Watchdog::new("a_recursive_reader_passes_a_writer_that_waits");
    let lock = RwLock::new(1);
    thread::scope(|s| {
        let outer = lock.read();
        s.spawn(|| *lock.write() += 1);
        // The writer has the lock promised to itself.
        eventually(|| lock.try_read().is_none());
        let inner = lock.read_recursive();
        assert_eq!((*outer, *inner), (1, 1));
        assert!(lock.try_read_recursive().is_some());
        assert!(lock.try_read_recursive_for(SHORT).is_some());
    });
    assert_eq!(*lock.read(), 2);
    let native = lockstead::RwLock::new(1);
    thread::scope(|s| {
        let _outer = native.read();
        s.spawn(|| *native.write() += 1);
        eventually(|| native.try_read().is_none());
        assert_eq!(*native.read_recursive(), 1);
        assert!(native.try_read_recursive().is_some());
    });
}

#[test]
fn a_fair_mutex_is_granted_in_the_order_of_asking() {
    let _watchdog = Watchdog::new("a_fair_mutex_is_granted_in_the_order_of_asking");
    static LINE: FairMutex<Vec<u32>> = const_fair_mutex(Vec::new());
    thread::scope(|s| {
        let holder = LINE.lock();
        for number in 0..4 {
            let (tell, told) = std::sync::mpsc::channel();
            s.spawn(move || {
                tell.send(thread_id()).expect("the test waits");
                LINE.lock().push(number);
            });
            // Asleep in the line, before the next one asks.
            let id = told.recv().expect("the thread says it");
            eventually(|| sleeps(id));
        }
        // Whoever gives up leaves the line as it was; the holder, too, waits no longer than it said.
        let late = s.spawn(|| LINE.try_lock_for(SHORT).is_none());
        assert!(late.join().expect("no panic") && LINE.try_lock_for(SHORT).is_none());
        drop(holder);
    });
    assert_eq!(*LINE.lock(), [0, 1, 2, 3]);
}

fn thread_id() -> i32 {
    // SAFETY: gettid reads no memory of the caller, and cannot fail.
    unsafe { libc::gettid() }
}

/// Tells whether a thread of this process sleeps.
fn sleeps(id: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{id}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('S'))
}

#[test]
fn a_condition_variable_says_whom_it_woke() {
    let _watchdog = Watchdog::new("a_condition_variable_says_whom_it_woke");
    let (number, changed) = (Mutex::new(0_u32), Condvar::new());
    assert!(!changed.notify_one());
    assert_eq!(changed.notify_all(), 0);
    let mut guard = number.lock();
    assert!(changed.wait_for(&mut guard, SHORT).timed_out());
    assert!(changed.wait_until(&mut guard, Instant::now()).timed_out());
    assert!(!changed.notify_one(), "who gave up is not counted");
    drop(guard);
    thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                let mut guard = number.lock();
                *guard += 1;
                // Once: no wait ends without a notification.
                changed.wait(&mut guard);
                *guard += 10;
            });
        }
        eventually(|| *number.lock() == 3);
        assert!(changed.notify_one());
        eventually(|| *number.lock() == 13);
        assert_eq!(changed.notify_all(), 2);
    });
    assert_eq!(*number.lock(), 33);
    let mut guard = number.lock();
    assert!(!changed.wait_while_for(&mut guard, |number| *number == 0, SHORT).timed_out());
    assert!(changed.wait_while_until(&mut guard, |_| true, Instant::now()).timed_out());
}

/// A wait that has a limit cannot hang, and is not refused, as of parking_lot's locks.
#[test]
fn asking_again_for_a_limited_time_ends_by_the_time() {
    let (mutex, lock) = (Mutex::new(()), RwLock::new(()));
    let (_held, _written) = (mutex.lock(), lock.write());
    assert!(mutex.try_lock_for(SHORT).is_none() && lock.try_write_for(SHORT).is_none());
    assert!(lock.try_read_for(SHORT).is_none() && lock.try_upgradable_read_for(SHORT).is_none());
}

#[test]
fn a_reentrant_mutex_counts() {
    static DEPTH: ReentrantMutex<Cell<u32>> = const_reentrant_mutex(Cell::new(0));
    let outer = DEPTH.lock();
    let inner = DEPTH.lock();
    inner.set(outer.get() + 1);
    drop(outer);
    assert!(DEPTH.is_owned_by_current_thread());
    thread::scope(|s| {
        s.spawn(|| assert!(DEPTH.try_lock().is_none() && DEPTH.try_lock_for(SHORT).is_none()));
    });
    drop(inner);
    assert!(!DEPTH.is_locked());
}

#[test]
fn guards_are_narrowed_kept_by_arc_forced_and_bumped() {
    static PLAIN: Mutex<(u32, Option<u32>)> = const_mutex((1, None));
    static SHARED: RwLock<(u32, Option<u32>)> = const_rwlock((1, Some(2)));
    *MutexGuard::map(PLAIN.lock(), |both| &mut both.0) += 1;
    let whole = MutexGuard::try_map(PLAIN.lock(), |both| both.1.as_mut()).expect_err("None");
    assert_eq!(whole.0, 2);
    drop(whole);
    let part = RwLockReadGuard::try_map(SHARED.read(), |both| both.1.as_ref()).expect("Some");
    assert_eq!(*part, 2);
    drop(part);
    *RwLockWriteGuard::map(SHARED.write(), |both| &mut both.0) += 1;

    let kept = Arc::new(Mutex::new(1));
    let guard = kept.lock_arc();
    assert!(kept.try_lock_arc().is_none());
    drop(guard);
    let kept = Arc::new(RwLock::new(1));
    let upgradable = kept.upgradable_read_arc();
    *parking_lot::ArcRwLockUpgradableReadGuard::upgrade(upgradable) += 1;
    assert_eq!(*kept.read_arc(), 2);

    std::mem::forget(PLAIN.lock());
    // SAFETY: this thread has locked it, and the guard is gone.
    unsafe { PLAIN.force_unlock() };
    std::mem::forget((SHARED.read(), SHARED.read()));
    // SAFETY: the guards of both are gone.
    unsafe {
        SHARED.force_unlock_read();
        SHARED.force_unlock_read_fair();
    }
    let mut guard = PLAIN.lock();
    MutexGuard::bump(&mut guard);
    MutexGuard::unlocked(&mut guard, || assert!(PLAIN.try_lock().is_some()));
    MutexGuard::unlock_fair(guard);
    assert!(!PLAIN.is_locked() && !SHARED.is_locked());
}

#[test]
fn a_bump_lets_one_that_waits_go_first() {
    let _watchdog = Watchdog::new("a_bump_lets_one_that_waits_go_first");
    let mutex = Mutex::new(0);
    thread::scope(|s| {
        let mut guard = mutex.lock();
        s.spawn(|| *mutex.lock() += 1);
        while *guard == 0 {
            MutexGuard::bump(&mut guard);
        }
    });
}

#[test]
fn a_once_shows_how_far_it_is() {
    let once = Once::new();
    assert_eq!(once.state(), OnceState::New);
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        once.call_once(|| panic!("on purpose"));
    }));
    assert!(failed.is_err() && once.state().poisoned());
    once.call_once_force(|state| {
        assert_eq!((state, once.state()), (OnceState::Poisoned, OnceState::InProgress));
    });
    assert!(once.state().done());
}

#[test]
fn locks_are_written_as_their_data() {
    let text = "[1,2]";
    let mutex: Mutex<(u32, u32)> = serde_json::from_str(text).expect("data");
    let lock: lockstead::RwLock<(u32, u32)> = serde_json::from_str(text).expect("data");
    let kept: lockstead::poison::Mutex<(u32, u32)> = serde_json::from_str(text).expect("data");
    assert_eq!(serde_json::to_string(&mutex).expect("data"), text);
    assert_eq!(serde_json::to_string(&lock).expect("data"), text);
    assert_eq!(serde_json::to_string(&kept).expect("data"), text);
    let spoilt = std::panic::catch_unwind(|| {
        let _guard = kept.lock();
        panic!("on purpose");
    });
    assert!(spoilt.is_err() && serde_json::to_string(&kept).is_err());
    let empty: lockstead::OnceLock<u32> = serde_json::from_str("null").expect("nothing");
    assert!(empty.get().is_none());
}

/// Compiles: the crate under the other one's name, but for upgradable reads, which its own reader-writer
/// lock has not.
mod under_its_name {
    use lockstead as parking_lot;
    use parking_lot::{
        Condvar, FairMutex, MappedMutexGuard, MappedRwLockReadGuard, Mutex, MutexGuard, Once,
        OnceState, RwLock, RwLockReadGuard, RwLockWriteGuard, WaitTimeoutResult, const_mutex,
        const_rwlock,
    };
    use std::time::{Duration, Instant};

    static MUTEX: Mutex<(u32, u32)> = const_mutex((1, 2));
    static LOCK: RwLock<(u32, u32)> = const_rwlock((1, 2));

    #[test]
    fn the_crate_is_used_under_the_other_name() {
        let first: MappedMutexGuard<'_, u32> = MutexGuard::map(MUTEX.lock(), |both| &mut both.0);
        drop(MappedMutexGuard::try_map(first, |first| Some(first)));
        assert!(MUTEX.try_lock_for(Duration::ZERO).is_some());
        assert!(MUTEX.try_lock_until(Instant::now()).is_some());
        std::mem::forget(MUTEX.lock());
        // SAFETY: this thread has locked it, and the guard is gone.
        unsafe { MUTEX.force_unlock() };
        let mut guard = MUTEX.lock();
        MutexGuard::unlocked(&mut guard, || assert!(!MUTEX.is_locked()));
        assert!(MutexGuard::mutex(&guard).is_locked());

        let condvar = Condvar::new();
        let late: WaitTimeoutResult = condvar.wait_for(&mut guard, Duration::ZERO);
        assert!(late.timed_out() && condvar.wait_until(&mut guard, Instant::now()).timed_out());
        condvar.wait_while(&mut guard, |both| both.0 == 0);
        let _: (bool, usize) = (condvar.notify_one(), condvar.notify_all());

        let part: MappedRwLockReadGuard<'_, u32> = RwLockReadGuard::map(LOCK.read(), |l| &l.1);
        let part = MappedRwLockReadGuard::map(part, |part| part);
        assert!(*part == 2 && LOCK.try_write_for(Duration::ZERO).is_none());
        drop(part);
        let writing = RwLockWriteGuard::try_map(LOCK.write(), |_| None::<&mut u32>);
        assert!(writing.is_err_and(|whole| RwLockWriteGuard::rwlock(&whole).is_locked_exclusive()));
        let second = RwLockReadGuard::try_map(LOCK.read(), |both| Some(&both.1)).ok();
        assert!(second.is_some() && LOCK.try_read_until(Instant::now()).is_some());

        Once::new().call_once_force(|state: OnceState| assert!(!state.poisoned()));
        assert_eq!(*FairMutex::new(1).lock(), 1);
    }
}
