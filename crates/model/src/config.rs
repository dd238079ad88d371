//! What a search explores, and what the machine under the model does.

use crate::report::ExecutionEvent;
use lockstead_core::OnCpu;
use std::panic::Location;
use std::rc::Rc;
use std::sync::atomic::Ordering;

/// How waiting is modelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FutexModel {
    /// A waiter blocks until it is woken, its timer fires, a signal comes or it
    /// is cancelled. A lost wake-up is a deadlock, and found.
    Exact,
    /// A waiter yields until something changed, then returns as if woken.
    /// Fewer states; finds broken exclusion and races, not lost wake-ups.
    Cheap,
}

/// The answers that `on_cpu` gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hint {
    /// It is always the same answer.
    Always(OnCpu),
    /// `Yes` or `No`, explored both ways at every question.
    Either,
}

/// A rule of the platform, broken on purpose: the models must notice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Waiting compares first and sleeps later (PLATFORM-COMPARE of `platform.rs`).
    SplitWait,
    /// A waiter whose timer fires after it was woken reports a time-out (PLATFORM-WOKEN).
    SwallowedWake,
    /// No wake-up reaches anybody.
    NoWake,
    /// Restarting other threads' sections does nothing.
    NoRestart,
    /// A thread to which it is refused to restart others' sections relies on being woken.
    NoLook,
    /// A fence that others are to execute is not, and nobody says so.
    NoFence,
    /// A wait on several words sleeps on the first alone, and nobody looks again.
    FirstWordOnly,
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

/// Picks out the events that a watch counts.
pub type WatchFilter = fn(&ExecutionEvent) -> bool;

#[derive(Clone, Debug)]
pub(crate) enum Search {
    Exhaustive,
    Random { seed: u64, schedules: u64 },
}

/// The settings of a search. [`Config::new`] explores every schedule and every
/// readable store, with one spurious wake-up in each execution.
///
/// ```
/// use lockstead_model::Config;
/// let quick = Config::new().preemptions(2).timeouts(1);
/// ```
#[derive(Clone)]
pub struct Config {
    pub(crate) search: Search,
    pub(crate) preemptions: Option<u32>,
    pub(crate) futex: FutexModel,
    pub(crate) budget: Budget,
    pub(crate) merged: bool,
    pub(crate) defers_wakes: bool,
    pub(crate) trust: Option<u64>,
    pub(crate) patience: u64,
    pub(crate) subtracts: bool,
    pub(crate) jump: u64,
    pub(crate) tick: u64,
    pub(crate) rescue: bool,
    pub(crate) processors: u32,
    pub(crate) hint: Hint,
    pub(crate) sections: bool,
    pub(crate) refused: u32,
    pub(crate) membarrier: Membarrier,
    pub(crate) slow_unlocks: u32,
    pub(crate) reduce: bool,
    pub(crate) max_steps: u32,
    pub(crate) max_executions: u64,
    pub(crate) fault: Option<Fault>,
    pub(crate) broken: Option<&'static str>,
    pub(crate) orderings: Option<Orderings>,
    pub(crate) watches: Vec<(&'static str, WatchFilter)>,
}

/// How often the surroundings may interfere in one execution.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct Budget {
    pub(crate) spurious: u32,
    pub(crate) timeouts: u32,
    pub(crate) interrupts: u32,
    pub(crate) signals: u32,
    pub(crate) jumps: u32,
    /// `u32::MAX` is no bound.
    pub(crate) stale: u32,
    pub(crate) kills: u32,
    pub(crate) respawns: u32,
    pub(crate) unmarked: u32,
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
            search: Search::Exhaustive,
            preemptions: None,
            futex: FutexModel::Exact,
            budget: Budget {
                spurious: 1,
                timeouts: 0,
                interrupts: 0,
                signals: 1,
                jumps: 0,
                stale: u32::MAX,
                kills: 0,
                respawns: 0,
                unmarked: 0,
            },
            merged: false,
            defers_wakes: true,
            trust: None,
            patience: 5_000_000,
            subtracts: true,
            jump: 1000,
            tick: 1,
            rescue: false,
            processors: 2,
            hint: Hint::Always(OnCpu::Unknown),
            sections: true,
            refused: 0,
            membarrier: Membarrier::Works,
            slow_unlocks: 1,
            reduce: true,
            max_steps: 2000,
            max_executions: 20_000_000,
            fault: None,
            broken: None,
            orderings: None,
            watches: Vec::new(),
        }
    }

    /// Explores only executions in which at most `bound` times a thread that
    /// could go on is made to stop. The result then says `Bounded`.
    #[must_use]
    pub fn preemptions(mut self, bound: u32) -> Self {
        self.preemptions = Some(bound);
        self
    }

    /// Runs `schedules` random executions instead of all; the same ones for the
    /// same `seed`.
    #[must_use]
    pub fn random(mut self, seed: u64, schedules: u64) -> Self {
        self.search = Search::Random { seed, schedules };
        self
    }

    /// Sets how waiting is modelled.
    #[must_use]
    pub fn futex(mut self, futex: FutexModel) -> Self {
        self.futex = futex;
        self
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

    /// Waits that a signal may interrupt in one execution, where the caller
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

    /// Looks at the clock in one execution that may find it advanced by `ns`:
    /// the thread was preempted, or another one's heartbeat has gone stale.
    #[must_use]
    pub fn jumps(mut self, most: u32, ns: u64) -> Self {
        self.budget.jumps = most;
        self.jump = ns;
        self
    }

    /// Loads in one execution that may read an overwritten value; unbounded
    /// unless set. Zero makes the memory sequentially consistent.
    #[must_use]
    pub fn stale_reads(mut self, most: u32) -> Self {
        self.budget.stale = most;
        self
    }

    /// Sets the number of participants ([`embody`](crate::embody)) that may end in one execution,
    /// each before any of its steps.
    #[must_use]
    pub fn kills(mut self, most: u32) -> Self {
        self.budget.kills = most;
        self
    }

    /// Lets up to `most` of the participants that end in one execution do so without a trace:
    /// the machine neither marks them nor wakes anybody. Another one comes in the place of
    /// such a participant when somebody else has marked it.
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

    /// Has the machine promise nothing to participants that have named nothing: those that
    /// would defer a wake-up pass it on at once.
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

    /// Sets whether a shared mutex is released by a subtraction where it can be, as on processors
    /// that are sooner done with it, or always by a compare-exchange. On unless set.
    #[must_use]
    pub fn subtracts(mut self, on: bool) -> Self {
        self.subtracts = on;
        self
    }

    /// Makes memory sequentially consistent, and recognises a state by what memory
    /// holds, who sleeps where, and what each thread still knows: see
    /// `engine/merged.rs`. For large searches; finds no data races.
    #[must_use]
    pub fn merged(mut self) -> Self {
        self.merged = true;
        self.budget.stale = 0;
        self.budget.spurious = 0;
        self.max_steps = 20_000;
        self.max_executions = u64::MAX;
        self
    }

    /// Sets the number of nanoseconds that pass when no thread can do anything but spin.
    #[must_use]
    pub fn tick(mut self, ns: u64) -> Self {
        self.tick = ns;
        self
    }

    /// Sets whether the earliest timer fires when nothing else can happen. Off
    /// unless set, so that a protocol which needs a timer to get going again
    /// is reported as deadlocked.
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

    /// Sets whether the erasure of half a word is a look and a store, as in a section that
    /// the kernel restarts, or one exchange. On unless set.
    #[must_use]
    pub fn sections(mut self, on: bool) -> Self {
        self.sections = on;
        self
    }

    /// Refuses it to this thread to restart others' sections. It looks again by a timer each time
    /// that it sleeps at half a word. (Needs [`Config::rescue`].)
    #[must_use]
    pub fn refuse_restarts(mut self, thread: usize) -> Self {
        self.refused |= 1 << thread;
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

    /// Sets whether equal states are explored once and accesses that concern one
    /// thread alone are not branched at. On unless set; off shows that it
    /// makes no difference.
    #[must_use]
    pub fn reduce(mut self, on: bool) -> Self {
        self.reduce = on;
        self
    }

    /// Sets the number of steps after which an execution is reported as endless.
    #[must_use]
    pub fn max_steps(mut self, most: u32) -> Self {
        self.max_steps = most;
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

    /// Takes the wrong step at the marker `fault!(name)` in the source of the locks or of the
    /// ledger. A search that never comes to such a marker panics.
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

    /// Counts the events that `watch` picks out, in [`Stats::seen`](crate::Stats::seen).
    #[must_use]
    pub fn watch(mut self, name: &'static str, watch: WatchFilter) -> Self {
        self.watches.push((name, watch));
        self
    }
}
