//! What the kernel takes: calls, wake-ups, switches, slices.

use super::lines::{each, median};
use super::pinned::{both, pin};
use crate::Error;
use crate::clock::Ticks;
use lockstead_core::{Atomic32, Platform, WaitBounds};
use lockstead_linux::{Linux, U32};
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// Measures a system call that does nothing.
pub(super) fn call(cpu: usize) -> Result<f64, Error> {
    each(cpu, 2_000, || {
        // SAFETY: takes nothing. Not by the C library, which may remember.
        black_box(unsafe { libc::syscall(libc::SYS_getppid) });
    })
}

/// Measures what a wake-up of nobody takes beyond the call.
pub(super) fn futex(cpu: usize, call: f64) -> Result<f64, Error> {
    let word = U32::new(0);
    let all = each(cpu, 2_000, || {
        wake(&word);
    })?;
    Ok((all - call).max(0.0))
}

/// Measures reading the clock as the locks do.
pub(super) fn clock(cpu: usize) -> Result<f64, Error> {
    each(cpu, 5_000, || {
        black_box(Linux::now());
    })
}

/// Measures [`Platform::restart_releases`] while another thread of the process runs.
pub(super) fn restart(pair: (usize, usize)) -> Result<f64, Error> {
    const TURNS: u64 = 200;
    let ticks = Ticks::calibrated();
    let mut tries = Vec::new();
    for _ in 0..10 {
        let over = AtomicBool::new(false);
        let ask = || {
            Linux::me();
            Linux::restart_releases();
            let from = ticks.now();
            for _ in 0..TURNS {
                Linux::restart_releases();
            }
            let ns = ticks.ns(ticks.now() - from) as f64 / TURNS as f64;
            over.store(true, SeqCst);
            ns
        };
        let run = || {
            while !over.load(SeqCst) {
                spin_loop();
            }
        };
        tries.push(both(pair, ask, run)?.0);
    }
    Ok(median(&mut tries))
}

fn wake(word: &U32) -> u32 {
    Linux::wake(Linux::address32(word), 1)
}

fn wait(word: &U32, expected: u32) {
    Linux::wait32(word, expected, &WaitBounds::FOREVER);
}

/// Waking a thread on another processor, which was idle for so long.
pub(super) struct Rousing {
    /// What the call takes whoever makes it, in nanoseconds.
    pub(super) call: f64,
    /// The time from its beginning until the woken thread runs, in nanoseconds.
    pub(super) run: f64,
}

/// Wakes a thread on `pair.1` from `pair.0`, after it has slept for `idle` nanoseconds.
pub(super) fn rouse(pair: (usize, usize), idle: u64, turns: u32) -> Result<Rousing, Error> {
    let ticks = Ticks::calibrated();
    let (word, ready, woken) = (U32::new(0), U32::new(0), AtomicU64::new(0));
    let sleeper = || {
        for turn in 0..turns {
            ready.store(turn + 1, SeqCst);
            while word.load(SeqCst) == turn {
                wait(&word, turn);
            }
            woken.store(ticks.now(), SeqCst);
        }
    };
    let waker = || {
        let (mut calls, mut runs) = (Vec::new(), Vec::new());
        for turn in 0..turns {
            while ready.load(SeqCst) != turn + 1 {
                spin_loop();
            }
            // It is about to sleep, and does so within the time it is to be idle.
            let from = ticks.now();
            while ticks.ns(ticks.now() - from) < idle {
                spin_loop();
            }
            woken.store(0, SeqCst);
            word.store(turn + 1, SeqCst);
            let began = ticks.now();
            let many = wake(&word);
            let done = ticks.now();
            while woken.load(SeqCst) == 0 {
                spin_loop();
            }
            if many == 1 {
                calls.push(ticks.ns(done - began) as f64);
                runs.push(ticks.ns(woken.load(SeqCst).saturating_sub(began)) as f64);
            }
        }
        Rousing { call: median(&mut calls), run: median(&mut runs) }
    };
    Ok(both(pair, waker, sleeper)?.0)
}

/// Measures for which share of wake-ups a thread that ran on its waker's processor comes to the other one,
/// which ran a moment ago and is idle.
///
/// In a virtual machine that is often none: a processor that its host has halted counts as taken away, and
/// Linux looks for one that is idle and not so (`available_idle_cpu`).
pub(super) fn finds(pair: (usize, usize)) -> Result<f64, Error> {
    const TURNS: u32 = 120;
    /// How long the other one has been idle, in turn.
    const IDLE: [u64; 3] = [20_000, 100_000, 1_000_000];
    /// How long it ran before.
    const RUN: u64 = 50_000;
    let ticks = Ticks::calibrated();
    let (word, ready, woken) = (U32::new(0), U32::new(0), AtomicU64::new(0));
    let runs = U32::new(0);
    let pass = |ns: u64| {
        let from = ticks.now();
        while ticks.ns(ticks.now() - from) < ns {
            spin_loop();
        }
    };
    let sleeper = || -> Result<u32, Error> {
        let (mut elsewhere, mut pinned) = (0, Ok(()));
        for turn in 0..TURNS {
            // It has run here last, and may run there. If not, it still works: the other one waits.
            pinned = pinned.and(pin(&[pair.0])).and(pin(&[pair.0, pair.1]));
            ready.store(turn + 1, SeqCst);
            while word.load(SeqCst) == turn {
                wait(&word, turn);
            }
            // SAFETY: the call takes no pointer, and changes nothing.
            elsewhere += u32::from(unsafe { libc::sched_getcpu() } == pair.1 as i32);
            woken.store(1, SeqCst);
        }
        pinned.map(|()| elsewhere)
    };
    let waker = || {
        for turn in 0..TURNS {
            while ready.load(SeqCst) != turn + 1 {
                std::thread::yield_now();
            }
            runs.store(turn + 1, SeqCst);
            wake(&runs);
            pass(RUN + IDLE[turn as usize % IDLE.len()]);
            woken.store(0, SeqCst);
            word.store(turn + 1, SeqCst);
            wake(&word);
            while woken.load(SeqCst) == 0 {
                spin_loop();
            }
        }
    };
    let found = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            super::pinned::alone(pair.1, || {
                for turn in 0..TURNS {
                    while runs.load(SeqCst) == turn {
                        wait(&runs, turn);
                    }
                    pass(RUN);
                }
            })
        });
        let found = both((pair.0, pair.0), waker, sleeper);
        other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        found
    });
    Ok(f64::from(found?.1?) / f64::from(TURNS))
}

/// Measures half a round of two threads of one processor that wake each other and sleep.
pub(super) fn relay(cpu: usize) -> Result<f64, Error> {
    const ROUNDS: u32 = 500;
    let ticks = Ticks::calibrated();
    let mut tries = Vec::new();
    for _ in 0..10 {
        let words = [U32::new(0), U32::new(0)];
        let run = |mine: usize| {
            let from = ticks.now();
            for round in 0..ROUNDS {
                if mine == 0 {
                    words[1].store(round + 1, SeqCst);
                    wake(&words[1]);
                }
                while words[mine].load(SeqCst) == round {
                    wait(&words[mine], round);
                }
                if mine == 1 {
                    words[0].store(round + 1, SeqCst);
                    wake(&words[0]);
                }
            }
            ticks.ns(ticks.now() - from) as f64 / f64::from(2 * ROUNDS)
        };
        tries.push(both((cpu, cpu), || run(0), || run(1))?.0);
    }
    Ok(median(&mut tries))
}

/// Measures for which share of wake-ups a thread that has just got a processor keeps it from the one that it wakes.
///
/// Two threads of one processor take turns as the two ends of a full and empty queue do: each wakes the other
/// as it begins, computes, and sleeps. So both have had as much of the processor. `None`: too few of them met a
/// thread that slept, as where another program interrupts the two.
pub(super) fn keeps(cpu: usize) -> Result<Option<f64>, Error> {
    const TURNS: u32 = 400;
    /// How long a turn is: much more than a switch takes, much less than a slice.
    const TURN: u64 = 100_000;
    let ticks = Ticks::calibrated();
    let words = [U32::new(0), U32::new(0)];
    let run = |mine: usize| {
        let (own, others) = (&words[mine], &words[1 - mine]);
        let (mut kept, mut woken) = (0, 0);
        for turn in 0..TURNS {
            // The first turn of the first one is given.
            loop {
                let given = own.load(SeqCst);
                if given >= turn + mine as u32 {
                    break;
                }
                wait(own, given);
            }
            let (began, before) = (ticks.now(), own.load(SeqCst));
            others.store(turn + 1, SeqCst);
            let asleep = wake(others) == 1;
            while ticks.ns(ticks.now() - began) < TURN {
                spin_loop();
            }
            // Who came meanwhile has given the next turn.
            woken += u32::from(asleep);
            kept += u32::from(asleep && own.load(SeqCst) == before);
        }
        (kept, woken)
    };
    let (one, other) = both((cpu, cpu), || run(0), || run(1))?;
    let (kept, woken) = (one.0 + other.0, one.1 + other.1);
    Ok((woken >= TURNS / 10).then(|| f64::from(kept) / f64::from(woken)))
}

/// Measures how long one of two threads that compute on one processor runs before the other does.
pub(super) fn slice(cpu: usize) -> Result<f64, Error> {
    const LENGTH: u64 = 120_000_000;
    /// A thread that saw no time for so long had lost the processor.
    const AWAY: u64 = 200_000;
    let ticks = Ticks::calibrated();
    let run = || {
        let (began, mut since) = (ticks.now(), ticks.now());
        let (mut last, mut runs) = (began, Vec::new());
        loop {
            let now = ticks.now();
            if ticks.ns(now - last) > AWAY {
                runs.push(ticks.ns(last - since) as f64);
                since = now;
            }
            last = now;
            if ticks.ns(now - began) > LENGTH {
                return runs;
            }
        }
    };
    let (mut one, other) = both((cpu, cpu), run, run)?;
    one.extend(other);
    Ok(median(&mut one))
}

/// Measures how long a thread that has slept waits for a processor on which another one computes.
pub(super) fn intrude(pair: (usize, usize)) -> Result<f64, Error> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| {
            super::pinned::alone(pair.1, || {
                while !over.load(SeqCst) {
                    spin_loop();
                }
            })
        });
        let rousing = rouse(pair, 3_000_000, 20);
        over.store(true, SeqCst);
        busy.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        rousing.map(|rousing| rousing.run)
    })
}
