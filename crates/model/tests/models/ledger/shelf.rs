//! Threads that insert into one table at once.

use lockstead_ledger::table::{AddressTable, Inserted};
use lockstead_model::{Cell, Model, Ordering, Scenario, U64};

/// Logarithm of the slots of the first level.
const FIRST: u32 = 2;
/// Slots of the first two levels.
const SLOTS: usize = 4 + 8;
/// All keys of a model have this hash.
const HASH: u64 = 5 << 32 | 1;

pub(super) struct Shelf {
    slots: [U64; SLOTS],
    level: U64,
    fill: U64,
    /// The key of each element; element 0 is never used.
    keys: [Cell<u32>; 5],
    /// What each insertion of the threads came to.
    results: [Cell<Option<Inserted>>; 2],
}

impl Shelf {
    /// Makes a shelf with so many elements in it, of other keys and hashes.
    fn with(taken: u32) -> Shelf {
        let shelf = Shelf {
            slots: [const { U64::ZERO }; SLOTS],
            level: U64::ZERO,
            fill: U64::ZERO,
            keys: std::array::from_fn(|_| Cell::new(0)),
            results: std::array::from_fn(|_| Cell::new(None)),
        };
        shelf.fill.store(taken.into(), Ordering::Relaxed);
        shelf
    }

    fn table(&self) -> AddressTable<'_, Model, FIRST> {
        AddressTable::new(&self.slots, &self.level, &self.fill)
    }

    fn find(&self, key: u32) -> Option<u32> {
        self.table().find(HASH, |index| self.keys[index as usize].get() == key)
    }

    /// Makes an element and inserts it.
    fn insert(&self, thread: usize, key: u32) {
        let index = thread as u32 + 1;
        self.keys[index as usize].set(key);
        let is = |other: u32| self.keys[other as usize].get() == key;
        let result = self.table().insert(HASH, index, is);
        if let Inserted::Found(other) = result {
            assert_eq!(self.keys[other as usize].get(), key, "another key's element");
        }
        // Whoever has inserted finds what he inserted, or its double.
        let found = self.find(key).expect("inserted");
        assert_eq!(self.keys[found as usize].get(), key);
        self.results[thread].set(Some(result));
    }

    /// Returns what the two insertions came to.
    fn results(&self) -> [Inserted; 2] {
        [0, 1].map(|thread| self.results[thread].get().expect("ended"))
    }

    fn opened(&self) -> bool {
        self.level.load(Ordering::Relaxed) > 0
    }
}

/// Makes the scenario in which two threads insert one key, a third looks for it.
pub(super) fn same_key(taken: u32) -> Scenario<Shelf> {
    Scenario::new(move || Shelf::with(taken))
        .thread(|shelf| shelf.insert(0, 7))
        .thread(|shelf| shelf.insert(1, 7))
        .thread(|shelf| {
            if let Some(found) = shelf.find(7) {
                assert!([1, 2].contains(&found));
            }
        })
        .after(|shelf| {
            let new = shelf.results().iter().filter(|&&r| r == Inserted::New).count();
            // Twice only if a level was opened in between (LEDGER-TABLE-DOUBLE).
            assert!(new == 1 || new == 2 && shelf.opened(), "{:?}", shelf.results());
        })
}

/// Makes the scenario in which two threads insert two keys of one hash, a third looks for one of
/// them.
pub(super) fn same_hash(taken: u32) -> Scenario<Shelf> {
    Scenario::new(move || Shelf::with(taken))
        .thread(|shelf| shelf.insert(0, 7))
        .thread(|shelf| shelf.insert(1, 8))
        .thread(|shelf| {
            if let Some(found) = shelf.find(8) {
                assert_eq!(found, 2);
            }
        })
        .after(|shelf| {
            assert_eq!(shelf.results(), [Inserted::New; 2]);
            assert_eq!((shelf.find(7), shelf.find(8)), (Some(1), Some(2)));
        })
}
