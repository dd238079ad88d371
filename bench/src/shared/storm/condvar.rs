//! The condition variable in a storm.
//!
//! A depot is a mutex, what it protects, and a condition variable. Every other thread
//! makes an item where there is none, and notifies one; the rest take items, and wait
//! where there is none. Both are in two steps, so that a death in between shows.
//!
//! # What a death means
//! Who makes an item notifies while it has the mutex. If it dies before it has, the next
//! owner is told, mends, and notifies all. Who waits and was notified may die before it
//! has acted on it: then the others are to look, by what the condition variable promises.
//!
//! # The chain
//! While it storms, each death wakes everybody, and whatever was lost is mended at once.
//! In a quiet phase the parent says in each depot that it is over, and notifies *one*. Who wakes
//! and sees it notifies one more. If any link of that chain is lost, by a death or
//! otherwise, whoever is left sleeps for ever, and that is a stall.

use super::hand::{AcquireHow, Hand};
use super::limits::STALL;
use super::protected::{Depot, Protected, ProtectedTurn, load, store};
use super::tally::{StormControl, StormLockKind, count};
use crate::Error;
use lockstead::shared::{Locked, SharedError, SharedMutexGuard};

type Guard<'a> = SharedMutexGuard<'a, ProtectedTurn>;

/// Does a section in depot `at`. Returns false if there was nothing to do.
pub(super) fn section(hand: &mut Hand<'_>, at: usize) -> Result<bool, Error> {
    let depot = &hand.field().depots[at];
    let how = hand.how();
    let outcome = hand.waiting(StormLockKind::Condvar, || match how {
        AcquireHow::Try => depot.turn.try_lock(),
        AcquireHow::Within(time) => depot.turn.lock_timeout(time),
        AcquireHow::Forever => depot.turn.lock(),
    });
    let Some(turn) = received(hand.control, depot, outcome)? else { return Ok(false) };
    if hand.makes() { make(hand, depot, turn) } else { take(hand, depot, turn) }
}

fn make(hand: &mut Hand<'_>, depot: &Depot, mut turn: Guard<'_>) -> Result<bool, Error> {
    if turn.stock != 0 {
        return Ok(false);
    }
    store(&mut turn.inside, hand.name);
    let made = turn.made;
    store(&mut turn.made, made.wrapping_add(1));
    hand.dawdle();
    store(&mut turn.stock, 1);
    if hand.random.u32(..16) == 0 {
        depot.changed.notify_all()
    } else {
        depot.changed.notify_one()
    }
    finish(hand, &mut turn);
    Ok(true)
}

fn take<'a>(hand: &mut Hand<'a>, depot: &'a Depot, mut turn: Guard<'a>) -> Result<bool, Error> {
    let mut waited = false;
    while turn.stock == 0 && turn.over == 0 {
        waited = true;
        let how = hand.how();
        let outcome = hand.watched(StormLockKind::Condvar as u32, || match how {
            AcquireHow::Within(time) => {
                depot.changed.wait_timeout(turn, time).map(|waited| waited.mutex)
            }
            AcquireHow::Try | AcquireHow::Forever => depot.changed.wait(turn),
        });
        let Some(again) = received(hand.control, depot, outcome)? else {
            return Err(Error::Worker { how: "a wait has not taken the mutex back".into() });
        };
        turn = again;
    }
    if turn.over != 0 {
        if waited {
            depot.changed.notify_one();
        }
        return Ok(false);
    }
    store(&mut turn.inside, hand.name);
    store(&mut turn.stock, 0);
    hand.dawdle();
    let taken = turn.taken;
    store(&mut turn.taken, taken.wrapping_add(1));
    finish(hand, &mut turn);
    Ok(true)
}

fn finish(hand: &Hand<'_>, turn: &mut ProtectedTurn) {
    let alone = load(&turn.inside) == hand.name;
    store(&mut turn.inside, 0);
    let torn = !alone || !turn.is_sound();
    count(&hand.tally(StormLockKind::Condvar).torn, u64::from(torn));
}

/// Returns the mutex as it was acquired. After a death all are to look: the dead one may have been
/// about to notify.
fn received<'a>(
    control: &StormControl,
    depot: &Depot,
    outcome: Result<Locked<Guard<'a>>, SharedError>,
) -> Result<Option<Guard<'a>>, Error> {
    let got = control.tally(StormLockKind::Condvar).received(outcome)?;
    Ok(got.map(|(turn, died)| {
        if died {
            depot.changed.notify_all();
        }
        turn
    }))
}

/// Says for the parent whether it is over, and notifies one; false if the mutex was not to be had
/// in time.
pub(super) fn set_over(control: &StormControl, depot: &Depot, over: bool) -> Result<bool, Error> {
    let Some(mut turn) = received(control, depot, depot.turn.lock_timeout(STALL))? else {
        return Ok(false);
    };
    turn.over = u64::from(over);
    depot.changed.notify_one();
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::super::hand::tests::{stands, torn, with_hand, with_hands};
    use super::*;
    use std::sync::atomic::Ordering;
    use std::time::{Duration, Instant};

    #[test]
    fn what_is_made_is_taken() {
        with_hands(2, |hands| {
            for round in 0..100 {
                let hand = &mut hands[round % 2];
                assert_eq!(hand.makes(), round % 2 == 0);
                assert!(section(hand, 0).expect("nobody refuses"));
            }
            let turn = hands[0].field().depots[0].turn.lock().expect("free");
            let turn = turn.acquired().expect("sound");
            assert!(turn.made == 50 && turn.taken == 50 && turn.stock == 0);
            drop(turn);
            assert_eq!(torn(&hands[0], StormLockKind::Condvar), 0);
        });
    }

    #[test]
    fn a_section_that_was_cut_off_is_torn_without_a_word_and_can_be_mended() {
        let fresh = ProtectedTurn { made: 4, taken: 4, stock: 0, inside: 0, over: 0 };
        let in_stock = ProtectedTurn { made: 5, stock: 1, ..fresh };
        for cut in [
            ProtectedTurn { inside: 7, ..fresh },
            ProtectedTurn { inside: 7, made: 5, ..fresh },
            ProtectedTurn { inside: 7, ..in_stock },
            ProtectedTurn { inside: 7, stock: 0, ..in_stock },
            ProtectedTurn { inside: 0, stock: 0, ..in_stock },
        ] {
            let mut turn = cut;
            assert!(!turn.is_sound());
            turn.mend();
            assert!(turn.is_sound());
        }
    }

    /// Waits in a thread of its own, as a worker does, until the depot is over.
    fn waiter_after(set: impl FnOnce(&StormControl, &Depot)) -> bool {
        let stands = stands();
        let (control, depot) = (&*stands.control, &stands.segment.root().depots[0]);
        let party = &control.parties[1][0];
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let mut hand = stands.hand(1);
                while depot.turn.lock().expect("free").acquired().expect("sound").over == 0 {
                    section(&mut hand, 0).expect("nobody refuses");
                }
            });
            let asleep = || party.waits(&control.stops).is_some_and(|(_, ns)| ns > 30_000_000);
            until(asleep);
            set(control, depot);
            let comes_back = until_within(Duration::from_millis(300), || waiter.is_finished());
            if !comes_back {
                // It would be a stall: seen from outside, as the parent sees it.
                assert!(party.waits(&control.stops).is_some_and(|(kind, ns)| kind
                    == Some(StormLockKind::Condvar)
                    && ns > 300_000_000));
                depot.changed.notify_all();
            }
            waiter.join().expect("it ends");
            comes_back
        })
    }

    fn until(done: impl FnMut() -> bool) {
        assert!(until_within(Duration::from_secs(20), done), "never came");
    }

    fn until_within(time: Duration, mut done: impl FnMut() -> bool) -> bool {
        let end = Instant::now() + time;
        while !done() {
            if Instant::now() > end {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }

    #[test]
    fn who_waits_is_told_that_it_is_over() {
        assert!(waiter_after(|control, depot| {
            assert!(set_over(control, depot, true).expect("nobody refuses"));
        }));
    }

    #[test]
    fn a_notification_that_was_lost_is_a_wait_that_does_not_end() {
        assert!(!waiter_after(|_, depot| {
            depot.turn.lock().expect("free").acquired().expect("sound").over = 1;
        }));
    }

    #[test]
    fn two_inside_are_noticed() {
        with_hand(|hand| {
            let depot = &hand.field().depots[0];
            let mut turn = depot.turn.lock().expect("free").acquired().expect("sound");
            turn.inside = hand.name ^ 2;
            finish(hand, &mut turn);
            assert_eq!(hand.tally(StormLockKind::Condvar).torn.load(Ordering::Relaxed), 1);
        });
    }
}
