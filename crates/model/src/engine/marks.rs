//! What an engine puts down of an execution, to go on from there once more.

use super::{Engine, ModelThread, Next, Phase};
use crate::config::Budget;
use crate::memory::{self, Accesses};

/// An engine at a decision that is to be made.
#[derive(Default)]
pub(crate) struct EngineMark {
    decisions: usize,
    /// The fingerprint of the state.
    state: u64,
    memory: memory::MemoryMark,
    threads: Vec<ModelThread>,
    cells: Vec<(usize, Accesses)>,
    words: EngineWords,
    /// What may happen next.
    next: Vec<Next>,
    /// The number of events in the trace.
    trace: usize,
    freed: usize,
    guards: usize,
}

/// What there is one of.
#[derive(Clone, Copy, Default)]
struct EngineWords {
    budget: Budget,
    clock: u64,
    changes: u64,
    sleeps: u64,
    steps: u32,
    preemptions: u32,
    last: usize,
    passes: u32,
}

impl EngineMark {
    /// Returns how many decisions came before.
    pub(crate) fn decisions(&self) -> usize {
        self.decisions
    }

    /// Tells whether it was put down where the engine is now.
    pub(crate) fn agrees(&self, engine: &Engine) -> bool {
        (self.decisions, self.state) == (engine.choices.at(), engine.state)
    }
}

impl Engine {
    /// Puts down what [`put_back`](Self::put_back) needs.
    pub(crate) fn save(&self, mark: &mut EngineMark) {
        // Whoever adds a field decides here whether it belongs to an execution.
        let Engine {
            config: _,
            choices,
            space: _,
            memory,
            threads,
            // Decided next.
            current: _,
            running: _,
            deepest: _,
            phase,
            stop,
            undecided: _,
            budget,
            clock,
            changes,
            sleeps,
            steps,
            trace,
            freed,
            shared: _,
            called: _,
            aside,
            guards,
            mourn: _,
            again: _,
            marking: _,
            reborn,
            cells,
            generation: _,
            watched: _,
            state,
            states: _,
            indices: _,
            preemptions,
            last,
            passes,
            next,
            sealed: _,
        } = self;
        debug_assert!(*phase == Phase::Run && stop.is_none() && reborn.is_none() && !aside);
        mark.decisions = choices.at();
        mark.state = *state;
        memory.save(&mut mark.memory);
        mark.threads.clone_from(threads);
        mark.cells.clone_from(cells);
        mark.next.clone_from(next);
        mark.words = EngineWords {
            budget: *budget,
            clock: *clock,
            changes: *changes,
            sleeps: *sleeps,
            steps: *steps,
            preemptions: *preemptions,
            last: *last,
            passes: *passes,
        };
        (mark.trace, mark.freed, mark.guards) = (trace.len(), freed.len(), guards.len());
    }

    /// Restores all that was when `mark` was put down, and makes the decision.
    pub(crate) fn put_back(&mut self, mark: &EngineMark) {
        self.choices.go_back(mark.decisions);
        self.memory.put_back(&mark.memory);
        self.threads.clone_from(&mark.threads);
        self.cells.clone_from(&mark.cells);
        EngineWords {
            budget: self.budget,
            clock: self.clock,
            changes: self.changes,
            sleeps: self.sleeps,
            steps: self.steps,
            preemptions: self.preemptions,
            last: self.last,
            passes: self.passes,
        } = mark.words;
        self.trace.truncate(mark.trace);
        self.freed.truncate(mark.freed);
        self.guards.truncate(mark.guards);
        self.phase = Phase::Run;
        self.stop = None;
        self.aside = false;
        self.reborn = None;
        self.next.clone_from(&mark.next);
        self.settle();
    }
}
