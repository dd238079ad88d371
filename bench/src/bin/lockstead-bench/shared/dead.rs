//! `lockstead bench dead`: a killed process that held very many locks.

use super::flags::DeadFlags;
use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::measured;
use crate::table::{self, TextTable};
use lockstead_bench::shared::SharedLock;
use lockstead_bench::shared::dead::{self, DeadReport};

/// Measures what the flags ask for, and prints the report.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn run(flags: &DeadFlags) -> Result<(), Failure> {
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let report = measure(flags.locks, &interrupt)?;
    output::warn_about(&report.machine);
    if flags.json {
        return output::print_json(&report);
    }
    output::print(&render(&report))
}

/// Measures with a progress bar.
pub(crate) fn measure(locks: usize, interrupt: &Interrupt) -> Result<DeadReport, Failure> {
    Ok(measured(interrupt, |session| dead::measure(locks, session))?)
}

/// Returns the name of the table.
pub(crate) fn render(report: &DeadReport) -> String {
    let mut table =
        TextTable::new(&["lock", "held", "reported", "stuck", "known after", "swept in"]);
    for (lock, count) in [
        (SharedLock::Lockstead, &report.lockstead),
        (SharedLock::GlibcRobust, &report.glibc_robust),
    ] {
        table.row([
            lock.to_string(),
            table::count(count.locks as f64),
            table::count(count.reported as f64),
            table::count(count.stuck as f64),
            table::time(count.known_ms * 1e6),
            table::time(count.swept_ms * 1e6),
        ]);
    }
    format!(
        "{}\n  Stuck: taken for ever by a process that is no more. Known: from the kill until a\n  \
         waiter had one of the locks and was told. Swept: until all others had been asked.\n",
        table.render()
    )
}
