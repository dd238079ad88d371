//! Both semaphores: the same tests, since they promise the same.

macro_rules! semaphore_tests {
    ($name:ident, $semaphore:ty) => {
        mod $name {
            use crate::support::{Watchdog, Watched, panic_of};
            use lockstead::{CancelToken, Cancelled, TimedOut};
            use std::sync::atomic::{AtomicU32, Ordering};
            use std::thread;
            use std::time::{Duration, Instant};

            type Semaphore = $semaphore;

            static STATIC: Semaphore = Semaphore::new(1);

            #[test]
            fn one_permit_is_a_mutex() {
                let _watchdog = Watchdog::new("one_permit_is_a_mutex");
                let inside = AtomicU32::new(0);
                let semaphore = Semaphore::new(1);
                let enter = || {
                    assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "two holders");
                    thread::yield_now();
                    inside.fetch_sub(1, Ordering::Relaxed);
                };
                thread::scope(|s| {
                    for _ in 0..4 {
                        s.spawn(|| {
                            for _ in 0..1_000 {
                                semaphore.down();
                                enter();
                                semaphore.up();
                                let permit = semaphore.acquire();
                                enter();
                                drop(permit);
                                if semaphore.try_down() {
                                    enter();
                                    semaphore.up();
                                }
                            }
                        });
                    }
                });
                assert_eq!(semaphore.permits(), 1);
            }

            #[test]
            fn no_more_holders_than_permits_and_none_of_them_unused() {
                let _watchdog = Watchdog::new("no_more_holders_than_permits");
                let semaphore = Semaphore::new(3);
                let inside = AtomicU32::new(0);
                let full = AtomicU32::new(0);
                thread::scope(|s| {
                    for _ in 0..8 {
                        s.spawn(|| {
                            // Ends when three were inside often enough; hangs,
                            // for the watchdog to see, if they never are.
                            while full.load(Ordering::Relaxed) < 300 {
                                let permit = semaphore.acquire();
                                let now = inside.fetch_add(1, Ordering::Relaxed) + 1;
                                assert!(now <= 3, "{now} holders of 3 permits");
                                full.fetch_add(u32::from(now == 3), Ordering::Relaxed);
                                thread::sleep(Duration::from_micros(10));
                                inside.fetch_sub(1, Ordering::Relaxed);
                                drop(permit);
                            }
                        });
                    }
                });
                assert_eq!(semaphore.permits(), 3);
            }

            #[test]
            fn an_up_is_never_lost_on_a_sleeper() {
                let _watchdog = Watchdog::new("an_up_is_never_lost_on_a_sleeper");
                let (ping, pong) = (Semaphore::new(0), Semaphore::new(0));
                thread::scope(|s| {
                    s.spawn(|| {
                        for _ in 0..3_000 {
                            ping.down();
                            pong.up();
                        }
                    });
                    for _ in 0..3_000 {
                        ping.up();
                        pong.down();
                    }
                });
                assert_eq!((ping.permits(), pong.permits()), (0, 0));
            }

            #[test]
            fn several_ups_wake_several_sleepers() {
                let _watchdog = Watchdog::new("several_ups_wake_several_sleepers");
                for _ in 0..200 {
                    let semaphore = Semaphore::new(0);
                    thread::scope(|s| {
                        for _ in 0..4 {
                            s.spawn(|| semaphore.down());
                        }
                        for _ in 0..4 {
                            semaphore.up();
                        }
                    });
                    assert_eq!(semaphore.permits(), 0);
                }
            }

            #[test]
            fn waits_end_and_lose_no_permit() {
                let _watchdog = Watchdog::new("waits_end_and_lose_no_permit");
                let semaphore = Semaphore::new(0);
                let wait = Duration::from_millis(3);
                let began = Instant::now();
                assert_eq!(semaphore.down_timeout(wait), Err(TimedOut));
                assert!(began.elapsed() >= wait);
                assert_eq!(semaphore.acquire_timeout(wait).err(), Some(TimedOut));
                let deadline = Instant::now() + wait;
                assert_eq!(semaphore.down_until(deadline), Err(TimedOut));
                assert!(Instant::now() >= deadline);
                assert!(semaphore.try_acquire().is_none() && !semaphore.try_down());

                let token = CancelToken::new();
                let watched = Watched::default();
                thread::scope(|s| {
                    let waiter = s.spawn(|| {
                        watched.begins();
                        semaphore.down_killable(&token)
                    });
                    watched.sleeps();
                    token.cancel();
                    assert_eq!(waiter.join().expect("no panic"), Err(Cancelled));
                });
                assert_eq!(semaphore.acquire_killable(&token).err(), Some(Cancelled));

                semaphore.up();
                assert_eq!(semaphore.permits(), 1);
                assert!(semaphore.acquire_killable(&token).is_ok());
                assert!(semaphore.acquire_timeout(Duration::ZERO).is_ok());
                assert!(semaphore.acquire_interruptible().is_ok());
                assert_eq!(semaphore.down_interruptible(), Ok(()));
                assert_eq!(semaphore.permits(), 0);
            }

            /// Waiters that time out race with permits that arrive.
            #[test]
            fn permits_are_conserved_when_waiters_give_up() {
                let _watchdog = Watchdog::new("permits_are_conserved");
                let semaphore = Semaphore::new(2);
                let given_up = AtomicU32::new(0);
                thread::scope(|s| {
                    for me in 0..5u64 {
                        let (semaphore, given_up) = (&semaphore, &given_up);
                        s.spawn(move || {
                            for round in 0.. {
                                if given_up.load(Ordering::Relaxed) >= 300 {
                                    break;
                                }
                                let patience = Duration::from_micros((round * 13 + me * 7) % 120);
                                match semaphore.acquire_timeout(patience) {
                                    Ok(permit) => {
                                        thread::sleep(Duration::from_micros(20));
                                        drop(permit);
                                    }
                                    Err(TimedOut) => {
                                        given_up.fetch_add(1, Ordering::Relaxed);
                                    }
                                }
                            }
                        });
                    }
                });
                assert_eq!(semaphore.permits(), 2);
            }

            #[test]
            fn a_permit_may_be_given_back_elsewhere_or_forgotten() {
                let permit = STATIC.acquire();
                thread::scope(|s| {
                    s.spawn(move || drop(permit));
                });
                assert_eq!(STATIC.permits(), 1);
                STATIC.acquire().forget();
                assert_eq!(STATIC.permits(), 0);
                STATIC.up();
                assert_eq!(format!("{STATIC:?}"), "Semaphore { permits: 1 }");
            }

            #[test]
            fn too_many_permits_panic_and_change_nothing() {
                let full = Semaphore::new(Semaphore::MAX_PERMITS);
                let message = panic_of(|| full.up());
                assert!(message.contains("released more often"), "{message}");
                assert_eq!(full.permits(), Semaphore::MAX_PERMITS);
                full.down();
                full.up();
                let beyond =
                    std::panic::catch_unwind(|| Semaphore::new(Semaphore::MAX_PERMITS + 1));
                assert!(beyond.is_err());
            }
        }
    };
}

semaphore_tests!(tuned, lockstead::Semaphore);
semaphore_tests!(classic, lockstead::classic::Semaphore);
