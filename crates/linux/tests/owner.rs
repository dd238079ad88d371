//! Whether an owner runs: what is said must be true where it can be known.

mod common;

use common::{Watchdog, my_slot, until};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use lockstead_core::{OnCpu, Platform, Slot};
use lockstead_linux::Linux;
use lockstead_linux::owner::{Oracle, oracle, set_oracle};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The choice of the oracle is global.
static ALONE: Mutex<()> = Mutex::new(());

fn choose(chosen: Oracle) -> MutexGuard<'static, ()> {
    let alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    set_oracle(chosen);
    assert_eq!(oracle(), chosen);
    alone
}

/// Asks for `milliseconds`, as a spinner would; counts yes, no and unknown.
fn ask(slot: u32, milliseconds: u64) -> [u32; 3] {
    let slot = Slot::new(slot).expect("a slot");
    let end = Instant::now() + Duration::from_millis(milliseconds);
    let mut answers = [0; 3];
    while Instant::now() < end {
        let answer = Linux::on_cpu(slot);
        answers[match answer {
            OnCpu::Yes => 0,
            OnCpu::No => 1,
            OnCpu::Unknown => 2,
        }] += 1;
        (0..16).for_each(|_| Linux::relax());
    }
    answers
}

/// Runs `check` beside a thread that runs `body` until the check is over.
fn beside(body: impl Fn(&AtomicBool) + Sync, check: impl FnOnce(u32)) {
    let (slot, stop) = (AtomicU32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            slot.store(my_slot(), Relaxed);
            body(&stop);
        });
        until("the other thread has joined", || slot.load(Relaxed) != 0);
        let result =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(slot.load(Relaxed))));
        stop.store(true, Relaxed);
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

fn pin(cpu: usize) -> bool {
    // SAFETY: a processor set is plain bits.
    unsafe {
        let mut set: libc::cpu_set_t = core::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0
    }
}

fn spin(stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        core::hint::spin_loop();
    }
}

fn sleep(stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        std::thread::sleep(Duration::from_secs(1));
    }
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
