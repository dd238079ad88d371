//! What each lock costs: the pair that nobody disputes, and two processes that dispute it.

use super::locks::{PATIENCE, Rival, RivalGround};
use crate::contended::work::{SectionWork, busy};
use crate::shared::memory::{Plain, SharedMemory};
use crate::shared::process::{WorkerProcess, ending, until};
use crate::{Error, clock, costs};
use serde::Serialize;
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The number of turns between two looks at the clock.
const TURNS: u32 = 64;

/// Measures the nanoseconds that a lock and an unlock take, or a share and its end.
pub(super) fn pair<'g, R: Rival<'g>>(
    ground: &'g RivalGround,
    slice: Duration,
    shares: bool,
) -> Result<f64, Error> {
    let lock = R::open(ground)?;
    let take = || if shares { lock.share() } else { lock.lock().map(drop) };
    take()?;
    lock.unlock()?;
    let begin = Instant::now();
    let mut pairs = 0_u64;
    loop {
        for _ in 0..TURNS {
            take()?;
            lock.unlock()?;
        }
        pairs += u64::from(TURNS);
        let elapsed = begin.elapsed();
        if elapsed >= slice {
            return Ok(elapsed.as_nanos() as f64 / pairs as f64);
        }
    }
}

/// What two processes did, with sections of a microsecond and as long outside.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Disputed {
    /// Critical sections per second, of both processes together.
    pub ops_per_s: f64,
    /// Critical sections per second of processor time.
    pub ops_per_cpu_s: f64,
    /// The longest wait for the lock, in milliseconds.
    pub longest_wait_ms: f64,
}

/// What both processes see.
#[repr(C)]
struct CostControl {
    ready: AtomicU32,
    begins: AtomicU32,
    over: AtomicU32,
    turns: [AtomicU64; 2],
    longest: [AtomicU64; 2],
    shared: SectionWork,
}

// SAFETY: by PLAIN-BITS it is made of atomics: any bits are valid, and others may write at any
// time.
unsafe impl Plain for CostControl {}

/// Has two processes dispute it for a while, each on one of these processors, if there are two;
/// `steps` take a microsecond.
pub(super) fn dispute<'g, R: Rival<'g>>(
    ground: &'g RivalGround,
    slice: Duration,
    steps: u64,
    processors: &[usize],
) -> Result<Disputed, Error> {
    let control = SharedMemory::<CostControl>::create()?;
    let start = |at: usize| {
        let processor = processors.get(at).copied();
        WorkerProcess::fork(|| {
            processor.map_or(Ok(()), |cpu| costs::pin(&[cpu]))?;
            party(&R::open(ground)?, &control, at, steps)
        })
    };
    let workers = [start(0)?, start(1)?];
    if !until(PATIENCE, || control.ready.load(Ordering::Acquire) == 2) {
        return Err(Error::Worker { how: "it did not begin".into() });
    }
    let turns = || control.turns.each_ref().map(|turns| turns.load(Ordering::Relaxed));
    let cpu = || workers.iter().map(WorkerProcess::cpu).sum::<Duration>();
    control.begins.store(1, Ordering::Release);
    std::thread::sleep(slice / 10);
    let (before, used, start) = (turns(), cpu(), Instant::now());
    std::thread::sleep(slice);
    let (elapsed, used) = (start.elapsed(), cpu().saturating_sub(used));
    let done = turns().iter().sum::<u64>() - before.iter().sum::<u64>();
    control.over.store(1, Ordering::Relaxed);
    for mut worker in workers {
        match worker.reap() {
            0 => {}
            status => return Err(Error::Worker { how: ending(status) }),
        }
    }
    let (counted, sections) = (turns().iter().sum::<u64>(), control.shared.sections());
    if counted != sections {
        return Err(Error::Broken { lock: R::NAME, operations: counted, counted: sections });
    }
    let longest = control.longest.iter().map(|time| time.load(Ordering::Relaxed)).max();
    Ok(Disputed {
        ops_per_s: done as f64 / elapsed.as_secs_f64(),
        ops_per_cpu_s: done as f64 / used.as_secs_f64().max(1e-9),
        longest_wait_ms: longest.unwrap_or(0) as f64 / 1e6,
    })
}

fn party<'g, R: Rival<'g>>(
    lock: &R,
    control: &CostControl,
    at: usize,
    steps: u64,
) -> Result<(), Error> {
    // The first acquisition joins tables, and is no part of the measurement.
    lock.lock()?;
    lock.unlock()?;
    control.ready.fetch_add(1, Ordering::AcqRel);
    until(PATIENCE, || control.begins.load(Ordering::Acquire) != 0);
    let (mut turns, mut longest, mut work) = (0, 0, at as u64);
    while control.over.load(Ordering::Relaxed) == 0 {
        let asked = clock::monotonic();
        lock.lock()?;
        longest = longest.max((clock::monotonic() - asked).as_nanos() as u64);
        work = control.shared.section(steps, work);
        lock.unlock()?;
        turns += 1;
        control.turns[at].store(turns, Ordering::Relaxed);
        work = busy(steps, work);
    }
    control.longest[at].store(longest, Ordering::Relaxed);
    black_box(work);
    Ok(())
}
