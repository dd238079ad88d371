//! A scenario: a shared value, the threads that use it, and the search over their executions, which
//! is loom's.
//!
//! The main thread of loom sets everything up, which is not explored, then waits for the threads of
//! the scenario and checks what they have left.

use crate::config::Config;
use crate::death;
use crate::needs::{self, AGAIN, Needs};
use crate::participants::Killed;
use crate::report::{Coverage, FailureKind, SearchFailure, Stats};
use crate::world::{self, DEADLOCK, FREED, LIVELOCK, MOST_THREADS, World};
use lockstead_core::fault::Choice;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

type Body<S> = Rc<dyn Fn(&S)>;
type Mourner<S> = Rc<dyn Fn(&S, usize)>;

/// How many branches loom keeps of one execution.
const BRANCHES: usize = 20_000;

/// What a panic says when a search is too large.
const TOO_MANY: &str = "more executions than the search may have";

/// What is to be explored. Threads share nothing but the checker's memory in the shared value.
pub struct Scenario<S> {
    make: Rc<dyn Fn() -> S>,
    threads: Vec<Body<S>>,
    ends: Ends<S>,
}

/// What follows the end of a thread's program, of its participant, or of all.
struct Ends<S> {
    after: Body<S>,
    /// What one does that comes in the place of a dead participant.
    again: Option<Body<S>>,
    mourn: Option<Mourner<S>>,
}

impl<S> Clone for Ends<S> {
    fn clone(&self) -> Self {
        let Ends { after, again, mourn } = self;
        Ends { after: Rc::clone(after), again: again.clone(), mourn: mourn.clone() }
    }
}

impl<S: 'static> Scenario<S> {
    /// Returns a scenario whose executions each begin with the value of `make`.
    pub fn new(make: impl Fn() -> S + 'static) -> Self {
        let ends = Ends { after: Rc::new(|_| {}), again: None, mourn: None };
        Scenario { make: Rc::new(make), threads: Vec::new(), ends }
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
        self.ends.after = Rc::new(check);
        self
    }

    /// Adds a thread for each of these programs, which does it.
    ///
    /// # Panics
    /// If there are more than four threads then.
    #[must_use]
    pub fn programs<O>(
        self,
        programs: &'static [&'static [O]],
        run: impl Fn(&S, &'static [O]) + Copy + 'static,
    ) -> Self {
        let add = |all: Self, ops| all.thread(move |shared| run(shared, ops));
        programs.iter().copied().fold(self, add)
    }

    /// Says what a participant does that comes in the place of one that was killed, as the same
    /// thread: see [`Config::respawns`].
    #[must_use]
    pub fn again(mut self, body: impl Fn(&S) + 'static) -> Self {
        self.ends.again = Some(Rc::new(body));
        self
    }

    /// Says what a scenario notes when a participant has just been marked dead, in the same step, as
    /// by [`aside`](crate::aside).
    #[must_use]
    pub fn mourn(mut self, note: impl Fn(&S, usize) + 'static) -> Self {
        self.ends.mourn = Some(Rc::new(note));
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
        needs::set_needs(Needs::FEW);
        let result = loop {
            let needs = needs::needs();
            match self.search(config) {
                Err(failure) if failure.message == AGAIN => assert_ne!(needs, needs::needs()),
                result => break result,
            }
        };
        fault.must_be_reached();
        result.map_err(Box::new)
    }

    /// Explores some of the executions, and panics with what was wrong in one that failed. Prints
    /// the statistics under `name`.
    ///
    /// Loom, which recognises no state that it knows, comes to no end where the first checker does:
    /// these are the first executions of those with one preemption, few in a usual run. With
    /// `LOCKSTEAD_MODEL_DEEP=1` they are many; and where no participant may end, two threads are
    /// searched without a bound of this checker's, and three to two preemptions.
    ///
    /// # Panics
    /// If an execution fails.
    pub fn verify(&self, name: &str, config: &Config) -> Stats {
        let began = std::time::Instant::now();
        let deep = std::env::var("LOCKSTEAD_MODEL_DEEP").is_ok_and(|v| v == "1");
        let most = match (deep, config.shared) {
            (false, true) => 100,
            (false, false) => 30,
            (true, _) => 20_000,
        };
        let bounded = match self.threads.len() {
            0..=2 if deep && !config.shared => config.clone(),
            _ if deep && !config.shared => config.clone().at_most(2),
            _ => config.clone().at_most(1),
        };
        match self.check(&bounded.max_executions(most)) {
            Ok(stats) => {
                println!("{name}: {stats}, {:.2} s", began.elapsed().as_secs_f64());
                stats
            }
            Err(failure) if failure.kind == FailureKind::TooMany => {
                println!(
                    "{name}: begun: {most} executions, {:.2} s",
                    began.elapsed().as_secs_f64()
                );
                Stats { coverage: Coverage::Begun, executions: most }
            }
            Err(failure) => panic!("{name}: {failure}"),
        }
    }

    fn search(&self, config: &Config) -> Result<Stats, SearchFailure> {
        let executions = Rc::new(Cell::new(0));
        let execution: Rc<dyn Fn()> = {
            let (make, threads) = (Rc::clone(&self.make), self.threads.clone());
            let (ends, config) = (self.ends.clone(), config.clone());
            let executions = Rc::clone(&executions);
            Rc::new(move || {
                executions.set(executions.get() + 1);
                assert!(executions.get() <= config.max_executions, "{TOO_MANY}");
                execute(&config, &*make, &threads, &ends);
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
fn execute<S: 'static>(config: &Config, make: &dyn Fn() -> S, threads: &[Body<S>], ends: &Ends<S>) {
    let world = World::enter(config, threads.len());
    let shared = Rc::new(make());
    let handles: Vec<_> = (0..)
        .zip(threads)
        .map(|(number, body)| {
            let (world, shared, body) = (Rc::clone(&world), Rc::clone(&shared), Rc::clone(body));
            let ends = ends.clone();
            loom::thread::spawn(move || {
                world.set_me(number);
                let mut next = Some(body);
                while let Some(body) = next {
                    next = run(&world, &shared, &body, &ends);
                }
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
    (ends.after)(&shared);
    world::leave();
}

/// Runs a program of the calling thread to its end, or to that of its participant. Returns what
/// comes in the place of that.
fn run<S>(world: &World, shared: &S, body: &Body<S>, ends: &Ends<S>) -> Option<Body<S>> {
    let ended = catch_unwind(AssertUnwindSafe(|| body(shared)));
    let payload = ended.err()?;
    if !payload.is::<Killed>() {
        resume_unwind(payload);
    }
    let mourn = || {
        if let Some(mourn) = &ends.mourn {
            mourn(shared, world.me());
        }
    };
    let comes = death::end(world, &mourn, ends.again.is_some());
    ends.again.clone().filter(|_| comes)
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
        _ if message.contains("maximum number of branches") => FailureKind::TooLong,
        _ => FailureKind::Panic(message.to_owned()),
    }
}
