//! Where a table puts what is inserted, when it opens a level, and what it finds.

use crate::common::{Watched, Word, before_access, unplayed};
use lockstead_core::Atomic64;
use lockstead_ledger::growth::{AREAS, GrowingArea, Growth};
use lockstead_ledger::table::{AddressTable, FIRST, Inserted, bytes, spread};
use std::cell::{Cell, RefCell};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// A table whose first level has four slots.
type Table = AddressTable<'static, Watched, 2>;

struct Shelf {
    slots: &'static [Word],
    level: &'static Word,
    fill: &'static Word,
}

impl Shelf {
    fn new(slots: usize) -> Self {
        Shelf {
            slots: (0..slots).map(|_| Word::ZERO).collect::<Vec<_>>().leak(),
            level: Box::leak(Box::new(Word::ZERO)),
            fill: Box::leak(Box::new(Word::ZERO)),
        }
    }

    fn table(&self) -> Table {
        AddressTable::new(self.slots, self.level, self.fill)
    }

    /// Returns the slots that are in use, and what has the index `index` there.
    fn used(&self) -> Vec<(usize, u64)> {
        let all = self.slots.iter().map(Word::get).enumerate();
        all.filter(|(_, value)| *value != 0).collect()
    }

    fn counts(&self) -> (u64, u64) {
        (self.level.get(), self.fill.get())
    }
}

/// Returns a hash that begins its search at this slot.
fn hash(number: u64, slot: u64) -> u64 {
    number << 32 | slot
}

/// Inserts what is nowhere yet.
fn insert(table: Table, number: u64, slot: u64) -> Inserted {
    table.insert(hash(number, slot), number as u32, |index| u64::from(index) == number)
}

fn find(table: Table, number: u64, slot: u64) -> Option<u32> {
    table.find(hash(number, slot), |index| u64::from(index) == number)
}

fn at(of: &Word) -> usize {
    core::ptr::from_ref(of).addr()
}

#[test]
fn a_level_opens_when_the_one_before_is_half_full() {
    let shelf = Shelf::new(28);
    let table = shelf.table();
    // Number, where its search begins, where it comes to lie, and the level and its count after it.
    let steps = [
        (1, 0, 0, (0, 1)),
        (2, 7, 3, (0, 2)),
        (3, 3, 1, (1, 0)),
        (4, 7, 11, (1, 1)),
        (5, 15, 4, (1, 2)),
        (6, 0, 5, (1, 3)),
        (7, 2, 6, (1, 4)),
        (8, 6, 10, (2, 0)),
        (9, 15, 27, (2, 1)),
        (10, 31, 12, (2, 2)),
    ];
    for (number, begin, slot, counts) in steps {
        assert_eq!(find(table, number, begin), None);
        assert_eq!(insert(table, number, begin), Inserted::New);
        assert_eq!(shelf.slots[slot].get(), number << 32 | number, "{number}");
        assert_eq!(shelf.counts(), counts, "{number}");
    }
    assert_eq!(shelf.used().len(), 10);
    for (number, begin, ..) in steps {
        assert_eq!(find(table, number, begin), Some(number as u32));
        assert_eq!(insert(table, number, begin), Inserted::Found(number as u32));
    }
    // There is no further level: the last one is used up to its last slot.
    for number in 11..=24 {
        assert_eq!(insert(table, number, number), Inserted::New, "{number}");
    }
    assert_eq!((shelf.used().len(), shelf.level.get()), (24, 2));
    assert_eq!(insert(table, 25, 0), Inserted::Full);
    assert_eq!(find(table, 24, 24), Some(24));
}

#[test]
fn a_level_that_does_not_fit_is_none() {
    for (slots, newest) in [(11, 0), (12, 1), (27, 1), (28, 2)] {
        let shelf = Shelf::new(slots);
        let mut number = 0;
        while insert(shelf.table(), number + 1, number) == Inserted::New {
            number += 1;
        }
        assert_eq!(shelf.level.get(), newest, "{slots}");
        // Every slot of the newest level, and of the older ones a half and one more.
        assert_eq!(number, [4, 3 + 8, 3 + 5 + 16][newest as usize], "{slots}");
    }
    assert_eq!(insert(Shelf::new(3).table(), 1, 0), Inserted::Full);
    assert_eq!(find(Shelf::new(3).table(), 1, 0), None);
}

#[test]
fn the_newest_level_is_searched_first_and_only_what_has_the_hash_is_asked() {
    let shelf = Shelf::new(28);
    let table = shelf.table();
    for (slot, index) in [(0, 1), (1, 2), (2, 3), (4, 4), (5, 5), (12, 6)] {
        shelf.slots[slot].set(9 << 32 | index);
    }
    shelf.slots[13].set(8 << 32 | 7);
    shelf.slots[14].set(9 << 32 | 8);
    shelf.level.set(2);
    let asked = |no: u32| {
        let asked = RefCell::new(Vec::new());
        let found = table.find(hash(9, 0), |index| {
            asked.borrow_mut().push(index);
            index == no
        });
        (found, asked.into_inner())
    };
    assert_eq!(asked(6), (Some(6), vec![6]));
    assert_eq!(asked(5), (Some(5), vec![6, 8, 4, 5]));
    assert_eq!(asked(3), (Some(3), vec![6, 8, 4, 5, 1, 2, 3]));
    assert_eq!(asked(99), (None, vec![6, 8, 4, 5, 1, 2, 3]));
    // Of a damaged ledger there is no such level.
    for level in [3, 32, 33, 1 << 32, !0] {
        shelf.level.set(level);
        assert_eq!(asked(3).0, Some(3), "{level}");
        assert_eq!(insert(table, 20, 0), Inserted::Full);
    }
}

#[test]
fn who_comes_second_looks_at_what_won() {
    // Each insertion looks at the slot to find, to insert, and exchanges it.
    for (same, looks) in [(true, 1), (true, 2), (false, 1), (false, 2)] {
        let shelf = Shelf::new(12);
        let (table, slot) = (shelf.table(), at(&shelf.slots[1]));
        for _ in 0..looks {
            before_access(slot, || {});
        }
        before_access(slot, move || {
            let other = if same { 9 } else { 8 };
            assert_eq!(table.insert(hash(other, 1), 5, |_| false), Inserted::New);
        });
        let is = |index| index == 5 || index == 6;
        let expected = if same { Inserted::Found(5) } else { Inserted::New };
        assert_eq!(table.insert(hash(9, 1), 6, is), expected);
        let mut used = vec![(1, (if same { 9 } else { 8 }) << 32 | 5)];
        if !same {
            used.push((2, 9 << 32 | 6));
        }
        assert_eq!((shelf.used(), unplayed()), (used, 0));
    }
    // Another thread has opened the level: it counts for that one.
    let shelf = Shelf::new(12);
    let (level, fill) = (shelf.level, shelf.fill);
    for number in 1..=2 {
        insert(shelf.table(), number, 0);
    }
    for opened in [false, false, true] {
        before_access(at(level), move || {
            if opened {
                level.set(1);
                fill.set(7);
            }
        });
    }
    assert_eq!(insert(shelf.table(), 3, 0), Inserted::New);
    assert_eq!((shelf.counts(), unplayed()), ((1, 7), 0));
}

#[test]
fn an_insertion_looks_at_so_many_slots_and_then_goes_to_the_next_level() {
    for (size, last) in [(256, Inserted::Full), (256 + 512, Inserted::New)] {
        let slots: Vec<Word> = (0..size).map(|_| Word::ZERO).collect();
        let (level, fill) = (Word::ZERO, Word::ZERO);
        let table = AddressTable::<Watched, 8>::new(&slots, &level, &fill);
        for number in 1..=128 {
            assert_eq!(table.insert(hash(1, 200), number, |_| false), Inserted::New);
        }
        assert_eq!((slots[71].get(), level.get()), (hash(1, 128), 0));
        assert_eq!(table.insert(hash(1, 200), 129, |_| false), last);
        let next = slots.get(256 + 200).map(Word::get);
        assert_eq!(
            (next, level.get()),
            if size == 256 { (None, 0) } else { (Some(hash(1, 129)), 1) }
        );
    }
}

#[test]
fn a_table_has_room_for_its_elements() {
    assert_eq!(FIRST, 12);
    let sizes = [(0, 1 << 17), (4095, 1 << 17), (4096, 1 << 17), (4097, 1 << 18), (8192, 1 << 18)];
    for (elements, size) in sizes {
        assert_eq!(bytes(elements), size, "{elements}");
    }
    let slots: Vec<Word> = (0..4096).map(|_| Word::ZERO).collect();
    let (level, fill) = (Word::ZERO, Word::ZERO);
    let table = AddressTable::<Watched>::new(&slots, &level, &fill);
    assert_eq!(table.insert(hash(1, 4095), 7, |_| false), Inserted::New);
    assert_eq!(slots[4095].get(), hash(1, 7));
}

#[test]
fn a_key_is_spread_over_all_bits() {
    let known = [
        (0, 0),
        (1, 0xb456_bcfc_34c2_cb2c),
        (40, 0x2866_3336_06de_98f9),
        (1 << 40, 0xe80f_632e_d2f2_32f6),
        (u64::MAX, 0x64b5_720b_4b82_5f21),
    ];
    for (key, hash) in known {
        assert_eq!(spread(key), hash);
    }
}

thread_local! {
    /// What was asked to be mapped, and whether that can be.
    static ASKED: RefCell<Vec<(GrowingArea, u64)>> = const { RefCell::new(Vec::new()) };
    static GROWS: Cell<bool> = const { Cell::new(false) };
}

fn growth(reached: u64) -> &'static Growth {
    let more = |area, bytes| {
        ASKED.with_borrow_mut(|all| all.push((area, bytes)));
        GROWS.get()
    };
    let growth = Growth { reached: [const { AtomicU64::new(0) }; AREAS], more };
    growth.reached[GrowingArea::EdgeTable as usize].store(reached, Relaxed);
    Box::leak(Box::new(growth))
}

#[test]
fn only_what_is_mapped_is_touched() {
    let area = GrowingArea::EdgeTable;
    let shelf = Shelf::new(28);
    let growing = |reached| shelf.table().growing(Some(growth(reached)), area);
    assert_eq!(insert(growing(31), 1, 0), Inserted::Full);
    assert_eq!(insert(growing(32), 1, 0), Inserted::New);
    assert_eq!((find(growing(31), 1, 0), find(growing(32), 1, 0)), (None, Some(1)));
    assert_eq!(insert(growing(32), 2, 0), Inserted::New);
    assert_eq!(ASKED.take(), []);
    // The next level is asked for when it is to open.
    assert_eq!(insert(growing(95), 3, 0), Inserted::New);
    assert_eq!((ASKED.take(), shelf.counts()), (vec![(area, 96)], (0, 3)));
    GROWS.set(true);
    assert_eq!(insert(growing(95), 4, 0), Inserted::New);
    assert_eq!((ASKED.take(), shelf.counts()), (vec![(area, 96)], (1, 0)));
    assert_eq!(insert(growing(95), 5, 0), Inserted::Full);
    assert_eq!((find(growing(95), 4, 0), ASKED.take()), (Some(4), vec![]));
    for number in 5..=9 {
        assert_eq!(insert(growing(225), number, 0), Inserted::New);
    }
    assert_eq!((ASKED.take(), shelf.counts()), (vec![], (2, 0)));
    // The count of levels ends with the slots.
    shelf.level.set(3);
    assert_eq!(insert(growing(1 << 40), 10, 0), Inserted::Full);
    assert_eq!(insert(shelf.table().growing(None, area), 10, 0), Inserted::Full);
    // What is mapped is not asked for.
    ASKED.take();
    for reached in [224, 225] {
        assert!(growth(reached).reach(area, 224));
    }
    assert_eq!(ASKED.take(), []);
}
