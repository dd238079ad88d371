//! A scenario: a shared value, the threads that use it, and the search over
//! their executions.

use crate::config::{Config, Search};
use crate::engine::Engine;
use crate::memory::MAX_THREADS;
use crate::report::{Schedule, SearchFailure, Stats};
use crate::runner::Runner;
use lockstead_core::fault::Choice;
use std::rc::Rc;

pub(crate) type ScenarioBody<S> = Rc<dyn Fn(&S)>;
type Mourner<S> = Rc<dyn Fn(&S, usize)>;

/// What is to be explored.
///
/// Threads share nothing but model memory in the shared value: what they do
/// must follow from what they read there. (Counters outside, which no thread
/// looks at, are harmless.) A thread owns no memory on the heap when it reads or writes
/// there: what it has on its stack is put back, not dropped, when the search returns to
/// an earlier point.
///
/// ```
/// use lockstead_model::{Cell, Config, Scenario, U32, Ordering};
///
/// struct Shared { flag: U32, data: Cell<u32> }
///
/// let stats = Scenario::new(|| Shared { flag: U32::ZERO, data: Cell::new(0) })
///     .thread(|s| {
///         s.data.set(1);
///         s.flag.store(1, Ordering::Release);
///     })
///     .thread(|s| {
///         if s.flag.load(Ordering::Acquire) == 1 {
///             assert_eq!(s.data.get(), 1);
///         }
///     })
///     .check(&Config::new())
///     .unwrap();
/// assert!(stats.executions > 1);
/// ```
pub struct Scenario<S> {
    pub(crate) make: Rc<dyn Fn() -> S>,
    pub(crate) threads: Vec<ScenarioBody<S>>,
    /// The first thread that does the same, for each.
    pub(crate) groups: Vec<usize>,
    pub(crate) after: ScenarioBody<S>,
    /// What one does that comes in the place of a dead participant.
    pub(crate) again: Option<ScenarioBody<S>>,
    pub(crate) mourn: Option<Mourner<S>>,
}

impl<S: 'static> Scenario<S> {
    /// Returns a scenario whose executions each begin with the value of `make`.
    pub fn new(make: impl Fn() -> S + 'static) -> Self {
        Scenario {
            make: Rc::new(make),
            threads: Vec::new(),
            groups: Vec::new(),
            after: Rc::new(|_| {}),
            again: None,
            mourn: None,
        }
    }

    /// Adds a thread that runs `body`.
    ///
    /// # Panics
    /// If there are seven already.
    #[must_use]
    pub fn thread(self, body: impl Fn(&S) + 'static) -> Self {
        self.threads(1, body)
    }

    /// Adds so many threads, all of which do the same: to exchange their
    /// numbers must make no difference to anybody.
    ///
    /// # Panics
    /// If there are more than seven then.
    #[must_use]
    pub fn threads(mut self, number: usize, body: impl Fn(&S) + 'static) -> Self {
        let body: ScenarioBody<S> = Rc::new(body);
        let group = self.threads.len();
        for _ in 0..number {
            assert!(self.threads.len() + 1 < MAX_THREADS, "at most seven threads");
            self.threads.push(Rc::clone(&body));
            self.groups.push(group);
        }
        self
    }

    /// Adds a thread for each of these programs, which does it; equal ones stand together, and to
    /// exchange the numbers of their threads must make no difference to anybody.
    ///
    /// # Panics
    /// If there are more than seven threads then.
    #[must_use]
    pub fn programs<O: PartialEq>(
        self,
        programs: &'static [&'static [O]],
        run: impl Fn(&S, &'static [O]) + Copy + 'static,
    ) -> Self {
        programs.chunk_by(|a, b| a == b).fold(self, |scenario, same| {
            let program = same[0];
            scenario.threads(same.len(), move |shared| run(shared, program))
        })
    }

    /// Checks the shared value after every execution whose threads all ended.
    #[must_use]
    pub fn after(mut self, check: impl Fn(&S) + 'static) -> Self {
        self.after = Rc::new(check);
        self
    }

    /// Says what a participant does that comes in the place of one that was killed, as the
    /// same thread: see [`Config::respawns`].
    #[must_use]
    pub fn again(mut self, body: impl Fn(&S) + 'static) -> Self {
        self.again = Some(Rc::new(body));
        self
    }

    /// Says what a model notes when a participant has just been marked dead, in the same
    /// step, as by [`aside`](crate::aside). Only under [`Config::merged`].
    #[must_use]
    pub fn mourn(mut self, note: impl Fn(&S, usize) + 'static) -> Self {
        self.mourn = Some(Rc::new(note));
        self
    }

    /// Explores the executions of the scenario.
    ///
    /// # Errors
    /// The first execution found in which something went wrong.
    ///
    /// # Panics
    /// If a fault is chosen ([`Config::broken`]) and no step came to its marker.
    pub fn check(&self, config: &Config) -> Result<Stats, Box<SearchFailure>> {
        let fault = Choice::new(config.broken);
        let mut runner = Runner::new(self, Engine::new(config.clone()));
        let result = match config.search {
            Search::Exhaustive => runner.exhaust(),
            Search::Random { seed, schedules } => runner.sample(seed, schedules),
        };
        fault.must_be_reached();
        result
    }

    /// Explores the executions, and panics with the trace of one that failed.
    /// Prints the statistics under `name`.
    ///
    /// # Panics
    /// If an execution fails.
    pub fn verify(&self, name: &str, config: &Config) -> Stats {
        let began = std::time::Instant::now();
        match self.check(config) {
            Ok(stats) => {
                println!("{name}: {stats}, {:.2} s", began.elapsed().as_secs_f64());
                stats
            }
            Err(failure) => panic!("{name}: {failure}"),
        }
    }

    /// Runs one execution again.
    ///
    /// # Errors
    /// The failure it shows.
    pub fn replay(&self, config: &Config, schedule: &Schedule) -> Result<(), Box<SearchFailure>> {
        let _fault = Choice::new(config.broken);
        Runner::new(self, Engine::new(config.clone())).replay(schedule)
    }
}
