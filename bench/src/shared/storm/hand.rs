//! One thread of a worker in a storm: how it takes locks, waits, and dawdles.

use super::beside::{HeldBeside, Others};
use super::field::StormField;
use super::part::StormPart;
use super::suspicion::Suspicion;
use super::tally::{FOR_A_SLOT, KindTally, StormControl, StormLockKind, StormThread, now_ns};
use crate::Error;
use crate::contended::work::busy;
use lockstead::shared::{JoinError, Segment};
use std::hint::black_box;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What all threads of a worker have in common.
#[derive(Clone, Copy)]
pub(super) struct Crew<'a> {
    pub(super) part: &'a StormPart,
    pub(super) control: &'a StormControl,
    pub(super) segment: &'a Segment<StormField>,
    pub(super) others: Option<&'a Others>,
}

/// What a thread knows from the one in whose place it came.
#[derive(Clone)]
pub(super) struct Past {
    thread: usize,
    random: fastrand::Rng,
    holds: u64,
}

impl Past {
    pub(super) fn new(part: &StormPart, thread: usize) -> Self {
        let random = fastrand::Rng::with_seed(part.seed ^ (thread as u64) << 56);
        Past { thread, random, holds: 0 }
    }
}

/// The way in which a lock is to be acquired.
#[derive(Clone, Copy)]
pub(super) enum AcquireHow {
    Try,
    Within(Duration),
    Forever,
}

/// One thread of a worker.
pub(super) struct Hand<'a> {
    pub(super) control: &'a StormControl,
    pub(super) party: &'a StormThread,
    /// Processes, and threads of each, that there are.
    pub(super) extent: (usize, usize),
    pub(super) random: fastrand::Rng,
    /// This thread as locks name who is inside; not zero.
    pub(super) name: u64,
    /// How often it has held units of a semaphore.
    pub(super) holds: u64,
    /// A suspicion that it is to clear up when it holds nothing.
    pub(super) suspicion: Option<Suspicion>,
    segment: &'a Segment<StormField>,
    pub(super) part: &'a StormPart,
    thread: usize,
    pub(super) beside: Option<HeldBeside<'a>>,
}

impl<'a> Hand<'a> {
    pub(super) fn new(crew: Crew<'a>, past: Past) -> Self {
        let Crew { part, control, segment, others } = crew;
        let Past { thread, random, holds } = past;
        let party = &control.parties[part.index][thread];
        // SAFETY: by CALL-NUMBERS the call takes numbers and touches no memory of ours.
        party.thread.store(unsafe { libc::gettid() } as u32, Ordering::Relaxed);
        Hand {
            control,
            party,
            extent: (part.processes, part.threads),
            random,
            name: part.seed.rotate_left(thread as u32) | 1,
            holds,
            suspicion: None,
            segment,
            part,
            thread,
            beside: others.map(|others| HeldBeside::new(others, &control.robust)),
        }
    }

    /// Returns what the thread that comes in its place is to know.
    pub(super) fn past(self) -> Past {
        let Hand { thread, random, holds, .. } = self;
        Past { thread, random, holds }
    }

    /// Takes part, if it does not already. That all slots are taken is so for a moment
    /// only: there are more than threads that work.
    pub(super) fn take_slot(&self) -> Result<(), Error> {
        let refused = |error| match error {
            JoinError::Full | JoinError::WornOut => Ok(()),
            error => Err(Error::Worker { how: format!("a thread cannot take part: {error}") }),
        };
        let Err(error) = self.segment.participate() else { return Ok(()) };
        refused(error)?;
        self.watched(FOR_A_SLOT, || {
            while let Err(error) = self.segment.participate() {
                refused(error)?;
                std::thread::sleep(Duration::from_micros(50));
            }
            Ok(())
        })
    }

    pub(super) fn leave(&self) -> Result<(), Error> {
        self.segment.leave().map_err(|busy| Error::Worker {
            how: format!("a thread without locks cannot leave: {busy}"),
        })
    }

    pub(super) fn field(&self) -> &'a StormField {
        self.segment.root()
    }

    pub(super) fn tally(&self, kind: StormLockKind) -> &'a KindTally {
        self.control.tally(kind)
    }

    /// Tells whether this thread makes what others wait for.
    pub(super) fn makes(&self) -> bool {
        (self.part.index * self.part.threads + self.thread).is_multiple_of(2)
    }

    /// Chooses one of the ways to acquire a lock, seldom another one than to wait.
    pub(super) fn how(&mut self) -> AcquireHow {
        match self.random.u32(..16) {
            0 => AcquireHow::Try,
            1 => AcquireHow::Within(Duration::from_micros(self.random.u64(..500))),
            _ => AcquireHow::Forever,
        }
    }

    /// Returns a lock behind `at`, now and then, to be held as well.
    pub(super) fn another(&mut self, at: usize) -> Option<usize> {
        let wanted = self.random.u32(..8) == 0 && at + 1 < self.part.locks;
        wanted.then(|| self.random.usize(at + 1..self.part.locks))
    }

    /// Acquires a lock, and watches that this comes to an end.
    pub(super) fn waiting<T>(&self, kind: StormLockKind, acquire: impl FnOnce() -> T) -> T {
        let stops = &self.control.stops;
        let begin = now_ns();
        let stopped = stops.until(begin);
        let outcome = self.watched(kind as u32, acquire);
        let end = now_ns();
        let waited = (end - begin).saturating_sub(stops.until(end).saturating_sub(stopped));
        self.tally(kind).longest_wait_ns.fetch_max(waited, Ordering::Relaxed);
        outcome
    }

    /// Watches a wait that somebody is to end, be it for a lock or not; for a kind of lock, as a
    /// number, or [`FOR_A_SLOT`].
    pub(super) fn watched<T>(&self, what: u32, wait: impl FnOnce() -> T) -> T {
        let now = now_ns();
        self.party.waits_for.store(what, Ordering::Relaxed);
        self.party.waits_stopped.store(self.control.stops.until(now), Ordering::Relaxed);
        // ord: with the load in `StormThread::waits`.
        self.party.waits_since.store(now, Ordering::Release);
        let outcome = wait();
        self.party.waits_since.store(0, Ordering::Relaxed);
        outcome
    }

    /// Spends a moment, seldom a longer one.
    pub(super) fn dawdle(&mut self) {
        match self.random.u32(..256) {
            // Long enough for others to go to sleep.
            0 => std::thread::sleep(Duration::from_micros(50)),
            1..8 => std::thread::yield_now(),
            some => drop(black_box(busy(u64::from(some), self.name))),
        }
    }

    /// Gives one of the C library's locks back or takes one, now and then, while holding one of
    /// ours.
    pub(super) fn beside_at_random(&mut self) {
        if let Some(beside) = &mut self.beside
            && self.random.u32(..2) == 0
        {
            beside.change_one(&mut self.random);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::shared::memory::SharedMemory;
    use lockstead::shared::SegmentOptions;

    /// What hands work with, in this process.
    pub(in super::super) struct Stands {
        pub(in super::super) control: SharedMemory<StormControl>,
        pub(in super::super) segment: Segment<StormField>,
        parts: Vec<StormPart>,
    }

    impl Stands {
        /// Returns the only thread of worker `index`.
        pub(in super::super) fn hand(&self, index: usize) -> Hand<'_> {
            let part = &self.parts[index];
            let (control, segment) = (&*self.control, &self.segment);
            let crew = Crew { part, control, segment, others: None };
            Hand::new(crew, Past::new(part, 0))
        }
    }

    /// Returns two workers with one lock of each kind.
    pub(in super::super) fn stands() -> Stands {
        let part = |index| StormPart {
            index,
            processes: 2,
            threads: 1,
            kinds: StormLockKind::ALL.to_vec(),
            locks: 1,
            beside: false,
            churn: false,
            other_user: false,
            without_proc: false,
            path: None,
            seed: 7 + 4 * index as u64,
        };
        Stands {
            control: SharedMemory::create().expect("memory"),
            segment: super::super::field::segment(&SegmentOptions::new().participants(4))
                .expect("a segment"),
            parts: vec![part(0), part(1)],
        }
    }

    pub(in super::super) fn with_hands(count: usize, run: impl FnOnce(&mut [Hand<'_>])) {
        let stands = stands();
        run(&mut (0..count).map(|index| stands.hand(index)).collect::<Vec<_>>());
    }

    pub(in super::super) fn with_hand(run: impl FnOnce(&mut Hand<'_>)) {
        with_hands(1, |hands| run(&mut hands[0]));
    }

    pub(in super::super) fn torn(hand: &Hand<'_>, kind: StormLockKind) -> u64 {
        hand.tally(kind).torn.load(Ordering::Relaxed)
    }
}
