//! What those do that a storm kills.

use super::beside::{Beside, Others};
use super::field::{Control, FOR_A_SEAT, Field, Kind, Party, Tally, count, now_ns};
use super::semaphore::{self, Suspicion};
use super::{condvar, exec, habitat, mutex, rwlock};
use crate::Error;
use crate::contended::work::busy;
use crate::shared::job::Files;
use crate::shared::memory::Memory;
use lockstead::shared::{JoinError, Segment};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::thread::Scope;
use std::time::{Duration, Instant};

/// One of so many sections is followed by giving up the seat, where threads do not come and
/// go all the time.
const LEAVES: u32 = 128;
/// Where they do, so many are followed by that for one after which the thread ends.
const LEAVES_A_LIFE: u32 = 8;

/// What one worker is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::shared) struct Part {
    pub(super) index: usize,
    pub(super) processes: usize,
    pub(super) threads: usize,
    pub(super) kinds: Vec<Kind>,
    pub(super) locks: usize,
    pub(super) beside: bool,
    pub(super) churn: bool,
    pub(super) other_user: bool,
    pub(super) without_proc: bool,
    /// The path of the segment's file, if it is to be opened by that.
    pub(super) path: Option<PathBuf>,
    pub(super) seed: u64,
}

/// What a worker gets from its parent.
pub(in crate::shared) struct Handed {
    pub(super) control: OwnedFd,
    pub(super) segment: OwnedFd,
    pub(super) program: OwnedFd,
    pub(super) others: Option<OwnedFd>,
}

impl Handed {
    /// Takes the files of a worker that is a program of its own.
    pub(in crate::shared) fn from_parent(part: &Part, mut files: Files) -> Self {
        let [control, segment, program] = [files.next(), files.next(), files.next()];
        Handed { control, segment, program, others: part.beside.then(|| files.next()) }
    }
}

/// Works until it is killed, or the storm is over.
pub(in crate::shared) fn work(part: Part, handed: Handed) -> Result<(), Error> {
    let Handed { control, segment, program, others } = handed;
    habitat::settle(&part)?;
    // As long as the process: signal handlers look at it.
    let control: &'static _ = Box::leak(Box::new(Memory::<Control>::open(control)?));
    exec::obey(program, &control.parties[part.index][..part.threads])?;
    let segment = match &part.path {
        Some(path) => Segment::<Field>::open(path),
        None => Segment::from_fd(segment),
    };
    let segment = segment.map_err(|why| Error::Segment {
        what: "cannot use the segment of the parent",
        why: why.to_string(),
    })?;
    let others = others.map(Memory::<Others>::open).transpose()?;
    end_with_the_first_panic();
    let crew = Crew { part: &part, control, segment: &segment, others: others.as_deref() };
    std::thread::scope(|scope| {
        // The first thread of a process cannot be replaced.
        let here = usize::from(!part.churn);
        (here..part.threads).for_each(|thread| crew.start(scope, Past::new(&part, thread)));
        if here == 1 {
            crew.live(Past::new(&part, 0));
        }
    });
    Ok(())
}

/// Else the others would work on, and nobody learn of it.
fn end_with_the_first_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |about| {
        usual(about);
        std::process::abort();
    }));
}

/// What all threads of a worker have in common.
#[derive(Clone, Copy)]
pub(super) struct Crew<'a> {
    part: &'a Part,
    control: &'a Control,
    segment: &'a Segment<Field>,
    others: Option<&'a Others>,
}

/// The longest time that a thread may take to start.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a thread knows from the one in whose place it came.
#[derive(Clone)]
pub(super) struct Past {
    thread: usize,
    random: fastrand::Rng,
    holds: u64,
}

impl Past {
    fn new(part: &Part, thread: usize) -> Self {
        let random = fastrand::Rng::with_seed(part.seed ^ (thread as u64) << 56);
        Past { thread, random, holds: 0 }
    }
}

impl<'a> Crew<'a> {
    /// Starts a thread, and when it ends, the one that comes in its place.
    fn start<'scope>(self, scope: &'scope Scope<'scope, 'a>, past: Past)
    where
        'a: 'scope,
    {
        let end = Instant::now() + PATIENCE;
        loop {
            let past = past.clone();
            let started = std::thread::Builder::new().spawn_scoped(scope, move || {
                if let Some(past) = self.live(past) {
                    self.start(scope, past);
                }
            });
            match started {
                Ok(_) => return,
                // There is no new thread while another one is about to call `exec`: then this
                // one goes with all others.
                Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < end => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(source) => {
                    fail(&Error::Process { what: "a worker cannot start a thread", source });
                }
            }
        }
    }

    /// Does one thread's work, and returns what the thread in its place is to know, if there is
    /// to be one.
    fn live(self, past: Past) -> Option<Past> {
        Hand::new(self, past).work().unwrap_or_else(|error| fail(&error))
    }
}

/// Ends the process. Not when all threads have ended: the others may be killed before.
fn fail(error: &Error) -> ! {
    eprintln!("lockstead: a worker process: {error}");
    // SAFETY: ends the process.
    unsafe { libc::_exit(1) }
}

/// The way in which a lock is to be acquired.
#[derive(Clone, Copy)]
pub(super) enum How {
    Try,
    Within(Duration),
    Forever,
}

/// One thread of a worker.
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
    pub(super) fn new(crew: Crew<'a>, past: Past) -> Self {
        let Crew { part, control, segment, others } = crew;
        let Past { thread, random, holds } = past;
        let party = &control.parties[part.index][thread];
        // SAFETY: asks for a number.
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
            beside: others.map(|others| Beside::new(others, &control.robust)),
        }
    }

    fn work(mut self) -> Result<Option<Past>, Error> {
        while self.control.over.load(Ordering::Relaxed) == 0 {
            self.sit()?;
            self.operate()?;
            if !self.part.churn {
                if self.random.u32(..LEAVES) == 0 {
                    self.leave()?;
                }
            } else if self.random.u32(..=LEAVES_A_LIFE) != 0 {
                self.leave()?;
            } else {
                // It leaves when it has ended, without another word.
                let Hand { thread, random, holds, .. } = self;
                return Ok(Some(Past { thread, random, holds }));
            }
        }
        Ok(None)
    }

    /// One section, or what comes of trying.
    fn operate(&mut self) -> Result<(), Error> {
        let kind = self.part.kinds[self.random.usize(..self.part.kinds.len())];
        let at = self.random.usize(..self.part.locks);
        // Who waits for an item keeps nothing from those that make one.
        let beside = kind != Kind::Condvar || self.makes();
        if beside && let Some(beside) = &mut self.beside {
            beside.take_some(&mut self.random)?;
            // In another order than at first: its own entry comes after theirs.
            if self.random.u32(..LEAVES) == 0 {
                self.leave()?;
            }
        }
        let done = match kind {
            Kind::Mutex => mutex::section(self, at)?,
            Kind::RwLock => rwlock::section(self, at)?,
            Kind::Semaphore => semaphore::section(self, at)?,
            Kind::Condvar => condvar::section(self, at)?,
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
        Ok(())
    }

    /// Takes part, if it does not already. That all seats are taken is so for a moment
    /// only: there are more than threads that work.
    fn sit(&self) -> Result<(), Error> {
        let refused = |error| match error {
            JoinError::Full | JoinError::WornOut => Ok(()),
            error => Err(Error::Worker { how: format!("a thread cannot take part: {error}") }),
        };
        let Err(error) = self.segment.participate() else { return Ok(()) };
        refused(error)?;
        self.watched(FOR_A_SEAT, || {
            while let Err(error) = self.segment.participate() {
                refused(error)?;
                std::thread::sleep(Duration::from_micros(50));
            }
            Ok(())
        })
    }

    fn leave(&self) -> Result<(), Error> {
        self.segment.leave().map_err(|busy| Error::Worker {
            how: format!("a thread without locks cannot leave: {busy}"),
        })
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
        let stops = &self.control.stops;
        let begin = now_ns();
        let stopped = stops.until(begin);
        let outcome = self.watched(kind as u32, acquire);
        let end = now_ns();
        let waited = (end - begin).saturating_sub(stops.until(end).saturating_sub(stopped));
        self.tally(kind).longest_wait_ns.fetch_max(waited, Ordering::Relaxed);
        outcome
    }

    /// A wait that somebody is to end, be it for a lock or not; for a kind of lock, as a
    /// number, or [`FOR_A_SEAT`].
    pub(super) fn watched<T>(&self, what: u32, wait: impl FnOnce() -> T) -> T {
        let now = now_ns();
        self.party.waits_for.store(what, Ordering::Relaxed);
        self.party.waits_stopped.store(self.control.stops.until(now), Ordering::Relaxed);
        // ord: with the load in `Party::waits`.
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
            let part = &self.parts[index];
            let (control, segment) = (&*self.control, &self.segment);
            let crew = Crew { part, control, segment, others: None };
            Hand::new(crew, Past::new(part, 0))
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
            churn: false,
            other_user: false,
            without_proc: false,
            path: None,
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
