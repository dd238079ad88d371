//! Robust mutexes of the C library in the threads of a storm.
//!
//! Each protects two counters, as ours do. A thread takes some before it takes locks of
//! ours, which gives one order; with a lock of ours it gives one back, or takes one more
//! if that needs no wait; and it gives up its slot and takes another between them. So
//! the thread's list has entries of both kinds, which come and go in all orders.
//!
//! Waits for them look again every [`GLANCE`]: where a thread is killed between its
//! release and its wake-up, and another one takes the mutex in between, the sleepers of
//! the C library sleep on.

use super::tally::{KindTally, count};
use crate::Error;
use crate::locks::{BenchLock, PosixRobust, Pthread, Robustly};
use crate::shared::memory::{Plain, SharedMemory};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How many there are.
const MUTEXES: usize = 4;
/// The longest sleep in a wait for one of the C library's mutexes, for the reason that the module
/// gives.
const GLANCE: Duration = Duration::from_millis(50);
/// Nobody has one for so long.
const PATIENCE: Duration = Duration::from_secs(20);

/// One, and what it protects.
#[repr(C)]
pub(super) struct TheirMutex {
    mutex: Pthread<PosixRobust>,
    first: AtomicU64,
    second: AtomicU64,
}

/// All robust mutexes of a storm.
#[repr(C)]
pub(super) struct Others([TheirMutex; MUTEXES]);

// SAFETY: robust mutexes for several processes, which `fresh` sets up once, and atomics.
unsafe impl Plain for Others {}

/// Makes memory with all of them free.
pub(super) fn fresh() -> Result<SharedMemory<Others>, Error> {
    let others = SharedMemory::<Others>::create()?;
    others.0.iter().for_each(|theirs| theirs.mutex.settle());
    Ok(others)
}

impl TheirMutex {
    /// Takes it, waiting at most so long. Returns false if it was not to be had.
    fn take(&self, patience: Duration, tally: &KindTally) -> bool {
        let end = Instant::now() + patience;
        let robustly = loop {
            match self.mutex.take_within(GLANCE.min(patience)) {
                Robustly::Busy if Instant::now() < end => {}
                robustly => break robustly,
            }
        };
        let (first, second) = (&self.first, &self.second);
        match robustly {
            Robustly::Busy => return false,
            Robustly::Had => {
                let sound = first.load(Ordering::Relaxed) == second.load(Ordering::Relaxed);
                count(&tally.torn, u64::from(!sound));
            }
            Robustly::OwnerDied => {
                count(&tally.owner_died, 1);
                second.store(first.load(Ordering::Relaxed), Ordering::Relaxed);
                self.mutex.mark_consistent();
            }
        }
        first.store(first.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        true
    }

    fn give_back(&self, tally: &KindTally) {
        let second = self.second.load(Ordering::Relaxed) + 1;
        self.second.store(second, Ordering::Relaxed);
        let alone = self.first.load(Ordering::Relaxed) == second;
        count(&tally.torn, u64::from(!alone));
        count(&tally.operations, 1);
        self.mutex.give_back();
    }
}

/// The robust mutexes that one thread has.
pub(super) struct HeldBeside<'a> {
    others: &'a Others,
    tally: &'a KindTally,
    has: [bool; MUTEXES],
}

impl<'a> HeldBeside<'a> {
    pub(super) fn new(others: &'a Others, tally: &'a KindTally) -> Self {
        HeldBeside { others, tally, has: [false; MUTEXES] }
    }

    /// Takes some, in order. The caller has no lock, of either kind.
    pub(super) fn take_some(&mut self, random: &mut fastrand::Rng) -> Result<(), Error> {
        for at in 0..MUTEXES {
            if random.u32(..3) != 0 {
                continue;
            }
            if !self.others.0[at].take(PATIENCE, self.tally) {
                return Err(Error::Worker { how: "a mutex of the C library is stuck".into() });
            }
            self.has[at] = true;
        }
        Ok(())
    }

    /// Gives one back, or tries to take one.
    pub(super) fn change_one(&mut self, random: &mut fastrand::Rng) {
        let at = random.usize(..MUTEXES);
        if self.has[at] {
            self.others.0[at].give_back(self.tally);
            self.has[at] = false;
        } else {
            self.has[at] = self.others.0[at].take(Duration::ZERO, self.tally);
        }
    }

    /// Gives all that it has back.
    pub(super) fn give_back(&mut self) {
        for at in 0..MUTEXES {
            if std::mem::take(&mut self.has[at]) {
                self.others.0[at].give_back(self.tally);
            }
        }
    }
}

/// Returns how many cannot be taken, when nobody is left.
pub(super) fn inspect(others: &Others, tally: &KindTally) -> u64 {
    let stuck = others.0.iter().filter(|theirs| {
        let free = theirs.take(GLANCE, tally);
        if free {
            theirs.give_back(tally);
        }
        !free
    });
    stuck.count() as u64
}

#[cfg(test)]
mod tests {
    use super::super::hand::tests::stands;
    use super::*;

    #[test]
    fn mutexes_that_nobody_gives_back_or_that_tear_are_noticed() {
        let stands = stands();
        let (others, tally) = (fresh().expect("memory"), &stands.control.robust);
        let mut beside = HeldBeside::new(&others, tally);
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..50 {
            beside.take_some(&mut random).expect("free");
            beside.change_one(&mut random);
            beside.give_back();
        }
        assert_eq!(inspect(&others, tally), 0);
        let torn = || tally.torn.load(Ordering::Relaxed);
        assert_eq!(torn(), 0);
        others.0[1].first.fetch_add(1, Ordering::Relaxed);
        assert_eq!(inspect(&others, tally), 0);
        assert!(torn() > 0);
        std::thread::scope(|scope| {
            let other = &others;
            // It ends, which is a death; it is told of.
            scope.spawn(move || other.0[2].take(PATIENCE, tally)).join().expect("it ends");
        });
        assert_eq!(tally.owner_died.load(Ordering::Relaxed), 0);
        assert_eq!(inspect(&others, tally), 0);
        assert_eq!(tally.owner_died.load(Ordering::Relaxed), 1);
        assert!(others.0[2].take(PATIENCE, tally));
        let stuck = std::thread::scope(|scope| {
            let other = &others;
            scope.spawn(move || inspect(other, tally)).join().expect("it ends")
        });
        assert_eq!(stuck, 1);
        others.0[2].give_back(tally);
    }
}
