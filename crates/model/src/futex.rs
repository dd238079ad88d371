//! Waiting, waking, spinning and the clock: what the platform's invariants PLATFORM-COMPARE,
//! PLATFORM-WOKEN and PLATFORM-ADDRESS (`platform.rs` of the core) promise, and no more.
//!
//! A wait compares the newest value and falls asleep in one step (PLATFORM-COMPARE). A wake
//! takes sleepers in the order in which they fell asleep, and whoever was woken
//! reports it, whatever its timer does afterwards (PLATFORM-WOKEN). Neither publishes
//! anything: a waiter that returns knows no more of memory than before.
//!
//! A spurious wake-up or an interruption is chosen at once instead of sleeping:
//! a thread that is woken later for no reason did the same as one that did not
//! sleep and was not scheduled. Timers are different, for they move the clock
//! that others see: a sleeper's timer fires at any later moment.

use crate::atom::Atom;
use crate::atomic::{access, glance};
use crate::choices::Lean;
use crate::config::{Fault, FutexModel, Hint};
use crate::engine::{Awoken, Engine, Phase, Sleeper, ThreadStatus, check, halt, point, rest, with};
use crate::fingerprint::mix;
use crate::report::{FailureKind, ModelStep, Site};
use crate::signal;
use lockstead_core::{OnCpu, WaitOutcome};
use std::sync::atomic::Ordering;

/// What ends a wait besides being woken.
pub(crate) struct WaitEnding<'a> {
    /// What is added to the address that wake-ups name: the hand-off waiter of a lock has its own.
    pub(crate) channel: usize,
    /// The time at which its timer fires.
    pub(crate) deadline: Option<u64>,
    /// The word that cancels it, when no longer zero.
    pub(crate) cancel: Option<&'a crate::U32>,
    /// Whether a signal handler does.
    pub(crate) interruptible: bool,
}

enum BegunWait {
    Returns(WaitOutcome),
    Sleeps,
    /// The execution is over.
    Over,
}

/// Waits while `atom`, cut to `mask`, holds `expected`.
pub(crate) fn wait(
    atom: &Atom,
    mask: u64,
    expected: u64,
    ends: &WaitEnding<'_>,
    site: Site,
) -> WaitOutcome {
    if let Some(cancel) = ends.cancel {
        glance(&cancel.atom);
    }
    loop {
        access(atom, true, site);
        let begun = with(|engine| engine.begin_wait(atom, mask, expected, ends, site));
        let outcome = match begun {
            BegunWait::Over => halt(),
            BegunWait::Returns(outcome) => Some(outcome),
            BegunWait::Sleeps => {
                if with(|engine| engine.config.fault) == Some(Fault::SplitWait) {
                    point(site);
                }
                sleep(atom, ends, site)
            }
        };
        if let Some(outcome) = outcome {
            with(|engine| {
                engine.learn(mix(4, outcome as u64));
                engine.event(site, ModelStep::Wait(outcome), atom.address(), false);
            });
            return outcome;
        }
    }
}

/// Sleeps. Returns `None` if the wait starts again after a signal.
fn sleep(atom: &Atom, ends: &WaitEnding<'_>, site: Site) -> Option<WaitOutcome> {
    with(|engine| engine.fall_asleep(atom, ends));
    rest();
    let (exact, awoken) = with(|engine| {
        let me = engine.current;
        engine.threads[me].deadline = u64::MAX;
        (engine.config.futex == FutexModel::Exact, engine.threads[me].awoken.take())
    });
    match awoken {
        Some(Awoken::As(outcome)) => Some(outcome),
        Some(Awoken::ForSignal) => {
            signal::run(site);
            ends.interruptible.then_some(WaitOutcome::Interrupted)
        }
        // The cheap model only rested.
        None => {
            debug_assert!(!exact);
            Some(WaitOutcome::Woken)
        }
    }
}

impl Engine {
    fn begin_wait(
        &mut self,
        atom: &Atom,
        mask: u64,
        expected: u64,
        ends: &WaitEnding<'_>,
        site: Site,
    ) -> BegunWait {
        let me = self.current;
        if self.phase != Phase::Run {
            self.fail(FailureKind::Misuse("setting up and checking must not wait".into()));
            return BegunWait::Over;
        }
        if self.peek(atom) & mask != expected {
            return BegunWait::Returns(WaitOutcome::Changed);
        }
        if ends.cancel.is_some_and(|word| self.peek(&word.atom) != 0) {
            return BegunWait::Returns(WaitOutcome::Cancelled);
        }
        if ends.deadline.is_some_and(|deadline| deadline <= self.clock) {
            return BegunWait::Returns(WaitOutcome::TimedOut);
        }
        self.threads[me].deadline = u64::MAX;
        let spurious = self.budget.spurious > 0;
        let interrupted = ends.interruptible && self.budget.interrupts > 0;
        let of = 1 + usize::from(spurious) + usize::from(interrupted);
        match self.choose(of, Lean::First(200)) {
            0 => {
                self.event(site, ModelStep::Sleep, atom.address(), false);
                BegunWait::Sleeps
            }
            1 if spurious => {
                self.budget.spurious -= 1;
                BegunWait::Returns(WaitOutcome::Woken)
            }
            _ => {
                self.budget.interrupts -= 1;
                BegunWait::Returns(WaitOutcome::Interrupted)
            }
        }
    }

    fn fall_asleep(&mut self, atom: &Atom, ends: &WaitEnding<'_>) {
        let me = self.current;
        self.learn(5);
        match self.config.futex {
            FutexModel::Cheap => self.idle(),
            FutexModel::Exact => {
                self.sleeps += 1;
                self.threads[me].deadline = ends.deadline.unwrap_or(u64::MAX);
                self.threads[me].status = ThreadStatus::Asleep(Sleeper {
                    address: atom.address() + ends.channel,
                    cancel: ends.cancel.map(|word| word.atom.address()),
                    order: self.sleeps,
                });
            }
        }
    }

    /// Looks at a word as the kernel does: at the newest value, published to nobody.
    fn peek(&mut self, atom: &Atom) -> u64 {
        let (me, location) = (self.current, self.locate(atom));
        let newest = self.memory.last_index(location);
        let (value, id) = self.memory.read(me, location, newest, Ordering::Relaxed);
        self.learn(id);
        value
    }

    fn wake(&mut self, address: usize, count: u32) -> u32 {
        if self.config.fault == Some(Fault::NoWake) {
            return 0;
        }
        let mut woken = 0;
        while woken < count {
            let first = (0..self.main())
                .filter_map(|t| match self.threads[t].status {
                    ThreadStatus::Asleep(s)
                        if s.address == address || s.cancel == Some(address) =>
                    {
                        Some((s.order, t, s.address == address))
                    }
                    _ => None,
                })
                .min();
            let Some((_, thread, by_word)) = first else { break };
            let outcome = if by_word { WaitOutcome::Woken } else { WaitOutcome::Cancelled };
            self.threads[thread].status = ThreadStatus::Ready;
            self.threads[thread].awoken = Some(Awoken::As(outcome));
            self.changes += 1;
            woken += 1;
        }
        woken
    }
}

/// Wakes up to `count` sleepers at `address`.
pub(crate) fn wake(address: usize, count: u32, site: Site) -> u32 {
    point(site);
    signal::may_come(site);
    let woken = with(|engine| {
        engine.step();
        let woken = engine.wake(address, count);
        engine.learn(mix(6, u64::from(woken)));
        engine.event(site, ModelStep::Wake(woken), address, false);
        woken
    });
    check();
    woken
}

/// Ends a turn of a spin loop.
pub(crate) fn relax(site: Site) {
    signal::may_come(site);
    let on = with(|engine| {
        engine.learn(7);
        engine.event(site, ModelStep::Relax, 0, false);
        engine.idle();
        engine.step()
    });
    if !on {
        halt();
    }
    rest();
}

/// Returns the time; a jump of the clock is a choice where the configuration allows one.
pub(crate) fn now(site: Site) -> u64 {
    // Where nothing but the passing of time moves the clock any more, and time
    // passes only while no thread can run, nobody can come between.
    let moves = with(|engine| engine.budget.jumps > 0 || engine.budget.timeouts > 0);
    if moves {
        point(site);
    }
    signal::may_come(site);
    let now = with(|engine| {
        if engine.phase == Phase::Run
            && engine.budget.jumps > 0
            && engine.choose(2, Lean::First(220)) == 1
        {
            engine.budget.jumps -= 1;
            engine.clock += engine.config.jump;
            engine.changes += 1;
        }
        let now = engine.clock;
        engine.learn(now);
        engine.event(site, ModelStep::Now(now), 0, false);
        engine.step();
        now
    });
    check();
    now
}

/// Tells whether a thread is on a processor, as configured.
pub(crate) fn on_cpu() -> OnCpu {
    let answer = with(|engine| match engine.config.hint {
        Hint::Always(answer) => answer,
        Hint::Either => {
            let answer = engine.choose(2, Lean::Even);
            engine.learn(8 + answer as u64);
            if answer == 0 { OnCpu::Yes } else { OnCpu::No }
        }
    });
    check();
    answer
}

/// Returns the number of the thread that runs, from 0.
#[must_use]
pub fn thread() -> usize {
    with(|engine| engine.current)
}
