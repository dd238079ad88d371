//! Whose turn it is: the threads that may go on, the timers that may fire, and
//! what happens when neither can.

use super::{Awoken, Engine, ExecutionStop, MAX_PASSES, NEVER, Next, ThreadStatus};
use crate::choices::Lean;
use crate::config::Fault;
use crate::fingerprint::mix;
use crate::report::{FailureKind, ModelStep};
use lockstead_core::WaitOutcome;

impl Engine {
    /// Changes that others than `thread` have made.
    pub(super) fn by_others(&self, thread: usize) -> u64 {
        self.changes - self.threads[thread].own
    }

    /// Ends a turn of a spin loop of the current thread.
    pub(crate) fn idle(&mut self) {
        let others = self.by_others(self.current);
        let thread = &mut self.threads[self.current];
        thread.status = if thread.idle_since == Some(others) {
            ThreadStatus::Relaxing(others)
        } else {
            ThreadStatus::Yielded
        };
        thread.idle_since = Some(others);
    }

    pub(super) fn can_run(&self, thread: usize) -> bool {
        match self.threads[thread].status {
            ThreadStatus::Ready | ThreadStatus::Yielded => true,
            ThreadStatus::Relaxing(since) => self.by_others(thread) > since,
            ThreadStatus::Asleep(_)
            | ThreadStatus::Watching
            | ThreadStatus::Done
            | ThreadStatus::Gone => false,
        }
    }

    /// Tells whether the thread may begin: of those that do the same, the first one begins first.
    pub(super) fn may_start(&self, thread: usize) -> bool {
        let it = &self.threads[thread];
        let before = thread.checked_sub(1).map(|t| &self.threads[t]);
        !self.config.reduce || it.started || before.is_none_or(|b| b.group != it.group || b.started)
    }

    /// Tells whether the thread that ran last would go on if it were not preempted.
    pub(super) fn goes_on(&self) -> bool {
        self.threads[self.last].status == ThreadStatus::Ready
    }

    /// Decides what happens next, until it is a thread's turn (`current`) or
    /// the execution is over (`stop`).
    pub(crate) fn decide(&mut self) {
        while self.stop.is_none() {
            if let Some(stop) = self.list() {
                self.stop = Some(stop);
                return;
            }
            if self.next.len() > 1 && self.config.reduce && !self.sealed {
                self.state = self.fingerprint();
                if self.choices.fresh() && self.known() {
                    self.stop = Some(ExecutionStop::Known);
                    return;
                }
                if self.marking {
                    self.undecided = true;
                    return;
                }
            }
            if self.take() {
                return;
            }
        }
    }

    /// Makes the decision that is to be made.
    pub(crate) fn settle(&mut self) {
        self.undecided = false;
        if !self.take() {
            self.decide();
        }
    }

    /// Takes one of what is listed in `next`. Returns true if it is a thread's turn then.
    fn take(&mut self) -> bool {
        let goes_on = self.goes_on();
        let lean = if goes_on { Lean::First(170) } else { Lean::Even };
        let choice = self.choose(self.next.len(), lean);
        match self.next[choice] {
            Next::Run(thread) => {
                if goes_on && thread != self.last {
                    self.preemptions += 1;
                }
                self.threads[thread].status = ThreadStatus::Ready;
                self.threads[thread].started = true;
                self.last = thread;
                self.current = thread;
                return true;
            }
            Next::Timer(thread, free) => self.fire(thread, free),
            Next::Signal(thread) => {
                self.budget.signals -= 1;
                self.threads[thread].status = ThreadStatus::Ready;
                self.threads[thread].awoken = Some(Awoken::ForSignal);
                let site = self.threads[thread].site;
                self.event_of(thread, site, ModelStep::Signal, 0, false);
            }
            Next::Kill(thread) => {
                self.kill(thread);
                return true;
            }
            Next::Respawn(thread) => {
                self.respawn(thread);
                return true;
            }
            Next::Pass => self.pass(),
        }
        false
    }

    /// Lists in `next` what may happen; says so if nothing can.
    pub(super) fn list(&mut self) -> Option<ExecutionStop> {
        self.next.clear();
        let (main, goes_on) = (self.main(), self.goes_on());
        if goes_on {
            self.next.push(Next::Run(self.last));
        }
        let preemptible = self.config.preemptions.is_none_or(|bound| self.preemptions < bound);
        for thread in 0..main {
            let other = thread != self.last && preemptible;
            if (other || !goes_on) && self.can_run(thread) && self.may_start(thread) {
                self.next.push(Next::Run(thread));
            }
        }
        let stuck = self.next.is_empty();
        for thread in 0..main {
            let it = &self.threads[thread];
            let asleep = matches!(it.status, ThreadStatus::Asleep(_) | ThreadStatus::Watching);
            let late = self.config.fault == Some(Fault::SwallowedWake)
                && it.awoken == Some(Awoken::As(WaitOutcome::Woken));
            if self.budget.timeouts > 0 && it.deadline < NEVER && (asleep || late) {
                self.next.push(Next::Timer(thread, false));
            }
            if self.budget.signals > 0 && asleep && it.handler.is_some() && !it.in_handler {
                self.next.push(Next::Signal(thread));
            }
        }
        if !stuck {
            self.list_ends();
            return None;
        }
        let threads = &self.threads[..main];
        if threads.iter().all(|t| matches!(t.status, ThreadStatus::Done | ThreadStatus::Gone)) {
            self.list_ends();
            // Who comes now finds nobody, which is a case, too.
            return if self.next.is_empty() { Some(ExecutionStop::Done) } else { None };
        }
        if threads.iter().any(|t| matches!(t.status, ThreadStatus::Relaxing(_))) {
            self.next.push(Next::Pass);
            return None;
        }
        let earliest = (0..main)
            .filter(|&t| {
                matches!(self.threads[t].status, ThreadStatus::Asleep(_) | ThreadStatus::Watching)
            })
            .min_by_key(|&t| self.threads[t].deadline)
            .filter(|&t| self.config.rescue && self.threads[t].deadline < NEVER);
        match earliest {
            Some(thread) => {
                self.next.push(Next::Timer(thread, true));
                None
            }
            None => Some(ExecutionStop::Failed(FailureKind::Deadlock)),
        }
    }

    fn fire(&mut self, thread: usize, free: bool) {
        if !free {
            self.budget.timeouts -= 1;
        }
        let it = &mut self.threads[thread];
        self.clock = self.clock.max(it.deadline);
        it.status = ThreadStatus::Ready;
        it.awoken = Some(Awoken::As(WaitOutcome::TimedOut));
        let site = it.site;
        self.changes += 1;
        self.event_of(thread, site, ModelStep::Timer, 0, false);
    }

    /// Lets time pass and all stores arrive, for nobody can do anything but spin.
    fn pass(&mut self) {
        self.passes += 1;
        if self.passes > MAX_PASSES {
            self.fail(FailureKind::Livelock);
            return;
        }
        self.clock += self.config.tick;
        self.memory.catch_up();
        let hash = mix(self.memory.hash, self.clock);
        for thread in &mut self.threads {
            // Everybody knows all stores now.
            thread.history = mix(thread.history, hash);
            if let ThreadStatus::Relaxing(_) = thread.status {
                thread.status = ThreadStatus::Ready;
            }
        }
        let site = self.threads[self.last].site;
        self.event_of(self.last, site, ModelStep::TimePasses, 0, false);
    }
}
