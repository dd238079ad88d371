//! A scenario: a shared value, the threads that use it, and the search over
//! their executions.

use crate::choices::Choices;
use crate::config::{Config, Search};
use crate::engine::{self, Engine, Phase, Stop, halt, with};
use crate::memory::MAX_THREADS;
use crate::report::{Coverage, Failure, Kind, Schedule, Stats};
use corosensei::stack::{DefaultStack, Stack};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// Bytes of a thread's stack; pages that are not touched cost nothing.
const STACK: usize = 256 * 1024;

type Body<S> = Rc<dyn Fn(&S)>;
type Mourner<S> = Rc<dyn Fn(&S, usize)>;
type Thread = Coroutine<(), (), (), DefaultStack>;

/// What is to be explored.
///
/// Threads share nothing but model memory in the shared value: what they do
/// must follow from what they read there. (Counters outside, which no thread
/// looks at, are harmless.)
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
    make: Rc<dyn Fn() -> S>,
    threads: Vec<Body<S>>,
    /// For each thread, the first that does the same.
    groups: Vec<usize>,
    after: Body<S>,
    /// What one does that comes in the place of a dead participant.
    again: Option<Body<S>>,
    mourn: Option<Mourner<S>>,
}

impl<S: 'static> Scenario<S> {
    /// A scenario whose executions each begin with the value of `make`.
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

    /// One more thread.
    ///
    /// # Panics
    /// If there are seven already.
    #[must_use]
    pub fn thread(self, body: impl Fn(&S) + 'static) -> Self {
        self.threads(1, body)
    }

    /// So many more threads, all of which do the same: to exchange their
    /// numbers must make no difference to anybody.
    ///
    /// # Panics
    /// If there are more than seven then.
    #[must_use]
    pub fn threads(mut self, number: usize, body: impl Fn(&S) + 'static) -> Self {
        let body: Body<S> = Rc::new(body);
        let group = self.threads.len();
        for _ in 0..number {
            assert!(self.threads.len() + 1 < MAX_THREADS, "at most seven threads");
            self.threads.push(Rc::clone(&body));
            self.groups.push(group);
        }
        self
    }

    /// A thread for each of these programs, which does it; equal ones stand together, and to
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

    /// What a participant does that comes in the place of one that was killed, as the
    /// same thread: see [`Config::respawns`].
    #[must_use]
    pub fn again(mut self, body: impl Fn(&S) + 'static) -> Self {
        self.again = Some(Rc::new(body));
        self
    }

    /// What a model notes when a participant has just been marked dead, in the same
    /// step, as by [`aside`](crate::aside). Only under [`Config::merged`].
    #[must_use]
    pub fn mourn(mut self, note: impl Fn(&S, usize) + 'static) -> Self {
        self.mourn = Some(Rc::new(note));
        self
    }

    /// Explores the executions.
    ///
    /// # Errors
    /// The first execution found in which something went wrong.
    pub fn check(&self, config: &Config) -> Result<Stats, Box<Failure>> {
        let mut runner = Runner::new(self, Engine::new(config.clone()));
        match config.search {
            Search::Exhaustive => runner.exhaust(),
            Search::Random { seed, schedules } => runner.sample(seed, schedules),
        }
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
    pub fn replay(&self, config: &Config, schedule: &Schedule) -> Result<(), Box<Failure>> {
        let mut engine = Engine::new(config.clone());
        engine.seal();
        engine.shared.extend(&schedule.shared);
        engine.choices = Choices::replay(&schedule.choices);
        Runner::new(self, engine).one().map(drop)
    }
}

/// The shared value; it lies still, so that its fields keep their names.
struct Place<S>(Box<UnsafeCell<MaybeUninit<S>>>);

/// A search in progress.
struct Runner<'a, S> {
    scenario: &'a Scenario<S>,
    engine: Box<Engine>,
    place: Rc<Place<S>>,
    /// Stacks of the threads, and of the one that sets up and checks.
    stacks: Vec<Option<DefaultStack>>,
    executions: u64,
    known: u64,
    longest: u32,
}

impl<'a, S: 'static> Runner<'a, S> {
    fn new(scenario: &'a Scenario<S>, mut engine: Engine) -> Self {
        let place = Place(Box::new(UnsafeCell::new(MaybeUninit::uninit())));
        engine.space.shared(place.0.get().addr(), size_of::<S>().max(1));
        let stacks = (0..=scenario.threads.len())
            .map(|thread| {
                let stack = DefaultStack::new(STACK).expect("memory for a stack");
                engine.space.stack(thread, stack.limit().get()..stack.base().get());
                Some(stack)
            })
            .collect();
        Runner {
            scenario,
            engine: Box::new(engine),
            place: Rc::new(place),
            stacks,
            executions: 0,
            known: 0,
            longest: 0,
        }
    }

    fn exhaust(&mut self) -> Result<Stats, Box<Failure>> {
        loop {
            match self.one()? {
                Stop::Restart => {
                    // A location is shared after all: everything anew.
                    self.engine.choices = Choices::default();
                    self.engine.states.clear();
                    self.engine.watched.fill(0);
                    (self.executions, self.known, self.longest) = (0, 0, 0);
                    continue;
                }
                Stop::Known => self.known += 1,
                Stop::Done | Stop::Failed(_) => {}
            }
            if self.executions >= self.engine.config.max_executions {
                return Err(self.failure(Kind::TooMany));
            }
            if !self.engine.choices.advance() {
                let bound = self.engine.config.preemptions;
                return Ok(self.stats(bound.map_or(Coverage::Complete, Coverage::Bounded)));
            }
        }
    }

    fn sample(&mut self, seed: u64, schedules: u64) -> Result<Stats, Box<Failure>> {
        self.engine.seal();
        while self.executions < schedules {
            self.engine.choices = Choices::random(seed.wrapping_add(self.executions));
            if self.one()? == Stop::Restart {
                self.executions -= 1;
            }
        }
        Ok(self.stats(Coverage::Sampled(schedules)))
    }

    fn stats(&self, coverage: Coverage) -> Stats {
        let names = self.engine.config.watches.iter().map(|(name, _)| *name);
        Stats {
            coverage,
            executions: self.executions,
            known: self.known,
            states: self.engine.states.len() as u64,
            longest: self.longest,
            seen: names.zip(self.engine.watched.iter().copied()).collect(),
        }
    }

    fn failure(&mut self, kind: Kind) -> Box<Failure> {
        let mut shared: Vec<u64> = self.engine.shared.iter().copied().collect();
        shared.sort_unstable();
        Box::new(Failure {
            kind,
            trace: self.engine.trace.clone(),
            story: self.engine.story(),
            threads: self.engine.describe(),
            schedule: Schedule { choices: self.engine.choices.made(), shared },
            executions: self.executions,
        })
    }

    /// One execution.
    fn one(&mut self) -> Result<Stop, Box<Failure>> {
        let number = self.scenario.threads.len();
        self.engine.reset(&self.scenario.groups);
        let mut threads: Vec<Option<Thread>> = (0..=number)
            .map(|thread| {
                let stack = self.stacks[thread].take().expect("stacks are given back");
                Some(self.coroutine(thread, stack))
            })
            .collect();
        self.engine.again = self.scenario.again.is_some();
        self.engine.mourn = self.scenario.mourn.clone().map(|mourn| {
            let place = Rc::clone(&self.place);
            // SAFETY: the value was written before any thread began, and is only shared
            // until all have ended.
            let mourn = move |thread| mourn(unsafe { (*place.0.get()).assume_init_ref() }, thread);
            Rc::new(mourn) as Rc<dyn Fn(usize)>
        });
        let engine: *mut Engine = &mut *self.engine;
        // SAFETY: the engine outlives the call, and is not used here by another
        // way until it returns.
        engine::enter(unsafe { &mut *engine }, || self.run(&mut threads));
        for (thread, coroutine) in threads.into_iter().enumerate() {
            self.stacks[thread] = coroutine.map(abandon);
        }
        if self.engine.phase != Phase::Setup {
            // SAFETY: the setting up has ended, so the value exists; nobody
            // uses it any more.
            unsafe { (*self.place.0.get()).assume_init_drop() };
        }
        self.executions += 1;
        self.longest = self.longest.max(self.engine.steps);
        match self.engine.stop.clone() {
            Some(Stop::Failed(kind)) => Err(self.failure(kind)),
            Some(stop) => Ok(stop),
            None => unreachable!("an execution ends for a reason"),
        }
    }

    fn coroutine(&self, thread: usize, stack: DefaultStack) -> Thread {
        let place = Rc::clone(&self.place);
        let body: Body<S> = match self.scenario.threads.get(thread) {
            Some(body) => Rc::clone(body),
            None => {
                let (place, make) = (Rc::clone(&place), Rc::clone(&self.scenario.make));
                let after = Rc::clone(&self.scenario.after);
                return begin(stack, thread, move |yielder| {
                    let value = make();
                    // SAFETY: no other thread exists yet, and the value of the
                    // last execution has been dropped.
                    unsafe { (*place.0.get()).write(value) };
                    yielder.suspend(());
                    // SAFETY: written above; all other threads have ended.
                    after(unsafe { (*place.0.get()).assume_init_ref() });
                });
            }
        };
        begin(stack, thread, move |_| {
            // SAFETY: the value was written before any thread began, and is
            // only shared until all have ended.
            body(unsafe { (*place.0.get()).assume_init_ref() });
        })
    }

    /// Runs the threads until the execution is over.
    fn run(&self, threads: &mut [Option<Thread>]) {
        let main = threads.len() - 1;
        resume(threads, main);
        if over() {
            return;
        }
        for thread in 0..main {
            with(|engine| {
                engine.phase = Phase::Start;
                engine.memory.happens_before(main, thread);
                engine.current = thread;
            });
            if resume(threads, thread) {
                with(Engine::ended);
            }
            if over() {
                return;
            }
        }
        with(|engine| {
            engine.phase = Phase::Run;
            engine.decide();
        });
        while !over() {
            let thread = with(|engine| engine.current);
            if with(|engine| engine.reborn.take()).is_some() {
                let stack = threads[thread].take().map(abandon).expect("it has had its turn");
                threads[thread] = Some(self.rebirth(thread, stack));
            }
            if resume(threads, thread) {
                with(|engine| {
                    engine.ended();
                    engine.decide();
                });
            }
        }
        if with(|engine| engine.stop == Some(Stop::Done)) {
            with(|engine| {
                engine.stop = None;
                engine.phase = Phase::After;
                engine.current = main;
                for thread in 0..main {
                    engine.memory.happens_before(thread, main);
                }
                engine.memory.catch_up();
            });
            let ended = resume(threads, main);
            with(|engine| {
                if ended {
                    engine.stop.get_or_insert(Stop::Done);
                }
            });
        }
    }

    /// The thread that comes in the place of a dead one.
    fn rebirth(&self, thread: usize, stack: DefaultStack) -> Thread {
        let place = Rc::clone(&self.place);
        let body = self.scenario.again.clone().expect("else nobody comes again");
        begin(stack, thread, move |_| {
            // SAFETY: as any other thread.
            body(unsafe { (*place.0.get()).assume_init_ref() });
        })
    }
}

/// A coroutine that runs `body` as `thread`; a panic in it fails the execution.
fn begin(
    stack: DefaultStack,
    thread: usize,
    body: impl FnOnce(&Yielder<(), ()>) + 'static,
) -> Thread {
    Coroutine::with_stack(stack, move |yielder, ()| {
        with(|engine| engine.threads[thread].yielder = yielder);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(yielder))) {
            let message = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
                .unwrap_or_else(|| "a panic without a message".into());
            with(|engine| engine.fail(Kind::Panic(message)));
            halt();
        }
    })
}

/// The stack of a thread that is not run any more.
fn abandon(mut thread: Thread) -> DefaultStack {
    // SAFETY: what lies on the stack is forgotten without being dropped, which at
    // worst leaks what a model allocated: the engine keeps no reference to it past
    // `reset`.
    unsafe { thread.force_reset() };
    thread.into_stack()
}

fn over() -> bool {
    with(|engine| engine.stop.is_some())
}

/// Lets a thread go on until others are to; true if it has ended.
fn resume(threads: &mut [Option<Thread>], thread: usize) -> bool {
    with(|engine| engine.running = thread);
    let coroutine = threads[thread].as_mut().expect("taken out only to be replaced");
    matches!(coroutine.resume(()), CoroutineResult::Return(()))
}
