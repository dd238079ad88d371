//! Lock order and lock rules in a build that checks: each case in a process of
//! its own, for what was found is kept for the whole of one.
#![cfg(feature = "check")]

use lockstead::check::{self, Action, Finding, Level};
use lockstead::{Mutex, NamedMutex, RwLock};
use std::process::Command;
use std::sync::Barrier;
use std::time::{Duration, Instant};
use std::{env, thread};

const CASE: &str = "LOCKSTEAD_TEST_CASE";

/// Runs `case` in a process that begins with the test `name` alone, and returns
/// what it wrote to standard error; it must succeed.
fn alone(name: &str, case: fn()) -> String {
    alone_with(name, "report", case)
}

fn alone_with(name: &str, action: &str, case: fn()) -> String {
    if env::var_os(CASE).is_some() {
        // A case that fails may leave threads waiting for each other.
        // SAFETY: the call sets a timer whose signal ends this process.
        unsafe { libc::alarm(120) };
        case();
        std::process::exit(0);
    }
    let mut command = Command::new(env::current_exe().expect("this test"));
    command.args([name, "--exact", "--nocapture", "--test-threads=1"]);
    let output = command.env(CASE, "1").env("LOCKSTEAD_CHECK", action).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

fn titles(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with("lockstead: ")).collect()
}

/// Does one thing after the other in two threads that are there all the time.
fn in_two_threads(first: impl FnOnce() + Send, second: impl FnOnce() + Send) {
    let turn = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            drop(Mutex::new(()).lock());
            turn.wait();
            first();
            turn.wait();
            turn.wait();
        });
        scope.spawn(|| {
            drop(Mutex::new(()).lock());
            turn.wait();
            turn.wait();
            second();
            turn.wait();
        });
    });
}

fn levels() -> Vec<Level> {
    check::findings().iter().map(|Finding { level, .. }| *level).collect()
}

#[test]
fn two_threads_in_two_orders() {
    fn front_then_back(front: &NamedMutex<()>, back: &Mutex<()>) {
        let _front = front.lock();
        drop(back.lock());
    }
    fn back_then_front(front: &NamedMutex<()>, back: &Mutex<()>) {
        let _back = back.lock();
        drop(front.lock());
    }
    let text = alone("two_threads_in_two_orders", || {
        let (front, back) = (NamedMutex::named("front", ()), Mutex::new(()));
        for _ in 0..3 {
            in_two_threads(|| front_then_back(&front, &back), || back_then_front(&front, &back));
        }
        assert_eq!(levels(), [Level::Potential]);
        assert_eq!(check::losses(), [""; 0]);
    });
    assert_eq!(titles(&text), ["lockstead: POTENTIAL: lock order inversion of 2 locks"]);
    for part in ["`front`", "tests/check.rs", "front_then_back", "back_then_front"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(text.lines().count() <= 40, "{text}");
}

#[test]
fn one_thread_in_two_orders() {
    let case = || {
        let (one, two) = (Mutex::new(()), Mutex::new(()));
        drop((one.lock(), two.lock()));
        let held = two.lock();
        drop((one.lock(), held));
        assert_eq!(levels(), [Level::Order]);
    };
    assert_eq!(titles(&alone("one_thread_in_two_orders", case)), [""; 0]);
}

#[test]
fn all_is_shown_to_those_who_want_it() {
    let case = || {
        let (one, two) = (Mutex::new(()), Mutex::new(()));
        drop((one.lock(), two.lock()));
        let held = two.lock();
        drop((one.lock(), held));
    };
    let text = alone_with("all_is_shown_to_those_who_want_it", "strict", case);
    assert_eq!(titles(&text), ["lockstead: ORDER: lock order inversion of 2 locks"]);
    let text = alone_with("all_is_shown_to_those_who_want_it", "all", case);
    assert_eq!(titles(&text).len(), 1, "{text}");
    assert!(text.contains("LOCKSTEAD_CHECK=all means nothing"), "{text}");
}

#[test]
fn a_gate_and_a_trylock_are_excuses() {
    alone("a_gate_and_a_trylock_are_excuses", || {
        let (gate, one, two) = (Mutex::new(()), Mutex::new(()), Mutex::new(()));
        in_two_threads(
            || drop((gate.lock(), one.lock(), two.lock())),
            || drop((gate.lock(), two.lock(), one.lock())),
        );
        assert_eq!(levels(), [Level::Order]);
        let (one, two) = (Mutex::new(()), Mutex::new(()));
        in_two_threads(
            || drop((one.lock(), two.lock())),
            || drop((two.lock(), one.try_lock().expect("free"))),
        );
        assert_eq!(levels(), [Level::Order]);
    });
}

#[test]
fn locks_that_are_no_more_close_no_cycle() {
    alone("locks_that_are_no_more_close_no_cycle", || {
        let one = NamedMutex::named("one", ());
        let mut two = Box::new(Mutex::new(()));
        in_two_threads(|| drop((one.lock(), two.lock())), || ());
        *two = Mutex::new(());
        in_two_threads(|| (), || drop((two.lock(), one.lock())));
        assert!(!levels().contains(&Level::Potential), "{:?}", check::findings());
    });
}

#[test]
fn readers_do_not_wait_for_readers_but_for_writers() {
    alone("readers_do_not_wait_for_readers_but_for_writers", || {
        let (table, log) = (RwLock::new(()), Mutex::new(()));
        in_two_threads(|| drop((table.read(), log.lock())), || drop((log.lock(), table.write())));
        assert_eq!(levels(), [Level::Potential]);
    });
}

#[test]
fn a_read_lock_taken_again() {
    let text = alone("a_read_lock_taken_again", || {
        let tables = [RwLock::new(()), RwLock::new(())];
        for table in &tables {
            // Once, whichever table it is and whichever thread.
            drop((table.read(), table.read()));
        }
        drop((tables[0].read(), tables[0].try_read().expect("free")));
        assert_eq!(levels(), [Level::Rule]);
    });
    assert_eq!(titles(&text), ["lockstead: RULE: recursive read lock"]);
}

#[test]
fn levels_of_a_nesting_are_told_apart() {
    fn make() -> Mutex<()> {
        Mutex::new(())
    }
    alone("levels_of_a_nesting_are_told_apart", || {
        // A parent and its child, by whichever of the two is the parent today.
        let (one, two) = (make(), make());
        in_two_threads(
            || drop((one.lock(), two.lock_nested(1))),
            || drop((two.lock(), one.lock_nested(1))),
        );
        assert_eq!(levels(), []);
        in_two_threads(|| (), || drop((one.lock_nested(1), two.lock())));
        assert!(!levels().is_empty(), "the inner level first");
    });
}

#[test]
fn a_leaked_guard() {
    let text = alone("a_leaked_guard", || {
        let safe: &Mutex<()> = Box::leak(Box::new(Mutex::new(())));
        thread::Builder::new()
            .name("careless".into())
            .spawn(|| std::mem::forget(safe.lock()))
            .expect("a thread")
            .join()
            .expect("no panic");
        assert_eq!(levels(), [Level::Rule]);
    });
    assert_eq!(titles(&text), ["lockstead: RULE: thread exit while holding"]);
    assert!(text.contains("\"careless\""), "{text}");
}

#[test]
fn a_deadlock_when_it_closes() {
    let text = alone("a_deadlock_when_it_closes", || {
        let names = ["one", "two", "three"];
        let cycle: &[NamedMutex<()>; 3] =
            Box::leak(Box::new(names.map(|name| NamedMutex::named(name, ()))));
        let met: &Barrier = Box::leak(Box::new(Barrier::new(3)));
        for at in 0..3 {
            thread::spawn(move || {
                let _first = cycle[at].lock();
                met.wait();
                drop(cycle[(at + 1) % 3].lock());
            });
        }
        let begin = Instant::now();
        while !levels().contains(&Level::Deadlock) {
            assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", check::findings());
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(levels().iter().filter(|&&level| level == Level::Deadlock).count(), 1);
    });
    let deadlock = "lockstead: DEADLOCK: 3 threads wait for each other";
    assert!(titles(&text).contains(&deadlock), "{text}");
    for name in ["`one`", "`two`", "`three`"] {
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn waits_that_end_are_no_deadlock() {
    alone("waits_that_end_are_no_deadlock", || {
        let (one, two, met) = (Mutex::new(()), Mutex::new(()), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                let _one = one.lock();
                met.wait();
                assert!(two.lock_timeout(Duration::from_millis(200)).is_err());
            });
            scope.spawn(|| {
                let _two = two.lock();
                met.wait();
                drop(one.lock());
            });
        });
        assert!(!levels().contains(&Level::Deadlock), "{:?}", check::findings());
    });
}

#[test]
fn a_panic_in_place_of_a_report() {
    let text = alone_with("a_panic_in_place_of_a_report", "panic", || {
        let (one, two) = (Mutex::new(()), Mutex::new(()));
        in_two_threads(
            || drop((one.lock(), two.lock())),
            || {
                let again = || drop((two.lock(), one.lock()));
                let text = std::panic::catch_unwind(std::panic::AssertUnwindSafe(again));
                let text = text.expect_err("found").downcast::<String>().expect("a text");
                assert!(text.contains("POTENTIAL"), "{text}");
                // Known now; and the checks go on.
                again();
            },
        );
        check::set_action(Action::Silent);
        drop((one.try_lock().expect("free"), two.try_lock().expect("free")));
    });
    assert!(text.contains("POTENTIAL"), "{text}");
}

#[test]
fn deep_chains_and_many_locks_are_known_again() {
    alone("deep_chains_and_many_locks_are_known_again", || {
        let locks: Vec<Mutex<u32>> = (0..200).map(Mutex::new).collect();
        for _ in 0..3 {
            let all: Vec<_> = locks.iter().map(Mutex::lock).collect();
            assert_eq!(all.iter().map(|value| **value).sum::<u32>(), 199 * 100);
            // Not in the order of their acquisition, nor in its reverse.
            let (even, odd): (Vec<_>, Vec<_>) = all.into_iter().partition(|value| **value % 2 == 0);
            drop((even, odd));
        }
        assert_eq!(levels(), []);
    });
}
