//! Many independent simulations, on all processors.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// The caller did not want to wait any longer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stopped;

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stopped before the end")
    }
}

impl std::error::Error for Stopped {}

/// The time between two reports of progress.
const GLANCE: Duration = Duration::from_millis(100);

/// Runs `simulate` for each number below `count`; the results are in order, whichever
/// processor was faster.
///
/// # Errors
/// [`Stopped`] if `stop` was set.
///
/// # Panics
/// If a simulation does.
pub fn many<T: Send>(
    count: usize,
    stop: &AtomicBool,
    step: &mut dyn FnMut(u64, u64, &str),
    what: &str,
    simulate: impl Fn(usize) -> T + Sync,
) -> Result<Vec<T>, Stopped> {
    let results: Mutex<Vec<Option<T>>> = Mutex::new((0..count).map(|_| None).collect());
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get()).min(count.max(1));
    std::thread::scope(|scope| {
        let work = || {
            loop {
                let index = next.fetch_add(1, Relaxed);
                if index >= count || stop.load(Relaxed) {
                    return;
                }
                let result = simulate(index);
                results.lock().expect("nobody panics with it")[index] = Some(result);
                done.fetch_add(1, Relaxed);
            }
        };
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        while !threads.iter().all(|thread| thread.is_finished()) {
            step(done.load(Relaxed) as u64, count as u64, what);
            std::thread::sleep(GLANCE.min(Duration::from_millis(1 + done.load(Relaxed) as u64)));
        }
        step(done.load(Relaxed) as u64, count as u64, what);
    });
    let results = results.into_inner().expect("nobody panics with it");
    results.into_iter().collect::<Option<Vec<T>>>().ok_or(Stopped)
}
