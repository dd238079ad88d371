//! `lockstead run` on a program whose locks are lockstead's own: they tell the ledger of their
//! waits, and their words name the owners.

use crate::common::{Outcome, lockstead};
use lockstead::{BiasedMutex, Condvar, NamedMutex, NamedRwLock, Once, RwLock, Semaphore};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// Has this very program do what it says.
pub(crate) const DO: &str = "LOCKSTEAD_TEST_OWN_RUN";

static ACCOUNTS: NamedMutex<u32> = NamedMutex::named("accounts of everybody", 0);
static JOURNAL: lockstead::Mutex<u32> = lockstead::Mutex::new(0);
static ROUTES: NamedRwLock<u32> = NamedRwLock::named("routes", 0);
static TABLE: RwLock<u32> = RwLock::new(0);
static DESK: BiasedMutex<u32> = BiasedMutex::new(0);
static PERMITS: Semaphore = Semaphore::new(0);
static COME: Condvar = Condvar::new();
static ONCE: Once = Once::new();
static BOTH: Barrier = Barrier::new(2);

pub(crate) fn named(name: &str, body: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    thread::Builder::new().name(name.into()).spawn(body).expect("a thread")
}

/// Does one of the things that the tests below look at, in a process of its own.
fn act(what: &str) {
    let pair = |first: fn(), second: fn()| {
        let (one, other) = (named("first", first), named("second", second));
        let _ = (one.join(), other.join());
    };
    match what {
        "mutexes" => pair(
            || {
                let _held = ACCOUNTS.lock();
                BOTH.wait();
                drop(JOURNAL.lock());
            },
            || {
                let _held = JOURNAL.lock();
                BOTH.wait();
                drop(ACCOUNTS.lock());
            },
        ),
        "rwlocks" => pair(
            || {
                let _held = ROUTES.write();
                BOTH.wait();
                drop(TABLE.read());
            },
            || {
                let _held = TABLE.write();
                BOTH.wait();
                drop(ROUTES.write());
            },
        ),
        // The first thread to come is the one that the mutex belongs to.
        "biased" => pair(
            || {
                let _held = DESK.lock();
                BOTH.wait();
                drop(JOURNAL.lock());
            },
            || {
                let _held = JOURNAL.lock();
                BOTH.wait();
                drop(DESK.lock());
            },
        ),
        "readers" => pair(
            || {
                let _held = TABLE.read();
                BOTH.wait();
                drop(JOURNAL.lock());
            },
            || {
                let _held = JOURNAL.lock();
                BOTH.wait();
                drop(TABLE.write());
            },
        ),
        "once" => pair(
            || {
                ONCE.call_once(|| {
                    BOTH.wait();
                    drop(ACCOUNTS.lock());
                });
            },
            || {
                let _held = ACCOUNTS.lock();
                BOTH.wait();
                ONCE.call_once(|| {});
            },
        ),
        "mixed" => {
            static PLAIN: PosixMutex = PosixMutex::new();
            pair(
                || {
                    PLAIN.lock();
                    BOTH.wait();
                    drop(ACCOUNTS.lock());
                },
                || {
                    let _held = ACCOUNTS.lock();
                    BOTH.wait();
                    PLAIN.lock();
                },
            );
        }
        _ => waits(),
    }
}

/// A mutex of glibc's, which the library under the program sees.
struct PosixMutex(std::cell::UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: it is used through the C library alone, which makes it safe for all threads.
unsafe impl Sync for PosixMutex {}

impl PosixMutex {
    const fn new() -> PosixMutex {
        PosixMutex(std::cell::UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }

    fn lock(&self) {
        // SAFETY: the mutex is initialised and never moves, for it is a static.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
    }
}

/// Waits for one lock of each kind, once, each until it is released.
fn waits() {
    static WAITING: AtomicU32 = AtomicU32::new(0);
    // As long as the lock is held, nobody gets it without waiting.
    let soon = || thread::sleep(Duration::from_millis(30));
    let coming = || {
        while WAITING.swap(0, Ordering::AcqRel) == 0 {
            thread::yield_now();
        }
    };
    let held = ACCOUNTS.lock();
    let waiter = named("waiter", || {
        WAITING.store(1, Ordering::Release);
        drop(ACCOUNTS.lock());
    });
    coming();
    soon();
    drop(held);
    waiter.join().expect("it ends");
    let held = ROUTES.write();
    let reader = named("reader", || {
        WAITING.store(1, Ordering::Release);
        drop(ROUTES.read());
    });
    coming();
    soon();
    drop(held);
    reader.join().expect("it ends");
    let taker = named("taker", || PERMITS.down());
    soon();
    PERMITS.up();
    taker.join().expect("it ends");
    let mut guard = JOURNAL.lock();
    let _ = COME.wait_timeout(&mut guard, Duration::from_millis(30));
}

/// Runs this program again under `lockstead run`, if it is not that run itself.
fn under_run(test: &str, what: &str, flags: &[&str], program: Option<PathBuf>) -> Option<Outcome> {
    if let Ok(what) = std::env::var(DO) {
        act(&what);
        return None;
    }
    Some(run_again(&format!("own_run::{test}"), what, flags, program))
}

/// Runs this program, or a copy of it, under `lockstead run`, to do in that test what [`DO`] says.
pub(crate) fn run_again(
    test: &str,
    what: &str,
    flags: &[&str],
    program: Option<PathBuf>,
) -> Outcome {
    let program = program.unwrap_or_else(|| std::env::current_exe().expect("a test has a file"));
    let program = program.to_str().expect("a path in UTF-8").to_owned();
    let mut command = lockstead(&[]);
    command.arg("run").args(flags).arg("--").arg(program);
    command.args(["--exact", test, "--test-threads=1"]).env(DO, what);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    crate::common::finish(child)
}

/// Runs a cycle to its end, and returns what was said of it.
fn deadlock(test: &str, what: &str, program: Option<PathBuf>) -> Option<String> {
    let outcome = under_run(test, what, &["--no-report", "--on-deadlock=kill"], program)?;
    assert_eq!(outcome.status, 3, "{outcome:?}");
    Some(outcome.stderr)
}

fn expect(text: &str, words: &[&str]) {
    assert!(text.contains("DEADLOCK: 2 threads wait for each other"), "{text}");
    for words in words {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
}

#[test]
fn a_cycle_of_mutexes_is_a_deadlock_by_their_words() {
    let test = "a_cycle_of_mutexes_is_a_deadlock_by_their_words";
    let Some(text) = deadlock(test, "mutexes", None) else { return };
    let accounts = "accounts of everybody (lockstead mutex)";
    expect(
        &text,
        &[
            &format!("waits for {accounts}, since "),
            &format!("holds {accounts}, as its word says"),
            "holds command::own_run::JOURNAL (lockstead mutex), as its word says",
            "thread \"second\"",
            "own_run::act",
        ],
    );
}

#[test]
fn a_picture_of_the_threads_names_the_owners_as_well() {
    let test = "a_picture_of_the_threads_names_the_owners_as_well";
    let flags = ["--no-report", "--hang-after=800ms", "--on-hang=abort"];
    let Some(outcome) = under_run(test, "mutexes", &flags, None) else { return };
    assert_eq!(outcome.status, 4, "{outcome:?}");
    let (_, picture) = outcome.stderr.split_once("lockstead: HANG").expect("it hangs");
    for owner in ["first", "second"] {
        let (_, member) = picture.split_once(&format!("thread \"{owner}\" (tid ")).expect(picture);
        let holds = member.lines().find(|line| line.contains(" holds ")).expect(picture);
        assert!(holds.ends_with("(lockstead mutex), as its word says"), "{picture}");
    }
}

#[test]
fn writers_are_named_by_the_words_of_their_locks() {
    let test = "writers_are_named_by_the_words_of_their_locks";
    let Some(text) = deadlock(test, "rwlocks", None) else { return };
    expect(
        &text,
        &[
            "waits to read command::own_run::TABLE (lockstead rwlock)",
            "waits to write routes (lockstead rwlock)",
            "holds routes (lockstead rwlock), as its word says",
        ],
    );
}

#[test]
fn who_a_biased_mutex_belongs_to_is_named_while_it_holds_it() {
    let test = "who_a_biased_mutex_belongs_to_is_named_while_it_holds_it";
    let Some(text) = deadlock(test, "biased", None) else { return };
    expect(&text, &["holds command::own_run::DESK (lockstead mutex), as its word says"]);
}

/// In a process whose threads sleep for nothing but the ring, or go on, so that it is the ring that is
/// news: this program's own threads, which wait for its tests, stay behind.
#[test]
fn a_reader_of_a_ring_is_named_by_its_landing_pad_while_the_program_goes_on() {
    let test = "a_reader_of_a_ring_is_named_by_its_landing_pad_while_the_program_goes_on";
    if let Ok(what) = std::env::var(DO) {
        return in_child(|| {
            named("busy", || {
                loop {
                    thread::sleep(Duration::from_millis(20));
                }
            });
            act(&what);
        });
    }
    let flags = ["--no-report", "--on-deadlock=kill"];
    let Some(outcome) = under_run(test, "readers", &flags, None) else { return };
    expect(
        &outcome.stderr,
        &[
            "waits to write command::own_run::TABLE (lockstead rwlock), since ",
            "holds command::own_run::TABLE (lockstead rwlock) for reading\n      pad: the landing pad of",
            "holds command::own_run::JOURNAL (lockstead mutex), as its word says",
        ],
    );
}

/// Does something in a forked child, and waits for its end, by whatever.
pub(crate) fn in_child(body: impl FnOnce()) {
    beside_child(body, || ());
}

/// Does one thing in a forked child, and another beside it; waits for the end of the child, by whatever.
pub(crate) fn beside_child(body: impl FnOnce(), beside: impl FnOnce()) {
    // SAFETY: the child has one thread, and uses nothing that another one may have locked but the
    // allocator, which the C library keeps in order across a fork.
    let child = unsafe { libc::fork() };
    if child == 0 {
        body();
        std::process::exit(0);
    }
    beside();
    // SAFETY: waits for the child, and writes nothing.
    let ended = unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    assert_eq!(ended, child);
}

#[test]
fn a_once_is_held_by_the_thread_that_has_the_turn() {
    let test = "a_once_is_held_by_the_thread_that_has_the_turn";
    let Some(text) = deadlock(test, "once", None) else { return };
    expect(&text, &["holds command::own_run::ONCE (lockstead once), as its word says"]);
}

#[test]
fn a_cycle_may_lead_through_locks_of_two_libraries() {
    let test = "a_cycle_may_lead_through_locks_of_two_libraries";
    let Some(text) = deadlock(test, "mixed", None) else { return };
    expect(&text, &["(lockstead mutex), as its word says", "PLAIN (mutex), acquired at:"]);
}

#[test]
fn a_program_without_symbols_has_its_owners_all_the_same() {
    let test = "a_program_without_symbols_has_its_owners_all_the_same";
    if std::env::var_os(DO).is_some() {
        return act("mutexes");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let bare = folder.path().join("bare");
    let me = std::env::current_exe().expect("a test has a file");
    match Command::new("strip").arg("-o").arg(&bare).arg(me).status() {
        Ok(status) if status.success() => {}
        other => {
            println!("skipped: no strip: {other:?}");
            return;
        }
    }
    let Some(text) = deadlock(test, "mutexes", Some(bare)) else { return };
    expect(&text, &["holds accounts of everybody (lockstead mutex), as its word says"]);
}

#[test]
fn a_wait_is_one_wait_however_often_the_thread_sleeps() {
    let test = "a_wait_is_one_wait_however_often_the_thread_sleeps";
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.json");
    let flag = format!("--json={}", file.display());
    let Some(outcome) = under_run(test, "waits", &["--no-report", &flag], None) else { return };
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let report: Value =
        serde_json::from_slice(&std::fs::read(&file).expect("a report")).expect("it is JSON");
    let rows = |of: &str| report["processes"][0][of].as_array().expect("rows").clone();
    let locks = [rows("locks"), rows("idle")].concat();
    let row = |name: &str| {
        let of_name = |row: &&Value| row["name"].as_str().is_some_and(|found| found == name);
        locks.iter().find(of_name).unwrap_or_else(|| {
            let names: Vec<&Value> = locks.iter().map(|row| &row["name"]).collect();
            panic!("no {name} in {names:?}")
        })
    };
    for (name, kind) in [
        ("accounts of everybody", "mutex"),
        ("routes", "rwlock"),
        ("command::own_run::PERMITS", "semaphore"),
        ("command::own_run::COME", "condition"),
    ] {
        let row = row(name);
        assert_eq!(row["kind"], kind, "{row:#}");
        let waits = row["wait"]["count"].as_u64().expect("a number");
        assert_eq!(waits, 1, "{row:#}");
        assert!(row["wait"]["total_ns"].as_u64() > Some(20_000_000), "{row:#}");
    }
}
