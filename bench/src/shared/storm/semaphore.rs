//! The semaphore in a storm.
//!
//! Each has [`UNITS`] units, and a section takes one or two. Every other semaphore
//! tells of what the dead had.
//!
//! # The invariant
//! Those that live and hold have no more than there is. Whoever gets units says so beside
//! the segment, and looks at what all others say, twice: what is there both times was
//! there at one moment. If that is too much, somebody among them must have been dead.
//! Who was not goes on, and ends its section by itself; who was is buried by the parent.
//! So when it has ended its own section, this one waits for each of the others to do
//! the one or the other, and counts those that lived.
//!
//! In a calm, when nobody is left, all units can be taken at once.

use super::field::{Control, Kind, Party, Tally, count};
use super::worker::{Hand, How};
use super::{MAX_LOCKS, MAX_PROCESSES, MAX_THREADS, STALL};
use crate::Error;
use lockstead::shared::{OnDeath, Permit, SharedError, SharedSemaphore, Taken};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Units of each semaphore.
pub(super) const UNITS: u32 = 3;
/// A section takes so many at most.
pub(super) const MOST_TAKEN: u32 = 2;
/// One of so many sections does.
const TAKES_MOST: u32 = 4;
/// Looks at what others hold before it gives up: they come and go.
const LOOKS: u32 = 8;
/// The parent buries the dead within this time.
const BURIAL: Duration = Duration::from_secs(10);

/// Semaphore `at` as a storm begins.
pub(super) fn fresh(at: usize) -> SharedSemaphore {
    let on_death = if reports(at) { OnDeath::Report } else { OnDeath::Return };
    SharedSemaphore::new(UNITS, on_death)
}

/// Whether semaphore `at` tells of the dead.
fn reports(at: usize) -> bool {
    at.is_multiple_of(2)
}

const _: () = assert!(MAX_LOCKS <= 1 << 12 && UNITS < 1 << 4);

/// What a thread says that it holds: never twice the same in one life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Hold(u64);

impl Hold {
    fn new(number: u64, at: usize, units: u32) -> Self {
        Hold(number << 16 | (at as u64) << 4 | u64::from(units))
    }

    fn is_of(self, at: usize) -> bool {
        self.0 >> 4 & 0xfff == at as u64
    }

    fn units(self) -> u32 {
        (self.0 & 0xf) as u32
    }
}

/// More units than there are, some of them somebody's who should be dead.
#[derive(Debug)]
pub(super) struct Suspicion {
    /// Units that who suspects had itself.
    own: u32,
    others: Vec<Suspect>,
}

#[derive(PartialEq, Debug)]
struct Suspect {
    process: usize,
    thread: usize,
    /// Which of its lives.
    life: u32,
    hold: Hold,
}

/// A section with some units of semaphore `at`; false if they were not to be had.
pub(super) fn section(hand: &mut Hand<'_>, at: usize) -> Result<bool, Error> {
    let semaphore = &hand.field().semaphores[at];
    let units = if hand.random.u32(..TAKES_MOST) == 0 { MOST_TAKEN } else { 1 };
    let how = hand.how();
    let outcome = hand.waiting(Kind::Semaphore, || match how {
        How::Try => semaphore.try_acquire(units),
        How::Within(time) => semaphore.acquire_timeout(units, time),
        How::Forever => semaphore.acquire(units),
    });
    let Some(permit) = received(hand.tally(Kind::Semaphore), at, outcome)? else {
        return Ok(false);
    };
    hand.holds += 1;
    let hold = Hold::new(hand.holds, at, units);
    hand.party.holds.store(hold.0, Ordering::SeqCst);
    let suspicion = suspect(hand.control, hand.extent, at, hand.party, units);
    hand.beside_at_random();
    hand.dawdle();
    hand.party.holds.store(0, Ordering::SeqCst);
    drop(permit);
    hand.suspicion = suspicion;
    Ok(true)
}

/// Looks at what an acquisition has brought; `None` if it was not to be had in time.
fn received<'a>(
    tally: &Tally,
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

/// Lists who has units of semaphore `at` while `me` has `own`, if it is too much.
fn suspect(
    control: &Control,
    extent: (usize, usize),
    at: usize,
    me: &Party,
    own: u32,
) -> Option<Suspicion> {
    let mut others = look(control, extent, at, me);
    for _ in 0..LOOKS {
        if own + others.iter().map(|other| other.hold.units()).sum::<u32>() <= UNITS {
            return None;
        }
        let again = look(control, extent, at, me);
        if again == others {
            return Some(Suspicion { own, others });
        }
        others = again;
    }
    None
}

fn look(control: &Control, extent: (usize, usize), at: usize, me: &Party) -> Vec<Suspect> {
    let (processes, threads) = extent;
    debug_assert!(processes <= MAX_PROCESSES && threads <= MAX_THREADS);
    let parties = control.parties[..processes].iter().enumerate().flat_map(|(process, row)| {
        row[..threads].iter().enumerate().map(move |(thread, party)| (process, thread, party))
    });
    let others = parties.filter(|&(_, _, party)| !std::ptr::eq(party, me));
    let holding = others.filter_map(|(process, thread, party)| {
        // The life first: should it end in between, it was another one that held.
        let life = party.lives.load(Ordering::SeqCst);
        let hold = Hold(party.holds.load(Ordering::SeqCst));
        (hold.units() != 0 && hold.is_of(at)).then_some(Suspect { process, thread, life, hold })
    });
    holding.collect()
}

/// Waits until all that are suspected have ended their sections or were buried, and
/// counts it if too many of them lived.
pub(super) fn resolve(control: &Control, suspicion: Suspicion) -> Result<(), Error> {
    let mut living = suspicion.own;
    for suspect in &suspicion.others {
        let party = &control.parties[suspect.process][suspect.thread];
        let end = Instant::now() + BURIAL;
        while party.holds.load(Ordering::SeqCst) == suspect.hold.0 {
            if Instant::now() > end {
                return Err(Error::Worker { how: "somebody neither goes on nor is dead".into() });
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        if party.lives.load(Ordering::SeqCst) == suspect.life {
            living += suspect.hold.units();
        }
    }
    count(&control.tally(Kind::Semaphore).torn, u64::from(living > UNITS));
    Ok(())
}

/// When nobody is left: whether all units can be taken in time. Counts it if there are
/// more of them.
pub(super) fn inspect(
    tally: &Tally,
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
    use super::super::worker::tests::{torn, with_hand};
    use super::*;

    #[test]
    fn a_section_gives_back_what_it_took() {
        with_hand(|hand| {
            for _ in 0..50 {
                assert!(section(hand, 0).expect("nobody refuses"));
                assert!(hand.suspicion.is_none(), "nobody else is there");
            }
            let semaphore = &hand.field().semaphores[0];
            assert!(inspect(hand.tally(Kind::Semaphore), semaphore, 0).expect("nobody refuses"));
            assert_eq!(torn(hand, Kind::Semaphore), 0);
        });
    }

    /// Two others have all units of semaphore 0, and this thread has got one.
    fn too_many(control: &Control) -> Suspicion {
        let hold = |process: usize, at, units| {
            let word = Hold::new(9, at, units).0;
            control.parties[process][0].holds.store(word, Ordering::SeqCst);
        };
        let suspicion = || suspect(control, (4, 1), 0, &control.parties[0][0], 1);
        hold(1, 0, 2);
        hold(2, 5, 1);
        assert!(suspicion().is_none(), "of another semaphore");
        hold(2, 0, 1);
        suspicion().expect("more than there are")
    }

    #[test]
    fn more_holders_than_units_are_noticed() {
        with_hand(|hand| {
            let suspicion = too_many(hand.control);
            for process in [1, 2] {
                hand.control.parties[process][0].holds.store(0, Ordering::SeqCst);
            }
            resolve(hand.control, suspicion).expect("all went on");
            assert_eq!(torn(hand, Kind::Semaphore), 1);
        });
    }

    #[test]
    fn holders_that_were_dead_are_not_too_many() {
        with_hand(|hand| {
            let suspicion = too_many(hand.control);
            hand.control.parties[1][0].bury();
            hand.control.parties[2][0].holds.store(0, Ordering::SeqCst);
            resolve(hand.control, suspicion).expect("one went on, one was buried");
            assert_eq!(torn(hand, Kind::Semaphore), 0);
        });
    }

    #[test]
    fn units_that_did_not_come_back_are_noticed() {
        with_hand(|hand| {
            let semaphore = &hand.field().semaphores[0];
            semaphore.acquire(1).expect("free").permit().consume();
            let tally = hand.tally(Kind::Semaphore);
            assert!(!inspect(tally, semaphore, 0).expect("nobody refuses"), "not in time");
            assert_eq!(torn(hand, Kind::Semaphore), 0);
            assert!(semaphore.add(2).expect("fits"));
            assert!(inspect(tally, semaphore, 0).expect("nobody refuses"));
            assert_eq!(torn(hand, Kind::Semaphore), 1, "one too many");
        });
    }
}
