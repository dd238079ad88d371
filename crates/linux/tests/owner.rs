//! Whether an owner runs: what is said must be true where it can be known.

mod common;

use common::{Watchdog, ask, beside, pin, sleep, spin, until};
use core::sync::atomic::AtomicBool;
use lockstead_linux::owner::{Oracle, oracle, set_oracle};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// The choice of the oracle is global.
static ALONE: Mutex<()> = Mutex::new(());

fn choose(chosen: Oracle) -> MutexGuard<'static, ()> {
    let alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    set_oracle(chosen);
    assert_eq!(oracle(), chosen);
    alone
}

#[test]
fn a_sleeping_thread_is_never_said_to_run() {
    let _watchdog = Watchdog::new(60);
    for chosen in [Oracle::Clock, Oracle::Both] {
        let _alone = choose(chosen);
        beside(sleep, |slot| {
            // It has told its slot and is now going to sleep.
            std::thread::sleep(Duration::from_millis(50));
            let [yes, no, _] = ask(slot, 50);
            assert_eq!(yes, 0, "{chosen:?} says that a sleeping thread runs");
            assert!(no > 0, "{chosen:?} never answers");
        });
    }
}

#[test]
fn a_running_thread_is_found_running() {
    let _watchdog = Watchdog::new(60);
    if lockstead_linux::features::probe().processors.affinity < 2 {
        println!("skipped: with one processor nobody runs beside the one who asks");
        return;
    }
    for chosen in [Oracle::Clock, Oracle::Both] {
        let _alone = choose(chosen);
        beside(spin, |slot| {
            until("it runs beside us", || ask(slot, 5)[0] > 0);
        });
    }
}

/// Truth without an oracle: on one processor, whoever asks is the one who runs.
#[test]
fn on_one_processor_only_the_one_who_asks_runs() {
    let _watchdog = Watchdog::new(60);
    // SAFETY: takes no argument.
    let cpu = usize::try_from(unsafe { libc::sched_getcpu() }).expect("a processor");
    for chosen in [Oracle::Clock, Oracle::Both] {
        let _alone = choose(chosen);
        // In a thread of its own, which may be pinned.
        std::thread::spawn(move || {
            assert!(pin(cpu));
            let pinned = |stop: &AtomicBool| {
                assert!(pin(cpu));
                spin(stop);
            };
            beside(pinned, |slot| {
                let [yes, no, _] = ask(slot, 300);
                // A switch between the two readings of a clock, or between two
                // askings, makes a few answers wrong.
                assert!(no > 20 * yes, "{chosen:?}: {yes} yes, {no} no");
            });
        })
        .join()
        .unwrap();
    }
}

#[test]
fn nobody_knows_nothing_and_a_vacant_seat_does_not_run() {
    let _watchdog = Watchdog::new(60);
    for chosen in [Oracle::Nobody, Oracle::Clock, Oracle::Processor, Oracle::Both] {
        let _alone = choose(chosen);
        // A seat far beyond those in use: its memory exists when asked for.
        assert_eq!(ask(100_000, 5)[0], 0, "{chosen:?}");
    }
    let _alone = choose(Oracle::Nobody);
    beside(spin, |slot| {
        let [yes, no, unknown] = ask(slot, 10);
        assert!(yes == 0 && no == 0 && unknown > 0);
    });
}

/// A hint may be wrong; the locks must not care.
#[test]
fn locks_exclude_with_every_oracle() {
    let _watchdog = Watchdog::new(60);
    for chosen in [Oracle::Nobody, Oracle::Clock, Oracle::Processor, Oracle::Both] {
        let _alone = choose(chosen);
        common::count_with(8, 10_000);
    }
}
