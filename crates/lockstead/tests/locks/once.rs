//! Things done once.

use crate::support::{Watchdog, eventually, panic_of};
use lockstead::{CancelToken, Cancelled, Once, OnceLock, TimedOut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn of_racing_threads_one_initialises_and_all_see_the_result() {
    let _watchdog = Watchdog::new("of_racing_threads_one_initialises");
    for round in 0..300u32 {
        let (once, cell) = (Once::new(), OnceLock::new());
        let runs = AtomicU32::new(0);
        thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    once.call_once(|| {
                        runs.fetch_add(1, Ordering::Relaxed);
                    });
                    assert_eq!(runs.load(Ordering::Relaxed), 1, "returned before it was done");
                    let value: &Vec<u32> = cell.get_or_init(|| {
                        thread::yield_now();
                        vec![round; 3]
                    });
                    assert_eq!(*value, [round; 3]);
                });
            }
        });
        assert!(once.is_completed());
    }
}

/// Holds the initialiser of `once` open while `meanwhile` runs.
fn while_it_runs(once: &Once, meanwhile: impl FnOnce()) {
    let (running, over) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|s| {
        s.spawn(|| {
            once.call_once(|| {
                running.store(true, Ordering::Relaxed);
                eventually(|| over.load(Ordering::Relaxed));
            });
        });
        eventually(|| running.load(Ordering::Relaxed));
        meanwhile();
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn waits_for_an_initialiser_end() {
    let _watchdog = Watchdog::new("waits_for_an_initialiser_end");
    let once = Once::new();
    let wait = Duration::from_millis(3);
    let token = CancelToken::new();
    token.cancel();
    while_it_runs(&once, || {
        let began = Instant::now();
        assert_eq!(once.call_once_timeout(wait, || unreachable!("ran")), Err(TimedOut));
        assert!(began.elapsed() >= wait);
        assert_eq!(once.call_once_killable(&token, || unreachable!("ran")), Err(Cancelled));
        assert!(!once.is_completed());
    });
    assert_eq!(once.call_once_timeout(wait, || unreachable!("done")), Ok(()));
    assert_eq!(once.call_once_killable(&token, || unreachable!("done")), Ok(()));
    assert_eq!(once.call_once_interruptible(|| unreachable!("done")), Ok(()));
}

#[test]
fn each_form_runs_the_initialiser_if_nobody_has() {
    let token = CancelToken::new();
    let ran = AtomicU32::new(0);
    let run = || {
        ran.fetch_add(1, Ordering::Relaxed);
    };
    assert_eq!(Once::new().call_once_timeout(Duration::ZERO, run), Ok(()));
    assert_eq!(Once::new().call_once_interruptible(run), Ok(()));
    assert_eq!(Once::default().call_once_killable(&token, run), Ok(()));
    Once::new().call_once_force(|state| {
        assert!(!state.poisoned());
        run();
    });
    assert_eq!(ran.into_inner(), 4);
}

#[test]
fn recursion_is_detected() {
    let _watchdog = Watchdog::new("recursion_is_detected");
    let once = Once::new();
    let message = panic_of(|| once.call_once(|| once.call_once(|| ())));
    assert!(message.contains("recursive initialisation"), "{message}");
    assert!(message.contains(file!()), "{message}");

    let cell: OnceLock<u32> = OnceLock::new();
    let message = panic_of(|| *cell.get_or_init(|| *cell.get_or_init(|| 1) + 1));
    assert!(message.contains("recursive initialisation") && message.contains("u32"), "{message}");
    let message = panic_of(|| {
        *cell.get_or_init(|| {
            assert_eq!(cell.set(2), Ok(()));
            3
        })
    });
    assert!(message.contains("recursive initialisation"), "{message}");
    assert_eq!(cell.get_or_init(|| 4), &4, "works after");
}

#[test]
fn a_failed_initialiser_poisons_a_once_but_not_a_cell() {
    let once = Once::new();
    let what = "on purpose";
    panic_of(|| once.call_once(|| panic!("{what}")));
    assert!(!once.is_completed());
    let message = panic_of(|| once.call_once(|| ()));
    assert!(message.contains("poisoned") && message.contains("call_once_force"), "{message}");
    once.call_once_force(|state| assert!(state.poisoned()));
    assert!(once.is_completed());
    assert_eq!(format!("{once:?} {:?}", Once::new()), "Once(Complete) Once(Incomplete)");

    let cell = OnceLock::new();
    panic_of(|| *cell.get_or_init(|| panic!("{what}")));
    assert_eq!(cell.get(), None);
    assert_eq!(cell.get_or_init(|| 5), &5);
}

#[test]
fn a_cell_drops_what_it_holds_once() {
    let value = Arc::new(());
    let mut cell = OnceLock::from(Arc::clone(&value));
    assert_eq!(Arc::strong_count(&value), 2);
    drop(cell.take().expect("full"));
    assert!(cell.take().is_none());
    assert_eq!(Arc::strong_count(&value), 1);
    assert!(cell.set(Arc::clone(&value)).is_ok());
    assert!(cell.set(Arc::clone(&value)).is_err());
    drop(cell);
    assert_eq!(Arc::strong_count(&value), 1);
    drop(OnceLock::<Arc<()>>::new());
    assert!(Arc::ptr_eq(&OnceLock::from(Arc::clone(&value)).into_inner().expect("full"), &value));
}

#[test]
fn a_cell_shows_its_data_and_lends_it_mutably() {
    let mut cell = OnceLock::default();
    assert_eq!(format!("{cell:?}"), "OnceLock(<empty>)");
    assert!(cell.get_mut().is_none());
    assert_eq!(cell.set(1), Ok(()));
    *cell.get_mut().expect("full") += 1;
    assert_eq!(format!("{cell:?}"), "OnceLock(2)");
}
