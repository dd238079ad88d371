//! The mutex in a storm.
//!
//! Two counters: a section adds one to the first, dawdles, and adds one to the second.
//! And the name of who is inside. One section in eight takes a second mutex.

use super::hand::{AcquireHow, Hand};
use super::protected::ProtectedPair;
use super::tally::{StormLockKind, count};
use crate::Error;
use lockstead::shared::SharedMutex;

/// Does a section under mutex `at`. Returns false if it was not to be had.
pub(super) fn section(hand: &mut Hand<'_>, at: usize) -> Result<bool, Error> {
    let Some((mut pair, _)) = take(hand, at)? else { return Ok(false) };
    pair.enter(hand.name);
    hand.beside_at_random();
    hand.dawdle();
    // In one order.
    if let Some(second) = hand.another(at)
        && let Some((mut inner, _)) = take(hand, second)?
    {
        inner.enter(hand.name);
        hand.dawdle();
        finish(hand, &mut inner);
    }
    finish(hand, &mut pair);
    drop(pair);
    Ok(true)
}

type Taken<'a> = Option<(lockstead::shared::SharedMutexGuard<'a, ProtectedPair>, bool)>;

fn take<'a>(hand: &mut Hand<'a>, at: usize) -> Result<Taken<'a>, Error> {
    let mutex: &SharedMutex<ProtectedPair> = &hand.field().mutexes[at];
    let how = hand.how();
    let outcome = hand.waiting(StormLockKind::Mutex, || match how {
        AcquireHow::Try => mutex.try_lock(),
        AcquireHow::Within(time) => mutex.lock_timeout(time),
        AcquireHow::Forever => mutex.lock(),
    });
    hand.tally(StormLockKind::Mutex).received(outcome)
}

fn finish(hand: &Hand<'_>, pair: &mut ProtectedPair) {
    let alone = pair.leave(hand.name);
    count(&hand.tally(StormLockKind::Mutex).torn, u64::from(!alone));
}

#[cfg(test)]
mod tests {
    use super::super::hand::tests::{torn, with_hand};
    use super::*;

    fn taken<'a>(hand: &mut Hand<'a>) -> lockstead::shared::SharedMutexGuard<'a, ProtectedPair> {
        take(hand, 0).expect("nobody refuses").expect("nobody has it").0
    }

    #[test]
    fn a_section_leaves_the_counters_equal() {
        with_hand(|hand| {
            for _ in 0..50 {
                assert!(section(hand, 0).expect("nobody refuses"));
            }
            let pair = taken(hand);
            assert!(pair.first == 50 && pair.second == 50);
            drop(pair);
            assert_eq!(torn(hand, StormLockKind::Mutex), 0);
        });
    }

    #[test]
    fn a_section_that_was_cut_off_without_a_word_is_torn() {
        with_hand(|hand| {
            taken(hand).enter(hand.name);
            drop(taken(hand));
            assert_eq!(torn(hand, StormLockKind::Mutex), 1);
        });
    }

    #[test]
    fn two_inside_are_noticed() {
        with_hand(|hand| {
            let mut pair = taken(hand);
            pair.enter(hand.name);
            pair.inside ^= 2;
            finish(hand, &mut pair);
            assert_eq!(torn(hand, StormLockKind::Mutex), 1);
        });
    }
}
