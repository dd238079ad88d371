//! What those do that a storm kills.

use super::{Control, Field, Pair, Party};
use crate::Error;
use crate::contended::work::busy;
use crate::shared::job::Files;
use crate::shared::memory::Memory;
use lockstead::shared::{Locked, Segment, SharedError, SharedMutex, SharedMutexGuard};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// One worker.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(in crate::shared) struct Part {
    pub(super) index: usize,
    pub(super) threads: usize,
    pub(super) locks: usize,
    pub(super) seed: u64,
}

/// Works until it is killed, or the storm is over.
pub(in crate::shared) fn work(part: Part, mut files: Files) -> Result<(), Error> {
    let control = Memory::<Control>::open(files.next())?;
    let segment = Segment::<Field>::from_fd(files.next()).map_err(|why| Error::Segment {
        what: "cannot use the segment of the parent",
        why: why.to_string(),
    })?;
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..part.threads)
            .map(|thread| {
                let (control, segment) = (&control, &segment);
                scope.spawn(move || Hand::new(part, thread, control, segment).work())
            })
            .collect();
        let mut outcome = Hand::new(part, 0, &control, &segment).work();
        for other in others {
            outcome = outcome.and(other.join().unwrap_or_else(|_| {
                Err(Error::Worker { how: "one of its threads panicked".into() })
            }));
        }
        outcome
    })
}

/// One thread.
struct Hand<'a> {
    control: &'a Control,
    party: &'a Party,
    locks: &'a [SharedMutex<Pair>],
    random: fastrand::Rng,
    /// This thread as `Pair::inside` names it; not zero.
    name: u64,
}

impl<'a> Hand<'a> {
    fn new(part: Part, thread: usize, control: &'a Control, segment: &'a Segment<Field>) -> Self {
        Hand {
            control,
            party: &control.parties[part.index][thread],
            locks: &segment.root().locks[..part.locks],
            random: fastrand::Rng::with_seed(part.seed ^ (thread as u64) << 56),
            name: part.seed.rotate_left(thread as u32) | 1,
        }
    }

    fn work(mut self) -> Result<(), Error> {
        while self.control.over.load(Ordering::Relaxed) == 0 {
            let first = self.random.usize(..self.locks.len());
            let guard = self.take(first)?;
            if let Some(mut guard) = guard {
                self.enter(&mut guard);
                // A second one now and then, in one order.
                if self.random.u32(..8) == 0 && first + 1 < self.locks.len() {
                    let second = self.random.usize(first + 1..self.locks.len());
                    if let Some(mut inner) = self.take(second)? {
                        self.enter(&mut inner);
                        self.leave(&mut inner);
                    }
                }
                self.leave(&mut guard);
                drop(guard);
                self.control.operations.fetch_add(1, Ordering::Relaxed);
                self.party.sections.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Takes a lock in one of the ways there are; `None` if it was not to be had.
    fn take(&mut self, lock: usize) -> Result<Option<SharedMutexGuard<'a, Pair>>, Error> {
        let lock = &self.locks[lock];
        let (begin, way) = (now_ns(), self.random.u32(..16));
        let briefly = Duration::from_micros(self.random.u64(..500));
        self.party.waits_since.store(begin, Ordering::Relaxed);
        let outcome = match way {
            0 => lock.try_lock(),
            1 => lock.lock_timeout(briefly),
            _ => lock.lock(),
        };
        self.party.waits_since.store(0, Ordering::Relaxed);
        self.control.longest_wait_ns.fetch_max(now_ns() - begin, Ordering::Relaxed);
        match outcome {
            Ok(Locked::Acquired(pair)) => {
                if pair.first != pair.second || pair.inside != 0 {
                    self.control.torn.fetch_add(1, Ordering::Relaxed);
                }
                Ok(Some(pair))
            }
            Ok(Locked::OwnerDied(mut pair)) => {
                self.control.owner_died.fetch_add(1, Ordering::Relaxed);
                pair.second = pair.first;
                pair.inside = 0;
                Ok(Some(pair.mark_consistent()))
            }
            Ok(Locked::NotRecoverable) => {
                Err(Error::Worker { how: "a lock is not recoverable, for no reason".into() })
            }
            Err(SharedError::TimedOut | SharedError::Held) => Ok(None),
            Err(error) => Err(Error::Worker { how: format!("a lock refuses: {error}") }),
        }
    }

    fn enter(&mut self, pair: &mut Pair) {
        pair.inside = self.name;
        store(&mut pair.first, |n| n.wrapping_add(1));
        match self.random.u32(..256) {
            // Long enough for others to go to sleep.
            0 => std::thread::sleep(Duration::from_micros(50)),
            1..8 => std::thread::yield_now(),
            some => drop(black_box(busy(u64::from(some), self.name))),
        }
    }

    fn leave(&mut self, pair: &mut Pair) {
        store(&mut pair.second, |n| n.wrapping_add(1));
        if load(&pair.inside) != self.name || load(&pair.first) != load(&pair.second) {
            self.control.torn.fetch_add(1, Ordering::Relaxed);
        }
        pair.inside = 0;
    }
}

/// A load that no compiler leaves out: somebody who should not be there may have
/// written.
fn load(from: &u64) -> u64 {
    // SAFETY: a reference is valid for reads.
    unsafe { std::ptr::from_ref(from).read_volatile() }
}

/// A store that no compiler puts off or joins with another.
fn store(to: &mut u64, change: impl FnOnce(u64) -> u64) {
    let new = change(load(to));
    // SAFETY: a unique reference is valid for writes.
    unsafe { std::ptr::from_mut(to).write_volatile(new) };
}

/// The system's monotonic clock, which is the same in every process.
pub(super) fn now_ns() -> u64 {
    crate::clock::monotonic().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstead::shared::Options;
    use std::sync::atomic::AtomicU64;

    fn torn(run: impl FnOnce(&mut Hand<'_>)) -> u64 {
        let control = Memory::<Control>::create().expect("memory");
        let segment = Segment::memfd("worker", &Options::new().participants(4)).expect("a segment");
        let part = Part { index: 0, threads: 1, locks: 2, seed: 7 };
        run(&mut Hand::new(part, 0, &control, &segment));
        let count: &AtomicU64 = &control.torn;
        count.load(Ordering::Relaxed)
    }

    fn taken<'a>(hand: &mut Hand<'a>) -> SharedMutexGuard<'a, Pair> {
        hand.take(0).expect("nobody refuses").expect("nobody has it")
    }

    #[test]
    fn a_section_leaves_the_counters_equal() {
        let count = torn(|hand| {
            for _ in 0..3 {
                let mut pair = taken(hand);
                hand.enter(&mut pair);
                hand.leave(&mut pair);
            }
            let pair = taken(hand);
            assert_eq!((pair.first, pair.second), (3, 3));
        });
        assert_eq!(count, 0);
    }

    #[test]
    fn a_section_that_was_cut_off_without_a_word_is_torn() {
        let count = torn(|hand| {
            let mut pair = taken(hand);
            hand.enter(&mut pair);
            drop(pair);
            drop(taken(hand));
        });
        assert_eq!(count, 1);
    }

    #[test]
    fn two_inside_are_noticed() {
        let count = torn(|hand| {
            let mut pair = taken(hand);
            hand.enter(&mut pair);
            pair.inside ^= 2;
            hand.leave(&mut pair);
        });
        assert_eq!(count, 1);
    }
}
