//! What becomes of each worker.
//!
//! # Deaths of which the kernel does not tell
//! Others find them by asking the second source, once a second. A lock whose owner dies
//! so, and the next one as well, keeps a waiter for twice a second: as it should, but more
//! than a wait may last here. And a storm in which each such death took a second would have
//! few. So the parent asks about most of them at once, as `lockstead shm --recover` does.
//! Now and then, and in every quiet phase, one is left to those who wait: the parent does not ask,
//! and has nobody else die so, until they have had time to find it.

use super::deaths::{self, Death};
use super::driver::{BLINK, Storm, random};
use super::exec;
use super::limits::STALL;
use super::slots::StormSlots;
use super::tally::{StormLockKind, now_ns};
use crate::Error;
use crate::shared::process::{WorkerProcess, ending};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A worker may take this long to have its first lock, or to end when it is to.
const PATIENCE: Duration = Duration::from_secs(30);
/// A worker that has its first lock is killed, or stopped, within this time.
const LIFETIME_US: u64 = 1_000;
/// One of so many is stopped before.
const STOPPED: u64 = 4;
/// The longest time of most stops, in microseconds.
const SHORT_STOP_US: u64 = 5_000;
const LONG_STOP_US: u64 = 300_000;
const LONG: u64 = 16;
/// A thread that is told to call `exec` and ends just then does not; so after this time another
/// one is told.
const AGAIN: Duration = Duration::from_millis(20);
/// The time in which those who wait have to find a death by themselves.
const TO_FIND: Duration = STALL.saturating_add(Duration::from_millis(500));
/// The least time between two deaths that are left to them.
const BETWEEN: Duration = Duration::from_secs(4);
/// So long after such a death the parent asks, again and again: somebody else may be asking
/// just then, and what keeps its record lock goes a little later than the process.
const ASKS: Duration = Duration::from_millis(10);

/// A worker and its fate.
pub(super) struct StormVictim {
    pub(super) worker: WorkerProcess,
    pub(super) since: Instant,
    /// The time at which it was told to call `exec`, if it was.
    pub(super) told: Instant,
    pub(super) fate: WorkerFate,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum WorkerFate {
    /// Its fate is decided when it has its first lock.
    Begins,
    /// The parent is going to stop it then.
    StopsAt(Instant),
    /// It is stopped, until then.
    Stopped(Instant),
    /// The parent is going to kill it then.
    DiesAt(Instant),
    /// It was killed, and not yet waited for; `counts`: as one of the kills of the storm.
    Dying { how: Death, counts: bool, since: Instant },
    /// It is to come to an end by itself.
    Survives,
    /// The process has ended.
    Gone,
}

/// Deaths of which the kernel does not tell. See the module.
#[derive(Debug, Default)]
pub(super) struct Unmarked {
    /// The last one that was left to those who wait.
    left: Option<Instant>,
    /// They may not have found it yet.
    open: bool,
    /// The time until which the parent asks.
    asks: Option<Instant>,
    quiet: bool,
}

impl Unmarked {
    fn left_within(&self, time: Duration) -> bool {
        self.left.is_some_and(|left| left.elapsed() < time)
    }

    /// Tells whether there is one that is left to those who wait.
    fn is_left(&self) -> bool {
        self.open && self.left_within(TO_FIND)
    }

    /// Tells whether there may be another one now.
    fn may_be(&self) -> bool {
        !(self.is_left() || self.quiet && self.left_within(BETWEEN))
    }

    /// Notes that there is going to be one; `alone`: and no other one at the same time.
    fn strikes(&mut self, alone: bool) {
        if self.quiet || (alone && self.asks.is_none() && !self.left_within(BETWEEN)) {
            self.leave();
        }
    }

    fn leave(&mut self) {
        self.left = Some(Instant::now());
        self.open = true;
    }

    /// Notes that there has been one.
    fn struck(&mut self) {
        if !self.quiet && !self.is_left() {
            self.asks = Some(Instant::now() + ASKS);
        }
    }

    /// Asks, if that is to be done.
    pub(super) fn look(&mut self, slots: &StormSlots) {
        if let Some(until) = self.asks {
            slots.ask();
            self.asks = Some(until).filter(|&until| Instant::now() < until);
        }
    }

    /// Tells whether the parent has asked about all that is not left to those who wait.
    fn is_known(&self) -> bool {
        self.asks.is_none()
    }

    /// Begins a quiet phase, in which the parent does not ask.
    fn begin_quiet(&mut self) {
        self.quiet = true;
    }

    /// Ends the quiet phase: nobody is left, and all slots have been looked at.
    pub(super) fn end_quiet(&mut self) {
        *self = Unmarked { left: self.left, ..Unmarked::default() };
    }
}

impl Storm<'_> {
    /// Looks at one worker, and has happen to it what is to.
    pub(super) fn attend(&mut self, index: usize) -> Result<(), Error> {
        if let Some(status) = self.victims[index].worker.ended() {
            return self.bury(index, status);
        }
        let stalled = self.stalled(index);
        let lives = self.lives(index);
        let now = Instant::now();
        let victim = &mut self.victims[index];
        match victim.fate {
            WorkerFate::Gone => {}
            WorkerFate::Dying { since, .. } if since.elapsed() > PATIENCE => {
                return Err(Error::Worker { how: "it was killed and does not end".into() });
            }
            WorkerFate::Dying { how: Death::Exec, .. } if victim.told.elapsed() > AGAIN => {
                victim.told = now;
                exec::command(&victim.worker, fastrand::usize(..=self.mix.threads));
            }
            WorkerFate::Dying { .. } => {}
            WorkerFate::Stopped(until) if now >= until => {
                // Half of them go on, the others never do.
                if fastrand::bool() {
                    victim.worker.set_stopped(false);
                    victim.fate = WorkerFate::DiesAt(now + random(LIFETIME_US));
                } else {
                    victim.worker.kill();
                    victim.fate = WorkerFate::Dying { how: Death::Kill, counts: true, since: now };
                }
                self.one_less_stopped();
            }
            WorkerFate::Stopped(_) => {}
            _ if let Some(kind) = stalled => {
                victim.worker.kill();
                victim.fate = WorkerFate::Dying { how: Death::Kill, counts: false, since: now };
                match kind {
                    Some(kind) => self.stalls[kind as usize] += 1,
                    None => self.lost += 1,
                }
            }
            WorkerFate::Begins if lives => {
                let then = now + random(LIFETIME_US);
                let stops = self.mix.stop && fastrand::u64(..STOPPED) == 0;
                victim.fate =
                    if stops { WorkerFate::StopsAt(then) } else { WorkerFate::DiesAt(then) };
            }
            WorkerFate::Begins | WorkerFate::Survives if victim.since.elapsed() > PATIENCE => {
                let how = "it comes neither to its first lock nor to its end";
                return Err(Error::Worker { how: how.into() });
            }
            WorkerFate::StopsAt(when) if now >= when => {
                victim.worker.set_stopped(true);
                let long = fastrand::u64(..LONG) == 0;
                let time = random(if long { LONG_STOP_US } else { SHORT_STOP_US });
                victim.fate = WorkerFate::Stopped(now + time);
                if self.stopped == 0 {
                    self.control.stops.begin(now_ns());
                }
                self.stopped += 1;
                self.stops += 1;
            }
            WorkerFate::DiesAt(when) if now >= when => self.strike(index, lives)?,
            WorkerFate::Begins
            | WorkerFate::StopsAt(_)
            | WorkerFate::DiesAt(_)
            | WorkerFate::Survives => {}
        }
        Ok(())
    }

    fn one_less_stopped(&mut self) {
        self.stopped -= 1;
        if self.stopped == 0 {
            self.control.stops.end(now_ns());
        }
    }

    /// Prepares a quiet phase, in which the parent does not ask: so it asks before about those that
    /// are dying already.
    pub(super) fn before_quiet(&mut self) -> Result<(), Error> {
        self.go_on();
        while self.dies_unmarked() || !self.unmarked.is_known() {
            for index in 0..self.victims.len() {
                if let WorkerFate::Dying { .. } = self.victims[index].fate {
                    self.attend(index)?;
                }
            }
            self.unmarked.look(&self.ground.slots);
            std::thread::sleep(BLINK);
        }
        self.unmarked.begin_quiet();
        Ok(())
    }

    /// Tells whether somebody is dying of whom the kernel may not tell.
    fn dies_unmarked(&self) -> bool {
        self.victims.iter().any(|victim| match victim.fate {
            WorkerFate::Dying { how, .. } => how != Death::Kill,
            _ => false,
        })
    }

    /// Has all that are stopped go on.
    pub(super) fn go_on(&mut self) {
        for index in 0..self.victims.len() {
            let victim = &mut self.victims[index];
            if let WorkerFate::Stopped(_) = victim.fate {
                victim.worker.set_stopped(false);
                victim.fate = WorkerFate::DiesAt(Instant::now());
                self.one_less_stopped();
            }
        }
    }

    /// Has a worker die of whose death the kernel does not tell, if it is time for that, and leaves
    /// the others time to come to what it had: nobody comes any more who would ask about everybody,
    /// and those who are there still work.
    pub(super) fn strike_unmarked(&mut self) -> Result<(), Error> {
        let works = |index: &usize| {
            let fate = self.victims[*index].fate;
            matches!(fate, WorkerFate::Begins | WorkerFate::DiesAt(_)) && self.lives(*index)
        };
        let ways = self.unmarked_ways(true);
        if let Some(index) = (0..self.victims.len()).find(works)
            && let Some(&how) = ways.get(fastrand::usize(..=ways.len()))
        {
            self.strike_by(index, how)?;
            std::thread::sleep(BLINK);
        }
        Ok(())
    }

    /// Returns the ways to die now of which the kernel does not tell.
    fn unmarked_ways(&self, lives: bool) -> Vec<Death> {
        let mut ways = Vec::new();
        if self.unmarked.may_be() {
            // Who has not begun does not know yet what the signal means.
            ways.extend((self.mix.exec && lives).then_some(Death::Exec));
            ways.extend(self.mix.reap.then_some(Death::Reap));
        }
        ways
    }

    /// Has a worker die, in one of the ways that there are.
    fn strike(&mut self, index: usize, lives: bool) -> Result<(), Error> {
        let mut ways = self.unmarked_ways(lives);
        ways.push(Death::Kill);
        self.strike_by(index, ways[fastrand::usize(..ways.len())])
    }

    fn strike_by(&mut self, index: usize, mut how: Death) -> Result<(), Error> {
        let worker = &self.victims[index].worker;
        match how {
            Death::Kill => worker.kill(),
            Death::Exec => exec::command(worker, fastrand::usize(..=self.mix.threads)),
            Death::Reap => match deaths::kill_and_take_memory(worker) {
                Ok(true) => self.reaped += 1,
                Ok(false) => how = Death::Kill,
                Err(source) => {
                    return Err(Error::Process { what: "cannot take memory away", source });
                }
            },
        }
        if how != Death::Kill {
            let alone = !self.dies_unmarked();
            self.unmarked.strikes(alone);
        }
        let since = Instant::now();
        let victim = &mut self.victims[index];
        (victim.fate, victim.told) = (WorkerFate::Dying { how, counts: true, since }, since);
        Ok(())
    }

    /// Buries a worker that has ended, as it was to or not.
    fn bury(&mut self, index: usize, status: libc::c_int) -> Result<(), Error> {
        let killed = libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL;
        let executed = exec::has_ended_another(status);
        let fate = std::mem::replace(&mut self.victims[index].fate, WorkerFate::Gone);
        let over = self.control.over.load(Ordering::Relaxed) != 0;
        match fate {
            WorkerFate::Dying { how, counts, .. } if killed || (executed && how == Death::Exec) => {
                self.kills += u64::from(counts);
                self.execs += u64::from(executed);
                if how != Death::Kill {
                    self.unmarked.struck();
                }
            }
            // In a quiet phase it may have come to its end before the signal.
            _ if over && status == 0 => {}
            _ => return Err(Error::Worker { how: ending(status) }),
        }
        if killed || executed {
            self.deaths += self.mix.threads as u64;
        }
        for party in &self.control.parties[index][..self.mix.threads] {
            party.bury();
        }
        Ok(())
    }

    /// Tells whether all threads of a worker have had a lock.
    fn lives(&self, index: usize) -> bool {
        self.control.parties[index][..self.mix.threads]
            .iter()
            .all(|party| party.sections.load(Ordering::Relaxed) > 0)
    }

    /// Returns what one of its threads has waited for too long; `Some(None)`: a slot.
    pub(super) fn stalled(&self, index: usize) -> Option<Option<StormLockKind>> {
        let parties = &self.control.parties[index][..self.mix.threads];
        let stops = &self.control.stops;
        let (kind, waited) =
            parties.iter().filter_map(|party| party.stalled(stops)).max_by_key(|w| w.1)?;
        if let Some(kind) = kind {
            self.control.tally(kind).longest_wait_ns.fetch_max(waited, Ordering::Relaxed);
        }
        Some(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::super::mix::Mix;
    use super::*;
    use crate::shared::process::{until, wait_for_child};

    /// Acts as if so much time had passed since.
    fn earlier(unmarked: &mut Unmarked, time: Duration) {
        unmarked.left = unmarked.left.map(|left| left - time);
    }

    #[test]
    fn one_death_at_a_time_is_left_to_those_who_wait() {
        let mut unmarked = Unmarked::default();
        assert!(unmarked.may_be());
        unmarked.strikes(true);
        unmarked.struck();
        assert!(unmarked.is_known(), "nobody asks about it");
        assert!(!unmarked.may_be());
        earlier(&mut unmarked, TO_FIND);
        assert!(unmarked.may_be());
        unmarked.strikes(true);
        unmarked.struck();
        assert!(!unmarked.is_known() && unmarked.may_be(), "it is asked about");
        earlier(&mut unmarked, BETWEEN - TO_FIND);
        unmarked.strikes(false);
        assert!(unmarked.may_be(), "not with another one at the same time");
    }

    #[test]
    fn in_a_quiet_phase_nobody_asks() {
        let mut unmarked = Unmarked::default();
        unmarked.begin_quiet();
        assert!(unmarked.may_be());
        unmarked.strikes(false);
        unmarked.struck();
        assert!(unmarked.is_known() && !unmarked.may_be());
        earlier(&mut unmarked, TO_FIND);
        assert!(!unmarked.may_be(), "the phase is quiet still");
        unmarked.end_quiet();
        assert!(unmarked.may_be());
        unmarked.strikes(true);
        unmarked.struck();
        assert!(!unmarked.is_known(), "not so soon again");
    }

    /// Returns a storm with one worker, in nothing but this.
    fn with_one(mix: &Mix, worker: WorkerProcess, fate: WorkerFate) -> Storm<'_> {
        let mut storm = Storm::new(mix, None).expect("memory");
        let now = Instant::now();
        storm.victims.push(StormVictim { worker, since: now, told: now, fate });
        storm
    }

    fn until_gone(storm: &mut Storm<'_>) {
        let gone = until(PATIENCE, || {
            storm.attend(0).expect("it ends as it is to");
            matches!(storm.victims[0].fate, WorkerFate::Gone)
        });
        assert!(gone, "it never ends");
    }

    #[test]
    fn who_is_killed_counts_with_all_its_threads() {
        let mix = Mix { threads: 3, ..Mix::default() };
        let worker = wait_for_child().expect("a child");
        let mut storm = with_one(&mix, worker, WorkerFate::DiesAt(Instant::now()));
        until_gone(&mut storm);
        assert_eq!((storm.kills, storm.deaths), (1, 3));
    }

    #[test]
    fn who_is_stopped_goes_on_or_not_and_the_time_is_known() {
        let mix = Mix { stop: true, ..Mix::default() };
        let worker = wait_for_child().expect("a child");
        let mut storm = with_one(&mix, worker, WorkerFate::StopsAt(Instant::now()));
        until_gone(&mut storm);
        assert_eq!((storm.stops, storm.stopped, storm.kills), (1, 0, 1));
        let stopped = storm.control.stops.until(now_ns());
        assert!(stopped > 0);
        assert_eq!(storm.control.stops.until(now_ns()), stopped, "nobody is any more");
    }

    #[test]
    fn who_ends_by_itself_is_noticed() {
        let mix = Mix::default();
        let worker = WorkerProcess::fork(|| Err(Error::Interrupted)).expect("a child");
        let mut storm = with_one(&mix, worker, WorkerFate::Begins);
        let mut noticed = None;
        until(PATIENCE, || {
            noticed = storm.attend(0).err();
            noticed.is_some()
        });
        assert!(matches!(noticed, Some(Error::Worker { .. })), "{noticed:?}");
    }

    #[test]
    fn who_waits_too_long_is_a_stall_and_is_killed() {
        let mix = Mix::default();
        let worker = wait_for_child().expect("a child");
        let mut storm = with_one(&mix, worker, WorkerFate::Begins);
        let party = &storm.control.parties[0][0];
        party.waits_for.store(StormLockKind::Semaphore as u32, Ordering::Relaxed);
        let since = now_ns() - (STALL + Duration::from_millis(1)).as_nanos() as u64;
        party.waits_since.store(since, Ordering::Relaxed);
        until_gone(&mut storm);
        assert_eq!(storm.stalls[StormLockKind::Semaphore as usize], 1);
        assert_eq!((storm.kills, storm.deaths), (0, 1), "it counts as a death and not as a kill");
    }
}
