//! `RawOnce` on real threads: one runs, the others see what it did.
//!
//! Nothing here asserts a speed. Every test has a watchdog, for the failure
//! that matters most is a hang.

mod threads;

use lockstead_core::{OnceError, Ordering, RawOnce, WaitBounds};
use lockstead_linux::Linux;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU32;
use std::thread;
use threads::{ROUNDS, Twins, threads, watched};

#[test]
fn stress_once_runs_once_among_many() {
    watched(|| {
        for round in 0..ROUNDS / 10 {
            let once = RawOnce::<Linux>::new();
            let twins = Twins::new();
            threads(4, |_| {
                let done = once.call_once(&WaitBounds::FOREVER, || {
                    if round % 4 == 0 {
                        thread::yield_now();
                    }
                    // SAFETY: the only one that runs, before all that read.
                    unsafe { twins.write() };
                });
                assert_eq!(done, Ok(()));
                // SAFETY: what is done once is done.
                assert_eq!(unsafe { twins.read() }, 1);
            });
        }
    });
}

#[test]
fn stress_once_all_learn_of_a_panic_and_one_repairs() {
    watched(|| {
        for _ in 0..ROUNDS / 100 {
            let once = RawOnce::<Linux>::new();
            let repaired = AtomicU32::new(0);
            threads(4, |number| {
                if number == 0 {
                    let quiet = AssertUnwindSafe(|| {
                        let turn = once.begin(false, &WaitBounds::FOREVER);
                        std::panic::resume_unwind(Box::new(turn.is_ok()));
                    });
                    let _ = catch_unwind(quiet);
                } else if number == 1 {
                    let done = once.call_once_force(&WaitBounds::FOREVER, |_| {
                        repaired.fetch_add(1, Ordering::Relaxed);
                    });
                    assert_eq!(done, Ok(()));
                } else {
                    let done = once.call_once(&WaitBounds::FOREVER, || {
                        repaired.fetch_add(1, Ordering::Relaxed);
                    });
                    assert!(matches!(done, Ok(()) | Err(OnceError::Poisoned)), "{done:?}");
                }
            });
            assert!(once.is_completed());
            assert_eq!(repaired.into_inner(), 1);
        }
    });
}
