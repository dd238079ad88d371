//! What a kill does to a lock between processes: a waiter's in another container,
//! an owner's that had very many.

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::print;
use crate::shared::dead;
use crate::table::TextTable;
use lockstead_bench::Error;
use lockstead_bench::shared::SharedLock;
use lockstead_bench::shared::containers::{self, ContainersOutcome, ThirdAnswer};

/// Locks of the process that is killed.
const LOCKS: usize = 100_000;

/// Shows both; where there can be no containers, says so and shows the other.
///
/// # Errors
/// As [`Failure`].
pub(super) fn show(interrupt: &Interrupt) -> Result<(), Failure> {
    let text = match containers::measure() {
        Ok(report) => render(&report.glibc_robust, &report.lockstead),
        Err(why @ Error::Namespaces { .. }) => format!("  Left out: {why}.\n"),
        Err(error) => return Err(error.into()),
    };
    print(&format!(
        "container-kill: two containers share a lock, and in each the process has number 1\n\n{text}\n"
    ))?;
    let dead = dead::measure(LOCKS, interrupt)?;
    print(&format!("A process that holds 100,000 locks is killed\n\n{}", dead::render(&dead)))
}

fn render(glibc: &ContainersOutcome, lockstead: &ContainersOutcome) -> String {
    let mut table = TextTable::new(&[
        "lock",
        "owner's and\nwaiter's number",
        "waiter killed:\na third one asks",
        "owners\nthen",
        "owner killed:\na third one asks",
    ]);
    for (lock, outcome) in [(SharedLock::GlibcRobust, glibc), (SharedLock::Lockstead, lockstead)] {
        table.row([
            lock.to_string(),
            format!("{}, {}", outcome.owner, outcome.waiter),
            answer(outcome.after_waiter).into(),
            if outcome.after_waiter == ThirdAnswer::Busy { "1" } else { "2" }.into(),
            outcome.after_owner.map_or("-", answer).into(),
        ]);
    }
    format!(
        "{}\n  The owner is at work all the time. A lock that names its owner by thread number takes\n  \
         the death of a waiter for the owner's when both have the same number, and lets a\n  \
         second owner in.\n",
        table.render()
    )
}

fn answer(answer: ThirdAnswer) -> &'static str {
    match answer {
        ThirdAnswer::Busy => "refused",
        ThirdAnswer::OwnerDied => "gets it: owner died",
        ThirdAnswer::Had => "gets it",
    }
}
