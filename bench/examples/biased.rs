//! What a biased mutex costs whoever is not its owner: taking the bias away while the
//! owner sleeps, while it runs elsewhere, while it takes the lock all the time; and the
//! pair of everybody afterwards, beside the plain mutex.
//!
//! `cargo run --release -p lockstead-bench --example biased`. Medians, and the tenth and
//! ninetieth percentile.

use core::panic::Location;
use lockstead_bench::stats;
use lockstead_core::{RawBiased, RawMutex};
use lockstead_linux::Linux;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

type Lock = RawBiased<Linux>;

/// Locks whose bias is taken away, one after the other.
const LOCKS: usize = 2000;
const PAIRS: u32 = 200_000;

/// What the owner does meanwhile.
#[derive(Clone, Copy, PartialEq)]
enum Owner {
    Sleeps,
    Runs,
    Locks,
}

fn pair(lock: &Lock) {
    let hold = lock.lock(Location::caller()).expect("not recursive");
    // SAFETY: by PEER-HELD this thread holds the lock in this way since it took it above.
    unsafe { lock.unlock(hold) };
}

fn wait_for(word: &AtomicU32, value: u32) {
    while word.load(Relaxed) != value {
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Returns the nanoseconds of each taking away.
fn revocations(owner: Owner) -> Vec<f64> {
    let locks: Vec<Lock> = (0..LOCKS).map(|_| Lock::new()).collect();
    let (stage, next) = (AtomicU32::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            locks.iter().for_each(pair);
            stage.store(1, Relaxed);
            while stage.load(Relaxed) == 1 {
                match owner {
                    Owner::Sleeps => std::thread::sleep(Duration::from_secs(1)),
                    Owner::Runs => {}
                    Owner::Locks => pair(&locks[next.load(Relaxed).min(LOCKS - 1)]),
                }
            }
        });
        wait_for(&stage, 1);
        let mut times = Vec::with_capacity(LOCKS);
        for (index, lock) in locks.iter().enumerate() {
            next.store(index, Relaxed);
            let pause = Instant::now();
            while pause.elapsed() < Duration::from_micros(30) {}
            let began = Instant::now();
            pair(lock);
            times.push(began.elapsed().as_nanos() as f64);
        }
        stage.store(2, Relaxed);
        times
    })
}

fn show(what: &str, mut times: Vec<f64>) {
    let median = stats::median(&times);
    times.sort_by(f64::total_cmp);
    let at = |share: usize| times[times.len() * share / 100];
    println!("{what:44} {median:10.1} ns   {:10.1} to {:10.1}", at(10), at(90));
}

/// Returns the nanoseconds of a pair, in rounds.
fn rounds(mut turn: impl FnMut()) -> Vec<f64> {
    let round = |turn: &mut dyn FnMut()| {
        let began = Instant::now();
        turn();
        began.elapsed().as_nanos() as f64 / f64::from(PAIRS)
    };
    (0..51).map(|_| round(&mut turn)).collect()
}

fn main() {
    show("ended, the owner asleep", revocations(Owner::Sleeps));
    show("ended, the owner running elsewhere", revocations(Owner::Runs));
    show("ended, the owner taking the lock", revocations(Owner::Locks));
    // With a second thread in the process, as in a program that needs locks.
    let (leash, end) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || end.recv());
    let (own, plain, mutex) = (Lock::new(), Lock::new(), RawMutex::<Linux>::new());
    std::thread::scope(|scope| {
        scope.spawn(|| pair(&plain));
    });
    show("pair, its owner", rounds(|| (0..PAIRS).for_each(|_| pair(&own))));
    show("pair, ended", rounds(|| (0..PAIRS).for_each(|_| pair(&plain))));
    let turn = || {
        for _ in 0..PAIRS {
            mutex.lock(Location::caller()).expect("not recursive");
            // SAFETY: by PEER-HELD this thread holds the lock, which it took above.
            unsafe { mutex.unlock() };
        }
    };
    show("pair, the plain mutex", rounds(turn));
    drop(leash);
}
