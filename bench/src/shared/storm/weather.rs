//! The parent of a storm: it starts workers, kills them, and looks at what they left.

use super::beside::{self, Others};
use super::field::{Control, Field, Kind, count, now_ns, segment};
use super::report::{KindReport, Report, RobustReport};
use super::{Options, Part, SQUALL, STALL, condvar, semaphore};
use crate::machine::Machine;
use crate::shared::job::Job;
use crate::shared::memory::Memory;
use crate::shared::process::{Place, Worker, ending};
use crate::{Error, Session};
use lockstead::shared::{Options as SegmentOptions, Segment};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A worker may take this long to have its first lock.
const PATIENCE: Duration = Duration::from_secs(30);
/// A worker that has its first lock is killed within this time.
const LIFETIME_US: u64 = 2_000;
/// One of so many is killed as it begins, at any point of its start.
const EARLY: u64 = 8;
/// Within this time of its creation.
const YOUTH_US: u64 = 6_000;
/// Who is killed in a calm is killed within this time of its beginning.
const LAST_US: u64 = 400;
/// Between two looks at the workers.
const BLINK: Duration = Duration::from_micros(100);
/// Deaths that one place for a participant can count, and some to spare.
const DEATHS_A_PLACE: u64 = 8_000;

/// A storm that goes on.
pub(super) struct Storm<'a> {
    options: &'a Options,
    place: Place,
    control: Memory<Control>,
    segment: Segment<Field>,
    others: Option<Memory<Others>>,
    victims: Vec<Victim>,
    kills: u64,
    /// Threads of workers that ended by being killed.
    deaths: u64,
    calms: u64,
    stalls: [u64; Kind::ALL.len()],
    stuck: u64,
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
    /// Is to come to an end by itself.
    Survives,
    /// Has ended.
    Gone,
}

impl<'a> Storm<'a> {
    pub(super) fn new(options: &'a Options, place: Place) -> Result<Self, Error> {
        let parties = (options.processes * options.threads) as u64;
        let worn_out = options.kills * options.threads as u64 / DEATHS_A_PLACE;
        let participants = u32::try_from(parties + worn_out + 1).unwrap_or(u32::MAX);
        let properties =
            SegmentOptions::new().participants(participants).exclusive(options.exclusive);
        Ok(Storm {
            options,
            place,
            control: Memory::create()?,
            segment: segment(&properties)?,
            others: if options.beside_robust { Some(beside::fresh()?) } else { None },
            victims: Vec::new(),
            kills: 0,
            deaths: 0,
            calms: 0,
            stalls: [0; Kind::ALL.len()],
            stuck: 0,
        })
    }

    /// Squalls and calms, until enough are killed.
    pub(super) fn rage(&mut self, session: &mut Session<'_>) -> Result<(), Error> {
        while self.kills < self.options.kills {
            self.squall(session)?;
            self.calm(session)?;
        }
        Ok(())
    }

    fn squall(&mut self, session: &mut Session<'_>) -> Result<(), Error> {
        let enough = self.options.kills.min(self.kills + SQUALL);
        self.control.over.store(0, Ordering::Relaxed);
        self.set_rings(false)?;
        for index in 0..self.options.processes {
            let victim = self.start(index)?;
            self.victims.push(victim);
        }
        while self.kills < enough {
            self.tell(session)?;
            for index in 0..self.victims.len() {
                if matches!(self.victims[index].fate, Fate::Gone) {
                    self.victims[index] = self.start(index)?;
                }
                self.attend(index)?;
            }
            std::thread::sleep(BLINK);
        }
        Ok(())
    }

    /// Nobody begins anything new, and nobody comes: some are killed, and the others must
    /// come to an end; what all leave must be whole.
    fn calm(&mut self, session: &mut Session<'_>) -> Result<(), Error> {
        self.control.over.store(1, Ordering::Relaxed);
        let now = Instant::now();
        for victim in &mut self.victims {
            if matches!(victim.fate, Fate::Begins | Fate::DiesAt(_)) {
                victim.fate = match fastrand::bool() {
                    true => Fate::DiesAt(now + random(LAST_US)),
                    false => Fate::Survives,
                };
            }
        }
        self.set_rings(true)?;
        while !self.victims.iter().all(|victim| matches!(victim.fate, Fate::Gone)) {
            self.tell(session)?;
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
        self.calms += 1;
        Ok(())
    }

    fn tell(&self, session: &mut Session<'_>) -> Result<(), Error> {
        if session.stopped() {
            return Err(Error::Interrupted);
        }
        let noticed = self.sum(|tally| &tally.owner_died);
        let stalls = self.stalls.iter().sum::<u64>();
        let label = format!("kills, {noticed} deaths noticed, {stalls} stalls");
        session.tell(self.kills, self.options.kills, &label);
        Ok(())
    }

    fn start(&self, index: usize) -> Result<Victim, Error> {
        let options = self.options;
        let job = Job::Storm(Part {
            index,
            processes: options.processes,
            threads: options.threads,
            kinds: options.kinds.clone(),
            locks: options.locks,
            beside: options.beside_robust,
            seed: fastrand::u64(..),
        });
        let mut files = vec![self.control.as_fd(), self.segment.as_fd()];
        files.extend(self.others.as_ref().map(AsFd::as_fd));
        let worker = Worker::start(&job, &files, self.place)?;
        let since = Instant::now();
        let fate = match fastrand::u64(..EARLY) {
            0 => Fate::DiesAt(since + random(YOUTH_US)),
            _ => Fate::Begins,
        };
        Ok(Victim { worker, since, fate })
    }

    /// Looks at one worker, and kills it if its time has come.
    fn attend(&mut self, index: usize) -> Result<(), Error> {
        if let Some(status) = self.victims[index].worker.ended() {
            return self.bury(index, status);
        }
        let stalled = self.stalled(index);
        let lives = self.lives(index);
        let victim = &mut self.victims[index];
        match victim.fate {
            Fate::Dying { .. } | Fate::Gone => {}
            _ if let Some(kind) = stalled => {
                self.stalls[kind as usize] += 1;
                victim.worker.kill();
                victim.fate = Fate::Dying { counts: false };
            }
            Fate::Begins if lives => {
                victim.fate = Fate::DiesAt(Instant::now() + random(LIFETIME_US));
            }
            Fate::Begins | Fate::Survives if victim.since.elapsed() > PATIENCE => {
                let how = "it comes neither to its first lock nor to its end";
                return Err(Error::Worker { how: how.into() });
            }
            Fate::DiesAt(when) if Instant::now() >= when => {
                victim.worker.kill();
                victim.fate = Fate::Dying { counts: true };
            }
            Fate::Begins | Fate::DiesAt(_) | Fate::Survives => {}
        }
        Ok(())
    }

    /// A worker has ended, as it was to or not.
    fn bury(&mut self, index: usize, status: libc::c_int) -> Result<(), Error> {
        let killed = libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL;
        let fate = std::mem::replace(&mut self.victims[index].fate, Fate::Gone);
        let over = self.control.over.load(Ordering::Relaxed) != 0;
        match fate {
            Fate::Dying { counts } if killed => self.kills += u64::from(counts),
            // In a calm it may have come to its end before the signal.
            _ if over && status == 0 => {}
            _ => return Err(Error::Worker { how: ending(status) }),
        }
        if killed {
            self.deaths += self.options.threads as u64;
        }
        for party in &self.control.parties[index][..self.options.threads] {
            party.bury();
        }
        Ok(())
    }

    /// Whether all threads of a worker have had a lock.
    fn lives(&self, index: usize) -> bool {
        self.control.parties[index][..self.options.threads]
            .iter()
            .all(|party| party.sections.load(Ordering::Relaxed) > 0)
    }

    /// What one of its threads has waited for too long.
    fn stalled(&self, index: usize) -> Option<Kind> {
        let parties = &self.control.parties[index][..self.options.threads];
        let (kind, waited) =
            parties.iter().filter_map(|party| party.stalled()).max_by_key(|w| w.1)?;
        self.control.tally(kind).longest_wait_ns.fetch_max(waited, Ordering::Relaxed);
        Some(kind)
    }

    /// Says in all rings whether it is over.
    fn set_rings(&mut self, over: bool) -> Result<(), Error> {
        if self.options.kinds.contains(&Kind::Condvar) {
            for ring in &self.segment.root().rings[..self.options.locks] {
                if !condvar::set_over(&self.control, ring, over)? {
                    self.stalls[Kind::Condvar as usize] += 1;
                }
            }
        }
        Ok(())
    }

    /// Looks at every lock, when nobody is left.
    fn inspect(&mut self) {
        let field = self.segment.root();
        for &kind in &self.options.kinds {
            let tally = self.control.tally(kind);
            for at in 0..self.options.locks {
                let start = now_ns();
                let got = match kind {
                    Kind::Mutex => {
                        let outcome = field.mutexes[at].lock_timeout(STALL);
                        tally.received(outcome).map(|got| got.is_some())
                    }
                    Kind::RwLock => {
                        let outcome = field.rwlocks[at].write_timeout(STALL);
                        tally.received(outcome).map(|got| got.is_some())
                    }
                    Kind::Condvar => {
                        let outcome = field.rings[at].turn.lock_timeout(STALL);
                        tally.received(outcome).map(|got| got.is_some())
                    }
                    Kind::Semaphore => semaphore::inspect(tally, &field.semaphores[at], at),
                };
                match got {
                    Ok(true) => {}
                    Ok(false) => self.stalls[kind as usize] += 1,
                    // It is not recoverable, or refuses.
                    Err(_) => count(&tally.torn, 1),
                }
                tally.longest_wait_ns.fetch_max(now_ns() - start, Ordering::Relaxed);
            }
        }
        if let Some(others) = &self.others {
            self.stuck += beside::inspect(others, &self.control.robust);
        }
    }

    fn sum(&self, counter: impl Fn(&super::field::Tally) -> &AtomicU64) -> u64 {
        self.control.tallies.iter().map(|tally| counter(tally).load(Ordering::Relaxed)).sum()
    }

    pub(super) fn report(&self, time: Duration, machine: Machine) -> Report {
        let options = self.options;
        let kinds: Vec<_> = options.kinds.iter().map(|&kind| self.kind_report(kind)).collect();
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let robust = &self.control.robust;
        Report {
            kills: self.kills,
            owner_died: kinds.iter().map(|kind| kind.owner_died).sum(),
            torn: kinds.iter().map(|kind| kind.torn).sum(),
            stalls: kinds.iter().map(|kind| kind.stalls).sum(),
            longest_wait_ms: kinds.iter().fold(0.0, |max, kind| kind.longest_wait_ms.max(max)),
            unfounded: kinds.iter().map(|kind| kind.unfounded).sum(),
            operations: kinds.iter().map(|kind| kind.operations).sum(),
            kinds,
            robust: options.beside_robust.then(|| RobustReport {
                owner_died: load(&robust.owner_died),
                torn: load(&robust.torn),
                stuck: self.stuck,
                operations: load(&robust.operations),
            }),
            calms: self.calms,
            processes: options.processes,
            threads: options.threads,
            locks: options.locks,
            namespaces: options.namespaces,
            exclusive: options.exclusive,
            seconds: time.as_secs_f64(),
            machine,
        }
    }

    fn kind_report(&self, kind: Kind) -> KindReport {
        let tally = self.control.tally(kind);
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (owner_died, units) = (load(&tally.owner_died), load(&tally.units_returned));
        let told = if kind == Kind::Semaphore { units } else { owner_died };
        KindReport {
            lock: kind,
            owner_died,
            units_returned: (kind == Kind::Semaphore).then_some(units),
            torn: load(&tally.torn),
            unfounded: told.saturating_sub(self.deaths * kind.told_at_most()),
            stalls: self.stalls[kind as usize],
            longest_wait_ms: load(&tally.longest_wait_ns) as f64 / 1e6,
            operations: load(&tally.operations),
        }
    }
}

fn random(most_us: u64) -> Duration {
    Duration::from_micros(fastrand::u64(..most_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet<T>(run: impl FnOnce(&mut Session<'_>) -> T) -> T {
        let stop = std::sync::atomic::AtomicBool::new(false);
        let mut progress = |_: u64, _: u64, _: &str| {};
        run(&mut Session::new(&stop, &mut progress))
    }

    /// A storm in which nobody is killed, for nobody is there.
    fn still(options: &Options) -> Storm<'_> {
        Storm::new(options, Place::Here).expect("memory")
    }

    fn reported(storm: &Storm<'_>) -> Report {
        storm.report(Duration::ZERO, Machine::here())
    }

    fn all() -> Options {
        Options { kinds: Kind::ALL.to_vec(), beside_robust: true, ..Options::default() }
    }

    #[test]
    fn locks_that_nobody_has_touched_pass() {
        let options = all();
        let mut storm = still(&options);
        quiet(|session| storm.calm(session)).expect("comes to an end");
        let report = reported(&storm);
        assert!(report.passed(), "{report:?}");
        assert_eq!(report.calms, 1);
    }

    #[test]
    fn what_was_left_torn_is_found_in_the_calm() {
        let options = all();
        let mut storm = still(&options);
        let field = storm.segment.root();
        let mutex = field.mutexes[3].lock().expect("a free lock");
        mutex.acquired().expect("nobody died").first = 1;
        let rwlock = field.rwlocks[4].write().expect("a free lock");
        rwlock.acquired().expect("nobody died").inside = 7;
        quiet(|session| storm.calm(session)).expect("comes to an end");
        let report = reported(&storm);
        assert_eq!((report.torn, report.stalls), (2, 0), "{report:?}");
        assert!(!report.passed());
    }

    #[test]
    fn deaths_that_there_were_not_are_unfounded() {
        let options = all();
        let mut storm = still(&options);
        storm.deaths = 3;
        for kind in Kind::ALL {
            let tally = storm.control.tally(kind);
            for counter in [&tally.owner_died, &tally.units_returned] {
                counter.store(7, Ordering::Relaxed);
            }
        }
        let report = reported(&storm);
        // Two, two, two and one for each death.
        assert_eq!(report.unfounded, 1 + 1 + 1 + 4, "{report:?}");
        assert!(!report.passed());
    }

    #[test]
    fn a_wait_is_a_stall_when_it_has_lasted_too_long() {
        let options = Options::default();
        let storm = still(&options);
        let party = &storm.control.parties[2][0];
        let since = |ago: Duration| {
            party.waits_for.store(Kind::RwLock as u32, Ordering::Relaxed);
            party.waits_since.store(now_ns() - ago.as_nanos() as u64, Ordering::Relaxed);
            storm.stalled(2)
        };
        assert_eq!(since(STALL - Duration::from_secs(1)), None);
        assert_eq!(since(STALL + Duration::from_millis(1)), Some(Kind::RwLock));
        let longest = &storm.control.tally(Kind::RwLock).longest_wait_ns;
        assert!(longest.load(Ordering::Relaxed) > 3_000_000_000);
        assert_eq!(storm.stalled(1), None);
    }
}
