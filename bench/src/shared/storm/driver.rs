//! The parent of a storm: it starts workers, has them die, and looks at what they left.

use super::beside::{self, Others};
use super::condvar;
use super::course::Course;
use super::fate::{StormVictim, Unmarked, WorkerFate};
use super::ground::StormGround;
use super::limits::KILLS_A_PHASE;
use super::mix::{Mix, Namespacing};
use super::part::StormPart;
use super::tally::{KindTally, StormControl, StormLockKind};
use super::worker::{Handed, work};
use crate::shared::memory::SharedMemory;
use crate::shared::process::{Namespaces, WorkerPlace, WorkerProcess};
use crate::{Error, Session};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// One of so many is killed as it begins, at any point of its start.
const EARLY: u64 = 8;
/// Within this time of its creation, as a copy and as a new program.
const YOUTH_US: u64 = 1_000;
const LONG_YOUTH_US: u64 = 6_000;
/// A worker that is killed in a quiet phase is killed within this time of its beginning.
const LAST_US: u64 = 400;
/// One of so many begins as a new program, in the namespaces of its parent; the others as
/// copies of it, which takes a fifth of the time.
const ANEW: u64 = 16;
/// The time between two looks at the workers.
pub(super) const BLINK: Duration = Duration::from_micros(50);
/// A storm that goes on.
pub(super) struct Storm<'a> {
    pub(super) mix: &'a Mix,
    namespaces: Option<Namespaces>,
    /// What workers become that call `exec`.
    program: File,
    pub(super) control: SharedMemory<StormControl>,
    pub(super) ground: StormGround,
    pub(super) others: Option<SharedMemory<Others>>,
    pub(super) victims: Vec<StormVictim>,
    pub(super) kills: u64,
    pub(super) reaped: u64,
    pub(super) execs: u64,
    pub(super) stops: u64,
    /// How many workers are stopped.
    pub(super) stopped: usize,
    /// Threads of workers that ended by being killed.
    pub(super) deaths: u64,
    /// Deaths of which the kernel may not have told, and how they become known.
    pub(super) unmarked: Unmarked,
    pub(super) quiet_phases: u64,
    pub(super) stalls: [u64; StormLockKind::ALL.len()],
    pub(super) lost: u64,
    pub(super) stuck: u64,
    pub(super) time: Duration,
    /// Why it does not go on.
    pub(super) broken: Option<String>,
}

impl<'a> Storm<'a> {
    pub(super) fn new(mix: &'a Mix, namespaces: Option<Namespaces>) -> Result<Self, Error> {
        let program = File::open("/proc/self/exe")
            .map_err(|source| Error::Process { what: "cannot open this program", source })?;
        let ground = StormGround::new(mix)?;
        Ok(Storm {
            mix,
            namespaces,
            program,
            control: SharedMemory::create()?,
            ground,
            others: if mix.beside_robust { Some(beside::fresh()?) } else { None },
            victims: Vec::new(),
            kills: 0,
            reaped: 0,
            execs: 0,
            stops: 0,
            stopped: 0,
            deaths: 0,
            unmarked: Unmarked::default(),
            quiet_phases: 0,
            stalls: [0; StormLockKind::ALL.len()],
            lost: 0,
            stuck: 0,
            time: Duration::ZERO,
            broken: None,
        })
    }

    /// Runs phases of kills and quiet ones, until it is somebody else's turn or all is over. That
    /// the locks refuse is a finding, and ends this storm only.
    pub(super) fn run_turn(
        &mut self,
        course: &Course<'_>,
        session: &mut Session<'_>,
    ) -> Result<(), Error> {
        let start = Instant::now();
        let outcome = self.run_phases(course, session);
        self.time += start.elapsed();
        match outcome {
            Err(Error::Worker { how }) => {
                self.broken = Some(how);
                self.go_on();
                self.victims.clear();
                // If it cannot, the next storm says so.
                let _ = self.ground.segment.leave();
                Ok(())
            }
            outcome => outcome,
        }
    }

    fn run_phases(&mut self, course: &Course<'_>, session: &mut Session<'_>) -> Result<(), Error> {
        self.ground.take_slot()?;
        while !course.is_over(self.kills) {
            self.kill_phase(course, session)?;
            self.quiesce(course, session)?;
        }
        // A thread that uses one segment may not be able to use another one as well.
        self.ground.segment.leave().map_err(|busy| Error::Worker {
            how: format!("the parent, which has no lock, cannot leave: {busy}"),
        })
    }

    fn kill_phase(&mut self, course: &Course<'_>, session: &mut Session<'_>) -> Result<(), Error> {
        let enough = self.kills + KILLS_A_PHASE;
        self.control.over.store(0, Ordering::Relaxed);
        self.set_depots(false)?;
        for index in 0..self.mix.processes {
            let victim = self.start(index)?;
            self.victims.push(victim);
        }
        while self.kills < enough && !course.is_over(self.kills) {
            self.tell(course, session)?;
            for index in 0..self.victims.len() {
                if matches!(self.victims[index].fate, WorkerFate::Gone) {
                    self.victims[index] = self.start(index)?;
                }
                self.attend(index)?;
            }
            self.unmarked.look(&self.ground.slots);
            std::thread::sleep(BLINK);
        }
        Ok(())
    }

    /// Runs a quiet phase. Nobody begins anything new, and nobody comes: some are killed, and the
    /// others must come to an end; what all leave must be whole.
    pub(super) fn quiesce(
        &mut self,
        course: &Course<'_>,
        session: &mut Session<'_>,
    ) -> Result<(), Error> {
        self.before_quiet()?;
        self.strike_unmarked()?;
        self.control.over.store(1, Ordering::Relaxed);
        let now = Instant::now();
        for victim in &mut self.victims {
            if matches!(
                victim.fate,
                WorkerFate::Begins | WorkerFate::StopsAt(_) | WorkerFate::DiesAt(_)
            ) {
                victim.fate = match fastrand::bool() {
                    true => WorkerFate::DiesAt(now + random(LAST_US)),
                    false => WorkerFate::Survives,
                };
            }
        }
        self.set_depots(true)?;
        while !self.victims.iter().all(|victim| matches!(victim.fate, WorkerFate::Gone)) {
            self.tell(course, session)?;
            for index in 0..self.victims.len() {
                self.attend(index)?;
            }
            // A sleep is longer than what those do that are to be killed at it.
            match now.elapsed() < Duration::from_micros(LAST_US) {
                true => std::thread::yield_now(),
                false => std::thread::sleep(BLINK),
            }
        }
        self.victims.clear();
        self.inspect();
        self.count_slots()?;
        self.unmarked.end_quiet();
        self.quiet_phases += 1;
        Ok(())
    }

    /// Counts the slots when nobody is left. If some are lost, there would be fewer and fewer, so
    /// the storm goes on in a new segment.
    fn count_slots(&mut self) -> Result<(), Error> {
        let lost = self.ground.slots.lost()?;
        if lost != 0 {
            self.lost += lost;
            self.ground = StormGround::new(self.mix)?;
            self.ground.take_slot()?;
        }
        Ok(())
    }

    fn tell(&self, course: &Course<'_>, session: &mut Session<'_>) -> Result<(), Error> {
        if session.stopped() {
            return Err(Error::Interrupted);
        }
        let noticed = self.sum(|tally| &tally.owner_died);
        let failures = self.stalls.iter().sum::<u64>() + self.lost + self.sum(|tally| &tally.torn);
        course.tell(session, self.mix, (self.kills, noticed, failures));
        Ok(())
    }

    fn start(&self, index: usize) -> Result<StormVictim, Error> {
        let mix = self.mix;
        let part = StormPart {
            index,
            processes: mix.processes,
            threads: mix.threads,
            kinds: mix.kinds.clone(),
            locks: mix.locks,
            beside: mix.beside_robust,
            churn: mix.churn,
            // Of those in each of two namespaces half.
            other_user: mix.users && index / 2 % 2 == 1,
            without_proc: mix.without_proc,
            path: self.ground.path(),
            seed: fastrand::u64(..),
        };
        let place = match (mix.namespaces, self.namespaces) {
            (Namespacing::Each, Some(own)) => WorkerPlace::Own(own),
            (Namespacing::Several, Some(own)) if index % 2 == 1 => WorkerPlace::Own(own),
            _ => WorkerPlace::Here,
        };
        let (worker, youth) = match place {
            WorkerPlace::Here if fastrand::u64(..ANEW) != 0 => {
                (WorkerProcess::fork(|| work(part, self.handed()?))?, YOUTH_US)
            }
            place => {
                let files =
                    [self.control.as_fd(), self.ground.segment.as_fd(), self.program.as_fd()];
                let others = self.others.as_ref().map(AsFd::as_fd);
                let files: Vec<_> = files.into_iter().chain(others).collect();
                (WorkerProcess::start(&part, &files, place)?, LONG_YOUTH_US)
            }
        };
        let since = Instant::now();
        let fate = match fastrand::u64(..EARLY) {
            0 => WorkerFate::DiesAt(since + random(youth)),
            _ => WorkerFate::Begins,
        };
        Ok(StormVictim { worker, since, told: since, fate })
    }

    /// Gives a copy of this process files of its own.
    fn handed(&self) -> Result<Handed, Error> {
        let own = |file: BorrowedFd<'_>| {
            let what = "a worker cannot use its parent's files";
            file.try_clone_to_owned().map_err(|source| Error::Process { what, source })
        };
        Ok(Handed {
            control: own(self.control.as_fd())?,
            segment: own(self.ground.segment.as_fd())?,
            program: own(self.program.as_fd())?,
            others: self.others.as_ref().map(|others| own(others.as_fd())).transpose()?,
        })
    }

    /// Says in all depots whether it is over.
    fn set_depots(&mut self, over: bool) -> Result<(), Error> {
        if self.mix.kinds.contains(&StormLockKind::Condvar) {
            for depot in &self.ground.segment.root().depots[..self.mix.locks] {
                if !condvar::set_over(&self.control, depot, over)? {
                    self.stalls[StormLockKind::Condvar as usize] += 1;
                }
            }
        }
        Ok(())
    }

    pub(super) fn sum(&self, counter: impl Fn(&KindTally) -> &AtomicU64) -> u64 {
        self.control.tallies.iter().map(|tally| counter(tally).load(Ordering::Relaxed)).sum()
    }
}

/// Returns a time of at most so many microseconds.
pub(super) fn random(most_us: u64) -> Duration {
    Duration::from_micros(fastrand::u64(..most_us))
}
