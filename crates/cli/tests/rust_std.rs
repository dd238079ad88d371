//! `lockstead run --rust`: programs in Rust whose std locks are seen, for they are built with a std
//! that tells of them.

use crate::common::{Outcome, finish, lockstead};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Two threads, one after the other, that take the same two mutexes in two orders; and much else
/// that a program does with `std`, in all of its names.
const BANK: &str = r#"
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, RwLock, TryLockError, mpsc};
use std::thread;
use std::time::Duration;

static ACCOUNTS: Mutex<u32> = Mutex::new(0);
static JOURNAL: std::sync::Mutex<u32> = ::std::sync::Mutex::new(0);
thread_local! {
    static CACHE: Mutex<u32> = const { Mutex::new(1) };
}

trait Balance {
    fn balance(&self) -> u32;
}

impl Balance for u32 {
    fn balance(&self) -> u32 {
        *self
    }
}

#[derive(Debug, Default)]
struct Shared {
    table: RwLock<HashMap<u32, u32>>,
    ready: Mutex<bool>,
    come: Condvar,
}

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.table.read().unwrap().len())
    }
}

fn transfer() {
    let mut accounts = ACCOUNTS.lock().unwrap();
    let mut journal = JOURNAL.lock().unwrap();
    (*accounts, *journal) = (*accounts + 1, *journal + 1);
}

fn audit() {
    let journal = JOURNAL.lock().unwrap();
    let accounts = ACCOUNTS.lock().unwrap();
    assert_eq!(*journal, *accounts);
}

fn main() {
    let shared = Arc::new(Shared::default());
    let (sender, receiver) = mpsc::channel();
    let other = shared.clone();
    let worker = thread::Builder::new().name("transfer".into()).spawn(move || {
        transfer();
        other.table.write().unwrap().insert(1, 2);
        *other.ready.lock().unwrap() = true;
        other.come.notify_all();
        sender.send(7).unwrap();
    });
    let mut ready = shared.ready.lock().unwrap();
    while !*ready {
        ready = shared.come.wait(ready).unwrap();
    }
    drop(ready);
    worker.unwrap().join().unwrap();
    thread::Builder::new().name("audit".into()).spawn(audit).unwrap().join().unwrap();
    assert_eq!((receiver.recv(), shared.to_string()), (Ok(7), "1".to_owned()));

    // Sizes, traits and results are those of the real ones.
    assert_eq!((size_of::<Mutex<u64>>(), size_of::<RwLock<u64>>()), (16, 24));
    let dynamic: Arc<Mutex<dyn Balance + Send>> = Arc::new(Mutex::new(5_u32));
    assert_eq!(dynamic.lock().unwrap().balance(), 5);
    assert!(format!("{:?}", Mutex::new(3)).starts_with("Mutex { data: 3, poisoned: false"));
    CACHE.with(|cache| assert_eq!(*cache.lock().unwrap(), 1));
    let broken = Arc::new(Mutex::new(1));
    let breaker = broken.clone();
    let _ = thread::spawn(move || {
        let _held = breaker.lock();
        std::panic::resume_unwind(Box::new(()));
    })
    .join();
    assert!(broken.is_poisoned() && broken.lock().is_err());
    assert!(matches!(broken.try_lock(), Err(TryLockError::Poisoned(_))));
    let mine = Mutex::new(2);
    let held = mine.lock().unwrap();
    assert!(matches!(mine.try_lock(), Err(TryLockError::WouldBlock)));
    let (held, timed) = shared.come.wait_timeout(held, Duration::from_millis(1)).unwrap();
    assert!(timed.timed_out());
    let never = shared.come.wait_timeout_while(held, Duration::from_millis(1), |_| false).unwrap();
    assert!(!never.1.timed_out());
    drop(never);
    let late = mine.lock().unwrap();
    let late = shared.come.wait_timeout_while(late, Duration::from_millis(1), |_| true).unwrap();
    assert!(late.1.timed_out());
    drop(late);
    assert_eq!(mine.into_inner().unwrap(), 2);
    println!("done");
}
"#;

/// Returns whether there is a cargo that can be started.
fn has_cargo() -> bool {
    let found = Command::new("cargo").arg("--version").output().is_ok_and(|o| o.status.success());
    if !found {
        println!("skipped: no cargo to start");
    }
    found
}

fn write(folder: &Path, edition: &str, source: &str) {
    fs::create_dir_all(folder.join("src")).expect("a folder");
    let manifest = format!(
        "[package]\nname = \"bank\"\nversion = \"0.1.0\"\nedition = \"{edition}\"\n[workspace]\n"
    );
    fs::write(folder.join("Cargo.toml"), manifest).expect("it is written");
    fs::write(folder.join("src/main.rs"), source).expect("it is written");
}

fn run(folder: &Path, flags: &[&str]) -> Outcome {
    let mut command = lockstead(&["run", "--no-report"]);
    command.args(flags).args(["--", "cargo", "run", "--offline", "--quiet"]);
    // A target folder of this build's own would be taken for the user's.
    command.env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS").current_dir(folder);
    finish(command.spawn().expect("it starts"))
}

#[test]
fn the_order_of_std_mutexes_is_checked_without_a_change_of_the_source() {
    if !has_cargo() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "2021", BANK);
    let outcome = run(folder.path(), &["--check", "--rust"]);
    assert!(outcome.stdout.contains("done\n"), "{outcome:?}");
    assert_eq!(outcome.status, 3, "{outcome:?}");
    let text = &outcome.stderr;
    for words in [
        "POTENTIAL: lock order inversion of 2 locks",
        "thread \"audit\"",
        "asks for bank::ACCOUNTS (mutex), at:\n      bank::audit() at main.rs:",
        "holds bank::JOURNAL (mutex), acquired at:\n      bank::audit() at main.rs:",
        "1 potential deadlock",
    ] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    assert!(!text.contains("RULE"), "{text}");
    assert!(!text.contains("not seen:"), "{text}");
    // What was built so lies apart, and another build is as it would have been.
    assert!(folder.path().join("target/lockstead/debug/bank").exists());
    assert!(!folder.path().join("target/debug").exists());
}

#[test]
fn a_check_says_which_programs_have_locks_that_it_did_not_see() {
    if !has_cargo() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "2024", BANK);
    let outcome = run(folder.path(), &["--check"]);
    assert!(outcome.stdout.contains("done\n"), "{outcome:?}");
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let said = "not seen: locks of Rust's std in bank: run `--rust -- cargo ...` to have them seen";
    assert!(outcome.stderr.contains(said), "{outcome:?}");
}
