//! What those do that a storm kills.

use super::beside::{Beside, Others};
use super::field::{Control, Field, Kind, Party, Tally, count, now_ns};
use super::semaphore::{self, Suspicion};
use super::{condvar, mutex, rwlock};
use crate::Error;
use crate::contended::work::busy;
use crate::shared::job::Files;
use crate::shared::memory::Memory;
use lockstead::shared::Segment;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// One of so many sections is followed by giving up the seat.
const LEAVES: u32 = 128;

/// One worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::shared) struct Part {
    pub(super) index: usize,
    pub(super) processes: usize,
    pub(super) threads: usize,
    pub(super) kinds: Vec<Kind>,
    pub(super) locks: usize,
    pub(super) beside: bool,
    pub(super) seed: u64,
}

/// Works until it is killed, or the storm is over.
pub(in crate::shared) fn work(part: Part, mut files: Files) -> Result<(), Error> {
    let control = Memory::<Control>::open(files.next())?;
    let segment = Segment::<Field>::from_fd(files.next()).map_err(|why| Error::Segment {
        what: "cannot use the segment of the parent",
        why: why.to_string(),
    })?;
    let others = match part.beside {
        true => Some(Memory::<Others>::open(files.next())?),
        false => None,
    };
    let work = |thread| Hand::new(&part, thread, &control, &segment, others.as_deref()).work();
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (1..part.threads).map(|thread| scope.spawn(move || work(thread))).collect();
        let mut outcome = work(0);
        for thread in threads {
            outcome = outcome.and(thread.join().unwrap_or_else(|_| {
                Err(Error::Worker { how: "one of its threads panicked".into() })
            }));
        }
        outcome
    })
}

/// In which way a lock is to be acquired.
#[derive(Clone, Copy)]
pub(super) enum How {
    Try,
    Within(Duration),
    Forever,
}

/// One thread.
pub(super) struct Hand<'a> {
    pub(super) control: &'a Control,
    pub(super) party: &'a Party,
    /// Processes, and threads of each, that there are.
    pub(super) extent: (usize, usize),
    pub(super) random: fastrand::Rng,
    /// This thread as locks name who is inside; not zero.
    pub(super) name: u64,
    /// How often it has held units of a semaphore.
    pub(super) holds: u64,
    /// To be cleared up when it holds nothing.
    pub(super) suspicion: Option<Suspicion>,
    segment: &'a Segment<Field>,
    part: &'a Part,
    thread: usize,
    beside: Option<Beside<'a>>,
}

impl<'a> Hand<'a> {
    pub(super) fn new(
        part: &'a Part,
        thread: usize,
        control: &'a Control,
        segment: &'a Segment<Field>,
        others: Option<&'a Others>,
    ) -> Self {
        Hand {
            control,
            party: &control.parties[part.index][thread],
            extent: (part.processes, part.threads),
            random: fastrand::Rng::with_seed(part.seed ^ (thread as u64) << 56),
            name: part.seed.rotate_left(thread as u32) | 1,
            holds: 0,
            suspicion: None,
            segment,
            part,
            thread,
            beside: others.map(|others| Beside::new(others, &control.robust)),
        }
    }

    fn work(mut self) -> Result<(), Error> {
        while self.control.over.load(Ordering::Relaxed) == 0 {
            let kind = self.part.kinds[self.random.usize(..self.part.kinds.len())];
            let at = self.random.usize(..self.part.locks);
            // Who waits for an item keeps nothing from those that make one.
            let beside = kind != Kind::Condvar || self.makes();
            if beside && let Some(beside) = &mut self.beside {
                beside.take_some(&mut self.random)?;
            }
            if self.random.u32(..LEAVES) == 0 {
                self.segment.leave().map_err(|busy| Error::Worker {
                    how: format!("a thread without locks cannot leave: {busy}"),
                })?;
            }
            let done = match kind {
                Kind::Mutex => mutex::section(&mut self, at)?,
                Kind::RwLock => rwlock::section(&mut self, at)?,
                Kind::Semaphore => semaphore::section(&mut self, at)?,
                Kind::Condvar => condvar::section(&mut self, at)?,
            };
            if let Some(beside) = &mut self.beside {
                beside.give_back();
            }
            if let Some(suspicion) = self.suspicion.take() {
                semaphore::resolve(self.control, suspicion)?;
            }
            if done {
                count(&self.tally(kind).operations, 1);
                count(&self.party.sections, 1);
            }
        }
        Ok(())
    }

    pub(super) fn field(&self) -> &'a Field {
        self.segment.root()
    }

    pub(super) fn tally(&self, kind: Kind) -> &'a Tally {
        self.control.tally(kind)
    }

    /// Whether this thread makes what others wait for.
    pub(super) fn makes(&self) -> bool {
        (self.part.index * self.part.threads + self.thread).is_multiple_of(2)
    }

    /// One of the ways to acquire a lock, seldom another one than to wait.
    pub(super) fn how(&mut self) -> How {
        match self.random.u32(..16) {
            0 => How::Try,
            1 => How::Within(Duration::from_micros(self.random.u64(..500))),
            _ => How::Forever,
        }
    }

    /// A lock behind `at`, now and then, to be held as well.
    pub(super) fn another(&mut self, at: usize) -> Option<usize> {
        let wanted = self.random.u32(..8) == 0 && at + 1 < self.part.locks;
        wanted.then(|| self.random.usize(at + 1..self.part.locks))
    }

    /// An acquisition, which is to come to an end.
    pub(super) fn waiting<T>(&self, kind: Kind, acquire: impl FnOnce() -> T) -> T {
        let begin = now_ns();
        let outcome = self.watched(kind, acquire);
        let longest = &self.tally(kind).longest_wait_ns;
        longest.fetch_max(now_ns() - begin, Ordering::Relaxed);
        outcome
    }

    /// A wait that somebody is to end, be it for a lock or not.
    pub(super) fn watched<T>(&self, kind: Kind, wait: impl FnOnce() -> T) -> T {
        self.party.waits_for.store(kind as u32, Ordering::Relaxed);
        self.party.waits_since.store(now_ns(), Ordering::Relaxed);
        let outcome = wait();
        self.party.waits_since.store(0, Ordering::Relaxed);
        outcome
    }

    /// Spends some time.
    pub(super) fn dawdle(&mut self) {
        match self.random.u32(..256) {
            // Long enough for others to go to sleep.
            0 => std::thread::sleep(Duration::from_micros(50)),
            1..8 => std::thread::yield_now(),
            some => drop(black_box(busy(u64::from(some), self.name))),
        }
    }

    /// With a lock of ours: gives one of the C library's back or takes one, now and
    /// then.
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
    use lockstead::shared::Options;

    /// What hands work with, in this process.
    pub(in super::super) struct Stands {
        pub(in super::super) control: Memory<Control>,
        pub(in super::super) segment: Segment<Field>,
        parts: Vec<Part>,
    }

    impl Stands {
        /// The only thread of worker `index`.
        pub(in super::super) fn hand(&self, index: usize) -> Hand<'_> {
            Hand::new(&self.parts[index], 0, &self.control, &self.segment, None)
        }
    }

    /// Two workers with one lock of each kind.
    pub(in super::super) fn stands() -> Stands {
        let part = |index| Part {
            index,
            processes: 2,
            threads: 1,
            kinds: Kind::ALL.to_vec(),
            locks: 1,
            beside: false,
            seed: 7 + 4 * index as u64,
        };
        Stands {
            control: Memory::create().expect("memory"),
            segment: super::super::field::segment(&Options::new().participants(4))
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

    pub(in super::super) fn torn(hand: &Hand<'_>, kind: Kind) -> u64 {
        hand.tally(kind).torn.load(Ordering::Relaxed)
    }
}
