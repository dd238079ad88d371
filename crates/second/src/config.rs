//! What a search explores, and what the machine under the scenario does.

use lockstead_core::OnCpu;
use std::fmt;
use std::panic::Location;
use std::rc::Rc;
use std::sync::atomic::Ordering;

/// The answers that `on_cpu` gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hint {
    /// It is always the same answer.
    Always(OnCpu),
    /// `Yes` or `No`, explored both ways at every question.
    Either,
}

/// A rule of the platform, broken on purpose: the scenarios must notice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Waiting compares first and sleeps later (PLATFORM-COMPARE of `platform.rs`).
    SplitWait,
    /// No wake-up reaches anybody.
    NoWake,
    /// Restarting other threads' sections does nothing.
    NoRestart,
    /// A fence that others are to execute is not, and nobody says so.
    NoFence,
}

/// Whether threads can have others execute a fence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Membarrier {
    /// The machine has such a call.
    Works,
    /// The machine has no such call, and says so.
    Absent,
    /// The machine says that it has, and then refuses each call.
    Denied,
}

/// One access by its kind, for [`Config::orderings`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessKind {
    /// A load, of the whole atomic.
    Load,
    /// A store, of the whole atomic.
    Store,
    /// A read-modify-write that cannot fail.
    Update,
    /// A compare-exchange that succeeds.
    Exchange,
    /// A compare-exchange that fails.
    FailedExchange,
}

/// Replaces the ordering of an access.
pub type Orderings = Rc<dyn Fn(&'static Location<'static>, AccessKind, Ordering) -> Ordering>;

/// The settings of a search. [`Config::new`] explores every schedule and every readable store,
/// with one spurious wake-up in each execution.
#[derive(Clone)]
pub struct Config {
    pub(crate) preemptions: Option<u32>,
    pub(crate) budget: Budget,
    pub(crate) jump: u64,
    pub(crate) tick: u64,
    pub(crate) rescue: bool,
    pub(crate) processors: u32,
    pub(crate) hint: Hint,
    pub(crate) sections: bool,
    pub(crate) membarrier: Membarrier,
    pub(crate) slow_unlocks: u32,
    pub(crate) defers_wakes: bool,
    pub(crate) trust: Option<u64>,
    pub(crate) patience: u64,
    /// Whether the scenario is one of shared locks, whose participants may end.
    pub(crate) shared: bool,
    pub(crate) subtracts: bool,
    pub(crate) max_executions: u64,
    pub(crate) fault: Option<Fault>,
    pub(crate) broken: Option<&'static str>,
    pub(crate) orderings: Option<Orderings>,
}

/// How often the surroundings may interfere in one execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Budget {
    pub(crate) spurious: u32,
    pub(crate) timeouts: u32,
    pub(crate) interrupts: u32,
    pub(crate) signals: u32,
    pub(crate) jumps: u32,
    pub(crate) kills: u32,
    pub(crate) respawns: u32,
    pub(crate) unmarked: u32,
}

impl Budget {
    pub(crate) const NONE: Self = Budget {
        spurious: 0,
        timeouts: 0,
        interrupts: 0,
        signals: 0,
        jumps: 0,
        kills: 0,
        respawns: 0,
        unmarked: 0,
    };
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("preemptions", &self.preemptions)
            .field("budget", &self.budget)
            .field("jump", &self.jump)
            .field("tick", &self.tick)
            .field("rescue", &self.rescue)
            .field("processors", &self.processors)
            .field("hint", &self.hint)
            .field("sections", &self.sections)
            .field("membarrier", &self.membarrier)
            .field("slow_unlocks", &self.slow_unlocks)
            .field("defers_wakes", &self.defers_wakes)
            .field("trust", &self.trust)
            .field("patience", &self.patience)
            .field("subtracts", &self.subtracts)
            .field("fault", &self.fault)
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

impl Config {
    /// Returns the default settings.
    #[must_use]
    pub fn new() -> Self {
        Config {
            preemptions: None,
            budget: Budget { spurious: 1, signals: 1, ..Budget::NONE },
            jump: 1000,
            tick: 1,
            rescue: false,
            processors: 2,
            hint: Hint::Always(OnCpu::Unknown),
            sections: true,
            membarrier: Membarrier::Works,
            slow_unlocks: 1,
            defers_wakes: true,
            trust: None,
            patience: 5_000_000,
            shared: false,
            subtracts: true,
            max_executions: 5_000_000,
            fault: None,
            broken: None,
            orderings: None,
        }
    }

    /// Explores only executions in which at most `bound` times a thread that could go on is made
    /// to stop.
    #[must_use]
    pub fn preemptions(mut self, bound: u32) -> Self {
        self.preemptions = Some(bound);
        self
    }

    /// Explores only executions with at most `most` preemptions, or fewer if fewer were asked for.
    #[must_use]
    pub fn at_most(self, most: u32) -> Self {
        let bound = self.preemptions.map_or(most, |bound| bound.min(most));
        self.preemptions(bound)
    }

    /// Returns the same settings with a bound of at most `most` preemptions, where there is one.
    #[must_use]
    pub fn bound_at_most(&self, most: u32) -> Self {
        let mut config = self.clone();
        config.preemptions = self.preemptions.map(|bound| bound.min(most));
        config
    }

    /// Sets the number of spurious wake-ups in one execution, on any wait.
    #[must_use]
    pub fn spurious(mut self, most: u32) -> Self {
        self.budget.spurious = most;
        self
    }

    /// Sets the number of timers that may fire early in one execution, whatever their deadline.
    #[must_use]
    pub fn timeouts(mut self, most: u32) -> Self {
        self.budget.timeouts = most;
        self
    }

    /// Sets the number of waits that a signal may interrupt in one execution, where the caller
    /// asked for it.
    #[must_use]
    pub fn interrupts(mut self, most: u32) -> Self {
        self.budget.interrupts = most;
        self
    }

    /// Sets the number of signals whose handler runs in one execution, in threads that installed
    /// one with [`with_handler`](crate::with_handler).
    #[must_use]
    pub fn signals(mut self, most: u32) -> Self {
        self.budget.signals = most;
        self
    }

    /// Sets the number of looks at the clock in one execution that may find it advanced by `ns`.
    #[must_use]
    pub fn jumps(mut self, most: u32, ns: u64) -> Self {
        self.budget.jumps = most;
        self.jump = ns;
        self
    }

    /// Is for the first checker, which bounds how often a load reads an overwritten value. Loom has
    /// no such bound and explores all of them.
    #[must_use]
    pub fn stale_reads(self, _most: u32) -> Self {
        self
    }

    /// Sets the number of participants ([`embody`](crate::embody)) that may end in one execution,
    /// each before any of its steps.
    #[must_use]
    pub fn kills(mut self, most: u32) -> Self {
        self.budget.kills = most;
        self
    }

    /// Lets up to `most` of the participants that end in one execution do so without a trace: the
    /// machine neither marks them nor wakes anybody. Nobody comes in the place of such a one.
    #[must_use]
    pub fn unmarked(mut self, most: u32) -> Self {
        self.budget.unmarked = most;
        self
    }

    /// Sets the number of participants that may come in one execution after one has ended, each in
    /// its place ([`Scenario::again`](crate::Scenario::again)), at any time.
    #[must_use]
    pub fn respawns(mut self, most: u32) -> Self {
        self.budget.respawns = most;
        self
    }

    /// Has the machine promise nothing to participants that have named nothing: those that would
    /// defer a wake-up pass it on at once.
    #[must_use]
    pub fn no_deferred_wakes(mut self) -> Self {
        self.defers_wakes = false;
        self
    }

    /// Has sleepers rely on being told of deaths for so many nanoseconds, then ask whether those
    /// they watch have ended; for ever unless set.
    #[must_use]
    pub fn trust(mut self, nanos: u64) -> Self {
        self.trust = Some(nanos);
        self
    }

    /// Sets for how many nanoseconds a waiter for a shared lock lets others barge past before it has
    /// the lock reserved for itself; five million unless set.
    #[must_use]
    pub fn patience(mut self, nanos: u64) -> Self {
        self.patience = nanos;
        self
    }

    /// Sets whether a shared mutex is released by a subtraction where it can be, or always by a
    /// compare-exchange. On unless set.
    #[must_use]
    pub fn subtracts(mut self, on: bool) -> Self {
        self.subtracts = on;
        self
    }

    /// Is for the first checker, which tells the states of a sequentially consistent machine from
    /// each other by what memory holds. Loom tells no states, and its memory stays weak: only
    /// spurious wake-ups are left out, as there. It is the scenarios of shared locks that ask for it.
    #[must_use]
    pub fn merged(mut self) -> Self {
        self.budget.spurious = 0;
        self.shared = true;
        self
    }

    /// Sets the number of nanoseconds that pass when no thread can do anything but spin.
    #[must_use]
    pub fn tick(mut self, ns: u64) -> Self {
        self.tick = ns;
        self
    }

    /// Sets whether the earliest timer fires when nothing else can happen. Off unless set.
    #[must_use]
    pub fn rescue(mut self, on: bool) -> Self {
        self.rescue = on;
        self
    }

    /// Sets the answer of `processors()`.
    #[must_use]
    pub fn processors(mut self, number: u32) -> Self {
        self.processors = number;
        self
    }

    /// Sets the answer of `on_cpu()`.
    #[must_use]
    pub fn hint(mut self, hint: Hint) -> Self {
        self.hint = hint;
        self
    }

    /// Sets whether the erasure of half a word is a look and a store, as in a section that the
    /// kernel restarts, or one exchange. On unless set.
    #[must_use]
    pub fn sections(mut self, on: bool) -> Self {
        self.sections = on;
        self
    }

    /// Sets whether threads can have others execute a fence. They can unless set.
    #[must_use]
    pub fn membarrier(mut self, answer: Membarrier) -> Self {
        self.membarrier = answer;
        self
    }

    /// Sets how many slow unlocks a mutex goes through after contention. One unless set.
    #[must_use]
    pub fn slow_unlocks(mut self, acquisitions: u32) -> Self {
        self.slow_unlocks = acquisitions;
        self
    }

    /// Sets the number of executions after which the search fails as too large.
    #[must_use]
    pub fn max_executions(mut self, most: u64) -> Self {
        self.max_executions = most;
        self
    }

    /// Breaks a rule of the platform.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Takes the wrong step at the marker `fault!(name)` in the source of the locks. A search that
    /// never comes to such a marker panics.
    #[must_use]
    pub fn broken(mut self, name: &'static str) -> Self {
        self.broken = Some(name);
        self
    }

    /// Replaces orderings, to show what breaks when one is weaker.
    #[must_use]
    pub fn orderings(mut self, replace: Orderings) -> Self {
        self.orderings = Some(replace);
        self
    }
}
