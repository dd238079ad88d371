//! The search over the executions of a scenario: each goes on where the one before it
//! could have gone on otherwise.
//!
//! # Role
//! The engine stops at a decision that was never made before; then everything is put
//! down (a [`DecisionMark`]), and put back when the other options have their turn. Where that
//! cannot be, since the shared value owns memory, or is not wanted (random schedules,
//! replays, searches without reductions), executions begin anew and repeat their
//! decisions. Choices within a step are repeated from the last mark in any case.

use crate::choices::Choices;
use crate::engine::{self, Engine, ExecutionStop, Phase, suspend, with};
use crate::report::{Coverage, FailureKind, Schedule, SearchFailure, Stats};
use crate::scenario::Scenario;
use crate::strand::{ModelStrand, StrandImage};
use std::cell::UnsafeCell;
use std::mem::{MaybeUninit, needs_drop};
use std::rc::Rc;

/// One of so many executions begins anew although it need not: if it came to other states
/// than before, threads share what no mark holds.
const ANEW: u64 = 4096;

/// A search in progress.
pub(crate) struct Runner<'a, S> {
    engine: Box<Engine>,
    stage: RunStage<'a, S>,
    executions: u64,
    known: u64,
    longest: u32,
}

/// What an execution takes place in.
struct RunStage<'a, S> {
    scenario: &'a Scenario<S>,
    /// The shared value; it lies still, so that its fields keep their names.
    place: Box<UnsafeCell<MaybeUninit<S>>>,
    /// The threads, and the one that sets up and checks.
    strands: Vec<ModelStrand>,
    /// The first `marked` are of the execution in progress; the others keep their
    /// allocations.
    marks: Vec<DecisionMark<S>>,
    marked: usize,
    /// Marks behind those, of the execution before, that this one is to come to again.
    due: usize,
}

/// All that there was when a decision was to be made.
struct DecisionMark<S> {
    engine: engine::EngineMark,
    value: Box<MaybeUninit<S>>,
    images: Vec<Rc<StrandImage>>,
}

impl<S> DecisionMark<S> {
    fn new() -> Self {
        let value = Box::new(MaybeUninit::uninit());
        DecisionMark { engine: engine::EngineMark::default(), value, images: Vec::new() }
    }
}

impl<'a, S: 'static> Runner<'a, S> {
    pub(crate) fn new(scenario: &'a Scenario<S>, mut engine: Engine) -> Self {
        let place = Box::new(UnsafeCell::new(MaybeUninit::<S>::uninit()));
        engine.space.shared(place.get().addr(), size_of::<S>().max(1));
        let strands: Vec<ModelStrand> =
            (0..=scenario.threads.len()).map(|_| ModelStrand::new()).collect();
        for (thread, strand) in strands.iter().enumerate() {
            engine.space.stack(thread, strand.range());
        }
        engine.again = scenario.again.is_some();
        engine.mourn = scenario.mourn.clone().map(|mourn| {
            let value = place.get().cast::<S>();
            // SAFETY: the main thread has written the value before any other began, and it is
            // only shared until all have ended (`start`).
            Rc::new(move |thread| mourn(unsafe { &*value }, thread)) as Rc<dyn Fn(usize)>
        });
        // A value that is put back must not own what it has freed since.
        engine.marking = engine.config.reduce && !needs_drop::<S>();
        let stage = RunStage { scenario, place, strands, marks: Vec::new(), marked: 0, due: 0 };
        Runner { engine: Box::new(engine), stage, executions: 0, known: 0, longest: 0 }
    }

    pub(crate) fn exhaust(&mut self) -> Result<Stats, Box<SearchFailure>> {
        loop {
            match self.one()? {
                ExecutionStop::Restart => {
                    // A location is shared after all: everything anew.
                    (self.stage.marked, self.stage.due) = (0, 0);
                    self.engine.choices = Choices::default();
                    self.engine.states.clear();
                    self.engine.watched.fill(0);
                    (self.executions, self.known, self.longest) = (0, 0, 0);
                    continue;
                }
                ExecutionStop::Known => self.known += 1,
                ExecutionStop::Done | ExecutionStop::Failed(_) => {}
            }
            if self.executions >= self.engine.config.max_executions {
                return Err(self.failure(FailureKind::TooMany));
            }
            if !self.engine.choices.advance() {
                let bound = self.engine.config.preemptions;
                return Ok(self.stats(bound.map_or(Coverage::Complete, Coverage::Bounded)));
            }
            self.stage.unmark(self.engine.choices.planned());
        }
    }

    pub(crate) fn sample(
        &mut self,
        seed: u64,
        schedules: u64,
    ) -> Result<Stats, Box<SearchFailure>> {
        self.engine.seal();
        while self.executions < schedules {
            self.engine.choices = Choices::random(seed.wrapping_add(self.executions));
            if self.one()? == ExecutionStop::Restart {
                self.executions -= 1;
            }
        }
        Ok(self.stats(Coverage::Sampled(schedules)))
    }

    /// Runs one execution again.
    pub(crate) fn replay(&mut self, schedule: &Schedule) -> Result<(), Box<SearchFailure>> {
        self.engine.seal();
        self.engine.shared.extend(&schedule.shared);
        self.engine.choices = Choices::replay(&schedule.choices);
        self.one().map(drop)
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

    fn failure(&mut self, kind: FailureKind) -> Box<SearchFailure> {
        let mut shared: Vec<u64> = self.engine.shared.iter().copied().collect();
        shared.sort_unstable();
        Box::new(SearchFailure {
            kind,
            trace: self.engine.trace.clone(),
            story: self.engine.story(),
            threads: self.engine.describe(),
            schedule: Schedule { choices: self.engine.choices.made(), shared },
            executions: self.executions,
        })
    }

    /// Runs an execution, from the last mark or from the beginning.
    fn one(&mut self) -> Result<ExecutionStop, Box<SearchFailure>> {
        if self.executions.is_power_of_two() || self.executions.is_multiple_of(ANEW) {
            (self.stage.due, self.stage.marked) = (self.stage.marked, 0);
        }
        if self.stage.marked == 0 {
            self.engine.reset(&self.stage.scenario.groups);
        }
        let (engine, stage) = (&mut *self.engine, &mut self.stage);
        engine::enter(engine, || stage.play());
        self.executions += 1;
        self.longest = self.longest.max(self.engine.steps);
        match self.engine.stop.clone() {
            Some(ExecutionStop::Failed(kind)) => Err(self.failure(kind)),
            Some(stop) => Ok(stop),
            None => unreachable!("an execution ends for a reason"),
        }
    }
}

impl<S: 'static> RunStage<'_, S> {
    fn play(&mut self) {
        if self.marked > 0 {
            self.put_back();
            self.go_on();
        } else {
            for thread in 0..self.strands.len() {
                self.begin(thread);
            }
            self.start();
        }
        if with(|engine| engine.phase) != Phase::Setup {
            // SAFETY: the setting up has ended, so the value exists; nobody uses it any
            // more, other than after it was put back, for which it has nothing to drop.
            unsafe { (*self.place.get()).assume_init_drop() };
        }
    }

    /// Puts down what [`put_back`](Self::put_back) needs.
    fn mark(&mut self) {
        if self.marked == self.marks.len() {
            self.marks.push(DecisionMark::new());
        }
        let mark = &mut self.marks[self.marked];
        if self.due > self.marked && !with(|engine| mark.engine.agrees(engine)) {
            with(Engine::does_not_repeat);
            return;
        }
        self.marked += 1;
        with(|engine| engine.save(&mut mark.engine));
        // SAFETY: all strands are suspended (STRAND-SUSPENDED), so nobody uses the value;
        // both places are as large, and bytes are copied, whatever they are.
        unsafe { std::ptr::copy_nonoverlapping(self.place.get(), &raw mut *mark.value, 1) };
        mark.images.clear();
        mark.images.extend(self.strands.iter_mut().map(ModelStrand::image));
    }

    /// Puts everything back as it was at the last mark, and decides.
    fn put_back(&mut self) {
        let mark = &self.marks[self.marked - 1];
        // SAFETY: all strands are suspended (STRAND-SUSPENDED), and both places are as large.
        // The value that is overwritten is not dropped, nor need it be: `Runner::new` has
        // only values marked that have nothing to drop.
        unsafe { std::ptr::copy_nonoverlapping(&raw const *mark.value, self.place.get(), 1) };
        for (strand, image) in self.strands.iter_mut().zip(&mark.images) {
            strand.put_back(image);
        }
        with(|engine| engine.put_back(&mark.engine));
    }

    /// Forgets marks behind the decisions that the next execution repeats or changes.
    fn unmark(&mut self, planned: usize) {
        let marks = &self.marks[..self.marked];
        self.marked = marks.partition_point(|mark| mark.engine.decisions() < planned);
        self.due = 0;
    }

    /// Prepares a strand for a thread.
    fn begin(&mut self, thread: usize) {
        let value = self.place.get().cast::<S>();
        let strand = &mut self.strands[thread];
        match self.scenario.threads.get(thread) {
            Some(body) => {
                let body = Rc::as_ptr(body);
                // SAFETY: the main thread has written the value before any other began, and
                // it is only shared until all have ended (`start`); the scenario, which
                // owns the body, outlives the search.
                strand.begin(move || unsafe { (*body)(&*value) });
            }
            None => {
                let make = Rc::as_ptr(&self.scenario.make);
                let after = Rc::as_ptr(&self.scenario.after);
                strand.begin(move || {
                    // SAFETY: no other thread exists yet, and the value of the last
                    // execution has been dropped.
                    unsafe { value.write((*make)()) };
                    suspend();
                    // SAFETY: this thread has written the value above, and `start` resumes it only
                    // when all others have ended.
                    unsafe { (*after)(&*value) };
                });
            }
        }
    }

    /// Prepares a strand for who comes in the place of a dead participant.
    fn begin_again(&mut self, thread: usize) {
        let value = self.place.get().cast::<S>();
        let body = Rc::as_ptr(self.scenario.again.as_ref().expect("else nobody comes again"));
        // SAFETY: as for the threads of `begin`: the main thread has written the value,
        // which is only shared until all have ended; the scenario outlives the search.
        self.strands[thread].begin(move || unsafe { (*body)(&*value) });
    }

    /// Runs the threads from the beginning until the execution is over.
    fn start(&mut self) {
        let main = self.strands.len() - 1;
        self.resume(main);
        if over() {
            return;
        }
        for thread in 0..main {
            with(|engine| {
                engine.phase = Phase::Start;
                engine.memory.happens_before(main, thread);
                engine.current = thread;
            });
            if self.resume(thread) {
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
        self.go_on();
    }

    /// Runs the threads until the execution is over.
    fn go_on(&mut self) {
        while !over() {
            if with(|engine| engine.undecided) {
                self.mark();
                if !over() {
                    with(Engine::settle);
                }
                continue;
            }
            let thread = with(|engine| engine.current);
            if with(|engine| engine.reborn.take()).is_some() {
                self.begin_again(thread);
            }
            if self.resume(thread) {
                with(|engine| {
                    engine.ended();
                    engine.decide();
                });
            }
        }
        if with(|engine| engine.stop == Some(ExecutionStop::Done)) {
            self.finish();
        }
    }

    /// Checks the shared value.
    fn finish(&mut self) {
        let main = self.strands.len() - 1;
        with(|engine| {
            engine.stop = None;
            engine.phase = Phase::After;
            engine.current = main;
            for thread in 0..main {
                engine.memory.happens_before(thread, main);
            }
            engine.memory.catch_up();
        });
        let ended = self.resume(main);
        with(|engine| {
            if ended {
                engine.stop.get_or_insert(ExecutionStop::Done);
            }
        });
    }

    /// Lets a thread go on until others are to. Returns true if it has ended.
    fn resume(&mut self, thread: usize) -> bool {
        with(|engine| engine.running = thread);
        self.strands[thread].resume()
    }
}

fn over() -> bool {
    with(|engine| engine.stop.is_some())
}
