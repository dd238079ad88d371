//! The mutex on real threads: exclusion, and threads that come and go.

mod common;

use common::{Counter, Watchdog, count_with, my_slot};
use core::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn many_threads_exclude_each_other() {
    let _watchdog = Watchdog::new(60);
    count_with(16, 50_000);
}

/// Runs threads that live for a few acquisitions each; more of them than the first chunk of the
/// table has slots, so slots must be used again.
#[test]
fn threads_that_come_and_go_use_slots_again() {
    const WAVES: u64 = 400;
    const AT_ONCE: u64 = 8;
    const ADDS: u64 = 20;
    static COUNTER: Counter = Counter::new();
    let _watchdog = Watchdog::new(60);
    let mut highest = 0;
    for _ in 0..WAVES {
        let wave = [(); AT_ONCE as usize].map(|()| {
            std::thread::spawn(|| {
                (0..ADDS).for_each(|_| COUNTER.add());
                my_slot()
            })
        });
        for thread in wave {
            highest = highest.max(thread.join().unwrap());
        }
    }
    assert_eq!(COUNTER.total(), WAVES * AT_ONCE * ADDS);
    // The other tests of this program hold some slots.
    assert!(highest < 2048, "slot {highest}: slots of ended threads are not used again");
}

static LATE: Counter = Counter::new();
static LATE_SLOT: AtomicU32 = AtomicU32::new(0);

extern "C" fn lock_late(_value: *mut c_void) {
    LATE.add();
    LATE_SLOT.fetch_max(my_slot(), Ordering::Relaxed);
}

/// A key's destructor that runs after the library's own clean-up takes a lock:
/// that works, and the slot it sits on is taken back after the thread's end.
#[test]
fn locks_work_in_destructors_after_the_clean_up() {
    const THREADS: u64 = 4000;
    let _watchdog = Watchdog::new(60);
    lockstead_linux::prepare();
    let mut key = 0;
    // SAFETY: `key` is live. Created after the library's key, so that in each
    // round its destructor runs after the library's.
    assert_eq!(unsafe { libc::pthread_key_create(&mut key, Some(lock_late)) }, 0);
    for _ in 0..THREADS {
        std::thread::spawn(move || {
            LATE.add();
            // SAFETY: the key was created above and is never deleted.
            unsafe { libc::pthread_setspecific(key, core::ptr::from_ref(&LATE).cast()) };
        })
        .join()
        .unwrap();
    }
    assert_eq!(LATE.total(), 2 * THREADS);
    let highest = LATE_SLOT.load(Ordering::Relaxed);
    assert!(highest > 0 && highest < 2048, "slot {highest}: slots are not taken back");
}
