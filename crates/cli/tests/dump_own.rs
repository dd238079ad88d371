//! `lockstead dump` on a program whose locks are lockstead's own.

use crate::common::Outcome;
use crate::dump::support::{Hung, plain};
use lockstead::{Condvar, Mutex, Once, RwLock};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Makes this very program hang, in the way that it says.
const HANG: &str = "LOCKSTEAD_TEST_HANG";

static FRONT: Mutex<u32> = Mutex::new(0);
static BACK: Mutex<u32> = Mutex::new(0);
static HELD: Mutex<u32> = Mutex::new(0);
static COME: Condvar = Condvar::new();
static GUARD: Mutex<u32> = Mutex::new(0);
static TABLE: RwLock<u32> = RwLock::new(0);
static ONE: Once = Once::new();
static TWO: Once = Once::new();

fn named(name: &str, body: fn()) {
    std::thread::Builder::new().name(name.into()).spawn(body).expect("a thread");
}

fn rest() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// Hangs in one of these ways: the programs to look at, which the tests below run in processes of
/// their own.
fn hang(how: &str) -> ! {
    static BOTH: Barrier = Barrier::new(2);
    static READY: AtomicU32 = AtomicU32::new(0);
    match how {
        "cycle" => {
            named("teller", || {
                let _front = FRONT.lock();
                BOTH.wait();
                let _back = BACK.lock();
            });
            named("auditor", || {
                let _back = BACK.lock();
                BOTH.wait();
                let _front = FRONT.lock();
            });
        }
        // Of several waiters for one mutex all but one look at it from time to time.
        "crowd" | "limited" => {
            named("teller", || {
                let _front = FRONT.lock();
                BOTH.wait();
                let _back = BACK.lock();
            });
            named(if how == "crowd" { "auditor" } else { "hasty" }, || {
                let _back = BACK.lock();
                BOTH.wait();
                let limited = std::thread::current().name() == Some("hasty");
                let limit = limited.then_some(Duration::from_secs(3600));
                let _front =
                    limit.map_or_else(|| Some(FRONT.lock()), |l| FRONT.lock_timeout(l).ok());
            });
            for name in ["patient", "waiting", "last"] {
                named(name, || {
                    while !(FRONT.is_locked() && BACK.is_locked()) {
                        std::thread::yield_now();
                    }
                    let _front = FRONT.lock();
                });
            }
        }
        "readers" => {
            named("teller", || {
                let _table = TABLE.read();
                BOTH.wait();
                let _back = BACK.lock();
            });
            named("auditor", || {
                let _back = BACK.lock();
                BOTH.wait();
                *TABLE.write() += 1;
            });
        }
        "onces" => {
            named("teller", || {
                ONE.call_once(|| {
                    BOTH.wait();
                    TWO.call_once(|| ());
                });
            });
            named("auditor", || {
                TWO.call_once(|| {
                    BOTH.wait();
                    ONE.call_once(|| ());
                });
            });
        }
        "written" => {
            named("teller", || {
                let _table = TABLE.write();
                BOTH.wait();
                let _back = BACK.lock();
            });
            named("auditor", || {
                let _back = BACK.lock();
                BOTH.wait();
                assert_eq!(*TABLE.read(), 1);
            });
        }
        _ => {
            named("sleeper", || {
                let _held = HELD.lock();
                READY.store(1, Ordering::Release);
                rest();
            });
            while READY.load(Ordering::Acquire) == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            named("patient", || drop(HELD.lock()));
            named("brief", || drop(HELD.lock_timeout(Duration::from_secs(3600))));
            named("notified", || COME.wait(&mut GUARD.lock()));
        }
    }
    rest();
}

/// Starts this program, which hangs in that way, in a process of its own. Returns `None`, with the
/// reason printed, where it may not be read.
fn start(test: &str, how: &str, program: &Path, sleepers: usize) -> Option<Hung> {
    let mut command = Command::new(program);
    command.args(["--exact", &format!("dump_own::{test}"), "--test-threads=1"]).env(HANG, how);
    let hung = Hung::start(&mut command);
    hung.settle(sleepers).then_some(hung)
}

fn me() -> PathBuf {
    if let Ok(how) = std::env::var(HANG) {
        hang(&how);
    }
    std::env::current_exe().expect("a test has a file")
}

#[test]
fn a_cycle_of_its_own_mutexes_is_a_deadlock() {
    let Some(hung) = start("a_cycle_of_its_own_mutexes_is_a_deadlock", "cycle", &me(), 3) else {
        return;
    };
    expect_deadlock(&hung, "command::dump_own::FRONT", "command::dump_own::BACK");
    let text = plain(&hung.dump(&[]).stdout);
    assert!(text.contains("command::dump_own::hang"), "{text}");
}

/// Dumps until `settled` says so: a waiter looks at its mutex in the first milliseconds, and later
/// again while another is the hand-off waiter: so not every look finds all of them asleep.
fn dump_until(hung: &Hung, settled: impl Fn(&Outcome) -> bool) -> Outcome {
    let mut outcome = hung.dump(&[]);
    for _ in 0..500 {
        if settled(&outcome) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        outcome = hung.dump(&[]);
    }
    outcome
}

fn expect_deadlock(hung: &Hung, front: &str, back: &str) {
    let outcome = dump_until(hung, |outcome| outcome.status == 3);
    assert_eq!(outcome.status, 3, "{outcome:?}");
    let text = plain(&outcome.stdout);
    assert!(text.contains("DEADLOCK: 2 threads wait for each other\n"), "{text}");
    for (waiter, waits, holds) in [("teller", back, front), ("auditor", front, back)] {
        let line = text
            .lines()
            .skip_while(|line| *line != format!("  thread \"{waiter}\""))
            .skip(1)
            .take_while(|line| line.starts_with("    "))
            .collect::<Vec<_>>();
        assert!(line[0].starts_with("    waits for ") && line[0].contains(waits), "{text}");
        let last = line.last().expect("what it holds");
        assert!(last.starts_with("    holds ") && last.contains(holds), "{text}");
    }
}

#[test]
fn a_cycle_of_waiters_that_look_from_time_to_time_is_a_deadlock() {
    let test = "a_cycle_of_waiters_that_look_from_time_to_time_is_a_deadlock";
    let Some(hung) = start(test, "crowd", &me(), 6) else { return };
    expect_deadlock(&hung, "command::dump_own::FRONT", "command::dump_own::BACK");
}

#[test]
fn a_cycle_with_a_time_limit_is_none() {
    let Some(hung) = start("a_cycle_with_a_time_limit_is_none", "limited", &me(), 6) else {
        return;
    };
    let there = |outcome: &Outcome| plain(&outcome.stdout).contains("thread \"hasty\"");
    let outcome = dump_until(&hung, there);
    assert!(there(&outcome), "{outcome:?}");
    for _ in 0..3 {
        let outcome = hung.dump(&[]);
        let text = plain(&outcome.stdout);
        assert!(outcome.status == 0 && !text.contains("DEADLOCK"), "{outcome:?}");
    }
}

#[test]
fn holders_of_its_other_locks_are_named() {
    let test = "holders_of_its_other_locks_are_named";
    for (how, lock) in [
        ("readers", "TABLE (lockstead rwlock)"),
        ("written", "TABLE (lockstead rwlock)"),
        ("onces", "ONE (lockstead once)"),
    ] {
        let Some(hung) = start(test, how, &me(), 3) else { return };
        let outcome = dump_until(&hung, |outcome| outcome.status == 3);
        let text = plain(&outcome.stdout);
        let of_teller = text
            .lines()
            .skip_while(|line| *line != "  thread \"teller\"")
            .skip(1)
            .take_while(|line| line.starts_with("    "));
        let wanted = format!("    holds command::dump_own::{lock}");
        let held = of_teller.filter(|line| line.starts_with(&wanted)).count();
        assert_eq!((outcome.status, held), (3, 1), "no {wanted:?} in {text}");
    }
}

#[test]
fn a_program_without_symbols_has_its_table_all_the_same() {
    let me = me();
    let folder = tempfile::tempdir().expect("a folder");
    let bare = folder.path().join("bare");
    match Command::new("strip").arg("-o").arg(&bare).arg(&me).status() {
        Ok(status) if status.success() => {}
        other => {
            eprintln!("skipped: no strip: {other:?}");
            return;
        }
    }
    let test = "a_program_without_symbols_has_its_table_all_the_same";
    let Some(hung) = start(test, "cycle", &bare, 3) else { return };
    expect_deadlock(&hung, "in bare+0x", "in bare+0x");
}

#[test]
fn owners_of_other_locks_are_not_guessed() {
    let test = "owners_of_other_locks_are_not_guessed";
    let Some(hung) = start(test, "waits", &me(), 4) else { return };
    let wanted = [
        "thread \"patient\" waits for lockstead mutex command::dump_own::HELD\n    held by thread \"sleeper\"",
        "thread \"brief\" waits for lockstead mutex command::dump_own::HELD",
        "thread \"notified\" waits for lockstead lock command::dump_own::COME\n    a lock of the crate \
         lockstead that names no owner",
        "thread \"sleeper\" holds lockstead mutex command::dump_own::HELD and is asleep in",
    ];
    let all = |outcome: &Outcome| wanted.iter().all(|w| plain(&outcome.stdout).contains(w));
    let outcome = dump_until(&hung, all);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let text = plain(&outcome.stdout);
    for words in wanted {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
}
