//! A process is killed at every instruction of an operation on a lock, while two threads sleep
//! for what it has or is about to get: how long do they wait from then on?
//!
//! # Role
//! Random kills meet the moments that last; this meets all of them. What goes wrong in a
//! window of one instruction goes wrong here each time.
//!
//! # Protocol
//! For n = 0, 1, 2, … a fresh victim, forked, goes as far as the operation, by itself; the
//! two waiters go to sleep; the victim is stepped through n instructions and killed. Where
//! it falls asleep in the operation, whoever it waits for does what it waits for (`scenes`);
//! and it is killed once in each such sleep, too. The operation of the last victim comes to
//! its end.
//!
//! | module | what |
//! |---|---|
//! | `scenes` | the operations, and what the others do meanwhile |
//! | `victim` | stepping through a process |
//! | `waiters` | two threads that sleep, and how long |

mod scenes;
mod victim;
mod waiters;

use super::storm::StormLockKind;
use crate::{Error, Session};
use lockstead::shared::Segment;
use lockstead_render::machine::MachineFacts;
use scenes::{SCENES, SceneStage, StepScene};
use serde::Serialize;
use std::time::{Duration, Instant};
use victim::{StepsVictim, VictimPace};
use waiters::Waiters;

/// Longer than this nobody should wait, on a quiet machine.
pub const LIMIT: Duration = Duration::from_millis(100);

/// What `steps` is asked for.
#[derive(Clone, PartialEq, Debug)]
pub struct StepsOptions {
    /// Operations on these kinds of locks.
    pub kinds: Vec<StormLockKind>,
    /// Kills at every so many instructions, at least 1.
    pub every: u64,
    /// The longest wait that passes.
    pub limit: Duration,
}

impl Default for StepsOptions {
    /// Returns options for everything, at each instruction.
    fn default() -> Self {
        StepsOptions { kinds: StormLockKind::ALL.to_vec(), every: 1, limit: LIMIT }
    }
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepsReport {
    /// One object for each operation, in the order in which they were tried.
    pub operations: Vec<OperationOutcome>,
    /// The longest wait that passes, in milliseconds.
    pub limit_ms: f64,
    /// A kill at every so many instructions.
    pub every: u64,
    /// The machine that was measured, and when.
    pub machine: MachineFacts,
}

/// What came of one operation.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OperationOutcome {
    /// The kind of lock.
    pub lock: StormLockKind,
    /// The name of the operation, as in the table.
    pub operation: &'static str,
    /// How many instructions it took, the longest time; a system call counts as one.
    pub instructions: u64,
    /// The number of processes that were killed in it.
    pub kills: u64,
    /// The number of these that were killed in a sleep.
    pub asleep: u64,
    /// The number of waiters that were told of a death.
    pub told: u64,
    /// The time from the kill until both waiters were through, in milliseconds: the median.
    pub median_ms: f64,
    /// The longest of these times, in milliseconds.
    pub longest_ms: f64,
    /// The number of instructions after which the kill with the longest wait was.
    pub longest_at: u64,
}

impl StepsReport {
    /// Tells whether nobody waited for longer than the limit.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.operations.iter().all(|operation| operation.longest_ms <= self.limit_ms)
    }
}

/// Kills a process at each instruction, and measures how long others wait.
///
/// # Errors
/// [`Error::NotHere`] where processes may not be traced; [`Error::Option`]; [`Error::Worker`]
/// if somebody waits for ever, or two own a lock; [`Error::Process`], [`Error::Segment`],
/// [`Error::Interrupted`].
pub fn measure(options: &StepsOptions, session: &mut Session<'_>) -> Result<StepsReport, Error> {
    crate::options::within("--lock", options.kinds.len(), 1..=StormLockKind::ALL.len(), " kinds")?;
    crate::options::within("--every", options.every, 1..=1_000_000, "")?;
    let machine = MachineFacts::here();
    let segment: &'static Segment<SceneStage> = Box::leak(Box::new(scenes::segment()?));
    let mut waiters = Waiters::new(segment.root())?;
    let scenes = SCENES.iter().filter(|scene| options.kinds.contains(&scene.kind));
    let scenes: Vec<&'static StepScene> = scenes.collect();
    let mut operations = Vec::new();
    for (done, scene) in scenes.iter().enumerate() {
        let mut tries = Tries { segment, scene, waiters: &mut waiters, rounds: Vec::new() };
        tries.all(options.every, |kills| {
            let label = format!("{} {}, {kills} kills", scene.kind, scene.name);
            session.tell(done as u64, scenes.len() as u64, &label);
            if session.stopped() { Err(Error::Interrupted) } else { Ok(()) }
        })?;
        operations.push(tries.summary());
    }
    let limit_ms = options.limit.as_secs_f64() * 1e3;
    Ok(StepsReport { operations, limit_ms, every: options.every, machine })
}

/// What came of one kill.
struct StepsRound {
    instructions: u64,
    asleep: bool,
    told: u64,
    waited: Duration,
    /// The operation had ended before.
    ended: bool,
}

/// The kills in one operation.
struct Tries<'a> {
    segment: &'static Segment<SceneStage>,
    scene: &'static StepScene,
    waiters: &'a mut Waiters,
    rounds: Vec<StepsRound>,
}

impl Tries<'_> {
    fn all(
        &mut self,
        every: u64,
        mut next: impl FnMut(usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for pace in (0..).step_by(every as usize).map(VictimPace::Instructions) {
            next(self.rounds.len())?;
            if self.again(pace)? {
                break;
            }
        }
        for pace in (1..).map(VictimPace::Sleeps) {
            next(self.rounds.len())?;
            if self.again(pace)? {
                break;
            }
        }
        Ok(())
    }

    /// Kills once more. Returns true if the operation had come to its end.
    fn again(&mut self, pace: VictimPace) -> Result<bool, Error> {
        let round = self.round(pace).map_err(|error| match error {
            Error::Worker { how } => {
                let (kind, name) = (self.scene.kind, self.scene.name);
                Error::Worker { how: format!("{kind} {name}, killed at {pace:?}: {how}") }
            }
            error => error,
        })?;
        let ended = round.ended;
        self.rounds.push(round);
        Ok(ended)
    }

    fn round(&mut self, pace: VictimPace) -> Result<StepsRound, Error> {
        let (scene, stage) = (self.scene, self.segment.root());
        stage.begin()?;
        let mut held = Some((scene.holds)(stage)?);
        let mut victim = StepsVictim::new(self.segment, scene)?;
        if scene.asleep {
            self.waiters.go(scene.waiter);
            self.waiters.until_asleep()?;
        }
        let mut help = || held.take().map_or(Ok(()), |held| (scene.help)(stage, held));
        let came = victim.step(pace, &mut help)?;
        if !scene.asleep {
            self.waiters.go(scene.waiter);
            let through = self.waiters.until_asleep()?;
            if came.ended && scene.keeps && through {
                return Err(Error::Worker { how: "two have the lock".into() });
            }
        }
        let begin = Instant::now();
        victim.kill();
        help()?;
        let (through, told) = self.waiters.until_through()?;
        let waited = through.saturating_duration_since(begin);
        let instructions = came.instructions;
        Ok(StepsRound { instructions, asleep: came.asleep, told, waited, ended: came.ended })
    }

    fn summary(self) -> OperationOutcome {
        let mut waits: Vec<Duration> = self.rounds.iter().map(|round| round.waited).collect();
        waits.sort_unstable();
        let longest = self.rounds.iter().max_by_key(|round| round.waited);
        let ms = |time: Option<Duration>| time.unwrap_or_default().as_secs_f64() * 1e3;
        OperationOutcome {
            lock: self.scene.kind,
            operation: self.scene.name,
            instructions: self.rounds.iter().map(|round| round.instructions).max().unwrap_or(0),
            kills: self.rounds.len() as u64,
            asleep: self.rounds.iter().filter(|round| round.asleep).count() as u64,
            told: self.rounds.iter().map(|round| round.told).sum(),
            median_ms: ms(waits.get(waits.len() / 2).copied()),
            longest_ms: ms(longest.map(|round| round.waited)),
            longest_at: longest.map_or(0, |round| round.instructions),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_wait_beyond_the_limit_does_not_pass() {
        let options =
            StepsOptions { kinds: vec![StormLockKind::Mutex], every: 400, limit: Duration::ZERO };
        let stop = AtomicBool::new(false);
        let mut silent = |_: u64, _: u64, _: &str| ();
        match measure(&options, &mut Session::new(&stop, &mut silent)) {
            Ok(mut report) => {
                assert!(!report.passed(), "somebody waited: {report:?}");
                report.limit_ms = f64::MAX;
                assert!(report.passed());
            }
            Err(Error::NotHere { why, .. }) => println!("skipped: {why}"),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let stop = AtomicBool::new(false);
        let mut silent = |_: u64, _: u64, _: &str| ();
        for (kinds, every, expected) in
            [(vec![], 1, "--lock"), (vec![StormLockKind::Mutex], 0, "--every")]
        {
            let options = StepsOptions { kinds, every, limit: LIMIT };
            let refused = measure(&options, &mut Session::new(&stop, &mut silent));
            let refused = refused.expect_err(expected).to_string();
            assert!(refused.contains(expected), "{refused}");
        }
    }
}
