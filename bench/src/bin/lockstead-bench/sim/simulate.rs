//! Simulations on all processors.

use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::progress::Progress;
use lockstead_sim::{Stopped, many};

/// Runs simulations on all processors, with a bar.
pub(super) fn simulate<T: Send>(
    count: usize,
    job: impl Fn(usize) -> T + Sync,
) -> Result<Vec<T>, Failure> {
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let mut progress = Progress::new();
    let mut step = |done: u64, total: u64, what: &str| progress.step(done, total, what);
    many(count, interrupt.flag(), &mut step, "simulations", job)
        .map_err(|Stopped| Failure::Interrupted)
}
