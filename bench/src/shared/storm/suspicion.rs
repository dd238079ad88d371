//! Whether more units of a semaphore are held than there are.
//!
//! Those that live and hold have no more than there is. Whoever gets units says so beside
//! the segment, and looks at what all others say, twice: what is there both times was
//! there at one moment. If that is too much, somebody among them must have been dead.
//! Who was not goes on, and ends its section by itself; who was is buried by the parent.
//! So when it has ended its own section, this one waits for each of the others to do
//! the one or the other, and counts those that lived.

use super::limits::{MAX_LOCKS, MAX_PROCESSES, MAX_THREADS, UNITS};
use super::tally::{StormControl, StormLockKind, StormThread, count};
use crate::Error;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Looks at what others hold before it gives up: they come and go.
const LOOKS: u32 = 8;
/// The parent buries the dead within this time.
const BURIAL: Duration = Duration::from_secs(10);

const _: () = assert!(MAX_LOCKS <= 1 << 12 && UNITS < 1 << 4);

/// What a thread says that it holds: never twice the same in one life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct StormHold(pub(super) u64);

impl StormHold {
    pub(super) fn new(number: u64, at: usize, units: u32) -> Self {
        StormHold(number << 16 | (at as u64) << 4 | u64::from(units))
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
    hold: StormHold,
}

/// Lists who has units of semaphore `at` while `me` has `own`, if it is too much.
pub(super) fn suspect(
    control: &StormControl,
    extent: (usize, usize),
    at: usize,
    me: &StormThread,
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

fn look(
    control: &StormControl,
    extent: (usize, usize),
    at: usize,
    me: &StormThread,
) -> Vec<Suspect> {
    let (processes, threads) = extent;
    debug_assert!(processes <= MAX_PROCESSES && threads <= MAX_THREADS);
    let parties = control.parties[..processes].iter().enumerate().flat_map(|(process, row)| {
        row[..threads].iter().enumerate().map(move |(thread, party)| (process, thread, party))
    });
    let others = parties.filter(|&(_, _, party)| !std::ptr::eq(party, me));
    let holding = others.filter_map(|(process, thread, party)| {
        // The life first: should it end in between, it was another one that held.
        let life = party.lives.load(Ordering::SeqCst);
        let hold = StormHold(party.holds.load(Ordering::SeqCst));
        (hold.units() != 0 && hold.is_of(at)).then_some(Suspect { process, thread, life, hold })
    });
    holding.collect()
}

/// Waits until all that are suspected have ended their sections or were buried, and
/// counts it if too many of them lived.
pub(super) fn resolve(control: &StormControl, suspicion: Suspicion) -> Result<(), Error> {
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
    count(&control.tally(StormLockKind::Semaphore).torn, u64::from(living > UNITS));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::hand::tests::{torn, with_hand};
    use super::*;

    /// Returns the suspicion that two others have all units of semaphore 0, and this thread has got
    /// one.
    fn too_many(control: &StormControl) -> Suspicion {
        let hold = |process: usize, at, units| {
            let word = StormHold::new(9, at, units).0;
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
            assert_eq!(torn(hand, StormLockKind::Semaphore), 1);
        });
    }

    #[test]
    fn holders_that_were_dead_are_not_too_many() {
        with_hand(|hand| {
            let suspicion = too_many(hand.control);
            hand.control.parties[1][0].bury();
            hand.control.parties[2][0].holds.store(0, Ordering::SeqCst);
            resolve(hand.control, suspicion).expect("one went on, one was buried");
            assert_eq!(torn(hand, StormLockKind::Semaphore), 0);
        });
    }
}
