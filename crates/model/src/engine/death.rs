//! The end of a participant at any of its steps, and another one in its place.
//!
//! What the machine does then is what the invariants DEATH-MARK, DEATH-NAMED-WORD and
//! DEATH-LOST-WAKE of the core's `robust/machine.rs` say, and each part of it is a step of its own
//! between which others go on: the dead one leaves the queues in which it slept, one after the
//! other, and may swallow a wake-up in each; its life word is marked; one of those that sleep
//! there is woken; then one of those that sleep on the word that it had named.
//!
//! Where the model says so, all but the first may fail to happen: then the others have to
//! ask ([`has_ended`]).

use super::{Engine, ModelThread, Next, Queued, ThreadStatus, aside, check, halt, point, with};
use crate::choices::Lean;
use crate::fingerprint::mix;
use crate::report::{ModelStep, Site};
use std::rc::Rc;
use std::sync::atomic::Ordering;

/// The low half of the life word of a dead participant, as the core says.
const DEAD: u64 = lockstead_core::robust::life::LIFE_DEAD as u64;

/// Lower bits of a named word; it must be zero there for somebody to be woken (DEATH-NAMED-WORD).
const NAMED: u64 = lockstead_core::robust::life::LIFE_NUMBER as u64;

impl Engine {
    /// Lists in `next` which participants may be killed, and which come again.
    pub(super) fn list_ends(&mut self) {
        for thread in 0..self.main() {
            let it = &self.threads[thread];
            let over = it.dying || matches!(it.status, ThreadStatus::Done | ThreadStatus::Gone);
            if self.budget.kills > 0 && it.mortal && !over && self.may_start(thread) {
                self.next.push(Next::Kill(thread));
            }
            let gone = it.status == ThreadStatus::Gone && self.budget.respawns > 0;
            if gone && self.again && self.is_marked(thread) {
                self.next.push(Next::Respawn(thread));
            }
        }
    }

    /// Tells whether the life word of a thread that was killed says so.
    fn is_marked(&mut self, thread: usize) -> bool {
        // SAFETY: `embody` was given a word of the shared value, which the runner keeps
        // until all threads of an execution have ended.
        let life = self.threads[thread].life.map(|life| unsafe { &*life });
        life.is_some_and(|life| self.holds(life) & u64::from(u32::MAX) == DEAD)
    }

    /// Tells whether the current thread, which dies, is to leave no trace.
    fn goes_unmarked(&mut self) -> bool {
        let unmarked = self.budget.unmarked > 0 && self.choose(2, Lean::First(200)) == 1;
        if unmarked {
            self.budget.unmarked -= 1;
            self.phase(6);
        }
        unmarked
    }

    /// Gives the turn to `thread`, which makes the first step of its end.
    pub(super) fn kill(&mut self, thread: usize) {
        self.budget.kills -= 1;
        let it = &mut self.threads[thread];
        it.doomed = true;
        it.started = true;
        it.status = ThreadStatus::Ready;
        self.last = thread;
        self.current = thread;
    }

    /// Gives the turn to `thread`, from the beginning.
    pub(super) fn respawn(&mut self, thread: usize) {
        self.budget.respawns -= 1;
        let group = self.threads[thread].group;
        let own = self.threads[thread].own;
        let yielder = self.threads[thread].yielder;
        self.threads[thread] = ModelThread::new();
        let it = &mut self.threads[thread];
        (it.group, it.own, it.started, it.chosen) = (group, own, true, true);
        it.history = mix(1, 13);
        it.yielder = yielder;
        self.last = thread;
        self.current = thread;
        self.reborn = Some(thread);
    }

    /// Leaves the queues of the current thread where nobody is ever woken. Returns whether it is in
    /// another one.
    pub(crate) fn queues(&mut self) -> bool {
        self.shed();
        self.threads[self.current].entries.iter().any(|entry| entry.queued == Queued::Yes)
    }

    /// Leaves the first of the queues.
    pub(crate) fn leave_one(&mut self) {
        let entries = &mut self.threads[self.current].entries;
        if let Some(entry) = entries.iter_mut().find(|entry| entry.queued == Queued::Yes) {
            entry.queued = Queued::No;
        }
    }

    fn phase(&mut self, number: u64) {
        self.threads[self.current].history = mix(number, 17);
    }
}

/// Ends the calling thread if it is to die before this step.
pub(super) fn if_doomed() {
    let doomed = with(|engine| std::mem::take(&mut engine.threads[engine.current].doomed));
    if doomed {
        die(true);
    }
}

/// Lets the calling thread die before a step of it that nobody else sees: that others go
/// on in between would make no difference.
pub(crate) fn may_come() {
    let comes = with(|engine| {
        let it = &engine.threads[engine.current];
        let mortal = it.mortal && engine.budget.kills > 0;
        if !mortal || engine.choose(2, Lean::First(240)) == 0 {
            return false;
        }
        engine.budget.kills -= 1;
        true
    });
    check();
    if comes {
        die(false);
    }
}

/// Ends the calling thread; `now` if its first step is to follow at once.
fn die(now: bool) -> ! {
    let site = with(|engine| {
        let me = engine.current;
        let it = &mut engine.threads[me];
        it.dying = true;
        it.chosen = now;
        it.history = mix(0, 17);
        it.site
    });
    with(|engine| engine.event(site, ModelStep::Killed, 0, false));
    let step = |phase: u64| step(phase, site);
    while with(Engine::queues) {
        step(1);
        with(Engine::leave_one);
    }
    let unmarked = with(|engine| {
        let me = engine.current;
        engine.threads[me].entries.clear();
        engine.goes_unmarked()
    });
    check();
    if unmarked {
        step(5);
        mourn();
    } else {
        mark(site);
        let named = with(|engine| {
            let it = &engine.threads[engine.current];
            it.named.or(it.deferred)
        });
        if let Some(named) = named {
            step(4);
            with(|engine| {
                // SAFETY: whoever names a word keeps it in the shared value, which the
                // runner keeps until all threads of an execution have ended.
                let named = unsafe { &*named };
                if engine.holds(named) & NAMED == 0 {
                    engine.rouse(named.address(), 1, site);
                }
            });
        }
    }
    with(|engine| {
        let it = &mut engine.threads[engine.current];
        (it.status, it.history, it.dying) = (ThreadStatus::Gone, 0, false);
        (it.named, it.deferred) = (None, None);
        engine.event(site, ModelStep::Gone, 0, false);
        if engine.stop.is_none() {
            engine.decide();
        }
    });
    halt()
}

/// Makes a step of the end of the calling thread.
fn step(phase: u64, site: Site) {
    point(site);
    with(|engine| {
        engine.step();
        engine.phase(phase);
    });
}

/// Marks the life word of the calling thread, if it has one, and wakes one that sleeps there
/// (DEATH-MARK).
fn mark(site: Site) {
    let Some(life) = with(|engine| engine.threads[engine.current].life) else {
        step(2, site);
        return mourn();
    };
    // SAFETY: `embody` was given a word of the shared value, which the runner keeps until
    // all threads of an execution have ended.
    let life = unsafe { &*life };
    // No signal comes before this step: the machine makes it.
    with(|engine| engine.touch(life));
    check();
    point(site);
    with(|engine| engine.begin(life.address()));
    check();
    with(|engine| {
        let dead = |value: u64| value & !u64::from(u32::MAX) | DEAD;
        engine.update(life, Ordering::Release, site, true, dead);
        engine.phase(2);
    });
    mourn();
    step(3, site);
    with(|engine| engine.rouse(life.address(), 1, site));
}

/// Has the model note the end of the calling thread.
fn mourn() {
    let (mourn, me) = with(|engine| {
        // Not the reference count: what lies on this stack may be put back.
        let mourn = engine.mourn.as_ref().filter(|_| engine.config.merged).map(Rc::as_ptr);
        (mourn, engine.current)
    });
    if let Some(mourn) = mourn {
        // SAFETY: the engine holds the count of `mourn` for the whole search (`Runner::new`).
        aside(|| unsafe { (*mourn)(me) });
    }
}

/// Tells whether the participant with this number, that of its thread from 1, has ended: the
/// answer of a machine that always knows.
pub(crate) fn has_ended(number: u32, site: Site) -> bool {
    point(site);
    let ended = with(|engine| {
        engine.step();
        let thread = (number as usize).checked_sub(1).and_then(|at| engine.threads.get(at));
        let ended = thread.is_some_and(|thread| thread.status == ThreadStatus::Gone);
        engine.learn(mix(22, u64::from(ended)));
        let what = if ended { "is told of an end" } else { "is told that it lives" };
        engine.event(site, ModelStep::Watches(what), 0, false);
        ended
    });
    check();
    ended
}
