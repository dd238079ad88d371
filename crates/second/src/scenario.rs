//! A scenario: a shared value, the threads that use it, and the search over their executions, which
//! is loom's.
//!
//! The main thread of loom sets everything up, which is not explored, then waits for the threads of
//! the scenario and checks what they have left.

use crate::config::Config;
use crate::report::{Coverage, FailureKind, SearchFailure, Stats};
use crate::world::{self, AGAIN, DEADLOCK, FREED, LIVELOCK, MOST_THREADS, Needs, World};
use lockstead_core::fault::Choice;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

type Body<S> = Rc<dyn Fn(&S)>;

/// How many branches loom keeps of one execution.
const BRANCHES: usize = 20_000;

/// What a panic says when a search is too large.
const TOO_MANY: &str = "more executions than the search may have";

/// What is to be explored. Threads share nothing but the checker's memory in the shared value.
pub struct Scenario<S> {
    make: Rc<dyn Fn() -> S>,
    threads: Vec<Body<S>>,
    after: Body<S>,
}

impl<S: 'static> Scenario<S> {
    /// Returns a scenario whose executions each begin with the value of `make`.
    pub fn new(make: impl Fn() -> S + 'static) -> Self {
        Scenario { make: Rc::new(make), threads: Vec::new(), after: Rc::new(|_| {}) }
    }

    /// Adds a thread that runs `body`.
    ///
    /// # Panics
    /// If there are four already.
    #[must_use]
    pub fn thread(self, body: impl Fn(&S) + 'static) -> Self {
        self.threads(1, body)
    }

    /// Adds so many threads, all of which do the same.
    ///
    /// # Panics
    /// If there are more than four then.
    #[must_use]
    pub fn threads(mut self, number: usize, body: impl Fn(&S) + 'static) -> Self {
        let body: Body<S> = Rc::new(body);
        for _ in 0..number {
            assert!(self.threads.len() < MOST_THREADS, "at most {MOST_THREADS} threads");
            self.threads.push(Rc::clone(&body));
        }
        self
    }

    /// Checks the shared value after every execution.
    #[must_use]
    pub fn after(mut self, check: impl Fn(&S) + 'static) -> Self {
        self.after = Rc::new(check);
        self
    }

    /// Returns how many threads there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.threads.len()
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
        world::set_needs(Needs::FEW);
        let result = loop {
            let needs = world::needs();
            match self.search(config) {
                Err(failure) if failure.message == AGAIN => assert_ne!(needs, world::needs()),
                result => break result,
            }
        };
        fault.must_be_reached();
        result.map_err(Box::new)
    }

    /// Explores the executions, and panics with what was wrong in one that failed. Prints the
    /// statistics under `name`.
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

    fn search(&self, config: &Config) -> Result<Stats, SearchFailure> {
        let executions = Rc::new(Cell::new(0));
        let execution: Rc<dyn Fn()> = {
            let (make, threads) = (Rc::clone(&self.make), self.threads.clone());
            let (after, config) = (Rc::clone(&self.after), config.clone());
            let executions = Rc::clone(&executions);
            Rc::new(move || {
                executions.set(executions.get() + 1);
                assert!(executions.get() <= config.max_executions, "{TOO_MANY}");
                execute(&config, &*make, &threads, &after);
            })
        };
        let mut builder = loom::model::Builder::new();
        builder.max_branches = BRANCHES;
        builder.preemption_bound = config.preemptions.map(|bound| bound as usize);
        builder.expect_explicit_explore = true;
        builder.max_permutations = None;
        builder.max_duration = None;
        builder.checkpoint_file = None;
        // Loom wants what can be sent to other threads, and calls it on this one.
        EXECUTION.replace(Some(execution));
        let result = catch_unwind(AssertUnwindSafe(|| {
            builder.check(|| {
                let execution = EXECUTION.with_borrow(|e| e.clone()).expect("set above");
                execution();
            });
        }));
        EXECUTION.replace(None);
        world::leave();
        let about_memory = world::forget_about_memory();
        let executions = executions.get();
        match result {
            Ok(()) => {
                let coverage = config.preemptions.map_or(Coverage::Complete, Coverage::Bounded);
                Ok(Stats { coverage, executions })
            }
            Err(payload) => {
                let message = message(&*payload);
                Err(SearchFailure { kind: kind(&message, about_memory), executions, message })
            }
        }
    }
}

thread_local! {
    static EXECUTION: RefCell<Option<Rc<dyn Fn()>>> = const { RefCell::new(None) };
}

/// Runs one execution, as the main thread of loom.
fn execute<S: 'static>(
    config: &Config,
    make: &dyn Fn() -> S,
    threads: &[Body<S>],
    after: &Body<S>,
) {
    let world = World::enter(config, threads.len());
    let shared = Rc::new(make());
    let handles: Vec<_> = (0..)
        .zip(threads)
        .map(|(number, body)| {
            let (world, shared, body) = (Rc::clone(&world), Rc::clone(&shared), Rc::clone(body));
            loom::thread::spawn(move || {
                world.set_me(number);
                body(&shared);
                world.end(number);
            })
        })
        .collect();
    world.throw_dice();
    loom::explore();
    for handle in handles {
        world.visible(|| handle.join()).expect("its panic is the search's");
    }
    loom::stop_exploring();
    after(&shared);
    world::leave();
}

fn message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
}

fn kind(message: &str, about_memory: bool) -> FailureKind {
    match message {
        _ if about_memory => FailureKind::UseAfterFree,
        FREED => FailureKind::UseAfterFree,
        DEADLOCK => FailureKind::Deadlock,
        LIVELOCK => FailureKind::Livelock,
        TOO_MANY => FailureKind::TooMany,
        _ if message.starts_with("Causality violation") => FailureKind::Race,
        _ if message.contains("maximum number of branches") => FailureKind::Livelock,
        _ => FailureKind::Panic(message.to_owned()),
    }
}
