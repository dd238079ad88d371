//! Whether an owner runs: what is said must be true where it can be known.

mod common;

use common::{Watchdog, ask, beside, pin, sleep, spin, until, until_asleep};
use core::panic::Location;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use lockstead_core::RawRwLock;
use lockstead_linux::Linux;
use lockstead_linux::owner::{Oracle, oracle, set_oracle};
use std::sync::{Mutex, MutexGuard};

/// Keeps the tests apart, because the choice of the oracle is global.
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
            until_asleep(slot);
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

/// Knows the truth without an oracle: on one processor, whoever asks is the one who runs.
#[test]
fn on_one_processor_only_the_one_who_asks_runs() {
    let _watchdog = Watchdog::new(60);
    // SAFETY: `sched_getcpu` takes no argument and touches no memory of ours.
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
fn nobody_knows_nothing_and_a_vacant_slot_does_not_run() {
    let _watchdog = Watchdog::new(60);
    for chosen in [Oracle::Nobody, Oracle::Clock, Oracle::Processor, Oracle::Both] {
        let _alone = choose(chosen);
        // A slot far beyond those in use: its memory exists when asked for.
        assert_eq!(ask(100_000, 5)[0], 0, "{chosen:?}");
    }
    let _alone = choose(Oracle::Nobody);
    beside(spin, |slot| {
        let [yes, no, unknown] = ask(slot, 10);
        assert!(yes == 0 && no == 0 && unknown > 0);
    });
}

/// A hint may be wrong, always or at random, and right about everybody: the locks must
/// not care.
#[test]
fn locks_exclude_with_every_oracle() {
    let _watchdog = Watchdog::new(60);
    for chosen in Oracle::ALL {
        let _alone = choose(chosen);
        common::count_with(8, 10_000);
        readers_and_writers(chosen);
    }
}

/// Asserts that the reader-writer lock asks about its writer.
fn readers_and_writers(chosen: Oracle) {
    let lock = RawRwLock::<Linux>::new();
    let (value, torn) = ([AtomicU32::new(0), AtomicU32::new(0)], AtomicBool::new(false));
    common::in_threads(4, &|| {
        for turn in 0..2_000 {
            if turn % 4 == 0 {
                lock.write(Location::caller()).expect("no reason to fail");
                for half in &value {
                    half.store(half.load(Relaxed) + 1, Relaxed);
                }
                // SAFETY: this thread has taken the lock above, and only the holder releases it.
                unsafe { lock.unlock_write() };
            } else {
                lock.read(Location::caller()).expect("no reason to fail");
                if value[0].load(Relaxed) != value[1].load(Relaxed) {
                    torn.store(true, Relaxed);
                }
                // SAFETY: this thread has taken the lock above, and only the holder releases it.
                unsafe { lock.unlock_read() };
            }
        }
    });
    assert!(!torn.load(Relaxed), "{chosen:?}");
    assert_eq!(value[0].load(Relaxed), 2_000, "{chosen:?}");
}

#[test]
fn liars_answer_as_they_are_told() {
    let _watchdog = Watchdog::new(60);
    for (chosen, right) in [
        (Oracle::Yes, (|[_, no, unknown]| no + unknown == 0) as fn([u32; 3]) -> bool),
        (Oracle::No, |[yes, _, unknown]| yes + unknown == 0),
        (Oracle::Random, |counts| counts.iter().all(|&count| count > 0)),
    ] {
        let _alone = choose(chosen);
        let counts = ask(1, 5);
        assert!(right(counts), "{chosen:?}: {counts:?}");
    }
}
