//! The two measuring loops, one lock and one slice at a time.
//!
//! Throughput, processor time and fairness come from slices in which no clock
//! is read. Waits come from slices of their own in which *every* acquisition
//! is timed, so that the longest wait is the longest that occurred, not the
//! longest of a sample. Reading the clock before the lock and first thing
//! inside lengthens short sections; by how much is reported with each row
//! (`timed_ratio`).

use super::options::{CellKey, Sleep};
use super::pinning;
use super::work::{SectionWork, WorkPace, busy};
use crate::clock::Ticks;
use crate::harness::{Slice, SliceWindow, SliceWorker};
use crate::locks::{BenchLock, Placed};
use crate::{Error, Session};
use hdrhistogram::Histogram;
use hdrhistogram::iterators::IterationValue;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

/// Longest wait that keeps its place in the histogram, in ticks (hours); the
/// maximum is kept apart and exact.
const LONGEST: u64 = 1 << 45;

/// What a thread does: steps of work inside and outside of the lock, and where.
#[derive(Clone, Copy)]
pub(crate) struct ThreadLoad {
    pub(crate) section: u64,
    pub(crate) think: u64,
    /// The holder sleeps for so many nanoseconds in every so many sections; 0: in none.
    sleep: (u64, u64),
    /// Threads are pinned to processors, in turn.
    pinned: bool,
}

impl ThreadLoad {
    /// Builds a workload of so many steps, and nothing else.
    pub(crate) const fn steps(section: u64, think: u64) -> Self {
        Self { section, think, sleep: (0, 0), pinned: false }
    }

    /// Returns the load of a cell.
    pub(crate) fn of(
        (pinned, _, section, think): CellKey,
        sleep: Option<Sleep>,
        pace: WorkPace,
    ) -> Self {
        let sleep = sleep.map_or((0, 0), |sleep| (sleep.length.as_nanos() as u64, sleep.every));
        let (section, think) = (pace.steps(section), pace.steps(section.mul_f64(think)));
        Self { section, think, sleep, pinned }
    }

    /// Prepares a thread before its first turn.
    fn settle(self, worker: &SliceWorker<'_>) {
        if self.pinned {
            pinning::pin(worker.index);
        }
        if self.sleep.1 != 0 {
            pinning::sleep_exactly();
        }
    }

    /// Does the section of a holder, whose work outside has come to `seed`.
    #[inline(always)]
    fn inside(self, shared: &SectionWork, seed: u64) -> u64 {
        let end = shared.section(self.section, seed);
        let (length, every) = self.sleep;
        if every != 0 && shared.sections().is_multiple_of(every) {
            std::thread::sleep(Duration::from_nanos(length));
        }
        end
    }

    /// Does the work of a thread outside, after a section that has come to `seed`.
    #[inline(always)]
    fn outside(self, seed: u64) -> u64 {
        if self.think > 0 { busy(self.think, seed) } else { seed }
    }
}

/// Waits of one or more threads, in ticks.
pub(crate) struct WaitTicks {
    histogram: Histogram<u64>,
    longest: u64,
}

impl WaitTicks {
    pub(crate) fn new() -> Self {
        // Two digits: percentiles to one per cent, and a histogram that
        // leaves room in the cache.
        let histogram = Histogram::new_with_bounds(1, LONGEST, 2).expect("sensible bounds");
        Self { histogram, longest: 0 }
    }

    #[inline(always)]
    pub(crate) fn record(&mut self, ticks: u64) {
        self.longest = self.longest.max(ticks);
        self.histogram.saturating_record(ticks);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.longest = self.longest.max(other.longest);
        self.histogram.add(&other.histogram).expect("all histograms have the same bounds");
    }

    /// Returns the wait that the share `quantile` of all acquisitions did not exceed.
    pub(crate) fn quantile_ns(&self, quantile: f64, clock: Ticks) -> u64 {
        clock.ns(self.histogram.value_at_quantile(quantile).min(self.longest))
    }

    /// Returns the wait that the share `quantile` of all *time waited* was spent in waits not longer
    /// than: a lock that lets one thread run has few long waits, but all time is in them.
    pub(crate) fn weighted_quantile_ns(&self, quantile: f64, clock: Ticks) -> u64 {
        let time = |value: u64, count: u64| value as f64 * count as f64;
        let recorded = || self.histogram.iter_recorded();
        let step = |at: &IterationValue<u64>| time(at.value_iterated_to(), at.count_at_value());
        let all: f64 = recorded().map(|at| step(&at)).sum();
        let mut passed = 0.0;
        let found = recorded().find(|at| {
            passed += step(at);
            passed >= quantile * all
        });
        clock.ns(found.map_or(0, |at| at.value_iterated_to()).min(self.longest))
    }

    /// Returns the longest wait, in ticks.
    pub(crate) fn longest(&self) -> u64 {
        self.longest
    }

    pub(crate) fn max_ns(&self, clock: Ticks) -> u64 {
        clock.ns(self.longest)
    }
}

/// Runs a slice that only counts.
pub(crate) fn throughput<L: BenchLock>(
    slice: &Slice,
    load: ThreadLoad,
    session: &Session<'_>,
) -> Result<SliceWindow, Error> {
    let (window, ()) = run::<L, ()>(
        slice,
        session,
        (),
        |_, ()| {},
        move |worker, lock, shared| {
            load.settle(worker);
            let mut work = worker.index as u64;
            while worker.goes_on() {
                work = lock.with(|| load.inside(shared, work));
                worker.turn();
                work = load.outside(work);
            }
            black_box(work);
        },
    )?;
    Ok(window)
}

/// Runs a slice that times every acquisition.
pub(crate) fn waits<L: BenchLock>(
    slice: &Slice,
    load: ThreadLoad,
    clock: Ticks,
    session: &Session<'_>,
) -> Result<(SliceWindow, WaitTicks), Error> {
    run::<L, WaitTicks>(
        slice,
        session,
        WaitTicks::new(),
        |sum, one| sum.merge(&one),
        move |worker, lock, shared| {
            load.settle(worker);
            let mut waits = WaitTicks::new();
            let mut work = worker.index as u64;
            while worker.goes_on() {
                let asked = clock.now();
                let granted;
                (granted, work) = lock.with(|| {
                    let granted = clock.now();
                    (granted, load.inside(shared, work))
                });
                worker.turn();
                // Counters of two processors may differ by a few ticks.
                waits.record(granted.saturating_sub(asked));
                work = load.outside(work);
            }
            black_box(work);
            waits
        },
    )
}

/// Runs `body` in the slice's threads over one fresh lock, folds what they
/// return, and checks that the lock excluded.
fn run<L: BenchLock, T: Send + 'static>(
    slice: &Slice,
    session: &Session<'_>,
    mut sum: T,
    fold: impl Fn(&mut T, T),
    body: impl Fn(&mut SliceWorker<'_>, &L, &SectionWork) -> T + Send + Sync + 'static,
) -> Result<(SliceWindow, T), Error> {
    let place = Arc::new((Placed::<L>::new(), SectionWork::default()));
    let inside = place.clone();
    let (window, returned) = slice.run(session, move |worker| {
        let result = body(worker, &inside.0, &inside.1);
        (worker.turns(), result)
    })?;
    let operations = returned.iter().map(|(turns, _)| turns).sum();
    let counted = place.1.sections();
    if operations != counted {
        return Err(Error::Broken { lock: slice.lock, operations, counted });
    }
    for (_, result) in returned {
        fold(&mut sum, result);
    }
    Ok((window, sum))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    const LOAD: ThreadLoad = ThreadLoad::steps(40, 0);

    fn slice(lock: &'static str, threads: usize) -> Slice {
        let length = Duration::from_millis(15);
        Slice { lock, threads, length, patience: Duration::from_secs(20) }
    }

    #[test]
    fn every_available_lock_excludes_and_counts() {
        let stop = AtomicBool::new(false);
        let mut quiet = |_: u64, _: u64, _: &str| {};
        let session = Session::new(&stop, &mut quiet);
        let clock = Ticks::calibrated();
        for lock in crate::locks::available() {
            let slice = slice(lock.name(), 4);
            // A busy machine may run none of the threads during a short window.
            let counts = (0..1000).any(|_| {
                crate::locks::with_lock!(lock, L => throughput::<L>(&slice, LOAD, &session))
                    .expect("available")
                    .unwrap_or_else(|error| panic!("{error}"))
                    .turns
                    .iter()
                    .any(|&turns| turns > 0)
            });
            assert!(counts, "{lock} does nothing");
            let (_, waits) =
                crate::locks::with_lock!(lock, L => waits::<L>(&slice, LOAD, clock, &session))
                    .expect("available")
                    .unwrap_or_else(|error| panic!("{error}"));
            let quantiles = [0.5, 0.99, 0.999].map(|quantile| waits.quantile_ns(quantile, clock));
            assert!(quantiles.is_sorted(), "{lock}: {quantiles:?}");
            assert!(quantiles[2] <= waits.max_ns(clock), "{lock}: {quantiles:?}");
        }
    }

    #[test]
    fn a_holder_that_sleeps_keeps_the_lock_that_long() {
        let stop = AtomicBool::new(false);
        let mut quiet = |_: u64, _: u64, _: &str| {};
        let session = Session::new(&stop, &mut quiet);
        let spot = (true, 2, Duration::ZERO, 0.0);
        let sleep = Sleep { length: Duration::from_millis(1), every: 1 };
        let load = ThreadLoad::of(spot, Some(sleep), WorkPace::calibrated());
        let slice = Slice { length: Duration::from_millis(50), ..slice("std", 2) };
        let window = throughput::<crate::locks::Std>(&slice, load, &session).expect("excludes");
        let (sections, most) = (window.turns.iter().sum::<u64>(), window.elapsed.as_millis() + 1);
        assert!(u128::from(sections) <= most, "{sections} sections of 1 ms in {most} ms");
    }

    /// A lock that lets everybody in.
    struct Open;

    impl BenchLock for Open {
        fn new() -> Self {
            Open
        }
        fn with<R>(&self, section: impl FnOnce() -> R) -> R {
            section()
        }
    }

    #[test]
    fn a_lock_that_does_not_exclude_is_found_out() {
        let stop = AtomicBool::new(false);
        let mut quiet = |_: u64, _: u64, _: &str| {};
        let session = Session::new(&stop, &mut quiet);
        // On one processor a count is lost only when a thread is preempted
        // between its load and its store: allow many slices.
        let found = (0..200).any(|_| {
            let load = ThreadLoad::steps(0, 0);
            matches!(
                throughput::<Open>(&slice("std", 4), load, &session),
                Err(Error::Broken { .. })
            )
        });
        assert!(found, "the counter does not notice sections that overlap");
    }

    /// The second thread to come stays outside for ever.
    struct Hangs(AtomicBool);

    impl BenchLock for Hangs {
        fn new() -> Self {
            Hangs(AtomicBool::new(false))
        }
        fn with<R>(&self, section: impl FnOnce() -> R) -> R {
            use std::sync::atomic::Ordering::Relaxed;
            if self.0.swap(true, Relaxed) {
                loop {
                    std::thread::park();
                }
            }
            section()
        }
    }

    #[test]
    fn a_lock_that_hangs_is_an_error_and_no_hang() {
        let stop = AtomicBool::new(false);
        let mut quiet = |_: u64, _: u64, _: &str| {};
        let session = Session::new(&stop, &mut quiet);
        let slice = Slice { patience: Duration::from_millis(100), ..slice("std", 2) };
        let outcome = throughput::<Hangs>(&slice, LOAD, &session);
        assert!(matches!(outcome, Err(Error::Stuck { missing: 1.., .. })));
    }

    #[test]
    fn the_longest_wait_is_exact_and_merged() {
        let mut one = WaitTicks::new();
        one.record(1_000_003);
        let mut sum = WaitTicks::new();
        sum.record(5);
        sum.merge(&one);
        assert_eq!(sum.longest, 1_000_003);
        assert_eq!(sum.histogram.len(), 2);
    }

    #[test]
    fn a_wait_weighs_as_long_as_it_is() {
        let clock = Ticks::calibrated();
        let mut waits = WaitTicks::new();
        assert_eq!(waits.weighted_quantile_ns(0.99, clock), 0);
        for _ in 0..1000 {
            waits.record(10);
        }
        waits.record(1_000_000);
        assert_eq!(waits.quantile_ns(0.99, clock), clock.ns(10));
        assert_eq!(waits.weighted_quantile_ns(0.99, clock), clock.ns(1_000_000));
        // A hundredth of the time is in the short ones.
        assert_eq!(waits.weighted_quantile_ns(0.009, clock), clock.ns(10));
    }
}
