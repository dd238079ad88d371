//! The locks with a line: exclusion, turns, notifications that are counted, giving up, and a call
//! that is the last touch.
//!
//! The places in the line are in what the threads share, since the checker gives each thread its stack
//! only while it runs.

use crate::common::depth;
use crate::labels::{Part, races};
use crate::weakened::missed;
use lockstead_core::policy::NoSpin;
use lockstead_core::{
    LockError, Nanos, Off, Place, Platform, RawExactCondvar, RawFifoMutex, RawMutex, WaitBounds,
};
use lockstead_model::{Cell, Config, FailureKind, Model, Ordering, Scenario, U32, freed};
use std::panic::Location;

const FOREVER: WaitBounds<'static, Model> = WaitBounds::FOREVER;
const TIMED: WaitBounds<'static, Model> = WaitBounds { deadline: Some(Nanos(100)), ..FOREVER };

fn two() -> Config {
    Config::new().spurious(0).stale_reads(1)
}

fn three() -> Config {
    two().processors(4).preemptions(depth(2, 3)).stale_reads(depth(0, 1))
}

/// Returns the limits where one timer fires and reads are fresh: otherwise it would be a thousand times
/// as many executions.
fn hurried() -> Config {
    two().preemptions(depth(2, 3)).stale_reads(depth(0, 1)).timeouts(1)
}

/// Returns the limits for three threads that spin until others stand in the line.
fn orderly() -> Config {
    two().processors(4).preemptions(1).stale_reads(0)
}

/// A number that holders of the mutex change, and a way for threads to meet.
struct Desk {
    lock: RawFifoMutex<Model, NoSpin>,
    number: Cell<u32>,
    flag: U32,
    places: [Place<Model>; 4],
}

fn places() -> [Place<Model>; 4] {
    [const { Place::new() }; 4]
}

/// Returns the place of the calling thread.
fn mine(places: &[Place<Model>; 4]) -> &Place<Model> {
    &places[Model::me().get() as usize - 1]
}

impl Desk {
    fn new() -> Self {
        Desk { lock: RawFifoMutex::new(), number: Cell::new(0), flag: U32::ZERO, places: places() }
    }

    fn lock(&self) {
        self.lock_or(&FOREVER).expect("not recursive");
    }

    fn lock_or(&self, how: &WaitBounds<'_, Model>) -> Result<(), LockError> {
        if self.lock.try_lock() { Ok(()) } else { self.lock.lock_at(mine(&self.places), how) }
    }

    fn unlock(&self) {
        // SAFETY: every caller has locked the mutex before, on this thread.
        unsafe { self.lock.unlock() };
    }

    /// Adds one as a holder, and returns the number before.
    fn visit(&self) -> u32 {
        self.lock();
        let before = self.number.get();
        self.number.set(before + 1);
        self.unlock();
        before
    }

    fn visit_or(&self, how: &WaitBounds<'_, Model>, error: LockError) {
        match self.lock_or(how) {
            Ok(()) => {
                self.number.set(self.number.get() + 1);
                self.unlock();
            }
            Err(given) => assert_eq!(given, error),
        }
    }

    /// Waits, spinning, until a thread stands in the line.
    fn somebody_queues(&self) {
        while !format!("{:?}", self.lock).contains("queued") {
            Model::relax();
        }
    }
}

fn desk(visitors: usize) -> Scenario<Desk> {
    Scenario::new(Desk::new)
        .threads(visitors, |desk| {
            desk.visit();
        })
        .after(move |desk: &Desk| {
            assert_eq!(desk.number.get(), visitors as u32);
            assert_eq!(format!("{:?}", desk.lock), "RawFifoMutex{owner=0}");
        })
}

/// Makes the scenario of two visitors, of whom one gives up.
fn impatient() -> Scenario<Desk> {
    Scenario::new(Desk::new)
        .thread(|desk| {
            desk.visit();
            desk.visit();
        })
        .thread(|desk| desk.visit_or(&TIMED, LockError::TimedOut))
        .after(|desk: &Desk| assert_eq!(format!("{:?}", desk.lock), "RawFifoMutex{owner=0}"))
}

/// Makes the scenario in which one thread queues before another, and both behind the holder.
fn in_turn() -> Scenario<Desk> {
    Scenario::new(Desk::new)
        .thread(|desk| {
            desk.lock();
            desk.flag.store(1, Ordering::Release);
            Model::wake(Model::address32(&desk.flag), u32::MAX);
            desk.somebody_queues();
            desk.flag.store(2, Ordering::Release);
            Model::wake(Model::address32(&desk.flag), u32::MAX);
            desk.unlock();
        })
        .thread(|desk| {
            reaches(&desk.flag, 1);
            assert_eq!(desk.visit(), 0, "the first in the line");
        })
        .thread(|desk| {
            reaches(&desk.flag, 2);
            assert_eq!(desk.visit(), 1, "the second in the line");
        })
}

fn reaches(flag: &U32, value: u32) {
    loop {
        let seen = flag.load(Ordering::Acquire);
        if seen >= value {
            return;
        }
        Model::wait32(flag, seen, &FOREVER);
    }
}

/// Makes the scenario in which the second of two visitors frees the mutex.
fn last_visitor_frees() -> Scenario<Desk> {
    Scenario::new(Desk::new).threads(2, |desk| {
        let before = desk.visit();
        // Where the thread stood is its stack, which it uses for other things now.
        freed(mine(&desk.places));
        if before == 1 {
            freed(&desk.lock);
        }
    })
}

#[test]
fn model_fifo_mutex_excludes_3t() {
    let stats = desk(2).verify("fair mutex, 2 threads", &Config::new().stale_reads(1));
    stats.must_be_complete();
    desk(3).verify("fair mutex, 3 threads", &three());
}

#[test]
fn model_fifo_mutex_goes_in_turn_3t() {
    in_turn().verify("fair mutex, in turn, 3 threads", &orderly());
    // Who releases and asks again stands behind those who wait.
    Scenario::new(Desk::new)
        .thread(|desk| {
            desk.lock();
            desk.flag.store(1, Ordering::Release);
            Model::wake(Model::address32(&desk.flag), 1);
            desk.somebody_queues();
            desk.unlock();
            assert_eq!(desk.visit(), 1, "the other thread was granted it");
        })
        .thread(|desk| {
            reaches(&desk.flag, 1);
            desk.visit();
        })
        .verify("fair mutex, no barging, 2 threads", &orderly());
}

#[test]
fn model_fifo_mutex_gives_up_3t() {
    impatient().verify("fair mutex, one gives up, 2 threads", &hurried());
    let many = desk_of_three_impatient();
    many.verify("fair mutex, two give up, 3 threads", &hurried().processors(4).timeouts(2));
}

fn desk_of_three_impatient() -> Scenario<Desk> {
    Scenario::new(Desk::new)
        .threads(2, |desk| desk.visit_or(&TIMED, LockError::TimedOut))
        .thread(|desk| {
            desk.visit();
        })
        .after(|desk: &Desk| assert_eq!(format!("{:?}", desk.lock), "RawFifoMutex{owner=0}"))
}

#[test]
fn model_fifo_mutex_is_freed_after_release_2t() {
    let stats = last_visitor_frees().verify("fair mutex, the last frees, 2 threads", &two());
    stats.must_be_complete();
}

/// Things to take, and a way to hear of them that needs no second look.
struct Store {
    lock: RawMutex<Model, Off, NoSpin>,
    more: RawExactCondvar<Model, NoSpin>,
    things: Cell<u32>,
    /// The threads that wait, as the callers count.
    waiting: Cell<u32>,
    /// The threads that were notified and have not taken their thing.
    told: Cell<u32>,
    places: [Place<Model>; 4],
}

impl Store {
    fn new() -> Self {
        Store {
            lock: RawMutex::new(),
            more: RawExactCondvar::new(),
            things: Cell::new(0),
            waiting: Cell::new(0),
            told: Cell::new(0),
            places: places(),
        }
    }

    fn lock(&self) {
        self.lock.lock(Location::caller()).expect("not recursive");
    }

    fn unlock(&self) {
        // SAFETY: every caller has locked the mutex before, on this thread.
        unsafe { self.lock.unlock() };
    }

    /// Takes a thing. Waits once: nobody returns who was not told.
    fn take(&self) {
        self.take_or(&FOREVER);
    }

    fn take_or(&self, how: &WaitBounds<'_, Model>) {
        self.lock();
        // A thing for each that was told is not for others.
        if self.things.get() <= self.told.get() {
            self.waiting.set(self.waiting.get() + 1);
            let ended = self.more.wait_at(mine(&self.places), || self.unlock(), how);
            self.lock();
            match ended {
                // The notifier has taken this thread off.
                Ok(()) => self.told.set(self.told.get() - 1),
                Err(LockError::TimedOut) => {
                    self.waiting.set(self.waiting.get() - 1);
                    self.unlock();
                    return;
                }
                Err(error) => panic!("{error:?}"),
            }
            assert!(self.things.get() > 0, "told of a thing that is not there");
        }
        self.things.set(self.things.get() - 1);
        self.unlock();
    }

    /// Brings a thing for each that waits, and tells all.
    fn put_for_all(&self) {
        self.lock();
        let waiting = self.waiting.get();
        let told = self.more.notify_all().expect("no handler") as u32;
        assert!(told <= waiting, "{told} of {waiting}");
        self.waiting.set(waiting - told);
        self.told.set(self.told.get() + told);
        // One for each that was told, and one for who comes later.
        self.things.set(self.things.get() + told + 1);
        self.unlock();
    }

    /// Brings a thing for one that waits, if one does.
    fn put_for_one(&self) {
        self.lock();
        if self.more.notify_one().expect("no handler") {
            self.waiting.set(self.waiting.get() - 1);
            self.told.set(self.told.get() + 1);
        } else {
            assert_eq!(self.waiting.get(), 0, "a thread that waits is told");
        }
        self.things.set(self.things.get() + 1);
        self.unlock();
    }
}

fn told(store: &Store) {
    assert_eq!((store.waiting.get(), store.told.get()), (0, 0));
}

/// Makes the scenario of one that takes and one that puts.
fn store() -> Scenario<Store> {
    Scenario::new(Store::new).thread(Store::take).thread(Store::put_for_one).after(told)
}

#[test]
fn model_exact_condvar_tells_3t() {
    let stats = store().verify("exact condvar, 2 threads", &Config::new().stale_reads(1));
    stats.must_be_complete();
    Scenario::new(Store::new)
        .threads(2, Store::take)
        .thread(|store| {
            store.put_for_one();
            store.put_for_one();
        })
        .after(told)
        .verify("exact condvar, one by one, 3 threads", &three());
    Scenario::new(Store::new)
        .threads(2, Store::take)
        .thread(|store| {
            store.put_for_all();
            store.put_for_one();
        })
        .after(told)
        .verify("exact condvar, all, 3 threads", &three());
}

/// Makes the scenario of one that gives up: who gives up and is notified at the same time was notified.
fn gives_up() -> Scenario<Store> {
    Scenario::new(Store::new)
        .thread(|store| store.take_or(&TIMED))
        .thread(|store| {
            store.lock();
            let waited = store.waiting.get() > 0;
            if store.more.notify_one().expect("no handler") {
                assert!(waited);
                store.waiting.set(store.waiting.get() - 1);
                store.told.set(store.told.get() + 1);
            }
            store.things.set(store.things.get() + 1);
            store.unlock();
        })
        .after(told)
}

#[test]
fn model_exact_condvar_gives_up_2t() {
    gives_up().verify("exact condvar, one gives up, 2 threads", &hurried());
}

#[test]
fn model_fifo_misses_broken_variants() {
    missed!(in_turn(), line_newcomer_stands_first, FailureKind::Panic(_), orderly());
    missed!(
        impatient(),
        line_leaver_ignores_a_call,
        FailureKind::Deadlock | FailureKind::Panic(_),
        hurried()
    );
    let gives_up = gives_up();
    missed!(gives_up, line_leaver_ignores_a_call, FailureKind::Panic(_), hurried());
    let frees = last_visitor_frees();
    missed!(frees, line_grants_under_the_gate, FailureKind::UseAfterFree, two());
}

#[test]
fn model_fifo_misses_each_ordering() {
    let orderings = [
        ("fifo/mutex.rs", "FAIR-1", Part::All),
        ("fifo/mutex.rs", "FAIR-2", Part::All),
        ("fifo/mod.rs", "LINE-1", Part::All),
        ("fifo/mod.rs", "LINE-2", Part::All),
    ];
    missed(&desk(2), &two(), &orderings, races);
}
