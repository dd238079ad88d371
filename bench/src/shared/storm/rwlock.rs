//! The reader-writer lock in a storm.
//!
//! Writers do what owners of a mutex do. A reader looks at all of it when it begins, and
//! again when it ends: a writer that is there with it was inside already, or comes inside
//! meanwhile, and either shows. One section in two writes; one in eight has a second
//! lock, so that threads that read and write hold some of both.

use super::hand::{AcquireHow, Hand};
use super::protected::{Protected, ProtectedPair, load};
use super::tally::{StormLockKind, count};
use crate::Error;

/// One of so many sections writes.
const WRITES: u32 = 2;

/// Does a section under lock `at`. Returns false if it was not to be had.
pub(super) fn section(hand: &mut Hand<'_>, at: usize) -> Result<bool, Error> {
    let second = hand.another(at);
    within(hand, at, |hand| match second {
        Some(second) => within(hand, second, |_| Ok(())).map(drop),
        None => Ok(()),
    })
}

fn within(
    hand: &mut Hand<'_>,
    at: usize,
    inner: impl FnOnce(&mut Hand<'_>) -> Result<(), Error>,
) -> Result<bool, Error> {
    if hand.random.u32(..WRITES) == 0 { write(hand, at, inner) } else { read(hand, at, inner) }
}

fn write(
    hand: &mut Hand<'_>,
    at: usize,
    inner: impl FnOnce(&mut Hand<'_>) -> Result<(), Error>,
) -> Result<bool, Error> {
    let lock = &hand.field().rwlocks[at];
    let how = hand.how();
    let outcome = hand.waiting(StormLockKind::RwLock, || match how {
        AcquireHow::Try => lock.try_write(),
        AcquireHow::Within(time) => lock.write_timeout(time),
        AcquireHow::Forever => lock.write(),
    });
    let Some((mut pair, _)) = hand.tally(StormLockKind::RwLock).received(outcome)? else {
        return Ok(false);
    };
    pair.enter(hand.name);
    hand.beside_at_random();
    hand.dawdle();
    inner(hand)?;
    let alone = pair.leave(hand.name);
    count(&hand.tally(StormLockKind::RwLock).torn, u64::from(!alone));
    drop(pair);
    Ok(true)
}

fn read(
    hand: &mut Hand<'_>,
    at: usize,
    inner: impl FnOnce(&mut Hand<'_>) -> Result<(), Error>,
) -> Result<bool, Error> {
    let lock = &hand.field().rwlocks[at];
    let how = hand.how();
    let outcome = hand.waiting(StormLockKind::RwLock, || match how {
        AcquireHow::Try => lock.try_read(),
        AcquireHow::Within(time) => lock.read_timeout(time),
        AcquireHow::Forever => lock.read(),
    });
    let Some((pair, _)) = hand.tally(StormLockKind::RwLock).received(outcome)? else {
        return Ok(false);
    };
    let before = load(&pair.first);
    hand.beside_at_random();
    hand.dawdle();
    inner(hand)?;
    count(&hand.tally(StormLockKind::RwLock).torn, u64::from(!undisturbed(&pair, before)));
    drop(pair);
    Ok(true)
}

/// Tells whether no writer has been there since the first counter was `before`.
fn undisturbed(pair: &ProtectedPair, before: u64) -> bool {
    load(&pair.first) == before && pair.is_sound()
}

#[cfg(test)]
mod tests {
    use super::super::hand::tests::{torn, with_hand};
    use super::*;

    #[test]
    fn readers_and_writers_leave_the_counters_equal() {
        with_hand(|hand| {
            for _ in 0..100 {
                assert!(section(hand, 0).expect("nobody refuses"));
            }
            let pair = hand.field().rwlocks[0].read().expect("free").acquired().expect("sound");
            assert!(pair.is_sound() && pair.first > 0);
            drop(pair);
            assert_eq!(torn(hand, StormLockKind::RwLock), 0);
        });
    }

    /// Acts as if a writer had been let in with a reader, at each point.
    #[test]
    fn a_writer_beside_a_reader_is_noticed() {
        let mut pair = ProtectedPair { first: 3, second: 3, inside: 0 };
        assert!(undisturbed(&pair, 3));
        pair.enter(7);
        assert!(!pair.is_sound(), "a reader that comes in finds the writer");
        assert!(!undisturbed(&pair, 3));
        assert!(pair.leave(7) && pair.is_sound());
        assert!(!undisturbed(&pair, 3), "a reader that was there finds the change");
    }

    #[test]
    fn a_writer_that_was_cut_off_without_a_word_is_torn() {
        with_hand(|hand| {
            let mut pair =
                hand.field().rwlocks[0].write().expect("free").acquired().expect("sound");
            pair.enter(hand.name);
            drop(pair);
            while torn(hand, StormLockKind::RwLock) == 0 {
                read(hand, 0, |_| Ok(())).expect("nobody refuses");
            }
        });
    }
}
