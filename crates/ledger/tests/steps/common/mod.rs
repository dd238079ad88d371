//! Words of a ledger of which the test sees each store, and before whose accesses it says what others
//! do. Each test thread has its own.

use lockstead_core::{Atomic64, Ordering};
use lockstead_ledger::Cells;
use std::cell::RefCell;
use std::sync::atomic::AtomicU64;

/// The accesses of one test: more are a loop that does not end.
const MOST: usize = 1_000_000;

/// A place for words that the test watches.
#[derive(Debug)]
pub(crate) enum Watched {}

impl Cells for Watched {
    type Word = Word;
}

/// A word that the test watches.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Word(AtomicU64);

/// The address of a word, and what happens before an access there.
type Access = (usize, Box<dyn FnOnce()>);

thread_local! {
    static STORES: RefCell<Vec<(usize, u64)>> = const { RefCell::new(Vec::new()) };
    static ACCESSES: RefCell<Vec<Access>> = const { RefCell::new(Vec::new()) };
    static COUNT: RefCell<usize> = const { RefCell::new(0) };
}

/// Says what happens before the next access at this address that has nothing yet.
pub(crate) fn before_access(address: usize, action: impl FnOnce() + 'static) {
    ACCESSES.with_borrow_mut(|all| all.push((address, Box::new(action))));
}

/// Returns what no access has come to.
pub(crate) fn unplayed() -> usize {
    ACCESSES.take().len()
}

/// Returns the address of part `index` of what consists of words.
pub(crate) fn part<T>(of: &T, index: usize) -> usize {
    assert!((index + 1) * size_of::<Word>() <= size_of::<T>());
    core::ptr::from_ref(of).addr() + index * size_of::<Word>()
}

/// Returns the stores since the last call, each by the number of its place among `places`.
pub(crate) fn stores(places: &[usize]) -> Vec<(usize, u64)> {
    let number = |address| places.iter().position(|place| *place == address);
    let named = |(address, value)| (number(address).expect("a place that is known"), value);
    STORES.take().into_iter().map(named).collect()
}

impl Word {
    fn comes(&self) {
        let count = COUNT.with_borrow_mut(|count| {
            *count += 1;
            *count
        });
        assert!(count < MOST, "a loop without end");
        let here = core::ptr::from_ref(self).addr();
        let action = ACCESSES.with_borrow_mut(|all| {
            let first = all.iter().position(|(address, _)| *address == here)?;
            Some(all.remove(first).1)
        });
        if let Some(action) = action {
            action();
        }
    }

    fn stored(&self, value: u64) {
        STORES.with_borrow_mut(|all| all.push((core::ptr::from_ref(self).addr(), value)));
    }

    /// Returns the value, which is no access.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Writes the value, which is no access.
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

impl Atomic64 for Word {
    const ZERO: Self = Word(AtomicU64::new(0));

    fn load(&self, order: Ordering) -> u64 {
        self.comes();
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.comes();
        self.stored(value);
        self.0.store(value, order);
    }

    fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        self.comes();
        let old = self.0.fetch_add(value, order);
        self.stored(old.wrapping_add(value));
        old
    }

    fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
        self.comes();
        let old = self.0.fetch_sub(value, order);
        self.stored(old.wrapping_sub(value));
        old
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.comes();
        let outcome = self.0.compare_exchange(current, new, success, failure);
        if outcome.is_ok() {
            self.stored(new);
        }
        outcome
    }
}
