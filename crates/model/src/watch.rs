//! Sleeping on several words, waking, and what is woken when a participant ends: what
//! the invariants DEATH-NAMED-WORD to DEATH-BY-ADDRESS of the core's `robust/machine.rs` promise,
//! and no more.
//!
//! To queue at each word is a step of its own, and so is to leave a queue again; a
//! wake-up may come in between, also to one that will find that it must not sleep, or
//! that dies. Of those who sleep at a word any may be woken first.

use crate::atom::Atom;
use crate::atomic::access;
use crate::choices::Lean;
use crate::engine::{
    Awoken, Engine, Phase, Queued, SleepEntry, ThreadStatus, check, death, point, rest, with,
};
use crate::fingerprint::mix;
use crate::report::{FailureKind, ModelStep, Site};
use lockstead_core::WaitOutcome;
use std::sync::atomic::Ordering;

/// What is compared, and where it is slept.
#[derive(Clone, Copy)]
pub(crate) struct WatchedLocation<'a> {
    pub(crate) atom: &'a Atom,
    /// The number of bits by which the value is shifted before the lower half is compared.
    pub(crate) shift: u32,
    pub(crate) expected: u32,
    /// Whether a wake-up there ends the sleep.
    pub(crate) queues: bool,
}

/// How a sleep on several words ended.
pub(crate) enum SleepEnded {
    /// A wake-up ended it, at the word with this index last.
    At(usize),
    /// The sleep ended as this says.
    As(WaitOutcome),
}

/// Sleeps while all words hold what is expected.
pub(crate) fn wait_any(
    watched: &[WatchedLocation<'_>],
    deadline: Option<u64>,
    interruptible: bool,
    site: Site,
) -> SleepEnded {
    with(|engine| engine.threads[engine.current].entries.clear());
    let mut ended = None;
    for word in watched {
        access(word.atom, true, site);
        if !with(|engine| engine.queue(word, site)) {
            ended = Some(WaitOutcome::Changed);
            break;
        }
    }
    let ended = ended.or_else(|| with(|engine| engine.begin_watch(deadline, interruptible)));
    check();
    let ended = ended.unwrap_or_else(|| {
        with(|engine| {
            let me = engine.current;
            engine.threads[me].deadline = deadline.unwrap_or(u64::MAX);
            engine.threads[me].status = ThreadStatus::Watching;
            engine.event(site, ModelStep::Watches("sleeps"), 0, false);
        });
        rest();
        with(|engine| {
            let me = engine.current;
            engine.threads[me].deadline = u64::MAX;
            match engine.threads[me].awoken.take() {
                Some(Awoken::As(outcome)) => outcome,
                Some(Awoken::ForSignal) | None => WaitOutcome::Woken,
            }
        })
    });
    while with(Engine::queues) {
        point(site);
        with(|engine| {
            engine.step();
            engine.leave_one();
        });
    }
    with(|engine| {
        let me = engine.current;
        let entries = std::mem::take(&mut engine.threads[me].entries);
        let woken = entries.iter().rposition(|entry| entry.queued == Queued::Woken);
        // With nobody's wake-up, a sleep that ends as if by one ends for no reason.
        let ended = match (woken, ended) {
            (Some(index), _) => SleepEnded::At(index),
            (None, WaitOutcome::Woken) => SleepEnded::As(WaitOutcome::Changed),
            (None, other) => SleepEnded::As(other),
        };
        let (code, what) = match ended {
            SleepEnded::At(index) => (index as u64, WOKEN[index.min(WOKEN.len() - 1)]),
            SleepEnded::As(WaitOutcome::TimedOut) => (100, "wait ends: timed out"),
            SleepEnded::As(WaitOutcome::Interrupted) => (101, "wait ends: interrupted"),
            SleepEnded::As(_) => (102, "wait ends: changed"),
        };
        engine.learn(mix(20, code));
        engine.event(site, ModelStep::Watches(what), 0, false);
        ended
    })
}

const WOKEN: [&str; 6] = [
    "wait ends: woken at word 0",
    "wait ends: woken at word 1",
    "wait ends: woken at word 2",
    "wait ends: woken at word 3",
    "wait ends: woken at word 4",
    "wait ends: woken at a later word",
];

impl Engine {
    /// Compares and queues in one step. Returns false if the word differs.
    fn queue(&mut self, word: &WatchedLocation<'_>, site: Site) -> bool {
        let me = self.current;
        if self.phase != Phase::Run {
            self.fail(FailureKind::Misuse("setting up and checking must not wait".into()));
        }
        let fits = (self.holds(word.atom) >> word.shift) as u32 == word.expected;
        self.learn(30 + u64::from(fits));
        let address = word.atom.address() + word.shift as usize / 8;
        let what = if fits { "queues at" } else { "finds changed" };
        self.event(site, ModelStep::Watches(what), address, false);
        if fits {
            let queued = if word.queues { Queued::Yes } else { Queued::No };
            self.threads[me].entries.push(SleepEntry { address, queued });
        }
        fits
    }

    /// Returns how a wait that queues everywhere ends without a sleep; `None` if it sleeps.
    fn begin_watch(&mut self, deadline: Option<u64>, interruptible: bool) -> Option<WaitOutcome> {
        let me = self.current;
        if self.threads[me].entries.iter().any(|entry| entry.queued == Queued::Woken) {
            return Some(WaitOutcome::Woken);
        }
        if deadline.is_some_and(|deadline| deadline <= self.clock) {
            return Some(WaitOutcome::TimedOut);
        }
        let spurious = self.budget.spurious > 0;
        let interrupted = interruptible && self.budget.interrupts > 0;
        let of = 1 + usize::from(spurious) + usize::from(interrupted);
        match self.choose(of, Lean::First(200)) {
            0 => None,
            1 if spurious => {
                self.budget.spurious -= 1;
                Some(WaitOutcome::Changed)
            }
            _ => {
                self.budget.interrupts -= 1;
                Some(WaitOutcome::Interrupted)
            }
        }
    }

    /// Looks at a word as the kernel does: at the newest value, published to nobody.
    pub(crate) fn holds(&mut self, atom: &Atom) -> u64 {
        let location = self.locate(atom);
        self.memory.newest(location)
    }

    /// Wakes up to `count` of those that queue at `address`, whichever.
    pub(crate) fn rouse(&mut self, address: usize, count: u32, site: Site) -> u32 {
        let Some(key) = self.space.key_at(address) else {
            self.fail(FailureKind::Misuse("somebody is woken outside of model memory".into()));
            return 0;
        };
        if self.called.insert(key) {
            self.stop = Some(crate::engine::ExecutionStop::Restart);
            return 0;
        }
        let mut woken = 0;
        while woken < count {
            let queued =
                |entry: &SleepEntry| entry.queued == Queued::Yes && entry.address == address;
            let sleepers = |engine: &Engine| -> Vec<usize> {
                let all = 0..engine.main();
                all.filter(|&t| engine.threads[t].entries.iter().any(queued)).collect()
            };
            let sleepers = sleepers(self);
            if sleepers.is_empty() {
                break;
            }
            let all = count as usize >= sleepers.len();
            let which = if all { 0 } else { self.choose(sleepers.len(), Lean::Even) };
            let it = &mut self.threads[sleepers[which]];
            for entry in it.entries.iter_mut().filter(|entry| queued(entry)) {
                entry.queued = Queued::Woken;
            }
            if it.status == ThreadStatus::Watching {
                it.status = ThreadStatus::Ready;
                it.awoken = Some(Awoken::As(WaitOutcome::Woken));
            }
            self.changes += 1;
            woken += 1;
        }
        self.event(site, ModelStep::Wake(woken), address, false);
        woken
    }

    /// Leaves the queues of the current thread where nobody is ever woken.
    pub(crate) fn shed(&mut self) {
        let me = self.current;
        let mut entries = std::mem::take(&mut self.threads[me].entries);
        for entry in entries.iter_mut() {
            let called = self.space.key_at(entry.address).is_some_and(|k| self.called.contains(&k));
            if entry.queued == Queued::Yes && !called {
                entry.queued = Queued::No;
            }
        }
        self.threads[me].entries = entries;
    }
}

/// Wakes up to `count` of those that queue at `address`.
pub(crate) fn wake_shared(address: usize, count: u32, site: Site) -> u32 {
    point(site);
    let woken = with(|engine| {
        engine.step();
        let woken = engine.rouse(address, count, site);
        engine.learn(mix(21, u64::from(woken)));
        woken
    });
    check();
    woken
}

/// Adds to a word and wakes, in one step.
pub(crate) fn add_and_wake(word: &crate::U32, add: u32, count: u32, site: Site) {
    let atom = &word.atom;
    access(atom, true, site);
    with(|engine| {
        let sum = |value: u64| u64::from((value as u32).wrapping_add(add));
        engine.update(atom, Ordering::Relaxed, site, false, sum);
        engine.rouse(atom.address(), count, site);
    });
    check();
}

/// Names where somebody is woken when the calling thread ends. Returns what was named before.
pub(crate) fn at_death_wake(word: Option<&crate::U32>, site: Site) -> Option<*const crate::U32> {
    death::may_come();
    with(|engine| {
        let me = engine.current;
        let new = word.map(|word| &raw const word.atom);
        let old = std::mem::replace(&mut engine.threads[me].named, new);
        engine.event(site, ModelStep::Names, new.map_or(0, <*const Atom>::addr), false);
        old.map(<*const Atom>::cast)
    })
}

/// Names where somebody is woken when the calling thread ends and has named nothing. Returns false,
/// and nothing has changed, where the machine is not to offer that.
pub(crate) fn defer_wake(word: &crate::U32, site: Site) -> bool {
    with(|engine| {
        let offered = engine.config.defers_wakes;
        if offered {
            let me = engine.current;
            engine.threads[me].deferred = Some(&raw const word.atom);
            engine.event(site, ModelStep::Names, word.atom.address(), false);
        }
        offered
    })
}
