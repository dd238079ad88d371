//! What a search says: statistics, or a failure with the execution that shows
//! it.

use crate::space::RegionAddress;
use lockstead_core::WaitOutcome;
use lockstead_core::word::Word;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;
use std::str::FromStr;
use std::sync::atomic::Ordering;

/// The place in the source from which a step comes.
pub(crate) type Site = &'static Location<'static>;

/// What one step did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ModelStep {
    /// Read a value; `stale` if it had been overwritten.
    Load {
        /// The value that was read.
        value: u64,
        /// Whether a newer one existed.
        stale: bool,
    },
    /// Wrote a value to an atomic.
    Store {
        /// The value that was written.
        value: u64,
    },
    /// Replaced a value: any read-modify-write that succeeded.
    Exchange {
        /// The value that was there before.
        from: u64,
        /// The value that is there after.
        to: u64,
    },
    /// A compare-exchange that did not find what it wanted.
    FailedExchange {
        /// The value that was found.
        found: u64,
        /// The value that was wanted.
        wanted: u64,
        /// Whether a newer one existed.
        stale: bool,
    },
    /// Executed a fence of this ordering.
    Fence(Ordering),
    /// Had others begin their sections anew.
    Restart,
    /// Went to sleep at a word.
    Sleep,
    /// A wait ended, or did not begin.
    Wait(WaitOutcome),
    /// Woke that many waiters.
    Wake(u32),
    /// Ended a turn of a spin loop.
    Relax,
    /// Looked at the clock.
    Now(u64),
    /// A signal handler began.
    Enter,
    /// A signal handler ended.
    Leave,
    /// Declared the memory as freed.
    Free,
    /// A read of plain memory.
    PlainRead,
    /// A write of plain memory.
    PlainWrite,
    /// No thread could go on: time passed.
    TimePasses,
    /// The timer of a sleeping thread fired.
    Timer,
    /// A signal came to a sleeping thread.
    Signal,
    /// The thread has ended.
    End,
    /// Began to queue at several words.
    Queue,
    /// What a participant queued at, or why it did not, or how its sleep ended.
    Watches(&'static str),
    /// Named what is woken when it ends, or nothing.
    Names,
    /// The machine killed the thread.
    Killed,
    /// The thread is dead, and the machine has done its part.
    Gone,
}

/// One step of an execution.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionEvent {
    /// The thread, from 0; the one after the last sets up and checks.
    pub thread: usize,
    /// The source line of the step.
    pub site: Site,
    /// What the thread did there.
    pub step: ModelStep,
    /// The address of what it concerns, or 0.
    pub(crate) address: usize,
    /// Whether that is an atomic of 64 bits.
    pub(crate) wide: bool,
}

impl ExecutionEvent {
    /// Tells whether the step lies in a source file of this name.
    #[must_use]
    pub fn in_file(&self, name: &str) -> bool {
        let rest = self.site.file().strip_suffix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with(['/', '\\']))
    }

    /// Tells whether the step replaced `from` by `to`.
    #[must_use]
    pub fn exchanged(&self, from: u64, to: u64) -> bool {
        self.step == ModelStep::Exchange { from, to }
    }

    /// Tells whether the step replaced `value` by something.
    #[must_use]
    pub fn replaced(&self, value: u64) -> bool {
        matches!(self.step, ModelStep::Exchange { from, .. } if from == value)
    }

    /// Tells whether the step wrote `value`.
    #[must_use]
    pub fn wrote(&self, value: u64) -> bool {
        matches!(self.step, ModelStep::Store { value: v } | ModelStep::Exchange { to: v, .. } if v == value)
    }
}

impl ExecutionEvent {
    /// Describes the step in a line of a report; `place` is where the step took place.
    pub(crate) fn describe(&self, place: Option<RegionAddress>) -> String {
        let mut line = String::new();
        let written = self.write(place, &mut line);
        debug_assert!(written.is_ok(), "a string takes what is written to it");
        line
    }

    fn write(&self, at: Option<RegionAddress>, f: &mut String) -> fmt::Result {
        use fmt::Write;
        write!(f, "T{:<2} ", self.thread)?;
        let place = at.map(|p| p.to_string()).unwrap_or_default();
        let show = |value: u64| {
            if self.wide && at.is_some_and(|p| p.may_hold_a_word()) {
                format!("{:?}", Word(value))
            } else {
                format!("{:#x}", value)
            }
        };
        match self.step {
            ModelStep::Load { value, stale } => {
                write!(f, "load {place} = {}", show(value))?;
                if stale {
                    f.write_str(" (stale)")?;
                }
            }
            ModelStep::Store { value } => write!(f, "store {place} = {}", show(value))?,
            ModelStep::Exchange { from, to } => {
                write!(f, "exchange {place}: {} -> {}", show(from), show(to))?;
            }
            ModelStep::FailedExchange { found, wanted, stale } => {
                write!(f, "exchange {place} fails: {}, wanted {}", show(found), show(wanted))?;
                if stale {
                    f.write_str(" (stale)")?;
                }
            }
            ModelStep::Fence(order) => write!(f, "fence {order:?}")?,
            ModelStep::Restart => write!(f, "restarts the others' sections")?,
            ModelStep::Sleep => write!(f, "sleep {place}")?,
            ModelStep::Wait(outcome) => write!(f, "wait {place} ends: {outcome:?}")?,
            ModelStep::Wake(count) => write!(f, "wake {place}: {count} woken")?,
            ModelStep::Relax => f.write_str("relax")?,
            ModelStep::Now(now) => write!(f, "now = {now}")?,
            ModelStep::Enter => f.write_str("signal handler begins")?,
            ModelStep::Leave => f.write_str("signal handler ends")?,
            ModelStep::Free => write!(f, "frees {place}")?,
            ModelStep::PlainRead => write!(f, "plain read {place}")?,
            ModelStep::PlainWrite => write!(f, "plain write {place}")?,
            ModelStep::TimePasses => f.write_str("nobody can go on: time passes")?,
            ModelStep::Timer => f.write_str("its timer fires")?,
            ModelStep::Signal => f.write_str("a signal comes")?,
            ModelStep::End => f.write_str("ends")?,
            ModelStep::Queue => write!(f, "queues at {place}")?,
            ModelStep::Watches(what) => write!(f, "{what} {place}")?,
            ModelStep::Names => write!(f, "names {place}")?,
            ModelStep::Killed => f.write_str("is killed")?,
            ModelStep::Gone => f.write_str("is dead")?,
        }
        let file = self.site.file().rsplit(['/', '\\']).next().unwrap_or_default();
        write!(f, "    {file}:{}", self.site.line())
    }
}

/// Whether a search saw everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coverage {
    /// Every execution, within the configured number of spurious wake-ups,
    /// time-outs, signals and clock jumps, and of stale reads if that is set.
    Complete,
    /// Only executions with at most so many preemptions.
    Bounded(u32),
    /// So many random executions.
    Sampled(u64),
}

/// What a successful search did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stats {
    /// How much was covered.
    pub coverage: Coverage,
    /// Executions run, to their end or to a state that was known.
    pub executions: u64,
    /// The number of those that ended in a known state.
    pub known: u64,
    /// Different states at which the search branched.
    pub states: u64,
    /// Steps of the longest execution.
    pub longest: u32,
    pub(crate) seen: BTreeMap<&'static str, u64>,
}

impl Stats {
    /// Returns how often the watch with this name matched.
    ///
    /// # Panics
    /// If no watch has this name.
    #[must_use]
    pub fn seen(&self, watch: &str) -> u64 {
        *self.seen.get(watch).unwrap_or_else(|| panic!("no watch is called {watch}"))
    }

    /// Checks that every execution was explored.
    ///
    /// # Panics
    /// If the search was bounded.
    #[track_caller]
    pub fn must_be_complete(&self) {
        assert_eq!(self.coverage, Coverage::Complete);
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.coverage {
            Coverage::Complete => f.write_str("complete")?,
            Coverage::Bounded(bound) => write!(f, "bounded by {bound} preemptions")?,
            Coverage::Sampled(schedules) => write!(f, "{schedules} random schedules")?,
        }
        write!(
            f,
            ": {} executions ({} cut at a known state), {} states, longest {} steps",
            self.executions, self.known, self.states, self.longest
        )
    }
}

/// What goes wrong in an execution.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FailureKind {
    /// Two threads touched plain memory, one of them writing, with neither
    /// happening before the other.
    Race,
    /// Every thread that has not ended sleeps, and nobody will wake it.
    Deadlock,
    /// Threads spin, time passes, and nothing ever changes.
    Livelock,
    /// Memory was touched after it was declared freed.
    UseAfterFree,
    /// A thread panicked with this message.
    Panic(String),
    /// An execution exceeded the configured number of steps.
    TooLong,
    /// The search exceeded the configured number of executions.
    TooMany,
    /// The model breaks a rule of the checker.
    Misuse(String),
}

/// The decisions of one execution; printable, and readable again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    pub(crate) choices: Vec<u16>,
    pub(crate) shared: Vec<u64>,
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let choices: Vec<String> = self.choices.iter().map(u16::to_string).collect();
        let shared: Vec<String> = self.shared.iter().map(|key| format!("{key:x}")).collect();
        write!(f, "{}/{}", choices.join("."), shared.join("."))
    }
}

impl FromStr for Schedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (choices, shared) =
            text.split_once('/').ok_or("a schedule has the form choices/locations")?;
        let fields = |text: &str| -> Vec<String> {
            text.split('.').filter(|s| !s.is_empty()).map(str::to_owned).collect()
        };
        Ok(Schedule {
            choices: fields(choices)
                .iter()
                .map(|c| c.parse().map_err(|e| format!("choice {c}: {e}")))
                .collect::<Result<_, _>>()?,
            shared: fields(shared)
                .iter()
                .map(|k| u64::from_str_radix(k, 16).map_err(|e| format!("location {k}: {e}")))
                .collect::<Result<_, _>>()?,
        })
    }
}

/// A failed search, with the execution that shows it.
#[derive(Clone)]
pub struct SearchFailure {
    /// The kind of what went wrong in the execution.
    pub kind: FailureKind,
    /// The steps that led there.
    pub trace: Vec<ExecutionEvent>,
    /// The same as text.
    pub story: Vec<String>,
    /// What each thread was doing then.
    pub threads: Vec<String>,
    /// Runs the execution again, with [`Scenario::replay`](crate::Scenario::replay).
    pub schedule: Schedule,
    /// Executions before this one.
    pub executions: u64,
}

impl fmt::Display for SearchFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}, after {} executions", self.kind, self.executions)?;
        for (number, line) in self.story.iter().enumerate() {
            writeln!(f, "{number:>4}  {line}")?;
        }
        for (number, thread) in self.threads.iter().enumerate() {
            writeln!(f, "T{number} {thread}")?;
        }
        write!(f, "schedule: {}", self.schedule)
    }
}

impl fmt::Debug for SearchFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
