//! Threads that run for a while and are watched from outside.
//!
//! # Role
//! [`Slice::run`] starts threads at a gate, lets them warm up, looks at their
//! counts at the beginning and at the end of a window, tells them to stop and
//! collects what they return. The threads themselves read no clock: they count
//! and look at one flag.
//!
//! # Progress
//! A thread that does not come back within the slice's patience makes the
//! slice an error. It cannot be ended and stays behind; what it uses is kept
//! alive by reference counts.

use crate::clock::process_cpu;
use crate::{Error, Session};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Enough for the loops here, small enough for a thousand threads.
const STACK: usize = 256 * 1024;

/// How often a waiting slice looks whether the session was stopped.
const GLANCE: Duration = Duration::from_millis(20);

/// A slice of time in which threads work on one lock.
pub(crate) struct Slice {
    /// What it is called in an error.
    pub(crate) lock: &'static str,
    pub(crate) threads: usize,
    /// The length of the window; a tenth of it comes before as warm-up. One in which no turn was done is
    /// longer, by as much again each time.
    pub(crate) length: Duration,
    /// The time that threads may take to come back after they were told to stop.
    pub(crate) patience: Duration,
}

/// What was seen from outside during the window.
pub(crate) struct SliceWindow {
    pub(crate) elapsed: Duration,
    /// Processor time of the process.
    pub(crate) cpu: Duration,
    /// Turns of each thread.
    pub(crate) turns: Vec<u64>,
}

impl SliceWindow {
    pub(crate) fn per_second(&self) -> f64 {
        self.turns.iter().sum::<u64>() as f64 / self.elapsed.as_secs_f64()
    }

    pub(crate) fn per_cpu_second(&self) -> f64 {
        self.turns.iter().sum::<u64>() as f64 / self.cpu.as_secs_f64().max(1e-9)
    }

    /// Tells whether nobody had a turn.
    fn is_still(&self) -> bool {
        self.turns.iter().all(|turns| *turns == 0)
    }
}

/// One thread's side of a slice.
pub(crate) struct SliceWorker<'a> {
    /// The number of the thread, from 0.
    pub(crate) index: usize,
    counter: &'a AtomicU64,
    over: &'a AtomicBool,
    turns: u64,
}

impl SliceWorker<'_> {
    /// Tells whether to do another turn.
    #[inline(always)]
    pub(crate) fn goes_on(&self) -> bool {
        !self.over.load(Ordering::Relaxed)
    }

    /// Counts a turn that is done.
    #[inline(always)]
    pub(crate) fn turn(&mut self) {
        self.turns += 1;
        self.counter.store(self.turns, Ordering::Relaxed);
    }

    /// Returns the number of turns done since the start, warm-up included.
    pub(crate) fn turns(&self) -> u64 {
        self.turns
    }
}

/// What a slice's threads do.
type SliceWork<T> = dyn Fn(&mut SliceWorker<'_>) -> T + Send + Sync;

/// A counter on lines of its own, so that counting disturbs no neighbour.
#[repr(align(128))]
#[derive(Default)]
struct Counter(AtomicU64);

struct WindowShared {
    counters: Vec<Counter>,
    over: AtomicBool,
    /// Held for writing until all threads exist.
    gate: RwLock<()>,
}

impl WindowShared {
    fn counts(&self) -> Vec<u64> {
        self.counters.iter().map(|counter| counter.0.load(Ordering::Relaxed)).collect()
    }
}

impl Slice {
    /// Runs `work` in every thread; returns what was seen and, in no
    /// particular order, what the threads returned.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        session: &Session<'_>,
        work: impl Fn(&mut SliceWorker<'_>) -> T + Send + Sync + 'static,
    ) -> Result<(SliceWindow, Vec<T>), Error> {
        self.run_any(session, Arc::new(work))
    }

    /// Runs `work`, which each thread calls once: so the many kinds of work share this code, and
    /// only what they do in their turns is compiled for each.
    fn run_any<T: Send + 'static>(
        &self,
        session: &Session<'_>,
        work: Arc<SliceWork<T>>,
    ) -> Result<(SliceWindow, Vec<T>), Error> {
        let shared = Arc::new(WindowShared {
            counters: (0..self.threads).map(|_| Counter::default()).collect(),
            over: AtomicBool::new(false),
            gate: RwLock::new(()),
        });
        let (sender, results) = mpsc::channel();
        let gate = shared.gate.write().expect("nobody panics at the gate");
        let mut handles = Vec::new();
        let mut failure = None;
        for index in 0..self.threads {
            let (inside, work, sender) = (shared.clone(), work.clone(), sender.clone());
            let body = move || {
                drop(inside.gate.read());
                let (counter, over) = (&inside.counters[index].0, &inside.over);
                let mut worker = SliceWorker { index, counter, over, turns: 0 };
                let result = work(&mut worker);
                // Fails only when the slice has given up waiting.
                let _ = sender.send(result);
            };
            match thread::Builder::new().stack_size(STACK).spawn(body) {
                Ok(handle) => handles.push(handle),
                Err(source) => {
                    failure = Some(Error::Threads { threads: self.threads, source });
                    shared.over.store(true, Ordering::Relaxed);
                    break;
                }
            }
        }
        drop(sender);
        drop(gate);
        let window = if failure.is_none() { Some(self.watch(session, &shared)) } else { None };
        shared.over.store(true, Ordering::Relaxed);
        let returned = self.collect(handles, &results)?;
        match (failure, window) {
            (Some(error), _) => Err(error),
            (None, Some(_)) if session.stopped() => Err(Error::Interrupted),
            (None, Some(window)) if window.is_still() && window.elapsed > self.patience => {
                Err(Error::NoTurn { lock: self.lock, seconds: self.patience.as_secs() })
            }
            (None, Some(window)) => Ok((window, returned)),
            (None, _) => Err(Error::Interrupted),
        }
    }

    fn watch(&self, session: &Session<'_>, shared: &Arc<WindowShared>) -> SliceWindow {
        sleep_within((self.length / 10).max(Duration::from_millis(2)), session);
        let (before, cpu, start) = (shared.counts(), process_cpu(), Instant::now());
        loop {
            sleep_within(self.length, session);
            let (elapsed, cpu, after) = (start.elapsed(), process_cpu() - cpu, shared.counts());
            // Where a busy machine ran none of the threads, the window says nothing yet: it goes on, as
            // long as there is one.
            let there = Arc::strong_count(shared) > 1;
            if after != before || !there || session.stopped() || elapsed > self.patience {
                let turns = after.iter().zip(&before).map(|(after, before)| after - before);
                return SliceWindow { elapsed, cpu, turns: turns.collect() };
            }
        }
    }

    fn collect<T>(
        &self,
        handles: Vec<thread::JoinHandle<()>>,
        results: &mpsc::Receiver<T>,
    ) -> Result<Vec<T>, Error> {
        let deadline = Instant::now() + self.patience;
        let mut returned = Vec::new();
        while returned.len() < handles.len() {
            match results.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(result) => returned.push(result),
                // All threads have ended, one of them without a result: it
                // panicked, and the joining below passes that on.
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    return Err(Error::Stuck {
                        lock: self.lock,
                        missing: handles.len() - returned.len(),
                        threads: handles.len(),
                        seconds: self.patience.as_secs(),
                    });
                }
            }
        }
        for handle in handles {
            if let Err(panic) = handle.join() {
                std::panic::resume_unwind(panic);
            }
        }
        Ok(returned)
    }
}

/// Sleeps, but not past the session's end.
pub(crate) fn sleep_within(length: Duration, session: &Session<'_>) {
    let end = Instant::now() + length;
    while !session.stopped() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(GLANCE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(threads: usize, length: Duration) -> Slice {
        Slice { lock: "std", threads, length, patience: Duration::from_secs(30) }
    }

    fn turn_until_told(worker: &mut SliceWorker<'_>) -> u64 {
        while worker.goes_on() {
            worker.turn();
        }
        worker.turns()
    }

    #[test]
    fn a_window_without_a_turn_goes_on_until_there_is_one() {
        let stop = AtomicBool::new(false);
        let mut quiet = |_: u64, _: u64, _: &str| {};
        let session = Session::new(&stop, &mut quiet);
        let length = Duration::from_millis(1);
        // A turn takes much longer than a window, which may begin at any time of it.
        let late = move |worker: &mut SliceWorker<'_>| {
            while worker.goes_on() {
                let began = Instant::now();
                while began.elapsed() < 50 * length && worker.goes_on() {
                    std::hint::spin_loop();
                }
                worker.turn();
            }
        };
        for _ in 0..5 {
            let (window, _) = slice(1, length).run(&session, late).expect("runs");
            assert!(window.turns[0] >= 1 && window.elapsed >= length, "{:?}", window.turns);
        }
    }

    #[test]
    fn the_window_counts_less_than_the_threads_did() {
        let stop = AtomicBool::new(false);
        let mut quiet = |_: u64, _: u64, _: &str| {};
        let session = Session::new(&stop, &mut quiet);
        // A busy machine may run none of the threads during a short window.
        let found = (0..1000).any(|_| {
            let length = Duration::from_millis(20);
            let (window, returned) = slice(3, length).run(&session, turn_until_told).expect("runs");
            assert_eq!((window.turns.len(), returned.len()), (3, 3));
            assert!(window.elapsed >= length);
            let (inside, all): (u64, u64) = (window.turns.iter().sum(), returned.iter().sum());
            assert!(inside <= all, "{inside} of {all}");
            0 < inside && inside < all && window.cpu > Duration::ZERO
        });
        assert!(found, "no window saw a turn");
    }

    #[test]
    fn a_stopped_session_ends_a_long_slice() {
        let stop = Arc::new(AtomicBool::new(false));
        let setter = stop.clone();
        let other = thread::spawn(move || {
            thread::sleep(Duration::from_millis(30));
            setter.store(true, Ordering::Relaxed);
        });
        let mut quiet = |_: u64, _: u64, _: &str| {};
        let session = Session::new(&stop, &mut quiet);
        let outcome = slice(2, Duration::from_secs(3600)).run(&session, turn_until_told);
        assert!(matches!(outcome, Err(Error::Interrupted)));
        other.join().expect("the setter ends");
    }

    #[test]
    fn threads_that_do_not_come_back_are_an_error() {
        let stop = AtomicBool::new(false);
        let mut quiet = |_: u64, _: u64, _: &str| {};
        let session = Session::new(&stop, &mut quiet);
        let release = Arc::new(AtomicBool::new(false));
        let held = release.clone();
        let patience = Duration::from_millis(300);
        let slice = Slice { patience, ..slice(2, Duration::from_millis(5)) };
        let outcome = slice.run(&session, move |worker| {
            while worker.index == 1 && !held.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
        });
        release.store(true, Ordering::Relaxed);
        assert!(matches!(outcome, Err(Error::Stuck { missing: 1.., threads: 2, .. })));
    }

    #[test]
    fn a_window_that_has_waited_for_a_turn_in_vain_is_an_error() {
        let stop = AtomicBool::new(false);
        let mut quiet = |_: u64, _: u64, _: &str| {};
        let session = Session::new(&stop, &mut quiet);
        let patience = Duration::from_millis(300);
        let slice = Slice { patience, ..slice(2, Duration::from_millis(5)) };
        let outcome = slice.run(&session, |worker| {
            while worker.goes_on() {
                std::hint::spin_loop();
            }
        });
        assert!(matches!(outcome, Err(Error::NoTurn { lock: "std", .. })));
    }

    #[test]
    #[should_panic(expected = "in the work")]
    fn a_panic_of_a_thread_reaches_the_caller() {
        let stop = AtomicBool::new(false);
        let mut quiet = |_: u64, _: u64, _: &str| {};
        let session = Session::new(&stop, &mut quiet);
        let _ = slice(2, Duration::from_millis(5)).run(&session, |worker| {
            assert!(worker.index == 0, "in the work");
        });
    }
}
