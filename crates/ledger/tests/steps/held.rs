//! The held stack, as its thread changes it, as others take entries away, and as it is read.

use crate::common::{Watched, Word, before_access, part, stores, unplayed};
use lockstead_core::Atomic64;
use lockstead_ledger::publish::{Flags, Full, HeldEntry, HeldStack, Holding};

type Entry = HeldEntry<Watched>;

/// The number of entries of these stacks.
const ENTRIES: usize = 5;

/// The words of an entry, in their order; and behind all entries the place of `top`.
const ADDRESS: usize = 0;
const PLACE: usize = 1;
const HOW: usize = 2;
const STARTED: usize = 3;
const TOP: usize = 4 * ENTRIES;
/// The place of the number of emptied entries.
const EMPTIED: usize = TOP + 1;

struct Thread {
    top: &'static Word,
    emptied: &'static Word,
    entries: &'static [Entry],
}

impl Thread {
    fn new() -> Self {
        Thread::with_room_for(ENTRIES)
    }

    fn with_room_for(entries: usize) -> Self {
        let entries: Vec<Entry> = (0..entries).map(|_| Entry::NONE).collect();
        Thread {
            top: Box::leak(Box::new(Word::ZERO)),
            emptied: Box::leak(Box::new(Word::ZERO)),
            entries: Box::leak(entries.into_boxed_slice()),
        }
    }

    fn stack(&self) -> HeldStack<'static, Watched> {
        HeldStack::new(self.top, self.emptied, self.entries)
    }

    /// Makes a thread that holds these, the oldest first; zero is an entry that was taken away.
    fn holding(numbers: &[u64]) -> Self {
        let thread = Thread::with_room_for(numbers.len().max(ENTRIES));
        let taken = |index: usize| holding(0x1000 + index as u64);
        for (index, number) in numbers.iter().enumerate() {
            let held = if *number == 0 { taken(index) } else { holding(*number) };
            thread.stack().push(&held).expect("room");
        }
        for index in (0..numbers.len()).filter(|&index| numbers[index] == 0) {
            assert!(thread.stack().revoke(taken(index).address).is_some());
            assert_eq!(thread.stack().entry(index).address(), 0);
        }
        thread.changes();
        thread
    }

    /// Returns the stores since the last call: `4 * entry + word`, [`TOP`] or [`EMPTIED`].
    fn changes(&self) -> Vec<(usize, u64)> {
        let words = self.entries.iter().flat_map(|entry| (0..4).map(move |word| part(entry, word)));
        stores(&words.chain([part(self.top, 0), part(self.emptied, 0)]).collect::<Vec<_>>())
    }

    /// Returns what stands there, by the numbers of the locks.
    fn held(&self) -> Vec<u64> {
        let number = |index| {
            self.stack().entry(index).read().map_or(0, |found| {
                assert_eq!(found, holding(found.address >> 32));
                found.address >> 32
            })
        };
        (0..self.stack().depth()).map(number).collect()
    }
}

/// Returns a held lock; those of even numbers have an exact time.
fn holding(number: u64) -> Holding {
    Holding {
        address: number << 32 | 8,
        lock: 0x8000_0000 | number as u32,
        stack: 0xc000_0000 | number as u32,
        tick: 0xa000_0000 | number as u32,
        flags: Flags(0x7000_0000 | number as u32),
        started: if number.is_multiple_of(2) { number << 50 } else { 0 },
    }
}

fn place(number: u64) -> u64 {
    (0xc000_0000 | number) << 32 | 0x8000_0000 | number
}

fn how(number: u64) -> u64 {
    let timed = u64::from(number.is_multiple_of(2)) << 63;
    timed | (0x7000_0000 | number) << 32 | 0xa000_0000 | number
}

/// Returns the stores that fill an entry.
fn filled(index: usize, number: u64) -> Vec<(usize, u64)> {
    let mut expected = vec![(4 * index + PLACE, place(number))];
    if number.is_multiple_of(2) {
        expected.push((4 * index + STARTED, number << 50));
    }
    expected.push((4 * index + HOW, how(number)));
    expected.push((4 * index + ADDRESS, holding(number).address));
    expected
}

/// The order is what handlers and readers rely on (LEDGER-HELD).
#[test]
fn an_entry_is_above_the_top_until_that_is_raised_and_has_its_address_last() {
    let thread = Thread::new();
    assert_eq!((thread.stack().depth(), thread.held()), (0, vec![]));
    for index in 0..ENTRIES {
        let number = index as u64 + 1;
        assert_eq!(thread.stack().push(&holding(number)), Ok(index));
        let mut expected = vec![(TOP, number)];
        expected.extend(filled(index, number));
        assert_eq!(thread.changes(), expected);
    }
    assert_eq!(thread.held(), [1, 2, 3, 4, 5]);
    assert_eq!(thread.stack().push(&holding(6)), Err(Full));
    assert_eq!(thread.changes(), []);
    // A damaged count reaches no further than the entries.
    thread.top.set(ENTRIES as u64 + 1);
    assert_eq!(thread.stack().depth(), ENTRIES);
    assert_eq!(thread.stack().push(&holding(6)), Err(Full));
    assert_eq!(thread.stack().pop(holding(5).address), None);
}

#[test]
fn an_entry_goes_before_the_top_is_lowered() {
    let thread = Thread::holding(&[1, 2]);
    assert_eq!(thread.stack().pop(holding(2).address), Some(holding(2)));
    assert_eq!(thread.changes(), [(4 + ADDRESS, 0), (TOP, 1)]);
    assert_eq!(thread.stack().pop(holding(7).address), None);
    assert_eq!((thread.changes(), thread.held()), (vec![], vec![1]));
    assert_eq!(thread.stack().pop(holding(1).address), Some(holding(1)));
    assert_eq!(thread.changes(), [(ADDRESS, 0), (TOP, 0)]);
    assert_eq!(thread.stack().pop(holding(1).address), None);
    assert_eq!((thread.changes(), thread.held()), (vec![], vec![]));
    // An entry without an exact time has none, whatever stood there.
    let thread = Thread::holding(&[2]);
    thread.stack().pop(holding(2).address);
    thread.stack().push(&holding(1)).expect("room");
    assert_eq!(thread.held(), [1]);
}

#[test]
fn what_is_below_the_newest_goes_and_the_others_move_down() {
    let thread = Thread::holding(&[1, 2, 3, 4]);
    assert_eq!(thread.stack().pop(holding(2).address), Some(holding(2)));
    let mut expected = vec![(4 + ADDRESS, 0)];
    expected.extend(filled(1, 3));
    expected.push((8 + ADDRESS, 0));
    expected.extend(filled(2, 4));
    expected.extend([(12 + ADDRESS, 0), (TOP, 3)]);
    assert_eq!(thread.changes(), expected);
    assert_eq!(thread.held(), [1, 3, 4]);
    // Of a lock that is held twice the newest entry goes.
    let thread = Thread::holding(&[1, 2, 1, 3]);
    assert_eq!(thread.stack().find(holding(1).address), Some((2, holding(1))));
    assert_eq!(thread.stack().pop(holding(1).address), Some(holding(1)));
    assert_eq!(thread.held(), [1, 2, 3]);
    assert_eq!(thread.stack().find(holding(1).address), Some((0, holding(1))));
    assert_eq!(thread.stack().find(holding(9).address), None);
}

#[test]
fn entries_that_were_taken_away_are_passed_over_and_dropped_from_the_top() {
    let thread = Thread::holding(&[1, 2, 0, 0]);
    assert_eq!(thread.stack().pop(holding(9).address), None);
    assert_eq!(thread.changes(), [(TOP, 3), (TOP, 2), (EMPTIED, 0)]);
    let thread = Thread::holding(&[1, 2, 0, 0]);
    assert_eq!(thread.stack().pop(holding(1).address), Some(holding(1)));
    assert_eq!(thread.held(), [2]);
    thread.changes();
    let thread = Thread::holding(&[0, 0]);
    assert_eq!(thread.stack().pop(holding(1).address), None);
    assert_eq!(thread.changes(), [(TOP, 1), (TOP, 0), (EMPTIED, 0)]);
    let thread = Thread::holding(&[1, 2, 0, 3, 4]);
    assert_eq!(thread.stack().pop(holding(1).address), Some(holding(1)));
    assert_eq!(thread.held(), [2, 0, 3, 4]);
    thread.changes();
    let thread = Thread::holding(&[1, 0, 0]);
    assert!(!thread.stack().tidy(), "nothing moves");
    assert_eq!(thread.changes(), [(TOP, 2), (TOP, 1), (EMPTIED, 0)]);
    // Where they are more than half the others move together.
    let thread = Thread::holding(&[0, 1, 0, 2]);
    assert!(!thread.stack().tidy());
    assert_eq!((thread.held(), thread.changes()), (vec![0, 1, 0, 2], vec![]));
    let thread = Thread::holding(&[0, 1, 0, 0, 2]);
    assert!(thread.stack().tidy());
    assert_eq!((thread.held(), thread.emptied.get()), (vec![1, 2], 0));
    thread.changes();
    thread.changes();
    let thread = Thread::holding(&[1, 3, 0, 0, 0, 2]);
    assert!(!thread.stack().tidy(), "not more than half");
    thread.stack().revoke(holding(3).address);
    assert!(thread.stack().tidy());
    assert_eq!((thread.held(), thread.emptied.get()), (vec![1, 2], 0));
    thread.changes();
    let thread = Thread::holding(&[1, 3, 0, 0, 0, 0, 2]);
    assert!(thread.stack().tidy());
    assert_eq!((thread.held(), thread.emptied.get()), (vec![1, 3, 2], 0));
    thread.changes();
}

/// Others take away what moves, or what goes, at the last moment.
#[test]
fn what_is_taken_away_twice_is_one_gap() {
    let newest = |thread: &Thread| part(stack_entry(thread, 2), ADDRESS);
    // Both the entry and its copy, as it moves down.
    let thread = Thread::holding(&[0, 0, 1]);
    let stack = thread.stack();
    // It is looked at for gaps, on top, and to be copied.
    (0..3).for_each(|_| before_access(newest(&thread), || {}));
    before_access(newest(&thread), move || {
        for _ in 0..2 {
            assert_eq!(stack.revoke(holding(1).address), Some(holding(1)));
        }
        assert_eq!(stack.revoke(holding(1).address), None);
    });
    assert!(stack.tidy());
    assert_eq!((unplayed(), thread.held(), thread.emptied.get()), (0, vec![], 0));
    thread.changes();
    // What is below the newest, and what is the newest.
    for (gone, given, left) in [(1, None, vec![0, 2, 3]), (3, Some(holding(3)), vec![1, 2])] {
        let thread = Thread::holding(&[1, 2, 3]);
        let stack = thread.stack();
        let place = part(stack_entry(&thread, gone as usize - 1), ADDRESS);
        (0..2).for_each(|_| before_access(place, || {}));
        before_access(place, move || {
            assert_eq!(stack.revoke(holding(gone).address), Some(holding(gone)));
        });
        assert_eq!(stack.pop(holding(gone).address), given);
        let gaps = left.iter().filter(|&&number| number == 0).count() as u64;
        assert_eq!((unplayed(), thread.held(), thread.emptied.get()), (0, left, gaps));
        thread.changes();
    }
}

/// Semaphores are given from where they lie, since a signal handler may give them.
#[test]
fn hand_over_hand_does_not_climb() {
    let thread = Thread::holding(&[1]);
    let stack = thread.stack();
    for number in 2..100 {
        stack.tidy();
        stack.push(&holding(number)).expect("room");
        assert_eq!(stack.revoke(holding(number - 1).address), Some(holding(number - 1)));
    }
    assert_eq!((thread.held().pop(), thread.held().len() < ENTRIES), (Some(99), true));
    // Nor where an entry is empty that is not counted, since a handler has left a push by a jump.
    thread.top.set(1);
    thread.emptied.set(0);
    for _ in 0..100 {
        for number in [1, 2] {
            stack.tidy();
            stack.push(&holding(number)).expect("room");
        }
        for number in [1, 2] {
            stack.pop(holding(number).address).expect("held");
        }
    }
    thread.changes();
}

/// A handler may fork in the middle of everything: the child finds the ledger empty.
#[test]
fn nothing_fails_in_a_child_that_finds_all_empty() {
    for access in 0..40 {
        for gives in [false, true] {
            let thread = Thread::holding(&[1, 2, 0, 0]);
            let entries: &'static [Entry] = thread.entries;
            let words = [part(thread.top, 0), part(thread.emptied, 0)];
            let place = if access % 2 == 0 { words[0] } else { part(&entries[1], ADDRESS) };
            (0..access / 2).for_each(|_| before_access(place, || {}));
            let (top, emptied, stack) = (thread.top, thread.emptied, thread.stack());
            before_access(place, move || {
                top.set(0);
                emptied.set(0);
                (0..ENTRIES).for_each(|index| stack.entry(index).restart(0, Flags::NONE, 0));
                (0..ENTRIES).for_each(|index| empty(stack.entry(index)));
            });
            if gives {
                stack.pop(holding(1).address);
            } else {
                stack.tidy();
                let _ = stack.push(&holding(3));
            }
            unplayed();
            thread.changes();
        }
    }
}

fn empty(entry: &'static Entry) {
    // SAFETY: an entry is four words, of which the first is its address.
    unsafe { &*core::ptr::from_ref(entry).cast::<Word>() }.set(0);
}

/// A handler that releases what its thread held before, and what it does not hold, comes while an entry is
/// about to be filled, or has just been emptied by its own thread.
#[test]
fn an_entry_that_is_about_to_be_filled_or_to_go_stays_where_it_is() {
    for pops in [false, true] {
        let thread = Thread::holding(&[5, 6, 0]);
        let stack = thread.stack();
        let releases = move || {
            assert_eq!(stack.pop(holding(9).address), None);
            let lower = if pops { 5 } else { 6 };
            assert_eq!(stack.pop(holding(lower).address), Some(holding(lower)));
        };
        if pops {
            stack.tidy();
            stack.push(&holding(1)).expect("room");
            // The look at it, its reading, and then the store that empties it.
            before_access(part(thread.top, 0), || {});
            before_access(part(thread.top, 0), releases);
            assert_eq!(stack.pop(holding(1).address), Some(holding(1)));
            assert_eq!(thread.held(), [0, 6]);
        } else {
            stack.tidy();
            before_access(part(stack_entry(&thread, 2), PLACE), releases);
            stack.push(&holding(1)).expect("room");
            assert_eq!(thread.held(), [5, 0, 1]);
            assert_eq!(stack.pop(holding(1).address), Some(holding(1)));
        }
        assert_eq!(unplayed(), 0);
        let upper = if pops { 6 } else { 5 };
        assert_eq!(stack.pop(holding(upper).address), Some(holding(upper)));
        stack.tidy();
        stack.push(&holding(2)).expect("room");
        assert_eq!(thread.held(), [2], "what was left behind is gone");
        thread.changes();
    }
}

#[test]
fn what_others_take_away_makes_room_again() {
    // Above the last that is held.
    let thread = Thread::holding(&[4]);
    for _ in 0..2 * ENTRIES {
        thread.stack().tidy();
        thread.stack().push(&holding(1)).expect("room");
        assert_eq!(thread.stack().revoke(holding(1).address), Some(holding(1)));
    }
    assert_eq!(thread.held(), [4, 0]);
    thread.stack().revoke(holding(4).address);
    thread.stack().reset();
    thread.changes();
    assert!(!thread.stack().tidy());
    assert_eq!((thread.held(), thread.changes()), (vec![], vec![]));
    // Among those that are held: the newest first.
    let thread = Thread::holding(&[1, 0, 2, 0, 3]);
    assert_eq!((thread.stack().push(&holding(6)), thread.emptied.get()), (Ok(3), 1));
    assert_eq!((thread.stack().push(&holding(7)), thread.emptied.get()), (Ok(1), 0));
    assert_eq!(thread.held(), [1, 7, 2, 6, 3]);
    assert_eq!(thread.stack().push(&holding(8)), Err(Full));
    assert_eq!(thread.emptied.get(), 0);
    // One that is about to be filled makes none.
    thread.entries[3].restart(0, Flags::NONE, 0);
    empty(&thread.entries[3]);
    assert_eq!(thread.stack().push(&holding(8)), Err(Full));
    thread.emptied.set(1);
    assert_eq!(thread.stack().push(&holding(6)), Ok(3));
    // What a pop and another thread have both taken away was counted and is not there.
    thread.emptied.set(2);
    assert_eq!(thread.stack().pop(holding(2).address), Some(holding(2)));
    assert_eq!(thread.held(), [1, 7, 6, 3]);
    assert_eq!(thread.emptied.get(), 0);
    for too_many in [1, 2] {
        thread.emptied.set(too_many);
        thread.stack().revoke(holding(3).address);
        assert!(!thread.stack().tidy());
        assert_eq!((thread.held(), thread.emptied.get()), (vec![1, 7, 6], 0));
        thread.stack().push(&holding(3)).expect("room");
    }
    thread.changes();
}

#[test]
fn another_thread_takes_the_newest_entry_of_a_lock_away() {
    let thread = Thread::holding(&[1, 2, 1, 3]);
    assert_eq!(thread.stack().revoke(holding(1).address), Some(holding(1)));
    assert_eq!(thread.changes(), [(8 + ADDRESS, 0), (EMPTIED, 1)]);
    assert_eq!(thread.held(), [1, 2, 0, 3]);
    assert_eq!(thread.stack().revoke(holding(9).address), None);
    assert_eq!(thread.changes(), []);
    // The thread moves the entry down, or releases it, between the look and the exchange.
    for released in [false, true] {
        let thread = Thread::holding(&[1, 2, 3]);
        let (stack, address) = (thread.stack(), part(stack_entry(&thread, 1), ADDRESS));
        before_access(address, || {});
        before_access(address, move || {
            let gone = if released { 2 } else { 1 };
            assert_eq!(stack.pop(holding(gone).address), Some(holding(gone)));
        });
        let found = stack.revoke(holding(2).address);
        assert_eq!(found, (!released).then(|| holding(2)));
        assert_eq!(thread.held(), if released { [1, 3] } else { [0, 3] });
        assert_eq!(unplayed(), 0);
        thread.changes();
    }
}

fn stack_entry(thread: &Thread, index: usize) -> &'static Entry {
    thread.stack().entry(index)
}

#[test]
fn a_copy_of_what_was_taken_away_as_it_moved_goes_too() {
    let thread = Thread::holding(&[1, 2, 3]);
    let (stack, address) = (thread.stack(), part(stack_entry(&thread, 1), ADDRESS));
    // The thread looks at the entry as it searches, and as it copies it; then it takes it.
    for action in [false, false, true] {
        before_access(address, move || {
            if action {
                // What another thread finds is the copy, or the entry: it takes one of the two.
                assert_eq!(stack.entry(1).address(), holding(2).address);
                revoked(stack);
            }
        });
    }
    assert_eq!(stack.pop(holding(1).address), Some(holding(1)));
    assert_eq!(thread.held(), [0, 3]);
    assert_eq!(unplayed(), 0);
}

fn revoked(stack: HeldStack<'static, Watched>) {
    assert_eq!(stack.revoke(holding(2).address), Some(holding(2)));
}

#[test]
fn the_holder_changes_flags_and_begins_a_hold_anew() {
    for number in [1, 2] {
        let thread = Thread::holding(&[number]);
        let entry = stack_entry(&thread, 0);
        entry.set_flags(Flags::LENT);
        let flags = u64::from(Flags::LENT.0) << 32;
        let kept = how(number) & (1 << 63 | 0xffff_ffff);
        assert_eq!(thread.changes(), [(HOW, kept | flags)]);
        let changed = Holding { flags: Flags::LENT, ..holding(number) };
        assert_eq!((entry.read(), entry.address()), (Some(changed), changed.address));
        entry.restart(77, Flags::READ, 0);
        assert_eq!(thread.changes(), [(HOW, 1 << 32 | 77)]);
        let anew = Holding { tick: 77, flags: Flags::READ, started: 0, ..holding(number) };
        assert_eq!(entry.read(), Some(anew));
        entry.restart(78, Flags::NONE, 1);
        assert_eq!(thread.changes(), [(STARTED, 1), (HOW, 1 << 63 | 78)]);
        let anew = Holding { tick: 78, flags: Flags::NONE, started: 1, ..holding(number) };
        assert_eq!(entry.read(), Some(anew));
    }
}
