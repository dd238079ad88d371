//! The semaphores on real threads: no permit is lost or made.
//!
//! Nothing here asserts a speed. Every test has a watchdog, for the failure
//! that matters most is a hang.

mod threads;

use lockstead_core::{ClassicSemaphore, Ordering, TunedSemaphore};
use lockstead_linux::Linux;
use std::sync::atomic::AtomicU32;
use std::thread;
use std::time::Duration;
use threads::{ROUNDS, THREADS, Twins, all_are_cancelled, here, threads, watched, within};

macro_rules! for_both_semaphores {
    ($($test:ident),* $(,)?) => {
        mod classic {
            $(#[test] fn $test() {
                super::watched(|| super::$test!(super::ClassicSemaphore::<super::Linux>))
            })*
        }
        mod tuned {
            $(#[test] fn $test() {
                super::watched(|| super::$test!(super::TunedSemaphore::<super::Linux>))
            })*
        }
    };
}

macro_rules! stress_permits_are_neither_lost_nor_made {
    ($semaphore:ty) => {{
        use super::*;
        let semaphore = <$semaphore>::new(3).expect("few permits");
        let inside = AtomicU32::new(0);
        threads(THREADS, |number| {
            let mut taken = 0;
            while taken < ROUNDS {
                let granted = match (number + taken) % 4 {
                    0 => semaphore.try_down(here()),
                    1 => semaphore.down_how(&within(20), here()).is_ok(),
                    _ => {
                        semaphore.down(here());
                        true
                    }
                };
                if !granted {
                    thread::yield_now();
                    continue;
                }
                taken += 1;
                assert!(inside.fetch_add(1, Ordering::SeqCst) < 3, "more inside than permits");
                if taken % 64 == 0 {
                    thread::yield_now();
                }
                inside.fetch_sub(1, Ordering::SeqCst);
                semaphore.up().expect("what was taken has room");
            }
        });
        assert_eq!(semaphore.permits(), 3);
        for _ in 0..3 {
            assert!(semaphore.try_down(here()));
        }
        assert!(!semaphore.try_down(here()));
    }};
}
use stress_permits_are_neither_lost_nor_made;

macro_rules! stress_two_threads_pass_the_turn {
    ($semaphore:ty) => {{
        use super::*;
        let turns = [
            <$semaphore>::new(1).expect("few permits"),
            <$semaphore>::new(0).expect("few permits"),
        ];
        let twins = Twins::new();
        threads(2, |number| {
            for _ in 0..ROUNDS {
                turns[number as usize].down(here());
                // SAFETY: there is one turn in all, and this thread has it.
                unsafe { twins.write() };
                turns[1 - number as usize].up().expect("one turn in the world");
            }
        });
        // SAFETY: the threads that wrote have ended.
        assert_eq!(unsafe { twins.read() }, 2 * u64::from(ROUNDS));
    }};
}
use stress_two_threads_pass_the_turn;

macro_rules! stress_every_sleeper_of_a_crowd_gets_its_permit {
    ($semaphore:ty) => {{
        use super::*;
        let semaphore = <$semaphore>::new(0).expect("few permits");
        let through = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..ROUNDS / 10 {
                        semaphore.down(here());
                        through.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            scope.spawn(|| {
                // All at once, in bursts: a release may find that the thread
                // that the one before it woke is still on its way.
                for burst in 0..ROUNDS / 10 {
                    for _ in 0..THREADS {
                        semaphore.up().expect("few permits");
                    }
                    if burst % 4 == 0 {
                        thread::sleep(Duration::from_micros(50));
                    }
                }
            });
        });
        assert_eq!(through.into_inner(), THREADS * (ROUNDS / 10));
        assert_eq!(semaphore.permits(), 0);
    }};
}
use stress_every_sleeper_of_a_crowd_gets_its_permit;

macro_rules! stress_a_cancellation_reaches_every_sleeper {
    ($semaphore:ty) => {{
        use super::*;
        let semaphore = <$semaphore>::new(0).expect("few permits");
        all_are_cancelled(|how| semaphore.down_how(how, here()));
        semaphore.up().expect("few permits");
        assert!(semaphore.try_down(here()), "those that gave up took a permit along");
    }};
}
use stress_a_cancellation_reaches_every_sleeper;

for_both_semaphores! {
    stress_permits_are_neither_lost_nor_made,
    stress_two_threads_pass_the_turn,
    stress_every_sleeper_of_a_crowd_gets_its_permit,
    stress_a_cancellation_reaches_every_sleeper,
}
