//! Processes that are killed all the time, around an invariant.
//!
//! # Role
//! Workers take locks of one segment at random. Each lock protects two counters
//! that are equal outside of critical sections; a section adds one to the first,
//! dawdles, and adds one to the second. The parent kills workers at random
//! moments and starts new ones in their place.
//!
//! # What is judged
//! - *Torn*: a worker got a lock as if nobody had died, and the counters differ, or
//!   somebody else was inside at the same time.
//! - *Stall*: a wait for a lock that takes longer than [`STALL`]. Most waits have no
//!   deadline of their own, so that a lost wake-up is not mended by one. Who stalls
//!   is killed as well, so that the storm ends.
//!
//! A worker's counts live in memory that survives it. It counts what it saw before
//! it goes on; what it had seen and not counted when it was killed is lost, which
//! may only make the number of deaths noticed smaller.

mod worker;

use super::job::Job;
use super::memory::{Memory, Plain};
use super::process::{Namespaces, Place, Worker, ending, until};
use crate::machine::Machine;
use crate::{Error, Session, options};
use lockstead::shared::{Locked, Options as SegmentOptions, Segment, Shareable, SharedMutex};
use serde::Serialize;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
pub(super) use worker::{Part, work};

/// A wait that is longer is a stall.
pub const STALL: Duration = Duration::from_secs(3);
/// The largest number of processes.
pub const MAX_PROCESSES: usize = 64;
/// The largest number of threads in a process.
pub const MAX_THREADS: usize = 16;
/// The largest number of locks.
pub const MAX_LOCKS: usize = 256;
/// The largest number of kills.
pub const MAX_KILLS: u64 = 10_000_000;

/// A worker may take this long to have its first lock.
const PATIENCE: Duration = Duration::from_secs(30);
/// A worker that has its first lock is killed within this time.
const LIFETIME_US: u64 = 2_000;
/// One of so many is killed as it begins, at any point of its start.
const EARLY: u64 = 8;
/// Within this time of its creation.
const YOUTH_US: u64 = 6_000;
/// Deaths that one place for a participant can count, and some to spare.
const DEATHS_A_PLACE: u64 = 8_000;

/// What to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many workers to kill.
    pub kills: u64,
    /// Workers at the same time.
    pub processes: usize,
    /// Locks.
    pub locks: usize,
    /// Threads of each worker.
    pub threads: usize,
    /// Every worker is process 1 of a namespace of its own.
    pub namespaces: bool,
}

impl Default for Options {
    /// 1000 kills, 4 processes of one thread, 8 locks.
    fn default() -> Self {
        Self { kills: 1000, processes: 4, locks: 8, threads: 1, namespaces: false }
    }
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Workers that were killed.
    pub kills: u64,
    /// How often a lock told its next owner that the last one had died.
    pub owner_died: u64,
    /// How often it did not, and the counters differed.
    pub torn: u64,
    /// Waits beyond [`STALL`].
    pub stalls: u64,
    /// The longest wait for a lock.
    pub longest_wait_ms: f64,
    /// Workers at the same time.
    pub processes: usize,
    /// Threads of each.
    pub threads: usize,
    /// Locks.
    pub locks: usize,
    /// Whether each worker was process 1 of its namespace.
    pub namespaces: bool,
    /// Critical sections.
    pub operations: u64,
    /// How long it took.
    pub seconds: f64,
    /// Where.
    pub machine: Machine,
}

impl Report {
    /// Whether the locks did what they promise.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.torn == 0 && self.stalls == 0
    }
}

/// What a lock protects.
#[derive(Clone, Copy, Shareable)]
#[repr(C)]
struct Pair {
    first: u64,
    second: u64,
    /// Who is inside: process and thread of this storm, in one number.
    inside: u64,
}

/// What the locks lie in.
#[derive(Shareable)]
#[repr(C)]
struct Field {
    locks: [SharedMutex<Pair>; MAX_LOCKS],
}

/// What the parent and all workers see beside the segment.
#[repr(C)]
struct Control {
    over: AtomicU32,
    owner_died: AtomicU64,
    torn: AtomicU64,
    operations: AtomicU64,
    longest_wait_ns: AtomicU64,
    parties: [[Party; MAX_THREADS]; MAX_PROCESSES],
}

/// One thread of one worker.
#[repr(C, align(128))]
struct Party {
    /// Critical sections of this life.
    sections: AtomicU64,
    /// Since when it waits for a lock, on the system's monotonic clock; 0: it
    /// does not.
    waits_since: AtomicU64,
}

// SAFETY: plain atomics.
unsafe impl Plain for Control {}

/// Lets it storm.
///
/// # Errors
/// [`Error::Option`] for options out of range, [`Error::Namespaces`] if they are
/// asked for and not to be had, [`Error::Worker`] if a worker ends by itself,
/// [`Error::Process`], [`Error::Segment`], [`Error::Interrupted`].
pub fn measure(options: &Options, session: &mut Session<'_>) -> Result<Report, Error> {
    options::within("--kills", options.kills, 1..=MAX_KILLS, "")?;
    options::within("--processes", options.processes, 1..=MAX_PROCESSES, "")?;
    options::within("--locks", options.locks, 1..=MAX_LOCKS, "")?;
    options::within("--threads", options.threads, 1..=MAX_THREADS, "")?;
    // Every thread that dies wears its place.
    let deaths = options.kills * options.threads as u64;
    options::within("--kills times --threads", deaths, 1..=MAX_KILLS, "")?;
    let place = if options.namespaces { Place::Own(Namespaces::find()?) } else { Place::Here };
    let machine = Machine::here();
    let start = Instant::now();
    let mut storm = Storm::new(options, place)?;
    storm.rage(session)?;
    storm.calm(session)?;
    let stalls = storm.stalls;
    let control = &storm.control;
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Ok(Report {
        kills: storm.kills,
        owner_died: count(&control.owner_died),
        torn: count(&control.torn),
        stalls,
        longest_wait_ms: count(&control.longest_wait_ns) as f64 / 1e6,
        processes: options.processes,
        threads: options.threads,
        locks: options.locks,
        namespaces: options.namespaces,
        operations: count(&control.operations),
        seconds: start.elapsed().as_secs_f64(),
        machine,
    })
}

/// A storm that goes on.
struct Storm<'a> {
    options: &'a Options,
    place: Place,
    control: Memory<Control>,
    segment: Segment<Field>,
    victims: Vec<Victim>,
    kills: u64,
    stalls: u64,
}

/// A worker and its fate.
struct Victim {
    worker: Worker,
    since: Instant,
    fate: Fate,
}

#[derive(Clone, Copy)]
enum Fate {
    /// Not decided before it has its first lock.
    Begins,
    /// To be killed then.
    DiesAt(Instant),
    /// Was killed, and not yet waited for; counts or does not.
    Dying { counts: bool },
}

impl<'a> Storm<'a> {
    fn new(options: &'a Options, place: Place) -> Result<Self, Error> {
        let parties = (options.processes * options.threads) as u64;
        let worn_out = options.kills * options.threads as u64 / DEATHS_A_PLACE;
        let participants = u32::try_from(parties + worn_out + 1).unwrap_or(u32::MAX);
        let segment =
            Segment::memfd("lockstead-storm", &SegmentOptions::new().participants(participants))
                .map_err(|why| Error::Segment {
                    what: "cannot make a segment",
                    why: why.to_string(),
                })?;
        let mut storm = Storm {
            options,
            place,
            control: Memory::create()?,
            segment,
            victims: Vec::new(),
            kills: 0,
            stalls: 0,
        };
        for index in 0..options.processes {
            let victim = storm.start(index)?;
            storm.victims.push(victim);
        }
        Ok(storm)
    }

    fn start(&self, index: usize) -> Result<Victim, Error> {
        for party in &self.control.parties[index] {
            party.sections.store(0, Ordering::Relaxed);
            party.waits_since.store(0, Ordering::Relaxed);
        }
        let job = Job::Storm(Part {
            index,
            threads: self.options.threads,
            locks: self.options.locks,
            seed: fastrand::u64(..),
        });
        let files = [self.control.as_fd(), self.segment.as_fd()];
        let worker = Worker::start(&job, &files, self.place)?;
        let since = Instant::now();
        let fate = match fastrand::u64(..EARLY) {
            0 => Fate::DiesAt(since + random(YOUTH_US)),
            _ => Fate::Begins,
        };
        Ok(Victim { worker, since, fate })
    }

    /// Until enough are killed.
    fn rage(&mut self, session: &mut Session<'_>) -> Result<(), Error> {
        while self.kills < self.options.kills {
            if session.stopped() {
                return Err(Error::Interrupted);
            }
            let noticed = self.control.owner_died.load(Ordering::Relaxed);
            session.tell(
                self.kills,
                self.options.kills,
                &format!("kills, {noticed} deaths noticed, {} stalls", self.stalls),
            );
            for index in 0..self.victims.len() {
                self.attend(index)?;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }

    /// Looks at one worker, and kills it if its time has come.
    fn attend(&mut self, index: usize) -> Result<(), Error> {
        let stalled = self.has_stalled(index);
        let lives = self.lives(index);
        let victim = &mut self.victims[index];
        let status = victim.worker.ended();
        match victim.fate {
            Fate::Dying { counts } => {
                if status.is_some() {
                    self.kills += u64::from(counts);
                    self.victims[index] = self.start(index)?;
                }
                return Ok(());
            }
            _ if let Some(status) = status => {
                return Err(Error::Worker { how: ending(status) });
            }
            _ if stalled => {
                self.stalls += 1;
                victim.worker.kill();
                victim.fate = Fate::Dying { counts: false };
            }
            Fate::Begins if lives => {
                victim.fate = Fate::DiesAt(Instant::now() + random(LIFETIME_US));
            }
            Fate::Begins if victim.since.elapsed() > PATIENCE => {
                return Err(Error::Worker { how: "it never came to its first lock".into() });
            }
            Fate::DiesAt(when) if Instant::now() >= when => {
                victim.worker.kill();
                victim.fate = Fate::Dying { counts: true };
            }
            Fate::Begins | Fate::DiesAt(_) => {}
        }
        Ok(())
    }

    /// Whether all threads of a worker have had a lock.
    fn lives(&self, index: usize) -> bool {
        self.control.parties[index][..self.options.threads]
            .iter()
            .all(|party| party.sections.load(Ordering::Relaxed) > 0)
    }

    fn has_stalled(&self, index: usize) -> bool {
        let longest = self.control.parties[index][..self.options.threads]
            .iter()
            .map(|party| party.waits_since.load(Ordering::Relaxed))
            .filter(|&since| since != 0)
            .map(|since| worker::now_ns().saturating_sub(since))
            .max()
            .unwrap_or(0);
        let stalled = longest > STALL.as_nanos() as u64;
        if stalled {
            self.control.longest_wait_ns.fetch_max(longest, Ordering::Relaxed);
        }
        stalled
    }

    /// Nobody is killed any more: who is left must come to an end, and what they
    /// leave must be whole. No fresh arrivals mend a lost wake-up here.
    fn calm(&mut self, session: &mut Session<'_>) -> Result<(), Error> {
        self.control.over.store(1, Ordering::Relaxed);
        let mut statuses = Vec::new();
        let all = self.victims.len();
        until(PATIENCE, || {
            let victims = self.victims.iter_mut();
            statuses.extend(victims.filter_map(|victim| {
                let killed = matches!(victim.fate, Fate::Dying { .. });
                victim.worker.ended().map(|status| (killed, status))
            }));
            statuses.len() == all
                || session.stopped()
                || (0..all).any(|index| self.has_stalled(index))
        });
        if session.stopped() {
            return Err(Error::Interrupted);
        }
        if let Some(&(_, status)) = statuses.iter().find(|(killed, s)| !killed && *s != 0) {
            return Err(Error::Worker { how: ending(status) });
        }
        self.stalls += (all - statuses.len()) as u64;
        self.victims.clear();
        for lock in &self.segment.root().locks[..self.options.locks] {
            let start = Instant::now();
            match lock.lock_timeout(STALL) {
                Ok(Locked::Acquired(pair)) => {
                    let torn = u64::from(pair.first != pair.second);
                    self.control.torn.fetch_add(torn, Ordering::Relaxed);
                }
                Ok(Locked::OwnerDied(mut pair)) => {
                    pair.second = pair.first;
                    drop(pair.mark_consistent());
                    self.control.owner_died.fetch_add(1, Ordering::Relaxed);
                }
                Ok(Locked::NotRecoverable) => {
                    self.control.torn.fetch_add(1, Ordering::Relaxed);
                }
                Err(_) => self.stalls += 1,
            }
            let waited = start.elapsed().as_nanos() as u64;
            self.control.longest_wait_ns.fetch_max(waited, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn random(most_us: u64) -> Duration {
    Duration::from_micros(fastrand::u64(..most_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A storm in which nobody is killed, for nobody is there.
    fn still(options: &Options) -> Storm<'_> {
        Storm {
            options,
            place: Place::Here,
            control: Memory::create().expect("memory"),
            segment: Segment::memfd("still", &SegmentOptions::new().participants(4))
                .expect("a segment"),
            victims: Vec::new(),
            kills: 0,
            stalls: 0,
        }
    }

    fn quiet<T>(run: impl FnOnce(&mut Session<'_>) -> T) -> T {
        let stop = std::sync::atomic::AtomicBool::new(false);
        let mut progress = |_: u64, _: u64, _: &str| {};
        run(&mut Session::new(&stop, &mut progress))
    }

    #[test]
    fn counters_that_differ_are_torn() {
        let options = Options::default();
        let mut storm = still(&options);
        let locked = storm.segment.root().locks[3].lock().expect("a free lock");
        locked.acquired().expect("nobody died").first = 1;
        quiet(|session| storm.calm(session)).expect("comes to an end");
        assert_eq!(storm.control.torn.load(Ordering::Relaxed), 1);
        assert_eq!(storm.stalls, 0);
    }

    #[test]
    fn a_wait_is_a_stall_when_it_has_lasted_too_long() {
        let options = Options::default();
        let storm = still(&options);
        let since = |ago: Duration| {
            let since = worker::now_ns() - ago.as_nanos() as u64;
            storm.control.parties[2][0].waits_since.store(since, Ordering::Relaxed);
            storm.has_stalled(2)
        };
        assert!(!since(STALL - Duration::from_secs(1)));
        assert!(since(STALL + Duration::from_millis(1)));
        assert!(storm.control.longest_wait_ns.load(Ordering::Relaxed) > 3_000_000_000);
        assert!(!storm.has_stalled(1));
    }

    #[test]
    fn more_deaths_than_places_can_count_are_refused() {
        let options = Options { kills: MAX_KILLS, threads: 2, ..Options::default() };
        let refused = quiet(|session| measure(&options, session)).expect_err("too many");
        assert!(refused.to_string().contains("--kills times --threads"), "{refused}");
    }
}
