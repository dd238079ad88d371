//! `lockstead run` on programs whose locks lie in segments of lockstead's: they tell the ledger of their
//! waits, and the segment has who holds them.

use crate::common::Outcome;
use crate::own_run::{DO, beside_child, named, run_again};
use lockstead::shared::{
    OnDeath, Segment, SegmentOptions, Shareable, SharedCondvar, SharedMutex, SharedRwLock,
    SharedSemaphore,
};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

#[derive(Shareable)]
#[repr(C)]
struct Shop {
    orders: SharedMutex<u64>,
    ledger: SharedMutex<u64>,
    shelves: [SharedRwLock<u64>; 2],
    carts: SharedSemaphore,
    come: SharedCondvar,
}

/// Creates the segment in this folder, which stays mapped as long as the process.
fn shop(folder: &Path) -> &'static Shop {
    let options = SegmentOptions::new();
    let segment = Segment::<Shop>::create_with(folder.join("shop"), &options, |shop| {
        shop.carts = SharedSemaphore::new(0, OnDeath::Return);
    });
    Box::leak(Box::new(segment.expect("a segment"))).root()
}

fn until(come: impl Fn() -> bool) {
    while !come() {
        thread::yield_now();
    }
}

/// Has one thread wait for something that this one gives once that sleeps.
fn waits(wait: impl FnOnce() + Send + 'static, give: impl FnOnce()) {
    let number = Arc::new(AtomicI32::new(0));
    let told = number.clone();
    let waiter = named("waiter", move || {
        // SAFETY: the call takes nothing and cannot fail.
        told.store(unsafe { libc::gettid() }, Ordering::Relaxed);
        wait();
    });
    let is_asleep = |tid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat"));
        stat.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S')))
    };
    until(|| is_asleep(number.load(Ordering::Relaxed)));
    give();
    waiter.join().expect("it ends");
}

/// Does one of the things that the tests below look at, in a process of its own.
fn act(what: &str) {
    let (what, folder) = what.split_once(' ').expect("what to do, and where");
    let shop = shop(Path::new(folder));
    let got = "it lies in its segment";
    match what {
        "waits" => {
            let held = shop.orders.lock().expect(got);
            waits(|| drop(shop.orders.lock()), || drop(held));
            let held = shop.shelves[0].write().expect(got);
            waits(|| drop(shop.shelves[0].read()), || drop(held));
            let held = shop.shelves[1].read().expect(got);
            waits(|| drop(shop.shelves[1].write()), || drop(held));
            waits(|| drop(shop.carts.acquire(1)), || assert!(shop.carts.add(1).expect(got)));
            let held = shop.ledger.lock().expect(got).acquired().expect("nobody died");
            drop(shop.come.wait_timeout(held, Duration::from_millis(30)));
        }
        "mutexes" => beside_child(
            || {
                let _held = shop.ledger.lock();
                until(|| shop.orders.is_locked());
                drop(shop.orders.lock());
            },
            || {
                let _held = shop.orders.lock();
                until(|| shop.ledger.is_locked());
                drop(shop.ledger.lock());
            },
        ),
        "readers" => beside_child(
            || {
                let _held = shop.orders.lock();
                until(|| shop.ledger.is_locked());
                drop(shop.shelves[1].write());
            },
            || {
                let _held = shop.shelves[1].read();
                let _ready = shop.ledger.lock();
                until(|| shop.orders.is_locked());
                drop(shop.orders.lock());
            },
        ),
        "threads" => {
            let other = named("other", || {
                let _held = shop.ledger.lock();
                until(|| shop.orders.is_locked());
                drop(shop.orders.lock());
            });
            let _held = shop.orders.lock();
            until(|| shop.ledger.is_locked());
            drop(shop.ledger.lock());
            let _ = other.join();
        }
        "killed" => beside_child(
            || {
                let _held = shop.orders.lock();
                named("murderer", || {
                    thread::sleep(Duration::from_millis(30));
                    // SAFETY: the process ends itself, in the middle of a wait.
                    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
                });
                drop(shop.carts.acquire(1));
            },
            || {
                until(|| shop.orders.is_locked());
                drop(shop.orders.lock());
            },
        ),
        other => panic!("nobody does {other}"),
    }
}

/// Runs this program again, if it is not that run itself.
fn under_run(test: &str, what: &str, flags: &[&str]) -> Option<Outcome> {
    if let Ok(what) = std::env::var(DO) {
        act(&what);
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let what = format!("{what} {}", folder.path().display());
    Some(run_again(&format!("shared_run::{test}"), &what, flags, None))
}

/// Returns the rows of all processes of a report.
fn rows(file: &Path) -> Vec<Value> {
    let report = std::fs::read(file).expect("a report");
    let report: Value = serde_json::from_slice(&report).expect("it is JSON");
    let processes = report["processes"].as_array().expect("processes").iter();
    let rows = |process: &Value, of: &str| process[of].as_array().cloned().unwrap_or_default();
    processes.flat_map(|process| [rows(process, "locks"), rows(process, "idle")].concat()).collect()
}

#[test]
fn each_wait_for_a_lock_of_a_segment_is_in_the_report_by_the_name_of_the_lock() {
    let test = "each_wait_for_a_lock_of_a_segment_is_in_the_report_by_the_name_of_the_lock";
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.json");
    let flag = format!("--json={}", file.display());
    let Some(outcome) = under_run(test, "waits", &[&flag]) else { return };
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let rows = rows(&file);
    for (name, kind) in [
        ("orders in shop", "mutex"),
        ("shelves[0] in shop", "rwlock"),
        ("shelves[1] in shop", "rwlock"),
        ("carts in shop", "semaphore"),
        ("come in shop", "condition"),
    ] {
        let row = rows.iter().find(|row| row["name"] == name);
        let row = row.unwrap_or_else(|| panic!("no {name} in {rows:#?}"));
        assert_eq!((&row["kind"], &row["wait"]["count"]), (&kind.into(), &1.into()), "{row:#}");
        assert!(row["wait"]["total_ns"].as_u64() > Some(0), "{row:#}");
        assert!(row["waited_at"][0].to_string().contains("shared_run::act"), "{row:#}");
    }
}

/// Runs a ring, and returns what was said of it.
fn ring(test: &str, what: &str) -> Option<String> {
    let outcome = under_run(test, what, &["--no-report", "--on-deadlock=kill"])?;
    assert_eq!(outcome.status, 3, "{outcome:?}");
    Some(outcome.stderr)
}

fn expect(text: &str, place: &str, words: &[&str]) {
    let head = format!("DEADLOCK: 2 threads wait for each other, in {place}");
    assert!(text.contains(&head), "no {head:?} in {text}");
    for words in words {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
}

#[test]
fn a_ring_of_mutexes_between_processes_is_a_deadlock_by_their_words() {
    let test = "a_ring_of_mutexes_between_processes_is_a_deadlock_by_their_words";
    let Some(text) = ring(test, "mutexes") else { return };
    let words = ["waits for ledger in shop", "holds orders in shop", ", as its word says"];
    expect(&text, "2 processes", &words);
}

#[test]
fn a_reader_of_another_process_is_named_by_its_claim() {
    let test = "a_reader_of_another_process_is_named_by_its_claim";
    let Some(text) = ring(test, "readers") else { return };
    let words = ["waits to write shelves[1] in shop", "holds shelves[1] in shop", " for reading"];
    expect(&text, "2 processes", &words);
}

#[test]
fn a_ring_over_locks_of_a_segment_may_stay_in_one_process() {
    let test = "a_ring_over_locks_of_a_segment_may_stay_in_one_process";
    let Some(text) = ring(test, "threads") else { return };
    expect(&text, "command", &["waits for ledger in shop", "holds ledger in shop"]);
}

#[test]
fn who_is_killed_in_a_wait_leaves_its_locks_and_the_report_in_order() {
    let test = "who_is_killed_in_a_wait_leaves_its_locks_and_the_report_in_order";
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.json");
    let flag = format!("--json={}", file.display());
    let Some(outcome) = under_run(test, "killed", &[&flag]) else { return };
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(!outcome.stderr.contains("DEADLOCK"), "{}", outcome.stderr);
    let rows = rows(&file);
    let waits = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name && row["kind"] != "unknown");
        row.map(|row| row["wait"]["count"].clone())
    };
    assert_eq!(waits("orders in shop"), Some(1.into()), "{rows:#?}");
}
