//! A hash table in shared memory that grows without moving anything.
//!
//! # Role
//! A table leads from the address of a lock to its record, from the hash of a stack
//! to the stack, and from that of an edge to its first record. Entries are never removed.
//!
//! # State
//! Levels of 2^[`FIRST`], 2^([`FIRST`]+1), ... slots at fixed places; zero is an
//! empty slot. A level is opened when the one before is half full. A slot holds
//! the index of its element and 32 bits of its hash.
//!
//! # Protocol
//! Find: newest level first, linear probing up to an empty slot. Insert: find;
//! then compare-exchange into the first empty slot of the newest level; a thread
//! that loses looks at what won.
//!
//! # Invariants
//! - **LEDGER-TABLE-COMPLETE** An element is complete before its slot is written (release), so
//!   a thread that finds it (acquire) sees it.
//! - **LEDGER-TABLE-DOUBLE** Two threads that insert the same key at the same time may both
//!   succeed only if a level was opened in between. Then the table has the key
//!   twice, finds are free to return either, and readers add up what they find:
//!   the identity of a lock is its address, not its index.
//!
//! # Progress
//! Lock-free: a failed exchange means that another thread has inserted. A probe
//! ends, for a level is never more than three quarters full: an insert that
//! finds no empty slot within `PROBES` opens the next level.

use crate::cells::{Cells, Native};
use crate::growth::{GrowingArea, Growth};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use lockstead_core::{Atomic64, fault};

/// The binary logarithm of the slots of the first level.
pub const FIRST: u32 = 12;

/// The levels above the first that any table can have: more slots than bytes of address
/// space.
const MOST_LEVELS: u32 = 32;

/// The slots that an insertion looks at before it goes to a new level.
const PROBES: usize = 128;

/// Returns the bytes of all levels that a table for `elements` needs.
#[must_use]
pub const fn bytes(elements: u64) -> u64 {
    // The newest level is opened when the one before is half full, so twice
    // the elements, in the sum of all levels twice that.
    let slots = if elements < 1 << FIRST { 1 << FIRST } else { elements };
    (slots * 2).next_power_of_two() * 2 * 8
}

/// A view of the table. Its first level has 2^`START` slots: always [`FIRST`], but
/// in models, which could not fill such a level.
#[derive(Debug)]
pub struct AddressTable<'a, C: Cells = Native, const START: u32 = FIRST> {
    slots: &'a [C::Word],
    level: &'a C::Word,
    fill: &'a C::Word,
    /// How far the slots are mapped, and which area they are; `None`: all are mapped.
    growth: Option<(&'static Growth, GrowingArea)>,
}

impl<C: Cells, const START: u32> Clone for AddressTable<'_, C, START> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Cells, const START: u32> Copy for AddressTable<'_, C, START> {}

/// What an insertion came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inserted {
    /// The element is in the table now.
    New,
    /// Another element with the same key was there or came first.
    Found(u32),
    /// All levels are full.
    Full,
}

impl<'a, C: Cells, const START: u32> AddressTable<'a, C, START> {
    /// Makes the view of `slots` with its two words in the header.
    #[must_use]
    pub fn new(slots: &'a [C::Word], level: &'a C::Word, fill: &'a C::Word) -> Self {
        AddressTable { slots, level, fill, growth: None }
    }

    /// Returns the same table, of which only those slots may be touched that are mapped.
    #[must_use]
    pub fn growing(self, growth: Option<&'static Growth>, area: GrowingArea) -> Self {
        AddressTable { growth: growth.map(|growth| (growth, area)), ..self }
    }

    /// Returns the slots of a level, if it is there and mapped.
    fn level(&self, level: u32) -> Option<&'a [C::Word]> {
        let slots = (1usize << START).checked_shl(level).filter(|_| level <= MOST_LEVELS)?;
        let start = slots - (1 << START);
        let found = self.slots.get(start..start + slots)?;
        let is_mapped = |(growth, area): (&Growth, GrowingArea)| {
            growth.reached(area) >= ((start + slots) * size_of::<u64>()) as u64
        };
        self.growth.is_none_or(is_mapped).then_some(found)
    }

    /// Tells whether there is such a level, and maps it if it is not.
    fn reach(&self, level: u32) -> bool {
        let end = (1usize << START).checked_shl(level + 1).map(|end| end - (1 << START));
        end.is_some_and(|end| {
            let bytes = (end * size_of::<u64>()) as u64;
            level <= MOST_LEVELS
                && end <= self.slots.len()
                && self.growth.is_none_or(|(growth, area)| growth.reach(area, bytes))
        })
    }

    /// Returns the newest level, or, of a damaged ledger, one that can be.
    fn newest(&self) -> u32 {
        // ord: LED-13 (acquire).
        self.level.load(Acquire).min(u64::from(MOST_LEVELS)) as u32
    }

    /// Returns the element with this hash for which `is` says yes.
    #[inline]
    pub fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let newest = self.newest();
        let oldest = if fault!(ledger_looks_into_the_newest_level_only) { newest } else { 0 };
        (oldest..=newest).rev().find_map(|level| {
            let slots = self.level(level)?;
            match probe(slots, hash, &is) {
                Probe::Found(index) => Some(index),
                Probe::Empty(_) | Probe::Crowded => None,
            }
        })
    }

    /// Inserts `index`, whose element is complete, unless the key is there.
    pub fn insert(&self, hash: u64, index: u32, is: impl Fn(u32) -> bool) -> Inserted {
        if let Some(found) = self.find(hash, &is) {
            return Inserted::Found(found);
        }
        loop {
            let newest = u64::from(self.newest());
            let Some(slots) = self.level(newest as u32) else { return Inserted::Full };
            match probe(slots, hash, &is) {
                Probe::Found(found) => return Inserted::Found(found),
                Probe::Empty(slot) => {
                    let value = hash & !0xffff_ffff | u64::from(index);
                    if fault!(ledger_overwrites_a_slot) {
                        slot.store(value, Release); // ord: LED-7
                        return Inserted::New;
                    }
                    // ord: LED-7 (release): publishes the element (LEDGER-TABLE-COMPLETE).
                    if slot.compare_exchange(0, value, Release, Relaxed).is_ok() {
                        if self.fill.fetch_add(1, Relaxed) as usize + 1 > slots.len() / 2 {
                            self.open(newest);
                        }
                        return Inserted::New;
                    }
                }
                Probe::Crowded if !self.open(newest) => return Inserted::Full,
                Probe::Crowded => {}
            }
        }
    }

    /// Opens the level after `newest`, and says whether there is one.
    fn open(&self, newest: u64) -> bool {
        if !self.reach(newest as u32 + 1) {
            return false;
        }
        // ord: LED-13 (release): the memory of the level, which `reach` has mapped.
        if self.level.compare_exchange(newest, newest + 1, Release, Relaxed).is_ok() {
            // Insertions that were counted meanwhile for the old level are
            // forgotten: the count only says when to open the next level.
            self.fill.store(0, Relaxed);
        }
        true
    }
}

enum Probe<'a, W> {
    Found(u32),
    Empty(&'a W),
    Crowded,
}

#[inline]
fn probe<'a, W: Atomic64>(slots: &'a [W], hash: u64, is: &impl Fn(u32) -> bool) -> Probe<'a, W> {
    let mask = slots.len() - 1;
    for step in 0..PROBES.min(slots.len()) {
        let slot = &slots[(hash as usize + step) & mask];
        // ord: LED-7 (acquire): the element (LEDGER-TABLE-COMPLETE).
        let value = slot.load(Acquire);
        if value == 0 {
            return Probe::Empty(slot);
        }
        if (value ^ hash) >> 32 == 0 && (fault!(ledger_believes_its_hashes) || is(value as u32)) {
            return Probe::Found(value as u32);
        }
    }
    Probe::Crowded
}

/// Spreads a key over 64 bits: the finaliser of `MurmurHash3` (Appleby).
#[inline(always)]
#[must_use]
pub const fn spread(key: u64) -> u64 {
    let key = (key ^ (key >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let key = (key ^ (key >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    key ^ (key >> 33)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::cells::NativeWord;
    use std::vec::Vec;

    fn slots(elements: u64) -> Vec<NativeWord> {
        (0..bytes(elements) / 8).map(|_| NativeWord::ZERO).collect()
    }

    #[test]
    fn grows_and_finds_everything() {
        let memory = slots(1 << 16);
        let (level, fill) = (NativeWord::ZERO, NativeWord::ZERO);
        let table = AddressTable::<Native>::new(&memory, &level, &fill);
        let key = |index: u32| spread(u64::from(index) * 40);
        for index in 1..=1 << 16 {
            assert_eq!(table.insert(key(index), index, |i| i == index), Inserted::New);
        }
        for index in 1..=1 << 16 {
            assert_eq!(table.find(key(index), |i| i == index), Some(index));
            assert_eq!(table.insert(key(index), 7, |i| i == index), Inserted::Found(index));
        }
        assert_eq!(table.find(spread(1), |_| true), None);
        assert!(level.load(Relaxed) > 0);
    }

    #[test]
    fn says_when_it_is_full() {
        let memory = slots(1);
        let (level, fill) = (NativeWord::ZERO, NativeWord::ZERO);
        let table = AddressTable::<Native>::new(&memory, &level, &fill);
        // One hash for all: the worst distribution fills the probes first.
        let mut count = 0;
        while table.insert(1 << 32, count + 1, |_| false) == Inserted::New {
            count += 1;
        }
        assert!(count as usize >= PROBES, "{count}");
    }

    #[test]
    fn threads_that_insert_the_same_keys_agree() {
        let memory = slots(1 << 15);
        let (level, fill) = (NativeWord::ZERO, NativeWord::ZERO);
        let table = AddressTable::<Native>::new(&memory, &level, &fill);
        let new: usize = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(move || {
                        (1..=10_000)
                            .filter(|&i| {
                                table.insert(spread(u64::from(i)), i, |j| i == j) == Inserted::New
                            })
                            .count()
                    })
                })
                .collect();
            workers.into_iter().map(|w| w.join().unwrap()).sum()
        });
        // Doubles are possible only around the opening of a level (LEDGER-TABLE-DOUBLE).
        assert!((10_000..10_100).contains(&new), "{new}");
    }
}
