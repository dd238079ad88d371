//! A process that is stepped through, and killed.

use super::scenes::{Marks, SceneStage, StepScene};
use crate::Error;
use crate::shared::process::{WorkerProcess, ending};
use lockstead::shared::{JoinError, Segment};
use std::time::{Duration, Instant};

/// Somebody who waits for longer than this waits for ever.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// The time after which, if the next instruction takes longer, the parent looks whether the victim
/// sleeps. It is longer than a rest between two looks at a lock.
const BLINK: Duration = Duration::from_micros(300);

/// How far a victim comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum VictimPace {
    /// Kill after so many instructions.
    Instructions(u64),
    /// The victim goes on until it falls asleep, so many times; all but the last time it is helped.
    Sleeps(u64),
}

/// How far it came.
pub(super) struct Came {
    pub(super) instructions: u64,
    pub(super) asleep: bool,
    pub(super) ended: bool,
}

pub(super) struct StepsVictim<'a> {
    worker: WorkerProcess,
    stage: &'a SceneStage,
}

enum VictimStep {
    Done,
    Sleeps,
}

impl<'a> StepsVictim<'a> {
    /// Starts a victim, and returns it when it has come to the operation.
    pub(super) fn new(
        segment: &'a Segment<SceneStage>,
        scene: &'static StepScene,
    ) -> Result<Self, Error> {
        let stage = segment.root();
        let worker = WorkerProcess::fork(|| {
            // SAFETY: by CALL-NUMBERS the call takes numbers and touches no memory of ours.
            if unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) } != 0 {
                // SAFETY: by CALL-NUMBERS the call ends this process and touches no memory.
                unsafe { libc::_exit(REFUSED) };
            }
            let refused = |error: JoinError| Error::Worker { how: format!("the victim: {error}") };
            segment.participate().map_err(refused)?;
            let done = (scene.victim)(stage, &Marks(stage));
            done.map_err(|error| Error::Worker { how: format!("the victim: {error}") })
        })?;
        let mut victim = StepsVictim { worker, stage };
        match victim.stops(PATIENCE)? {
            Some(libc::SIGSTOP) => {}
            other => return Err(Error::Worker { how: format!("it stops by {other:?}") }),
        }
        // What lies between its stop and the operation.
        while !stage.has_begun() {
            victim.instruction(&mut || Ok(()), false)?;
        }
        Ok(victim)
    }

    /// Has it come so far, or to the end of the operation. `help` is called when it sleeps, the
    /// first time.
    pub(super) fn step(
        &mut self,
        pace: VictimPace,
        mut help: impl FnMut() -> Result<(), Error>,
    ) -> Result<Came, Error> {
        /// More than any operation has. On a machine where a step takes longer than a tick, the kernel's code that
        /// reads the clock begins anew for ever.
        const MOST: u64 = 1_000_000;
        let (mut instructions, mut slept) = (0, 0);
        let ended = |stage: &SceneStage| stage.has_ended();
        while !ended(self.stage) && pace != VictimPace::Instructions(instructions) {
            let sleeps = match pace {
                VictimPace::Sleeps(sleeps) => slept + 1 == sleeps,
                VictimPace::Instructions(_) => false,
            };
            if let VictimStep::Sleeps = self.instruction(
                &mut || {
                    slept += 1;
                    help()
                },
                sleeps,
            )? {
                return Ok(Came { instructions, asleep: true, ended: false });
            }
            instructions += 1;
            if instructions == MOST {
                let how = format!("the operation does not end within {MOST} instructions");
                return Err(Error::Worker { how });
            }
        }
        Ok(Came { instructions, asleep: false, ended: ended(self.stage) })
    }

    /// Lets the victim do one instruction. If it sleeps in it, `asleep` is called, once, unless
    /// it is to be left asleep.
    fn instruction(
        &mut self,
        asleep: &mut dyn FnMut() -> Result<(), Error>,
        leave: bool,
    ) -> Result<VictimStep, Error> {
        self.resume()?;
        let mut called = false;
        let end = Instant::now() + PATIENCE;
        loop {
            match self.stops(BLINK)? {
                Some(libc::SIGTRAP | libc::SIGSTOP) => return Ok(VictimStep::Done),
                Some(other) => {
                    return Err(Error::Worker { how: format!("the victim gets signal {other}") });
                }
                None if self.sleeps() && leave => return Ok(VictimStep::Sleeps),
                None if self.sleeps() && !called => {
                    called = true;
                    asleep()?;
                }
                None if Instant::now() > end => {
                    return Err(Error::Worker { how: "the victim sleeps for ever".into() });
                }
                None => {}
            }
        }
    }

    fn resume(&self) -> Result<(), Error> {
        // SAFETY: a child of ours that is stopped, and gets no signal.
        match unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, self.worker.pid(), 0, 0) } {
            0 => Ok(()),
            _ => Err(Error::Process {
                what: "cannot step through a process",
                source: std::io::Error::last_os_error(),
            }),
        }
    }

    /// Returns the signal by which it stops; `None` if it does not within this time.
    fn stops(&mut self, patience: Duration) -> Result<Option<libc::c_int>, Error> {
        let end = Instant::now() + patience;
        loop {
            match self.worker.changed() {
                Some(status) if libc::WIFSTOPPED(status) => {
                    return Ok(Some(libc::WSTOPSIG(status)));
                }
                Some(status) if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == REFUSED => {
                    let why = "the system does not allow tracing (ptrace)".into();
                    return Err(Error::NotHere { option: "bench steps", why });
                }
                Some(status) => return Err(Error::Worker { how: ending(status) }),
                None if Instant::now() >= end => return Ok(None),
                None => std::thread::yield_now(),
            }
        }
    }

    fn sleeps(&self) -> bool {
        sleeps(self.worker.pid(), self.worker.pid())
    }

    /// Kills the victim, and waits for its end.
    pub(super) fn kill(self) {
        drop(self.worker);
    }
}

/// What it ends with if it may not be traced.
const REFUSED: libc::c_int = 3;

/// Tells whether a thread sleeps, as `/proc` has it.
pub(super) fn sleeps(process: libc::pid_t, thread: libc::pid_t) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/task/{thread}/stat"));
    // The name, which may have anything in it, ends with the last bracket.
    stat.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('S')))
}
