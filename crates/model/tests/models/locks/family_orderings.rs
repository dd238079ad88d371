//! Every labelled ordering of the semaphores, the reader-writer lock, once and the biased mutex: the
//! models notice when it is weaker.

use super::broken_biased;
use crate::common::{Insists, Sleeps};
use crate::labels::{Part, Weakened, races, sleeps};
use crate::weakened::missed;
use lockstead_core::biased::BiasedHold;
use lockstead_core::{
    ClassicSemaphore, LockError, Off, OnceError, Platform, Policy, RawOnce, RawRwLock,
    TunedSemaphore, WaitBounds,
};
use lockstead_model::{Cell, Config, Model, Ordering, Scenario, U32};
use std::panic::Location;

const FOREVER: WaitBounds<'static, Model> = WaitBounds::FOREVER;

/// Returns the orderings with these labels, of which all is taken away.
fn all<const N: usize>(file: &'static str, labels: [&'static str; N]) -> [Weakened; N] {
    labels.map(|label| (file, label, Part::All))
}

/// Makes the scenario of two threads that leave something with a permit each, and one that takes both.
macro_rules! delivers {
    ($semaphore:ty) => {
        Scenario::new(|| (<$semaphore>::new(0).expect("few permits"), [const { Cell::new(0) }; 2]))
            .thread(|(semaphore, goods)| {
                goods[0].set(1);
                semaphore.up().expect("room");
            })
            .thread(|(semaphore, goods)| {
                goods[1].set(1);
                semaphore.up().expect("room");
            })
            .thread(|(semaphore, goods)| {
                (0..2).for_each(|_| semaphore.down(Location::caller()));
                assert_eq!(goods[0].get() + goods[1].get(), 2);
            })
    };
}

#[test]
fn model_semaphore_misses_each_ordering() {
    type Classic = ClassicSemaphore<Model>;
    type Tuned = TunedSemaphore<Model, Off, Sleeps>;
    let config = Config::new().preemptions(2);
    let classic = all("semaphore/classic.rs", ["CLASSIC-1", "CLASSIC-2", "CLASSIC-3"]);
    missed(&delivers!(Classic), &config, &classic, races);
    let tuned = all("semaphore/tuned.rs", ["WORD-1", "WORD-2"]);
    missed(&delivers!(Tuned), &config, &tuned, races);
}

/// A reader-writer lock and a text.
struct Book<Y: Policy> {
    lock: RawRwLock<Model, Off, Y>,
    text: Cell<u32>,
}

/// Makes the scenario of so many readers and writers.
fn book<Y: Policy>(readers: usize, writers: usize) -> Scenario<Book<Y>> {
    Scenario::new(|| Book { lock: RawRwLock::new(), text: Cell::new(0) })
        .threads(readers, |book| {
            book.lock.read(Location::caller()).expect("not recursive");
            book.text.get();
            // SAFETY: this thread has locked it for reading.
            unsafe { book.lock.unlock_read() };
        })
        .threads(writers, |book| {
            book.lock.write(Location::caller()).expect("not recursive");
            book.text.set(book.text.get() + 1);
            // SAFETY: this thread has locked it for writing.
            unsafe { book.lock.unlock_write() };
        })
}

#[test]
fn model_rwlock_misses_each_ordering() {
    const FILE: &str = "rwlock/mod.rs";
    let config = Config::new().preemptions(3);
    let both = book::<Sleeps>(1, 1);
    missed(&both, &config, &all(FILE, ["RW-1", "RW-2"]), races);
    // Without the word's age tied to the wake sequence's, *next* sleeps through a call.
    let called = [(FILE, "RW-3", Part::All), ("rwlock/waiter.rs", "BELL-1", Part::All)];
    missed(&both, &config, &called, sleeps);
    // Whoever is handed the lock learns it by a load.
    let promised = config.timeouts(1).spurious(0);
    missed(&book::<Insists>(0, 2), &promised, &all(FILE, ["RW-4"]), races);
}

/// A once, what its initialiser makes, and what one that fails leaves behind.
struct Made {
    once: RawOnce<Model>,
    made: Cell<u32>,
    debris: Cell<u32>,
}

impl Made {
    fn see(&self) {
        assert_eq!(self.made.get(), 1);
    }

    fn call(&self) {
        self.once.call_once(&FOREVER, || self.made.set(1)).expect("waits for ever");
        self.see();
    }

    fn look(&self) {
        if self.once.is_completed() {
            self.see();
        }
    }

    /// Runs an initialiser that fails, unless another was quicker; with `force` also after one that
    /// failed.
    fn fail(&self, force: bool) {
        match self.once.begin(force, &FOREVER) {
            Ok(Some(turn)) => {
                self.debris.set(self.debris.get() + 1);
                drop(turn);
            }
            Ok(None) => self.see(),
            Err(error) => assert_eq!(error, OnceError::Poisoned),
        }
    }

    /// Makes good what failed.
    fn repair(&self) {
        let repaired = self.once.call_once_force(&FOREVER, |failed| {
            assert_eq!(self.debris.get() > 0, failed);
            self.made.set(1);
        });
        repaired.expect("waits for ever");
        self.see();
    }
}

#[test]
fn model_once_misses_each_ordering() {
    const FILE: &str = "once.rs";
    let made = || {
        let make = || Made { once: RawOnce::new(), made: Cell::new(0), debris: Cell::new(0) };
        Scenario::new(make)
    };
    let looks = made().thread(Made::call).thread(Made::look);
    let repaired = made().thread(|s| s.fail(false)).thread(Made::repair);
    let config = Config::new();
    missed(&looks, &config, &all(FILE, ["ONCE-1", "ONCE-2"]), races);
    missed(&repaired, &config, &all(FILE, ["ONCE-2"]), races);
    // The load has acquired what a failed run left behind, unless another has
    // failed since and the exchange finds the word as it was.
    let twice = made().threads(2, |s| s.fail(true)).thread(Made::repair);
    let config = config.spurious(0).preemptions(2);
    missed(&twice, &config, &all(FILE, ["ONCE-3"]), races);
}

/// A biased mutex, how the first thread holds it, and whether it does.
type Handed = (broken_biased::Guarded, Cell<Option<BiasedHold>>, U32);

/// Makes the scenario in which a slot changes hands while its thread, which is about to end, holds
/// the lock: the slot's next thread finds that it is the owner, and waits until the lock is released.
/// One thread stands for the slot's next one, and takes the lock for the other.
fn slot_changes_hands() -> Scenario<Handed> {
    Scenario::new(|| (broken_biased::Guarded::new(), Cell::new(None), U32::ZERO))
        .thread(|(guarded, held, taken)| {
            held.set(Some(guarded.lock.lock(Location::caller()).expect("free")));
            taken.store(1, Ordering::Release);
            let hold = loop {
                match guarded.lock.lock(Location::caller()) {
                    Ok(hold) => break hold,
                    Err(error) => assert_eq!(error, LockError::Recursive),
                }
                Model::relax();
            };
            guarded.section();
            // SAFETY: this thread locked it above, in the way that the hold says, and releases it
            // once.
            unsafe { guarded.lock.unlock(hold) };
        })
        .thread(|(guarded, held, taken)| {
            while taken.load(Ordering::Acquire) == 0 {
                Model::relax();
            }
            guarded.section();
            // SAFETY: this thread stands for the one that had the slot and holds the lock; the other
            // one does not take it before this release.
            unsafe { guarded.lock.unlock(held.get().expect("taken")) };
        })
        .after(|(guarded, _, _)| assert_eq!(guarded.count.get(), 2))
}

#[test]
fn model_biased_misses_each_ordering() {
    const FILE: &str = "biased.rs";
    let config = Config::new().rescue(true).spurious(0).slow_unlocks(0);
    missed(&slot_changes_hands(), &config, &all(FILE, ["BIAS-1"]), races);
    missed(&broken_biased::two(), &config, &all(FILE, ["BIAS-2", "BIAS-3", "BIAS-4"]), races);
}
