//! The end of a participant at any of its steps, and another one in its place.
//!
//! What the machine does then is what the invariants D1, D2 and D4 of the core's
//! `shared/robust.rs` say, and each part of it is a step of its own between which
//! others go on: the dead one leaves the queues in which it slept, one after the other,
//! and may swallow a wake-up in each; its life word is marked; one of those that sleep
//! there is woken; then one of those that sleep on the word that it had named.

use super::{Engine, Next, Queued, Status, Thread, halt, point, with};
use crate::atomic::access;
use crate::choices::Lean;
use crate::fingerprint::mix;
use crate::report::Step;
use std::rc::Rc;
use std::sync::atomic::Ordering;

/// The low half of the life word of a dead participant, as the core says.
const DEAD: u64 = lockstead_core::shared::seat::LIFE_DEAD as u64;

/// Lower bits of a named word; it must be zero there for somebody to be woken (D2).
const NAMED: u64 = lockstead_core::shared::seat::LIFE_NUMBER as u64;

impl Engine {
    /// Lists in `next` which participants may be killed, and which come again.
    pub(super) fn list_ends(&mut self) {
        for thread in 0..self.main() {
            let it = &self.threads[thread];
            let over = it.dying || matches!(it.status, Status::Done | Status::Gone);
            if self.budget.kills > 0 && it.life.is_some() && !over && self.may_start(thread) {
                self.next.push(Next::Kill(thread));
            }
            if self.budget.respawns > 0 && self.again && it.status == Status::Gone {
                self.next.push(Next::Respawn(thread));
            }
        }
    }

    /// It is the turn of `thread`, which makes the first step of its end.
    pub(super) fn kill(&mut self, thread: usize) {
        self.budget.kills -= 1;
        let it = &mut self.threads[thread];
        it.doomed = true;
        it.started = true;
        it.status = Status::Ready;
        self.last = thread;
        self.current = thread;
    }

    /// It is the turn of `thread`, from the beginning.
    pub(super) fn respawn(&mut self, thread: usize) {
        self.budget.respawns -= 1;
        let group = self.threads[thread].group;
        let own = self.threads[thread].own;
        let yielder = self.threads[thread].yielder;
        self.threads[thread] = Thread::new();
        let it = &mut self.threads[thread];
        (it.group, it.own, it.started, it.chosen) = (group, own, true, true);
        it.history = mix(1, 13);
        it.yielder = yielder;
        self.last = thread;
        self.current = thread;
        self.reborn = Some(thread);
    }

    /// Leaves the queues of the current thread where nobody is ever woken; whether it is
    /// in another one.
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

/// At a step of the calling thread that nobody else sees: it may die before. That
/// others go on in between makes no difference.
pub(crate) fn may_come() {
    let comes = with(|engine| {
        let it = &engine.threads[engine.current];
        let mortal = it.life.is_some() && engine.budget.kills > 0;
        if !mortal || engine.choose(2, Lean::First(240)) == 0 {
            return false;
        }
        engine.budget.kills -= 1;
        true
    });
    super::check();
    if comes {
        die(false);
    }
}

/// The end of the calling thread; `now` if its first step is to follow at once.
fn die(now: bool) -> ! {
    let site = with(|engine| {
        let me = engine.current;
        let it = &mut engine.threads[me];
        it.dying = true;
        it.chosen = now;
        it.history = mix(0, 17);
        it.site
    });
    with(|engine| engine.event(site, Step::Killed, 0, false));
    let step = |phase: u64| {
        point(site);
        with(|engine| {
            engine.step();
            engine.phase(phase);
        });
    };
    while with(Engine::queues) {
        step(1);
        with(Engine::leave_one);
    }
    let (life, named, mourn, me) = with(|engine| {
        let me = engine.current;
        let it = &mut engine.threads[me];
        it.entries.clear();
        // Not the reference count: what lies on this stack may be put back.
        let mourn = engine.mourn.as_ref().filter(|_| engine.config.merged).map(Rc::as_ptr);
        (it.life, it.named.or(it.pledged), mourn, me)
    });
    if let Some(life) = life {
        // SAFETY: the word lies in the shared value, which outlives all threads of an
        // execution.
        let life = unsafe { &*life };
        access(life, true, site);
        with(|engine| {
            let dead = |value: u64| value & !u64::from(u32::MAX) | DEAD;
            engine.update(life, Ordering::Release, site, true, dead);
            engine.phase(2);
        });
        if let Some(mourn) = mourn {
            // SAFETY: the engine keeps it for the whole search.
            super::aside(|| unsafe { (*mourn)(me) });
        }
        step(3);
        with(|engine| engine.rouse(life.address(), 1, site));
    }
    if let Some(named) = named {
        step(4);
        with(|engine| {
            // SAFETY: as the life word.
            let named = unsafe { &*named };
            if engine.holds(named) & NAMED == 0 {
                engine.rouse(named.address(), 1, site);
            }
        });
    }
    with(|engine| {
        let it = &mut engine.threads[engine.current];
        (it.status, it.history, it.dying) = (Status::Gone, 0, false);
        (it.named, it.pledged) = (None, None);
        engine.event(site, Step::Gone, 0, false);
        if engine.stop.is_none() {
            engine.decide();
        }
    });
    halt()
}
