//! What memory takes: a line at hand, and a line that another processor has.
//!
//! # Role
//! Small programs of one or two pinned threads. The same are what the simulated machine's
//! numbers mean: a ball between two processors takes two transfers, and so on.
//!
//! Each is repeated and the least counts: the others were disturbed.

use super::pinned::{alone, both};
use crate::Error;
use crate::clock::Ticks;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// A value alone on its lines, of which the prefetcher takes two.
#[repr(align(128))]
#[derive(Default)]
struct AloneOnLines<T>(T);

/// Returns the least of several tries.
fn least(tries: usize, mut once: impl FnMut() -> Result<f64, Error>) -> Result<f64, Error> {
    let mut least = f64::INFINITY;
    for _ in 0..tries {
        least = least.min(once()?);
    }
    Ok(least)
}

/// Returns the nanoseconds that one turn of `f` takes, of the least of ten tries.
pub(super) fn each(cpu: usize, turns: u64, f: impl Fn() + Sync) -> Result<f64, Error> {
    let clock = Ticks::calibrated();
    least(10, || {
        alone(cpu, || {
            let from = clock.now();
            for _ in 0..turns {
                f();
            }
            clock.ns(clock.now() - from) as f64 / turns as f64
        })
    })
}

/// Measures a load or a store of a line at hand.
pub(super) fn hit(cpu: usize) -> Result<f64, Error> {
    let word = AloneOnLines(AtomicU64::new(0));
    let both = each(cpu, 100_000, || {
        // A load and a store in one expression, as of a counter under a lock.
        word.0.store(black_box(word.0.load(Relaxed)) + 1, Relaxed);
    })?;
    Ok(both / 2.0)
}

/// Measures a locked instruction on a line at hand.
pub(super) fn exchange(cpu: usize) -> Result<f64, Error> {
    let word = AloneOnLines(AtomicU64::new(0));
    each(cpu, 100_000, || {
        let _ = black_box(word.0.compare_exchange(0, 0, Relaxed, Relaxed));
    })
}

/// Measures one turn of a spin loop.
pub(super) fn pause(cpu: usize) -> Result<f64, Error> {
    each(cpu, 20_000, spin_loop)
}

/// Measures a load of a line that no processor has, by a walk through more memory than caches hold.
pub(super) fn memory(cpu: usize) -> Result<f64, Error> {
    const LINES: usize = 1 << 20;
    const STEPS: usize = 100_000;
    // One cycle through all lines, far from any order (the factor is odd, the sum too).
    let next = |at: usize| (at.wrapping_mul(0x9e37_79b1).wrapping_add(0x7f4a_7c15)) % LINES;
    let lines: Vec<AloneOnLines<usize>> = (0..LINES).map(|at| AloneOnLines(next(at))).collect();
    let clock = Ticks::calibrated();
    let mut at = 0;
    least(3, || {
        let (end, ns) = alone(cpu, || {
            let (from, mut at) = (clock.now(), at);
            for _ in 0..STEPS {
                at = lines[at].0;
            }
            (black_box(at), clock.ns(clock.now() - from) as f64 / STEPS as f64)
        })?;
        at = end;
        Ok(ns)
    })
}

/// Measures a transfer between two processors: half of what a ball takes from one to the other.
/// (The catcher's copy is withdrawn, then it fetches the line.)
pub(super) fn transfer(pair: (usize, usize)) -> Result<f64, Error> {
    const ROUNDS: u64 = 2_000;
    let clock = Ticks::calibrated();
    least(20, || {
        let ball = AloneOnLines(AtomicU64::new(0));
        let side = |mine: u64| {
            let from = clock.now();
            for round in 0..ROUNDS {
                while ball.0.load(Relaxed) != 2 * round + mine {}
                ball.0.store(2 * round + mine + 1, Relaxed);
            }
            clock.ns(clock.now() - from) as f64 / (2 * ROUNDS) as f64
        };
        let (one, other) = both(pair, || side(0), || side(1))?;
        // The first to come waits for the other's thread to begin.
        Ok(one.min(other) / 2.0)
    })
}

/// How long a stretch of two processors' steps on one line takes.
const STRETCH: u64 = 2_000_000;

/// Measures for how many nanoseconds a processor which exchanges in a row keeps the line from
/// another that does the same.
pub(super) fn hold_write(pair: (usize, usize), transfer: f64) -> Result<f64, Error> {
    let clock = Ticks::calibrated();
    let mut turns = Vec::new();
    for _ in 0..10 {
        let word = AloneOnLines(AtomicU64::new(0));
        let over = AtomicBool::new(false);
        let side = || {
            let (from, mut last, mut gained) = (clock.now(), u64::MAX, 0u64);
            while !over.load(Relaxed) {
                let found = word.0.fetch_add(1, Relaxed);
                gained += u64::from(found != last);
                last = found + 1;
                if clock.ns(clock.now() - from) > STRETCH {
                    over.store(true, Relaxed);
                }
            }
            (gained, clock.ns(clock.now() - from) as f64)
        };
        let ((one, ns), (other, _)) = both(pair, side, side)?;
        turns.push(ns / (one + other).max(1) as f64);
    }
    // Of each turn, half a transfer is the line's way; the request's was in time.
    Ok((median(&mut turns) - transfer / 2.0).max(0.0))
}

/// Measures the same for a processor that reads.
pub(super) fn hold_read(pair: (usize, usize), transfer: f64) -> Result<f64, Error> {
    let clock = Ticks::calibrated();
    let mut turns = Vec::new();
    for _ in 0..10 {
        let word = AloneOnLines(AtomicU64::new(0));
        let over = AtomicBool::new(false);
        let write = || {
            while !over.load(Relaxed) {
                word.0.fetch_add(1, Relaxed);
            }
        };
        let read = || {
            let (from, mut last, mut gained) = (clock.now(), 0, 0u64);
            loop {
                let found = word.0.load(Relaxed);
                gained += u64::from(found != last);
                last = found;
                if gained.is_multiple_of(64) && clock.ns(clock.now() - from) > STRETCH {
                    break;
                }
            }
            over.store(true, Relaxed);
            clock.ns(clock.now() - from) as f64 / gained.max(1) as f64
        };
        turns.push(both(pair, write, read)?.1);
    }
    // The reader fetches the line, the writer withdraws the reader's copy.
    Ok((median(&mut turns) - 1.5 * transfer).max(0.0))
}

/// Measures how fast a thread computes while the other one of its core does.
pub(super) fn sibling_speed(pair: (usize, usize)) -> Result<f64, Error> {
    const STEPS: u64 = 2_000_000;
    let clock = Ticks::calibrated();
    let compute = || {
        let from = clock.now();
        let mut value = black_box(1u64);
        for _ in 0..STEPS {
            value = value.wrapping_mul(0x5851_f42d_4c95_7f2d).rotate_left(7) ^ value;
        }
        black_box(value);
        clock.ns(clock.now() - from) as f64
    };
    let one = least(5, || alone(pair.0, compute))?;
    let two = least(5, || both(pair, compute, compute).map(|(a, b)| a.max(b)))?;
    Ok((one / two).clamp(0.05, 1.0))
}

/// Returns the middle value; 0 if there is none.
pub(super) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
