//! The mutex whose waits are short: it is a mutex in all that a user sees but the waits.

use crate::support::Watchdog;
use lockstead::{Condvar, Fair, FairMutex, Mutex, MutexGuard};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// Many more threads than processors, each with its own count: nobody is left out, and no section is
/// lost.
#[test]
fn all_threads_have_their_turns() {
    let _watchdog = Watchdog::new("all_threads_have_their_turns");
    const THREADS: u32 = 16;
    const TURNS: u32 = 200;
    let (total, short) = (FairMutex::new(0), AtomicU32::new(THREADS));
    let made = thread::scope(|s| {
        let workers = [(); THREADS as usize].map(|()| {
            s.spawn(|| {
                let mut turns = 0;
                // Until everybody has had their turns, so that nobody finds the mutex abandoned.
                while short.load(Ordering::Relaxed) > 0 {
                    *total.lock() += 1;
                    turns += 1;
                    if turns == TURNS {
                        short.fetch_sub(1, Ordering::Relaxed);
                    }
                }
                turns
            })
        });
        workers.map(|worker| worker.join().expect("adds")).iter().sum::<u32>()
    });
    assert_eq!(total.into_inner(), made);
    assert!(made >= THREADS * TURNS);
}

#[test]
fn it_has_the_forms_and_guards_of_a_mutex() {
    let mut names = FairMutex::new((1, String::from("a")));
    assert!(names.lock_timeout(Duration::ZERO).is_ok());
    let guard = names.try_lock().expect("free");
    assert!(names.try_lock().is_none() && names.is_locked());
    MutexGuard::map(guard, |both| &mut both.1).push('b');
    assert_eq!(format!("{names:?}"), format!("{:?}", Mutex::new((1, String::from("ab")))));
    names.get_mut().0 = 2;
    assert_eq!(names.into_inner(), (2, String::from("ab")));
    assert_eq!(*FairMutex::<u32>::default().lock(), 0);
}

#[test]
fn one_kind_becomes_the_other() {
    let fair = FairMutex::new(Mutex::new(7).into_inner());
    assert_eq!(*fair.lock(), 7);
    let mutex = Mutex::new(fair.into_inner());
    assert_eq!(*mutex.lock(), 7);
    let _: &Mutex<u32, Fair> = &FairMutex::from(7);
}

#[test]
fn a_condition_variable_waits_with_it() {
    let _watchdog = Watchdog::new("a_condition_variable_waits_with_it");
    let (ready, changed) = (FairMutex::new(false), Condvar::new());
    thread::scope(|s| {
        s.spawn(|| {
            *ready.lock() = true;
            changed.notify_all();
        });
        let mut guard = ready.lock();
        changed.wait_while(&mut guard, |ready| !*ready);
    });
}

#[test]
fn lock_api_has_it_too() {
    let total: lock_api::Mutex<lockstead::lock_api::RawFairMutex, u32> = lock_api::Mutex::new(1);
    *total.lock() += 1;
    assert_eq!(total.into_inner(), 2);
}
