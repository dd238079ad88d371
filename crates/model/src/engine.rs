//! One execution: whose turn it is, and what the surroundings do.
//!
//! # Role
//! Every operation on model memory first calls [`point`], where the engine
//! decides which thread goes next; the operations themselves are in
//! `engine/accesses.rs` and `futex.rs`. Threads are coroutines on one thread of the operating
//! system, so a decision is a function call and, at most, a switch of stacks.
//!
//! # Reduction
//! - *Known states.* What a thread will do is a function of the results of its
//!   operations so far (threads share nothing but model memory), and what
//!   these can be is a function of the stores and their order. So a state is
//!   the sum of the fingerprints of the threads' histories and the locations'
//!   stores; a state that was reached before is not explored again. Two
//!   schedules that differ in the order of independent steps meet in one.
//!   Under a bound on preemptions, the last thread belongs to the state, and a
//!   state counts as known only if it was reached with as many left.
//! - *Local memory.* A location that only one thread touches is no reason to
//!   branch. Which ones these are is found out: a location counts as local
//!   until a second thread touches it, then the search starts anew knowing
//!   better. The last pass saw no second thread at any local location.
//! - *Symmetry.* Threads that do the same ([`Scenario::threads`](crate::Scenario::threads)) take
//!   their first steps in the order of their numbers: an execution in which they do
//!   not is one in which they do, with the names exchanged. (Locks compare
//!   slots for equality only.)
//! - *Spinning.* A thread that relaxes a second time although nobody else has
//!   changed anything since the first goes on only when somebody has: until
//!   then its next turn would be the last one over again. (So a loop that does
//!   something else after a number of turns must do it after one, which the
//!   policies of the models see to; or when time passes, which is a change.)

mod accesses;
pub(crate) mod death;
mod marks;
mod merged;
mod schedule;
mod states;
mod threads;

pub(crate) use accesses::Visible;
pub(crate) use death::has_ended;
pub(crate) use marks::EngineMark;
pub use merged::{disembody, embody, forget, guard};
pub(crate) use merged::{here, turn};

pub(crate) use threads::{
    Awoken, MOST_WATCHES, ModelThread, Queued, SleepEntry, Sleeper, ThreadStatus,
};

use crate::atom::Atom;
use crate::choices::{Choices, Lean};
use crate::config::{Budget, Config};
use crate::fingerprint::{FingerprintMap, mix};
use crate::memory::{Accesses, ModelMemory};
use crate::report::{ExecutionEvent, FailureKind, ModelStep};
use crate::space::Space;
use std::cell::Cell;
use std::collections::HashSet;
use std::ops::Range;
use std::panic::Location;
use std::rc::Rc;

/// Passes of time in one execution after which it counts as a livelock.
const MAX_PASSES: u32 = 200;

/// Timers from here on never fire: a policy that never insists says so with a
/// large number.
const NEVER: u64 = 1 << 60;

/// The phase in which an execution is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// The shared value is made; no other thread exists.
    Setup,
    /// Threads run to their first step.
    Start,
    /// The threads take their steps.
    Run,
    /// All have ended; the result is checked.
    After,
}

/// Why an execution is over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ExecutionStop {
    /// All threads have ended.
    Done,
    /// The state is known.
    Known,
    /// A location turned out to be shared.
    Restart,
    Failed(FailureKind),
}

/// What may happen next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    Run(usize),
    /// The timer of a sleeper fires; true if it costs nothing from the budget.
    Timer(usize, bool),
    Signal(usize),
    /// It dies, and makes the first step of that.
    Kill(usize),
    /// Another participant comes in its place.
    Respawn(usize),
    /// Time passes, for nobody can go on.
    Pass,
}

/// A search and its execution in progress.
pub(crate) struct Engine {
    pub(crate) config: Config,
    pub(crate) choices: Choices,
    pub(crate) space: Space,
    pub(crate) memory: ModelMemory,
    pub(crate) threads: Vec<ModelThread>,
    pub(crate) current: usize,
    /// The thread whose stack is in use.
    pub(crate) running: usize,
    /// The place on it at which the thread was that suspended itself last.
    pub(crate) deepest: usize,
    pub(crate) phase: Phase,
    pub(crate) stop: Option<ExecutionStop>,
    /// A decision is to be made from `next`; everything is to be put down first.
    pub(crate) undecided: bool,
    pub(crate) budget: Budget,
    pub(crate) clock: u64,
    /// How often a value, the clock or a queue of sleepers has changed.
    pub(crate) changes: u64,
    /// The number of sleeps so far.
    pub(crate) sleeps: u64,
    pub(crate) steps: u32,
    pub(crate) trace: Vec<ExecutionEvent>,
    pub(crate) freed: Vec<Range<usize>>,
    /// Locations that more than one thread touches.
    pub(crate) shared: HashSet<u64>,
    /// Places at which somebody was ever woken.
    pub(crate) called: HashSet<u64>,
    /// Whether accesses are no part of the model now.
    pub(crate) aside: bool,
    /// Memory that only the owner of a lock touches, and its word.
    pub(crate) guards: Vec<(Range<usize>, *const Atom)>,
    /// What is done when a participant dies.
    pub(crate) mourn: Option<Rc<dyn Fn(usize)>>,
    /// Whether others may come in the place of the dead.
    pub(crate) again: bool,
    /// Whether there is somebody who puts everything down at decisions.
    pub(crate) marking: bool,
    /// The thread that is to begin anew.
    pub(crate) reborn: Option<usize>,
    /// The accesses to each plain field, by its address.
    pub(crate) cells: Vec<(usize, Accesses)>,
    pub(crate) generation: u32,
    pub(crate) watched: Vec<u64>,
    /// The fingerprint at the last decision.
    pub(crate) state: u64,
    /// Fewest preemptions with which a state was reached.
    pub(crate) states: FingerprintMap<u32>,
    /// The list of stores that is used again at each step.
    pub(crate) indices: Vec<u16>,
    preemptions: u32,
    last: usize,
    passes: u32,
    next: Vec<Next>,
    sealed: bool,
}

thread_local! {
    static CURRENT: Cell<*mut Engine> = const { Cell::new(std::ptr::null_mut()) };
    static GENERATION: Cell<u32> = const { Cell::new(0) };
}

/// Makes `engine` the one of this thread while `body` runs.
pub(crate) fn enter<R>(engine: &mut Engine, body: impl FnOnce() -> R) -> R {
    let before = CURRENT.replace(engine);
    let result = body();
    CURRENT.set(before);
    result
}

/// Calls `body` with the engine of this thread. `body` must not switch coroutines, nor call this.
pub(crate) fn with<R>(body: impl FnOnce(&mut Engine) -> R) -> R {
    let engine = CURRENT.get();
    assert!(!engine.is_null(), "model memory may be used only inside a scenario");
    // SAFETY: `enter` keeps the engine borrowed while it is current, so nobody else
    // uses it; every caller sees to it that `body` neither switches nor comes back
    // here, so this is the only reference.
    body(unsafe { &mut *engine })
}

/// Gives the processor back to the runner; returns when the thread is chosen.
///
/// Not inlined, so that little lies below the word that says how deep the stack is.
#[inline(never)]
pub(crate) fn suspend() {
    let deepest = 0u8;
    let yielder = with(|engine| {
        engine.deepest = (&raw const deepest).addr();
        engine.threads[engine.running].yielder
    });
    // SAFETY: `ModelStrand::begin` has put it there, the yielder of the coroutine that
    // runs here; it lives as long as the coroutine does.
    unsafe { &*yielder }.suspend(());
}

/// Suspends the thread for good, for the execution is over: the runner drops its stack.
pub(crate) fn halt() -> ! {
    loop {
        suspend();
    }
}

/// Halts if the execution is over.
pub(crate) fn check() {
    if with(|engine| engine.stop.is_some()) {
        halt();
    }
}

/// Runs `body`, whose accesses to model memory are no steps of the model: for what a
/// model notes and looks at for its own checks under
/// [`Config::merged`](crate::Config::merged). Nothing that a thread does may follow
/// from what it reads there.
pub fn aside<R>(body: impl FnOnce() -> R) -> R {
    let before = with(|engine| {
        if !engine.config.merged {
            engine.fail(FailureKind::Misuse("accesses aside need a merged search".into()));
        }
        std::mem::replace(&mut engine.aside, true)
    });
    let result = body();
    with(|engine| engine.aside = before);
    result
}

/// Lets somebody else go first before an operation that others can see.
pub(crate) fn point(site: &'static Location<'static>) {
    let go = with(|engine| {
        engine.threads[engine.current].site = site;
        match engine.phase {
            Phase::Setup | Phase::After => true,
            Phase::Start => false,
            Phase::Run => {
                let me = engine.current;
                if !std::mem::take(&mut engine.threads[me].chosen) {
                    engine.decide();
                }
                engine.stop.is_none() && !engine.undecided && engine.current == me
            }
        }
    });
    if !go {
        suspend();
        check();
    }
    death::if_doomed();
}

/// Lets others go, for the thread cannot go on by itself (its status says why).
pub(crate) fn rest() {
    let go = with(|engine| {
        let me = engine.current;
        match engine.phase {
            Phase::Setup | Phase::After => {
                engine.fail(FailureKind::Misuse("setting up and checking must not wait".into()));
            }
            Phase::Start => {}
            Phase::Run => engine.decide(),
        }
        let decided = engine.stop.is_none() && !engine.undecided;
        engine.phase == Phase::Run && decided && engine.current == me
    });
    if !go {
        suspend();
        check();
    }
    death::if_doomed();
    with(|engine| {
        let me = engine.current;
        engine.threads[me].chosen = true;
    });
}

impl Engine {
    pub(crate) fn new(config: Config) -> Self {
        let watched = vec![0; config.watches.len()];
        Engine {
            budget: config.budget,
            config,
            choices: Choices::default(),
            space: Space::default(),
            memory: ModelMemory::new(),
            threads: Vec::new(),
            current: 0,
            running: 0,
            deepest: 0,
            phase: Phase::Setup,
            stop: None,
            undecided: false,
            clock: 0,
            changes: 0,
            sleeps: 0,
            steps: 0,
            trace: Vec::new(),
            freed: Vec::new(),
            shared: HashSet::new(),
            called: HashSet::new(),
            aside: false,
            guards: Vec::new(),
            mourn: None,
            again: false,
            marking: false,
            reborn: None,
            cells: Vec::new(),
            generation: 0,
            watched,
            state: 0,
            states: FingerprintMap::default(),
            indices: Vec::new(),
            preemptions: 0,
            last: 0,
            passes: 0,
            next: Vec::new(),
            sealed: false,
        }
    }

    /// Prepares an execution with the threads of these groups, and the main one.
    pub(crate) fn reset(&mut self, groups: &[usize]) {
        let threads = groups.len();
        self.memory.reset(threads + 1, self.config.merged);
        self.aside = false;
        self.guards.clear();
        self.reborn = None;
        self.threads.clear();
        self.threads.resize_with(threads + 1, ModelThread::new);
        for (thread, &group) in self.threads.iter_mut().zip(groups) {
            thread.group = group;
        }
        self.threads[threads].status = ThreadStatus::Done;
        self.current = threads;
        self.last = threads;
        self.phase = Phase::Setup;
        self.stop = None;
        self.undecided = false;
        self.budget = self.config.budget;
        // Not zero: heartbeats that were never set are then in the past.
        self.clock = 1;
        self.changes = 0;
        self.sleeps = 0;
        self.steps = 0;
        self.trace.clear();
        self.freed.clear();
        self.cells.clear();
        self.preemptions = 0;
        self.passes = 0;
        self.generation = GENERATION.get() + 1;
        GENERATION.set(self.generation);
    }

    /// Returns the thread that sets up and checks.
    pub(crate) fn main(&self) -> usize {
        self.threads.len() - 1
    }

    pub(crate) fn fail(&mut self, kind: FailureKind) {
        if self.stop.is_none() {
            self.stop = Some(ExecutionStop::Failed(kind));
        }
    }

    pub(crate) fn event(
        &mut self,
        site: &'static Location<'static>,
        step: ModelStep,
        address: usize,
        wide: bool,
    ) {
        self.event_of(self.current, site, step, address, wide);
    }

    fn event_of(
        &mut self,
        thread: usize,
        site: &'static Location<'static>,
        step: ModelStep,
        address: usize,
        wide: bool,
    ) {
        let event = ExecutionEvent { thread, site, step, address, wide };
        for (count, (_, watch)) in self.watched.iter_mut().zip(&self.config.watches) {
            *count += u64::from(watch(&event));
        }
        self.trace.push(event);
    }

    /// Adds the result of an operation to the history of the current thread.
    pub(crate) fn learn(&mut self, result: u64) {
        if self.aside {
            return;
        }
        let history = &mut self.threads[self.current].history;
        *history = mix(*history, result);
    }

    pub(crate) fn choose(&mut self, of: usize, lean: Lean) -> usize {
        self.choices.choose(of, lean).unwrap_or_else(|| {
            self.does_not_repeat();
            0
        })
    }

    pub(crate) fn does_not_repeat(&mut self) {
        self.fail(FailureKind::Misuse(
            "an execution did not repeat: threads must share nothing but model memory".into(),
        ));
    }

    /// Counts a step. Returns false if the execution is over.
    pub(crate) fn step(&mut self) -> bool {
        self.steps += 1;
        if self.steps > self.config.max_steps {
            self.fail(FailureKind::TooLong);
        }
        self.memory.step(self.current);
        self.stop.is_none()
    }

    /// Notes that the thread that ran has ended.
    pub(crate) fn ended(&mut self) {
        let me = self.current;
        self.threads[me].status = ThreadStatus::Done;
        if self.config.merged {
            self.threads[me].history = 0;
        }
        let site = self.threads[me].site;
        self.event(site, ModelStep::End, 0, false);
    }

    /// Returns the steps so far, as text.
    pub(crate) fn story(&mut self) -> Vec<String> {
        let Engine { trace, space, .. } = self;
        trace.iter().map(|event| event.describe(space.place(event.address))).collect()
    }

    /// Says what each thread was doing, for a report.
    pub(crate) fn describe(&mut self) -> Vec<String> {
        let main = self.main();
        let mut lines = Vec::new();
        for thread in 0..main {
            let it = &self.threads[thread];
            let site = format!("{}:{}", it.site.file(), it.site.line());
            let status = it.status;
            lines.push(match status {
                ThreadStatus::Ready => format!("ready at {site}"),
                ThreadStatus::Yielded | ThreadStatus::Relaxing(_) => format!("spins at {site}"),
                ThreadStatus::Asleep(sleeper) => {
                    let place = self.space.place(sleeper.address);
                    let place = place.map_or("memory elsewhere".into(), |p| p.to_string());
                    format!("sleeps on {place} at {site}")
                }
                ThreadStatus::Watching => {
                    let entries = it.entries;
                    let queues = entries.iter().filter(|e| e.queued == Queued::Yes);
                    let places: Vec<String> = queues
                        .filter_map(|e| self.space.place(e.address))
                        .map(|place| place.to_string())
                        .collect();
                    format!("sleeps on {} at {site}", places.join(", "))
                }
                ThreadStatus::Done => "has ended".into(),
                ThreadStatus::Gone => "was killed".into(),
            });
        }
        lines
    }
}
