//! Rings through upgradable readers: of parking_lot as it is, and of the crate that tells in its place.

use crate::dump::support::{Hung, plain};
use crate::own_run::{DO, named, run_again};
use std::process::Command;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

static TWO: Barrier = Barrier::new(2);
static THREE: Barrier = Barrier::new(3);

/// How long who keeps another one out sleeps: so long that what is told would have been reported.
const WORK: Duration = Duration::from_millis(600);
const FOREVER: Duration = Duration::from_secs(3600);

/// Has programs hang with the locks of one crate.
macro_rules! programs {
    ($module:ident, $locks:ident) => {
        mod $module {
            use super::{FOREVER, THREE, TWO, WORK, named, thread};
            use $locks::{Mutex, RwLock, RwLockUpgradableReadGuard as Upgradable};

            static TABLE: RwLock<u32> = RwLock::new(0);
            static JOURNAL: Mutex<u32> = Mutex::new(0);

            fn reads_first() {
                let held = TABLE.upgradable_read();
                TWO.wait();
                *JOURNAL.lock() += *held;
            }

            pub(super) fn act(how: &'static str) {
                let threads = match how {
                    "writer" => vec![
                        named("one", reads_first),
                        named("two", || {
                            let held = JOURNAL.lock();
                            TWO.wait();
                            *TABLE.write() += *held;
                        }),
                    ],
                    "like" => vec![
                        named("one", reads_first),
                        named("two", || {
                            let mut held = JOURNAL.lock();
                            TWO.wait();
                            *held += *TABLE.upgradable_read();
                        }),
                    ],
                    "upgrade" => vec![
                        named("one", || {
                            let held = JOURNAL.lock();
                            let reads = TABLE.upgradable_read();
                            TWO.wait();
                            *Upgradable::upgrade(reads) += *held;
                        }),
                        named("two", || {
                            let held = TABLE.read();
                            TWO.wait();
                            *JOURNAL.lock() += *held;
                        }),
                    ],
                    // A plain reader that waits in a ring with a thread that it does not keep out.
                    _ => vec![
                        named("one", move || {
                            let _held = TABLE.upgradable_read();
                            THREE.wait();
                            thread::sleep(if how == "stays" { FOREVER } else { WORK });
                        }),
                        named("two", || {
                            let mut held = JOURNAL.lock();
                            THREE.wait();
                            *held += *TABLE.upgradable_read();
                        }),
                        named("three", || {
                            let held = TABLE.read();
                            THREE.wait();
                            *JOURNAL.lock() += *held;
                        }),
                    ],
                };
                threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
            }
        }
    };
}

programs!(real, parking_lot);
programs!(told, lockstead_parking_lot);

/// Does what it says, if this is the program that is to.
fn acts() -> bool {
    let Ok(what) = std::env::var(DO) else { return false };
    let what: &'static str = what.leak();
    match what.split_once(' ') {
        Some(("real", how)) => real::act(how),
        Some((_, how)) => told::act(how),
        None => panic!("which locks?"),
    }
    true
}

/// Starts this program, to hang in that way, and returns when so many of its threads sleep; `None`
/// where one may not look.
fn hang(test: &str, how: &str, sleepers: usize) -> Option<Hung> {
    let me = std::env::current_exe().expect("a test has a file");
    let mut command = Command::new(me);
    let test = format!("upgradable::{test}");
    command.args(["--exact", &test, "--test-threads=1"]).env(DO, format!("real {how}"));
    let hung = Hung::start(&mut command);
    hung.settle(sleepers).then_some(hung)
}

/// Returns the exit status of `lockstead dump` of that program, and what it says.
fn dump(hung: &Hung) -> (i32, String) {
    let outcome = hung.dump(&[]);
    (outcome.status, plain(&outcome.stdout))
}

#[test]
fn an_upgradable_reader_is_named_by_its_landing_pad() {
    if acts() {
        return;
    }
    let test = "an_upgradable_reader_is_named_by_its_landing_pad";
    for (how, holds) in [
        ("writer", "would unlock it, an upgradable read"),
        ("like", "would unlock it, an upgradable read"),
        ("upgrade", "would unlock it\n"),
    ] {
        let Some(hung) = hang(test, how, 4) else { return };
        let (status, text) = dump(&hung);
        assert_eq!(status, 3, "{how}: {text}");
        let (_, ring) = text.split_once("DEADLOCK: 2 threads wait for each other").expect(&text);
        assert!(ring.contains("parking_lot RwLock") && ring.contains(holds), "{how}: {text}");
    }
}

fn run(test: &str, what: &str) -> crate::common::Outcome {
    let flags = ["--no-report", "--on-deadlock=kill"];
    run_again(&format!("upgradable::{test}"), what, &flags, None)
}

#[test]
fn a_ring_through_the_right_to_upgrade_is_reported_as_it_closes() {
    if acts() {
        return;
    }
    let test = "a_ring_through_the_right_to_upgrade_is_reported_as_it_closes";
    for (how, waits) in [
        ("writer", "waits to write upgradable::told::TABLE (writers-first rwlock)"),
        ("like", "waits to read upgradable::told::TABLE (writers-first rwlock)"),
        ("upgrade", "waits to write upgradable::told::TABLE (writers-first rwlock)"),
    ] {
        let outcome = run(test, &format!("told {how}"));
        let text = &outcome.stderr;
        assert_eq!(outcome.status, 3, "{how}: {text}");
        assert!(text.contains("DEADLOCK: 2 threads wait for each other"), "{how}: {text}");
        let holds = "holds command::upgradable::told::TABLE (writers-first rwlock) for reading, acquired at:";
        let waits = waits.replace("upgradable::", "command::upgradable::");
        assert!(text.contains(&waits) && text.contains(holds), "{how}: {text}");
    }
}

#[test]
fn who_waits_for_an_upgradable_reader_waits_for_no_plain_one() {
    if acts() {
        return;
    }
    let test = "who_waits_for_an_upgradable_reader_waits_for_no_plain_one";
    let outcome = run(test, "told lets in");
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(!outcome.stderr.contains("DEADLOCK"), "{}", outcome.stderr);
    let Some(hung) = hang(test, "stays", 4) else { return };
    // As many sleep while two of the three wait at the barrier.
    hung.await_shown("thread \"two\" waits for parking_lot RwLock");
    hung.await_shown("thread \"three\" waits for parking_lot Mutex");
    let (status, text) = dump(&hung);
    assert_eq!(status, 0, "{text}");
    for reader in ["thread \"one\"", "thread \"three\""] {
        assert!(text.contains(reader), "no {reader} in {text}");
    }
}
