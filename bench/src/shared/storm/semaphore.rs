//! The semaphore in a storm.
//!
//! Each has [`UNITS`] units, and a section takes one or two. Every other semaphore
//! tells of what the dead had.
//!
//! That those that live and hold have no more than there is, is what `suspicion` watches.
//!
//! In a quiet phase, when nobody is left, all units can be taken at once.

use super::hand::{AcquireHow, Hand};
use super::limits::{MOST_TAKEN, STALL, UNITS};
use super::protected::reports;
use super::suspicion::{StormHold, suspect};
use super::tally::{KindTally, StormLockKind, count};
use crate::Error;
use lockstead::shared::{Permit, SharedError, SharedSemaphore, Taken};
use std::sync::atomic::Ordering;

/// One of so many sections does.
const TAKES_MOST: u32 = 4;
/// Does a section with some units of semaphore `at`. Returns false if they were not to be had.
pub(super) fn section(hand: &mut Hand<'_>, at: usize) -> Result<bool, Error> {
    let semaphore = &hand.field().semaphores[at];
    let units = if hand.random.u32(..TAKES_MOST) == 0 { MOST_TAKEN } else { 1 };
    let how = hand.how();
    let outcome = hand.waiting(StormLockKind::Semaphore, || match how {
        AcquireHow::Try => semaphore.try_acquire(units),
        AcquireHow::Within(time) => semaphore.acquire_timeout(units, time),
        AcquireHow::Forever => semaphore.acquire(units),
    });
    let Some(permit) = received(hand.tally(StormLockKind::Semaphore), at, outcome)? else {
        return Ok(false);
    };
    hand.holds += 1;
    let hold = StormHold::new(hand.holds, at, units);
    hand.party.holds.store(hold.0, Ordering::SeqCst);
    let suspicion = suspect(hand.control, hand.extent, at, hand.party, units);
    hand.beside_at_random();
    hand.dawdle();
    hand.party.holds.store(0, Ordering::SeqCst);
    drop(permit);
    hand.suspicion = suspicion;
    Ok(true)
}

/// Looks at what an acquisition has brought. Returns `None` if it was not to be had in time.
fn received<'a>(
    tally: &KindTally,
    at: usize,
    outcome: Result<Taken<'a>, SharedError>,
) -> Result<Option<Permit<'a>>, Error> {
    match outcome {
        Ok(Taken::Acquired(permit)) => Ok(Some(permit)),
        Ok(Taken::HolderDied { permit, lost }) => {
            count(&tally.owner_died, 1);
            count(&tally.units_returned, u64::from(lost));
            // It is to be silent, or tells of nobody. That it tells of too many is seen at the
            // end: several may have died before somebody is told.
            count(&tally.torn, u64::from(!reports(at) || lost == 0));
            Ok(Some(permit))
        }
        Err(error) => tally.refused(error).map(|()| None),
    }
}

/// Tells whether all units can be taken in time, when nobody is left. Counts it if there are more
/// of them.
pub(super) fn inspect(
    tally: &KindTally,
    semaphore: &SharedSemaphore,
    at: usize,
) -> Result<bool, Error> {
    let outcome = semaphore.acquire_timeout(UNITS, STALL);
    let Some(permit) = received(tally, at, outcome)? else { return Ok(false) };
    let whole = semaphore.total() == UNITS && semaphore.free() == 0;
    drop(permit);
    count(&tally.torn, u64::from(!whole || semaphore.free() != UNITS));
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::super::hand::tests::{torn, with_hand};
    use super::*;

    #[test]
    fn a_section_gives_back_what_it_took() {
        with_hand(|hand| {
            for _ in 0..50 {
                assert!(section(hand, 0).expect("nobody refuses"));
                assert!(hand.suspicion.is_none(), "nobody else is there");
            }
            let semaphore = &hand.field().semaphores[0];
            assert!(
                inspect(hand.tally(StormLockKind::Semaphore), semaphore, 0)
                    .expect("nobody refuses")
            );
            assert_eq!(torn(hand, StormLockKind::Semaphore), 0);
        });
    }

    #[test]
    fn units_that_did_not_come_back_are_noticed() {
        with_hand(|hand| {
            let semaphore = &hand.field().semaphores[0];
            semaphore.acquire(1).expect("free").permit().consume();
            let tally = hand.tally(StormLockKind::Semaphore);
            assert!(!inspect(tally, semaphore, 0).expect("nobody refuses"), "not in time");
            assert_eq!(torn(hand, StormLockKind::Semaphore), 0);
            assert!(semaphore.add(2).expect("fits"));
            assert!(inspect(tally, semaphore, 0).expect("nobody refuses"));
            assert_eq!(torn(hand, StormLockKind::Semaphore), 1, "one too many");
        });
    }
}
