//! Mutexes of std in an array and in a vector: three threads wait for one of each eight, and two
//! others for one each.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

const ALL: usize = 8;
const WANTED: [usize; 5] = [3, 3, 3, 1, 6];

static SHARDS: [Mutex<u64>; ALL] = [const { Mutex::new(0) }; ALL];
static READY: AtomicU32 = AtomicU32::new(0);

/// Counts in one of the shards.
#[inline(never)]
fn count(shards: &[Mutex<u64>], which: usize) {
    READY.fetch_add(1, Ordering::SeqCst);
    *shards[which].lock().expect("nobody panics") += 1; // @counts
}

/// Tells whether all threads but this one sleep.
fn others_sleep() -> bool {
    let me = std::process::id().to_string();
    let tasks = fs::read_dir("/proc/self/task").expect("there is /proc");
    let others = tasks.map(|task| task.expect("an entry")).filter(|task| *task.file_name() != *me);
    let sleeps = |stat: String| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" S"));
    let mut others = others.map(|task| fs::read_to_string(task.path().join("stat")));
    others.all(|stat| stat.is_ok_and(sleeps))
}

fn wait_for(shards: &[Mutex<u64>]) {
    READY.store(0, Ordering::SeqCst);
    let held: Vec<MutexGuard<'_, u64>> =
        shards.iter().map(|shard| shard.lock().expect("nobody panics")).collect();
    thread::scope(|scope| {
        for which in WANTED {
            scope.spawn(move || count(shards, which));
        }
        while READY.load(Ordering::SeqCst) < WANTED.len() as u32 || !others_sleep() {
            thread::sleep(Duration::from_millis(1));
        }
        // Long beside what it takes them to start and to end.
        thread::sleep(Duration::from_millis(200));
        drop(held);
    });
}

fn main() {
    wait_for(&SHARDS);
    let heap: Vec<Mutex<u64>> = (0..ALL).map(|_| Mutex::new(0)).collect();
    wait_for(&heap);
}
