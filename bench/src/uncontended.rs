//! A lock + unlock pair that nobody disputes.
//!
//! The lock is in the cache and the process has a second thread, asleep: with
//! one thread glibc and lockstead leave out what orders their instructions for
//! others. That can be measured, too ([`UncontendedOptions::alone`]), in a process that
//! never had a second thread. The limit
//! is the bare pair of locked instructions that a lock with sleepers needs, in
//! the same kind of loop. All locks and the limit take turns, in shuffled
//! order, for many short slices. What is timed is the thread's time on a
//! processor, so that others who want the processor disturb little.

mod limit;

use crate::clock::thread_cpu;
use crate::locks::{BenchLock, Placed, with_lock};
use crate::session::StepsProgress;
use crate::{Error, LockName, Session, options, stats};
pub(crate) use limit::LimitLock;
use lockstead_instructions::count_instructions;
use lockstead_render::machine::MachineFacts;
use serde::Serialize;
use std::sync::atomic::{Ordering, compiler_fence};
use std::sync::mpsc;
use std::time::Duration;

/// What a measurement is asked for.
#[derive(Clone, Debug)]
pub struct UncontendedOptions {
    /// The locks, in the order of the report.
    pub locks: Vec<LockName>,
    /// The number of rounds; each measures all locks and the limit once, in shuffled order.
    pub rounds: usize,
    /// Time for one lock in one round.
    pub slice: Duration,
    /// Whether the process has one thread: [`measure`] starts no second one.
    pub alone: bool,
}

impl Default for UncontendedOptions {
    /// Returns options for all available locks, 151 rounds of 1 ms.
    fn default() -> Self {
        Self {
            locks: crate::locks::available(),
            rounds: 151,
            slice: Duration::from_millis(1),
            alone: false,
        }
    }
}

/// What was measured, as reports write it. `N` names locks.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UncontendedReport<N = LockName> {
    /// The machine that was measured, and when.
    pub machine: MachineFacts,
    /// Whether the process never had a second thread (`--one-thread`).
    pub one_thread: bool,
    /// The bare compare-exchange and exchange, measured in the same run: the median of the rounds.
    pub limit_ns: f64,
    /// The fastest round of the limit.
    pub limit_ns_min: f64,
    /// The slowest round of the limit.
    pub limit_ns_max: f64,
    /// The number of instructions of the bare pair; null where they cannot be counted.
    pub limit_instructions: Option<f64>,
    /// One object for each lock.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<UncontendedRow>"))]
    pub results: Vec<UncontendedRow<N>>,
}

/// The figures of one lock.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UncontendedRow<N = LockName> {
    /// The name of the lock.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub lock: N,
    /// Locking and unlocking: the median of the rounds.
    pub ns: f64,
    /// The ratio of `ns` to `limit_ns`.
    pub ratio_to_limit: f64,
    /// The number of instructions of lock and unlock together; null where they cannot be counted.
    pub instructions: Option<f64>,
    /// Why `instructions` is null; only there if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions_absent: Option<String>,
    /// The size of the lock.
    pub bytes: usize,
    /// The fastest of the rounds.
    pub ns_min: f64,
    /// The slowest of the rounds.
    pub ns_max: f64,
}

/// Measures what the options ask for.
///
/// # Errors
/// [`Error::Option`] for options out of range, [`Error::Unavailable`] for a
/// lock that is not built in, [`Error::Threads`], [`Error::NotAlone`],
/// [`Error::Interrupted`].
pub fn measure(
    options: &UncontendedOptions,
    session: &mut Session<'_>,
) -> Result<UncontendedReport, Error> {
    options.check()?;
    let mut subjects = Vec::new();
    for &lock in &options.locks {
        subjects.push((lock, with_lock!(lock, L => MeasuredLock::new::<L>(lock.name()))?));
    }
    let limit = MeasuredLock::new::<LimitLock>(LIMIT);
    if options.alone {
        let threads = threads();
        if threads != 1 {
            return Err(Error::NotAlone { threads });
        }
        return in_turn(limit, subjects, options.rounds, options.slice, session, true);
    }
    compare(limit, subjects, options.rounds, options.slice, session)
}

/// Returns the number of threads of this process.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

/// What progress calls the limit.
pub(crate) const LIMIT: &str = "the bare pair";

/// Measures these locks, each with its name, beside a second thread.
pub(crate) fn compare<N>(
    limit: MeasuredLock,
    named: Vec<(N, MeasuredLock)>,
    rounds: usize,
    slice: Duration,
    session: &mut Session<'_>,
) -> Result<UncontendedReport<N>, Error> {
    let _second = SecondThread::start()?;
    in_turn(limit, named, rounds, slice, session, false)
}

fn in_turn<N>(
    limit: MeasuredLock,
    named: Vec<(N, MeasuredLock)>,
    rounds: usize,
    slice: Duration,
    session: &mut Session<'_>,
    one_thread: bool,
) -> Result<UncontendedReport<N>, Error> {
    let machine = MachineFacts::here();
    let (names, locks): (Vec<N>, Vec<MeasuredLock>) = named.into_iter().unzip();
    let mut subjects = vec![limit];
    subjects.extend(locks);
    let mut progress = StepsProgress::new(rounds * subjects.len());
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    for _ in 0..rounds {
        fastrand::shuffle(&mut order);
        for &index in &order {
            progress.step(session, subjects[index].name)?;
            subjects[index].measure(slice);
        }
    }
    progress.end(session)?;
    let limit = subjects.remove(0);
    let limit_ns = stats::median(&limit.ns);
    let (limit_ns_min, limit_ns_max) = stats::spread(&limit.ns);
    Ok(UncontendedReport {
        machine,
        one_thread,
        limit_ns,
        limit_ns_min,
        limit_ns_max,
        limit_instructions: (limit.count)().ok(),
        results: names
            .into_iter()
            .zip(&subjects)
            .map(|(lock, subject)| subject.row(lock, limit_ns))
            .collect(),
    })
}

impl UncontendedOptions {
    fn check(&self) -> Result<(), Error> {
        options::locks(&self.locks)?;
        options::within("--rounds", self.rounds, 1..=10_000, "")?;
        options::within("--slice", self.slice.as_micros(), 100..=60_000_000, "us")
    }
}

/// A lock in its place, its measuring loops, and what they gave.
pub(crate) struct MeasuredLock {
    name: &'static str,
    bytes: usize,
    /// Runs so many pairs.
    run: Box<dyn Fn(u64)>,
    count: Box<dyn Fn() -> Result<f64, String>>,
    ns: Vec<f64>,
}

impl MeasuredLock {
    pub(crate) fn new<L: BenchLock>(name: &'static str) -> Self {
        Self::at::<L, _>(name, Placed::new(), Placed::new(), |placed| placed)
    }

    /// Measures two locks, one for the time and one for the instructions, each in a place that may
    /// be anywhere.
    pub(crate) fn at<L: BenchLock, H: 'static>(
        name: &'static str,
        timed: H,
        counted: H,
        lock: fn(&H) -> &L,
    ) -> Self {
        Self {
            name,
            bytes: L::bytes(),
            run: Box::new(move |pairs| repeat::<L>(lock(&timed), pairs)),
            count: Box::new(move || {
                let lock = lock(&counted);
                count_instructions(|| lock.with(|| ())).map_err(|why| why.to_string())
            }),
            ns: Vec::new(),
        }
    }

    /// Finds out how many pairs fill a slice, then times that many.
    fn measure(&mut self, slice: Duration) {
        const FEW: u64 = 1000;
        let few = self.time(FEW).max(Duration::from_nanos(FEW));
        let pairs = (FEW as f64 * slice.div_duration_f64(few)) as u64;
        let pairs = pairs.max(FEW);
        self.ns.push(self.time(pairs).as_nanos() as f64 / pairs as f64);
    }

    fn time(&self, pairs: u64) -> Duration {
        let start = thread_cpu();
        (self.run)(pairs);
        thread_cpu() - start
    }

    fn row<N>(&self, lock: N, limit_ns: f64) -> UncontendedRow<N> {
        let ns = stats::median(&self.ns);
        let (ns_min, ns_max) = stats::spread(&self.ns);
        let (instructions, instructions_absent) = match (self.count)() {
            Ok(count) => (Some(count), None),
            Err(why) => (None, Some(why)),
        };
        UncontendedRow {
            lock,
            ns,
            ratio_to_limit: ns / limit_ns,
            instructions,
            instructions_absent,
            bytes: self.bytes,
            ns_min,
            ns_max,
        }
    }
}

#[inline(never)]
fn repeat<L: BenchLock>(lock: &L, pairs: u64) {
    for _ in 0..pairs {
        // Keeps something between lock and unlock, and costs nothing.
        lock.with(|| compiler_fence(Ordering::SeqCst));
    }
}

/// A thread that does nothing but exist.
struct SecondThread {
    /// The sender that is dropped to end it.
    _leash: mpsc::Sender<()>,
}

impl SecondThread {
    fn start() -> Result<Self, Error> {
        let (leash, end) = mpsc::channel::<()>();
        std::thread::Builder::new()
            .spawn(move || end.recv())
            .map_err(|source| Error::Threads { threads: 1, source })?;
        Ok(Self { _leash: leash })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn every_available_lock_gets_a_row() {
        let stop = AtomicBool::new(false);
        let mut last = (0, 0);
        let mut progress = |done: u64, total: u64, _: &str| last = (done, total);
        let mut session = Session::new(&stop, &mut progress);
        let options = UncontendedOptions {
            rounds: 2,
            slice: Duration::from_micros(100),
            ..UncontendedOptions::default()
        };
        let report = measure(&options, &mut session).expect("measures");
        assert_eq!(report.results.len(), options.locks.len());
        for row in &report.results {
            assert!(row.ns > 0.0 && row.bytes > 0, "{row:?}");
            assert!(row.ns_min <= row.ns && row.ns <= row.ns_max, "{row:?}");
            assert_eq!(row.instructions.is_none(), row.instructions_absent.is_some());
        }
        let steps = 2 * (options.locks.len() as u64 + 1);
        assert_eq!(last, (steps, steps));
    }

    #[test]
    fn impossible_options_are_refused_by_name() {
        let stop = AtomicBool::new(false);
        let mut quiet = |_: u64, _: u64, _: &str| {};
        let mut session = Session::new(&stop, &mut quiet);
        let none = UncontendedOptions { rounds: 0, ..UncontendedOptions::default() };
        let error = measure(&none, &mut session).expect_err("no rounds").to_string();
        assert!(error.contains("--rounds") && error.contains("1 to 10000"), "{error}");
    }
}
