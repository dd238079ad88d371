//! The two measuring loops, one scheme and one slice at a time: one counts turns, and one times
//! each and counts who overtakes whom.

use super::options::MAX_TAKE;
use super::sets::{LockSet, Refusals};
use crate::clock::Ticks;
use crate::contended::slices::WaitTicks;
use crate::contended::work::SectionWork;
use crate::harness::{Slice, SliceWindow, SliceWorker};
use crate::{Error, Session};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a turn takes and does.
#[derive(Clone, Copy)]
pub(super) struct SliceLoad {
    /// The number of locks that it takes.
    pub(super) take: usize,
    /// The number of locks that there are.
    pub(super) locks: usize,
    /// The steps of work with all of them held.
    pub(super) steps: u64,
}

/// What the threads of a slice counted, from its start to its end.
#[derive(Clone, Copy, Default)]
pub(super) struct TurnTally {
    pub(super) turns: u64,
    pub(super) refusals: u64,
    pub(super) retries: u64,
    /// Voluntary and involuntary switches.
    pub(super) switches: [u64; 2],
}

/// How long turns took, and how many others ended meanwhile.
pub(super) struct TurnTimes {
    pub(super) ticks: WaitTicks,
    pub(super) overtaken: u64,
}

impl TurnTimes {
    pub(super) fn new() -> Self {
        Self { ticks: WaitTicks::new(), overtaken: 0 }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.ticks.merge(&other.ticks);
        self.overtaken = self.overtaken.max(other.overtaken);
    }
}

/// What a slice gave.
pub(super) struct SliceSample {
    pub(super) window: SliceWindow,
    pub(super) tally: TurnTally,
    pub(super) times: TurnTimes,
}

/// The locks and what each guards, and how many turns have ended, if somebody counts them.
struct Ground<S> {
    set: S,
    works: Vec<SectionWork>,
    ended: AtomicU64,
}

/// Runs a slice that only counts.
pub(super) fn counted(
    slice: &Slice,
    load: SliceLoad,
    set: impl LockSet,
    session: &Session<'_>,
) -> Result<SliceSample, Error> {
    run(slice, load, set, session, |_, _, turn| turn())
}

/// Runs a slice that times every turn.
pub(super) fn timed(
    slice: &Slice,
    load: SliceLoad,
    set: impl LockSet,
    clock: Ticks,
    session: &Session<'_>,
) -> Result<SliceSample, Error> {
    run(slice, load, set, session, move |times, ended, turn| {
        let before = ended.load(Ordering::Relaxed);
        let began = clock.now();
        turn();
        // Counters of two processors may differ by a few ticks.
        times.ticks.record(clock.now().saturating_sub(began));
        let after = ended.fetch_add(1, Ordering::Relaxed);
        times.overtaken = times.overtaken.max(after - before);
    })
}

/// Runs turns, each of them by `observe`, in the slice's threads, and checks that the locks
/// excluded.
fn run<S: LockSet>(
    slice: &Slice,
    load: SliceLoad,
    set: S,
    session: &Session<'_>,
    observe: impl Fn(&mut TurnTimes, &AtomicU64, &mut dyn FnMut()) + Send + Sync + 'static,
) -> Result<SliceSample, Error> {
    let works = (0..load.locks).map(|_| SectionWork::default()).collect();
    let ground = Arc::new(Ground { set, works, ended: AtomicU64::new(0) });
    let inside = ground.clone();
    let (window, returned) =
        slice.run(session, move |worker| turns(worker, load, &inside, &observe))?;
    let mut sum = SliceSample { window, tally: TurnTally::default(), times: TurnTimes::new() };
    for (tally, times) in returned {
        sum.tally.turns += tally.turns;
        sum.tally.refusals += tally.refusals;
        sum.tally.retries += tally.retries;
        for (all, one) in sum.tally.switches.iter_mut().zip(tally.switches) {
            *all += one;
        }
        sum.times.merge(&times);
    }
    let operations = sum.tally.turns * load.take as u64;
    let counted = ground.works.iter().map(SectionWork::sections).sum();
    if operations != counted {
        return Err(Error::Broken { lock: slice.lock, operations, counted });
    }
    Ok(sum)
}

/// Does turns until the slice is over.
fn turns<S: LockSet>(
    worker: &mut SliceWorker<'_>,
    load: SliceLoad,
    ground: &Ground<S>,
    observe: &impl Fn(&mut TurnTimes, &AtomicU64, &mut dyn FnMut()),
) -> (TurnTally, TurnTimes) {
    let mut dice = fastrand::Rng::new();
    let mut order: Vec<usize> = (0..load.locks).collect();
    let mut wanted = [0; MAX_TAKE];
    let wanted = &mut wanted[..load.take];
    let (mut refusals, mut times) = (Refusals::default(), TurnTimes::new());
    let mut work = worker.index as u64;
    let before = switches();
    while worker.goes_on() {
        for (place, lock) in wanted.iter_mut().enumerate() {
            order.swap(place, dice.usize(place..load.locks));
            *lock = order[place];
        }
        observe(&mut times, &ground.ended, &mut || {
            ground.set.turn(wanted, &mut refusals, |held| {
                for &lock in &held[1..] {
                    ground.works[lock].section(0, 0);
                }
                work = ground.works[held[0]].section(load.steps, work);
            });
        });
        worker.turn();
    }
    black_box(work);
    let [voluntary, involuntary] = switches();
    let tally = TurnTally {
        turns: worker.turns(),
        refusals: refusals.refusals,
        retries: refusals.retries,
        switches: [voluntary - before[0], involuntary - before[1]],
    };
    (tally, times)
}

/// Returns how often the calling thread has given up its processor, and how often that was taken.
fn switches() -> [u64; 2] {
    // SAFETY: by ZEROED-BITS zeros are a value of the structure, and by CALL-LOCALS the pointer is to
    // a live local variable, which the call fills in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage
    };
    [usage.ru_nvcsw as u64, usage.ru_nivcsw as u64]
}

#[cfg(test)]
mod tests {
    use super::super::sets::{Contexts, Trying};
    use super::*;
    use lockstead_core::ww::Scheme;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    /// A set of locks that takes none.
    struct Nothing;

    impl LockSet for Nothing {
        fn turn(&self, wanted: &mut [usize], _: &mut Refusals, section: impl FnOnce(&[usize])) {
            section(wanted);
        }
    }

    const LOAD: SliceLoad = SliceLoad { take: 2, locks: 3, steps: 10 };

    fn slice(threads: usize, length: Duration) -> Slice {
        Slice { lock: "a set", threads, length, patience: Duration::from_secs(20) }
    }

    #[test]
    fn every_turn_is_counted_and_timed() {
        let stop = AtomicBool::new(false);
        let mut quiet = |_: u64, _: u64, _: &str| {};
        let session = Session::new(&stop, &mut quiet);
        let length = Duration::from_millis(50);
        let set = Contexts::new(Scheme::WaitDie, LOAD.locks);
        let sample = counted(&slice(3, length), LOAD, set, &session).expect("excludes");
        assert!(sample.tally.turns > 0);
        assert_eq!(sample.times.overtaken, 0, "nobody counted");
        let clock = Ticks::calibrated();
        let set = Trying::new(LOAD.locks);
        let sample = timed(&slice(3, length), LOAD, set, clock, &session).expect("excludes");
        assert!(sample.tally.turns > 0 && sample.times.ticks.max_ns(clock) > 0);
        assert!(sample.times.overtaken < sample.tally.turns);
    }

    #[test]
    fn of_two_locks_a_refused_turn_had_one() {
        let stop = AtomicBool::new(false);
        let mut quiet = |_: u64, _: u64, _: &str| {};
        let session = Session::new(&stop, &mut quiet);
        let found = (0..1000).any(|_| {
            let (length, set) = (Duration::from_millis(20), Trying::new(LOAD.locks));
            let sample = counted(&slice(4, length), LOAD, set, &session).expect("excludes");
            assert_eq!(sample.tally.refusals, sample.tally.retries);
            sample.tally.refusals > 0
        });
        assert!(found, "no turn was refused");
    }

    #[test]
    fn locks_that_do_not_exclude_are_an_error() {
        let stop = AtomicBool::new(false);
        let mut quiet = |_: u64, _: u64, _: &str| {};
        let session = Session::new(&stop, &mut quiet);
        // On a busy machine the threads may run one after the other for a while.
        let found = (0..100).any(|_| {
            let length = Duration::from_millis(50);
            let outcome = counted(&slice(4, length), LOAD, Nothing, &session);
            matches!(outcome, Err(Error::Broken { .. }))
        });
        assert!(found, "no slice lost a count");
    }

    #[test]
    fn a_sleep_is_a_voluntary_switch() {
        let [before, _] = switches();
        std::thread::sleep(Duration::from_millis(1));
        assert!(switches()[0] > before);
    }
}
