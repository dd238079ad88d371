//! Threads that hang on std's mutexes, or wait for them; built by rustc alone.

use std::cell::UnsafeCell;
use std::sync::{Arc, Barrier, Condvar, Mutex, RwLock};
use std::thread;

struct Accounts {
    savings: Mutex<i64>,
    current: Mutex<i64>,
}

/// A mutex of the C library.
struct Posix(UnsafeCell<[u64; 8]>);

unsafe impl Sync for Posix {}

// A cancelled thread unwinds from there, so that the guards of its caller have landing pads.
unsafe extern "C-unwind" {
    fn pthread_mutex_lock(mutex: *mut [u64; 8]) -> i32;
}

static LEDGER: Posix = Posix(UnsafeCell::new([0; 8]));
static VAULT: Mutex<i64> = Mutex::new(0);

#[inline(never)]
fn save(accounts: &Accounts, both: &Barrier) {
    let mut current = accounts.current.lock().unwrap();
    both.wait();
    let mut savings = accounts.savings.lock().unwrap(); // @saves
    *current -= 1;
    *savings += 1;
}

#[inline(never)]
fn spend(accounts: &Accounts, both: &Barrier) {
    let mut savings = accounts.savings.lock().unwrap();
    both.wait();
    let mut current = accounts.current.lock().unwrap(); // @spends
    *savings -= 1;
    *current += 1;
}

#[inline(never)]
fn book(both: &Barrier) {
    unsafe { pthread_mutex_lock(LEDGER.0.get()) };
    both.wait();
    *VAULT.lock().unwrap() += 1; // @books
}

#[inline(never)]
fn open(both: &Barrier) {
    let mut vault = VAULT.lock().unwrap();
    both.wait();
    unsafe { pthread_mutex_lock(LEDGER.0.get()) }; // @opens
    *vault += 1;
}

/// Returns once so many threads sleep on the word at this address.
fn await_sleepers(word: usize, sleepers: usize) {
    let are_there = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let calls = tasks
            .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("syscall")).ok());
        let word = format!("0x{word:x}");
        let futex = if cfg!(target_arch = "x86_64") { "202 " } else { "98 " };
        calls.filter(|call| call.starts_with(futex) && call.contains(&word)).count() == sleepers
    };
    while !are_there() {
        thread::yield_now();
    }
}

/// Waits for the vault, which it never gives back: no code of its frames would release it.
#[inline(never)]
fn waited(accounts: &Accounts) {
    std::mem::forget(VAULT.lock().unwrap()); // @waited
    *accounts.savings.lock().unwrap() += 1;
}

fn named(name: &str, work: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    thread::Builder::new().name(name.into()).spawn(work).unwrap()
}

fn main() {
    let what = std::env::args().nth(1).unwrap_or_default();
    let both = Arc::new(Barrier::new(2));
    let other = both.clone();
    let threads = match what.as_str() {
        "abba" => {
            let accounts = Accounts { savings: Mutex::new(1), current: Mutex::new(1) };
            let accounts = Arc::new(accounts);
            let same = accounts.clone();
            [
                named("saver", move || save(&accounts, &both)),
                named("spender", move || spend(&same, &other)),
            ]
        }
        "mixed" => [named("booker", move || book(&both)), named("opener", move || open(&other))],
        // One has come by the vault after waiting for it, the other has the accounts.
        "waited" => {
            let accounts = Accounts { savings: Mutex::new(1), current: Mutex::new(1) };
            let accounts = Arc::new(accounts);
            let same = accounts.clone();
            let vault = VAULT.lock().unwrap();
            let first = named("waited", move || waited(&same));
            await_sleepers(&raw const VAULT as usize, 1);
            let second = named("first", move || {
                let mut savings = accounts.savings.lock().unwrap();
                both.wait();
                await_sleepers(&raw const accounts.savings as usize, 1);
                *savings += *VAULT.lock().unwrap();
            });
            other.wait();
            drop(vault);
            [first, second]
        }
        // Two readers wait for a writer: nothing but their stacks tells that it is for a lock.
        "table" => {
            static TABLE: RwLock<i64> = RwLock::new(0);
            let held = TABLE.write().unwrap();
            let reads = || drop(TABLE.read().unwrap());
            let threads = [named("first", reads), named("second", reads)];
            await_sleepers(&raw const TABLE as usize, 2);
            drop(held);
            threads
        }
        // Two threads wait for work that never comes, and nobody holds anything.
        "idle" => {
            static WORK: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());
            let waits = || drop(WORK.1.wait_while(WORK.0.lock().unwrap(), |there| !*there));
            [named("worker", waits), named("worker", waits)]
        }
        // The second finds the vault locked until the first has seen it wait.
        _ => {
            let held = VAULT.lock().unwrap();
            let waits = || *VAULT.lock().unwrap() += 1; // @waits
            let threads = [named("first", waits), named("second", waits)];
            await_sleepers(&raw const VAULT as usize, 2);
            drop(held);
            threads
        }
    };
    for thread in threads {
        thread.join().unwrap();
    }
}
