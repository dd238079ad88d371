//! `lockstead run --rust`: programs in Rust whose locks are seen, for they are built with a std and a
//! parking_lot that tell of them.

use crate::common::{Outcome, finish, lockstead};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Two threads, one after the other, that take the same two mutexes in two orders; and much else
/// that a program does with `std`, in all of its names.
const BANK: &str = r#"
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Condvar, LazyLock, Mutex, Once, OnceLock, RwLock, TryLockError, mpsc};
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

/// What is initialised under a mutex, and locks it in another thread's turn.
static RATES: LazyLock<u32> = LazyLock::new(|| *ACCOUNTS.lock().unwrap());
static BANKS: OnceLock<u32> = OnceLock::new();
static OPEN: Once = Once::new();

fn initialises() {
    thread::spawn(|| assert_eq!(*RATES, 1)).join().unwrap();
    let uses = || {
        let _accounts = ACCOUNTS.lock().unwrap();
        assert_eq!(*RATES, 1);
    };
    thread::spawn(uses).join().unwrap();
    // One order, and those who only look.
    let opens = || {
        let _journal = JOURNAL.lock().unwrap();
        OPEN.call_once(|| assert_eq!(*BANKS.get_or_init(|| 3), 3));
        assert!(OPEN.is_completed() && BANKS.set(4) == Err(4));
    };
    (0..2).for_each(|_| thread::spawn(opens).join().unwrap());
    assert_eq!((BANKS.get(), BANKS.clone().into_inner()), (Some(&3), Some(3)));
    // Drops and poisoning are those of the real ones.
    let token = Arc::new(5);
    let (used, unused) = (token.clone(), token.clone());
    let used = LazyLock::new(move || used);
    assert_eq!((format!("{used:?}").as_str(), **used), ("LazyLock(<uninit>)", 5));
    drop((used, LazyLock::<_, _>::new(move || unused)));
    assert_eq!(Arc::strong_count(&token), 1);
    let broken: LazyLock<u32> = LazyLock::new(|| std::panic::resume_unwind(Box::new(())));
    let force = || std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| *broken));
    assert!(force().is_err() && force().is_err());
}

/// A lock that a constant function drops, and a constant.
struct Options {
    limit: u32,
    lock: Mutex<u32>,
}

const DEFAULT: Options = Options { limit: 1, lock: Mutex::new(1) };

const fn limit(options: Options) -> Options {
    Options { limit: 2, lock: Mutex::new(options.limit), ..DEFAULT }
}

thread_local! {
    static FIRST: Uses = const { Uses };
    static LAST: Mutex<u32> = const { Mutex::new(1) };
}

/// Uses a lock of the thread when the thread's variables are destroyed.
struct Uses;

impl Drop for Uses {
    fn drop(&mut self) {
        LAST.with(|last| *last.lock().unwrap() += 1);
    }
}

/// Locks that change places: an order before and the other one afterwards are no inversion, for
/// these are other locks. Nor is one of a vector that was, and one of its heir's.
fn moves() {
    fn both(one: &Mutex<u32>, other: &Mutex<u32>) {
        let _held = (one.lock().unwrap(), other.lock().unwrap());
    }
    let mut locks = vec![Mutex::new(1), Mutex::new(2), Mutex::new(3)];
    thread::scope(|scope| drop(scope.spawn(|| both(&locks[0], &locks[1]))));
    locks.swap(0, 1);
    thread::scope(|scope| drop(scope.spawn(|| both(&locks[1], &locks[0]))));
    // Nor does who has leaked a guard hold the next lock at its place.
    std::mem::forget(locks[2].lock());
    locks.truncate(0);
    locks.extend((0..3).map(Mutex::new));
    drop(locks[2].lock().unwrap());
    thread::scope(|scope| drop(scope.spawn(|| both(&locks[0], &locks[1]))));
    locks.remove(0);
    thread::scope(|scope| drop(scope.spawn(|| both(&locks[1], &locks[0]))));
}

fn main() {
    moves();
    assert_eq!(limit(DEFAULT).limit, 2);
    thread::spawn(|| FIRST.with(|_| ())).join().unwrap();
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
    initialises();

    // Traits and results are those of the real ones.
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

/// What the same program does with parking_lot of both interfaces, where the registry has them: an
/// inversion in each, one of them with a mutex of `std`, and much that is none.
const LOTS: &str = r#"
macro_rules! lots {
    ($lot:ident) => {
        pub mod $lot {
            pub use $lot::{Condvar, FairMutex, Mutex, Once, RwLock, RwLockUpgradableReadGuard};
            use std::{thread, time::Duration};

            static OAK: Mutex<u32> = Mutex::new(0);
            static ELM: FairMutex<u32> = FairMutex::new(0);
            static PINE: std::sync::Mutex<u32> = std::sync::Mutex::new(0);
            static DONE: Mutex<bool> = Mutex::new(false);
            static COME: Condvar = Condvar::new();
            static TREES: RwLock<u32> = RwLock::new(0);
            static ROOT: RwLock<u32> = RwLock::new(0);
            static LEAF: Mutex<u32> = Mutex::new(0);

            fn after(work: fn()) {
                thread::spawn(work).join().unwrap();
            }

            pub fn inverts() {
                after(|| { let _oak = OAK.lock(); let _elm = ELM.lock(); });
                after(|| { let _elm = ELM.lock(); let _oak = OAK.lock(); });
            }

            pub fn inverts_with_std() {
                after(|| { let _pine = PINE.lock().unwrap(); let _oak = OAK.lock(); });
                after(|| { let _oak = OAK.lock(); let _pine = PINE.lock().unwrap(); });
            }

            pub fn inverts_upgradably() {
                after(|| { let _root = ROOT.upgradable_read(); let _leaf = LEAF.lock(); });
                after(|| { let _leaf = LEAF.lock(); let _root = ROOT.write(); });
            }

            static ONCE: Once = Once::new();

            pub fn inverts_with_a_once() {
                after(|| ONCE.call_once(|| drop(OAK.lock())));
                after(|| { let _oak = OAK.lock(); ONCE.call_once(|| ()); });
            }

            pub fn does_nothing_wrong() {
                // Who tries waits for nobody.
                after(|| { let _leaf = LEAF.lock(); let _elm = ELM.lock(); });
                after(|| { let _elm = ELM.lock(); let _leaf = LEAF.try_lock().unwrap(); });
                // A wait gives its mutex back.
                let waiter = thread::spawn(|| {
                    let mut done = DONE.lock();
                    while !*done { COME.wait(&mut done); }
                    assert!(COME.wait_for(&mut done, Duration::from_millis(1)).timed_out());
                });
                *DONE.lock() = true;
                COME.notify_all();
                waiter.join().unwrap();
                // Who reads passes who reads upgradably; becoming a writer is no second lock.
                after(|| { let _leaf = LEAF.lock(); let _trees = TREES.read(); });
                after(|| { let _trees = TREES.upgradable_read(); let _leaf = LEAF.lock(); });
                after(|| *RwLockUpgradableReadGuard::upgrade(TREES.upgradable_read()) += 1);
                // Locks that change places are others, and so are their rights to upgrade.
                let mut pair = [RwLock::new(0), RwLock::new(1)];
                thread::scope(|scope| drop(scope.spawn(|| {
                    let _held = (pair[0].upgradable_read(), LEAF.lock());
                })));
                pair.swap(0, 1);
                thread::scope(|scope| drop(scope.spawn(|| {
                    let _held = (LEAF.lock(), pair[0].write());
                })));
            }
        }
    };
}
lots!(lot_12);
lots!(lot_13);
pub fn run() {
    // A recursive reader waits for no writer that waits.
    static ALL: lot_12::RwLock<u32> = lot_12::RwLock::new(0);
    drop((ALL.read(), ALL.read_recursive()));
    lot_12::inverts();
    lot_12::does_nothing_wrong();
    lot_12::inverts_with_a_once();
    lot_13::inverts_with_std();
    lot_13::inverts_upgradably();
    lot_13::does_nothing_wrong();
}
"#;

const LOCKS_OF_LOTS: &str = "lot_12 = { package = \"parking_lot\", version = \"0.12\" }\n\
    lot_13 = { package = \"parking_lot\", version = \"0.13\" }\n";

/// Adds [`LOTS`] to the program; returns whether the registry's copies are there without a network.
fn add_lots(folder: &Path) -> bool {
    let manifest = folder.join("Cargo.toml");
    let before = fs::read_to_string(&manifest).expect("a manifest");
    fs::write(&manifest, format!("{before}[dependencies]\n{LOCKS_OF_LOTS}"))
        .expect("it is written");
    let fetch = Command::new("cargo").args(["fetch", "--offline"]).current_dir(folder).output();
    if !fetch.is_ok_and(|output| output.status.success()) {
        println!("skipped in part: no parking_lot without a network");
        fs::write(&manifest, before).expect("it is written");
        return false;
    }
    let main = BANK.replacen("fn main() {", "mod lots;\n\nfn main() {\n    lots::run();", 1);
    fs::write(folder.join("src/main.rs"), main).expect("it is written");
    fs::write(folder.join("src/lots.rs"), LOTS).expect("it is written");
    true
}

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
fn the_order_of_std_and_parking_lot_is_checked_without_a_change_of_the_source() {
    if !has_cargo() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "2021", BANK);
    let lots = add_lots(folder.path());
    let outcome = run(folder.path(), &["--check", "--rust"]);
    assert!(outcome.stdout.contains("done\n"), "{outcome:?}");
    assert_eq!(outcome.status, 3, "{outcome:?}");
    // As rustc names closures from 1.97 on.
    let text = &outcome.stderr.replace("{closure#0}", "{{closure}}");
    for words in [
        "POTENTIAL: lock order inversion of 2 locks",
        "thread \"audit\"",
        "asks for bank::ACCOUNTS (mutex), at:\n      bank::audit() at main.rs:",
        "holds bank::JOURNAL (mutex), acquired at:\n      bank::audit() at main.rs:",
        "asks for bank::RATES (once), at:\n      bank::initialises::{{closure}}() at main.rs:",
        "holds bank::RATES (once), acquired at:\n      bank::",
        if lots { "6 potential deadlocks" } else { "2 potential deadlocks" },
    ] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    let of_lots = [
        "asks for bank::lots::lot_12::OAK (mutex), at:\n      bank::lots::lot_12::inverts::",
        "holds bank::lots::lot_12::ELM (mutex), acquired at:\n      bank::lots::lot_12::inverts::",
        "asks for bank::lots::lot_12::ONCE (once), at:",
        "asks for bank::lots::lot_13::PINE (mutex), at:",
        "holds bank::lots::lot_13::ROOT+0x7 (rwlock), acquired at:",
    ];
    for words in of_lots.iter().filter(|_| lots) {
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
