//! The three threads and the order in which they begin.
//!
//! # Protocol of a round
//! The conductor opens low's gate. Low takes the lock and, with it, opens high's gate;
//! high goes first at once, opens middle's gate, which must wait for it, and asks for
//! the lock. From there on the lock and the scheduler decide. Nobody but low, high and
//! middle has a part in between, for an ordinary thread might not run at all.

use super::RtLock;
use super::scheduling::{PRIORITIES, burn, enter, processor};
use crate::Error;
use crate::locks::{BenchLock, Placed};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

/// A round takes a small part of this.
const PATIENCE: Duration = Duration::from_secs(10);

/// Lets a thread begin a round. It parks, for whoever opens it must neither wait nor
/// hold anything that the thread needs.
#[derive(Default)]
struct RoundGate {
    round: AtomicU64,
    thread: OnceLock<Thread>,
}

impl RoundGate {
    fn open(&self, round: u64) {
        self.round.store(round, Ordering::Release);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Waits for the round; returns false if there will be none.
    fn pass(&self, round: u64, over: &AtomicBool) -> bool {
        while self.round.load(Ordering::Acquire) < round {
            if over.load(Ordering::Acquire) {
                return false;
            }
            thread::park_timeout(PATIENCE);
        }
        !over.load(Ordering::Acquire)
    }
}

struct InversionShared<L> {
    lock: Box<Placed<L>>,
    section: Duration,
    busy: Duration,
    processor: usize,
    /// The gates of low, middle and high.
    gates: [RoundGate; 3],
    /// Rounds that the three have been through, in all.
    done: AtomicU64,
    conductor: Thread,
    over: AtomicBool,
    waits: Mutex<Vec<u64>>,
}

const LOW: usize = 0;
const MIDDLE: usize = 1;
const HIGH: usize = 2;

impl<L: BenchLock> InversionShared<L> {
    fn live(&self, part: usize) -> io::Result<()> {
        enter(self.processor, PRIORITIES[part])?;
        let over = || self.over.load(Ordering::Relaxed);
        for round in 1.. {
            if !self.gates[part].pass(round, &self.over) {
                break;
            }
            match part {
                LOW => self.lock.with(|| {
                    self.gates[HIGH].open(round);
                    burn(self.section, over);
                }),
                MIDDLE => burn(self.busy, over),
                _ => {
                    self.gates[MIDDLE].open(round);
                    let begin = Instant::now();
                    let wait = self.lock.with(|| begin.elapsed());
                    let mut waits = self.waits.lock().unwrap_or_else(|broken| broken.into_inner());
                    waits.push(wait.as_nanos() as u64);
                }
            }
            self.done.fetch_add(1, Ordering::Release);
            self.conductor.unpark();
        }
        Ok(())
    }
}

/// The scene of one lock. Dropping it sends the threads home, without waiting for
/// them: they may hang in the lock.
pub(super) struct InversionScene<L> {
    shared: Arc<InversionShared<L>>,
    threads: Vec<JoinHandle<io::Result<()>>>,
    lock: RtLock,
}

impl<L: BenchLock> InversionScene<L> {
    pub(super) fn start(
        placed: Box<Placed<L>>,
        lock: RtLock,
        section: Duration,
        busy: Duration,
    ) -> Result<Self, Error> {
        let shared = Arc::new(InversionShared {
            lock: placed,
            section,
            busy,
            processor: processor(),
            gates: Default::default(),
            done: AtomicU64::new(0),
            conductor: thread::current(),
            over: AtomicBool::new(false),
            waits: Mutex::new(Vec::new()),
        });
        let mut scene = InversionScene { shared, threads: Vec::new(), lock };
        for part in [LOW, MIDDLE, HIGH] {
            let shared = scene.shared.clone();
            let thread = thread::Builder::new()
                .spawn(move || shared.live(part))
                .map_err(|source| Error::Threads { threads: PRIORITIES.len(), source })?;
            // Set once for each gate, which are new.
            let _ = scene.shared.gates[part].thread.set(thread.thread().clone());
            scene.threads.push(thread);
        }
        Ok(scene)
    }

    /// Runs a round, and returns how long high waited.
    pub(super) fn round(&self, round: u64) -> Result<Duration, Error> {
        let begin = Instant::now();
        self.shared.gates[LOW].open(round);
        let all = round * PRIORITIES.len() as u64;
        while self.shared.done.load(Ordering::Acquire) < all {
            let missing = self.threads.iter().filter(|thread| !thread.is_finished()).count();
            if begin.elapsed() > PATIENCE || missing < PRIORITIES.len() {
                return Err(self.stuck(missing));
            }
            thread::park_timeout(Duration::from_millis(100));
        }
        Ok(begin.elapsed())
    }

    fn stuck(&self, missing: usize) -> Error {
        Error::Stuck {
            lock: self.lock.name(),
            missing,
            threads: PRIORITIES.len(),
            seconds: PATIENCE.as_secs(),
        }
    }

    /// Sends the threads home; high's waits in nanoseconds.
    pub(super) fn end(mut self) -> Result<Vec<u64>, Error> {
        self.dismiss();
        let begin = Instant::now();
        for thread in std::mem::take(&mut self.threads) {
            while !thread.is_finished() {
                if begin.elapsed() > PATIENCE {
                    return Err(self.stuck(1));
                }
                thread::sleep(Duration::from_millis(1));
            }
            let left = thread.join().unwrap_or_else(|_| Err(io::Error::other("it panicked")));
            left.map_err(|source| Error::Priorities { highest: PRIORITIES[HIGH], source })?;
        }
        let waits = self.shared.waits.lock().unwrap_or_else(|broken| broken.into_inner());
        Ok(waits.clone())
    }
}

impl<L> InversionScene<L> {
    fn dismiss(&self) {
        self.shared.over.store(true, Ordering::Release);
        for gate in &self.shared.gates {
            if let Some(thread) = gate.thread.get() {
                thread.unpark();
            }
        }
    }
}

impl<L> Drop for InversionScene<L> {
    fn drop(&mut self) {
        self.dismiss();
    }
}
