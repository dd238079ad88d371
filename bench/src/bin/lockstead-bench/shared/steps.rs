//! `lockstead bench steps`: processes that are killed at every instruction.

use super::flags::StepsFlags;
use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::measured;
use crate::table::{self, TextTable};
use lockstead_bench::shared::steps::{self, StepsOptions, StepsReport};

/// Kills as the flags say, and prints what came of it.
///
/// # Errors
/// As [`Failure`]; that somebody waits for too long is one.
pub(crate) fn run(flags: &StepsFlags) -> Result<(), Failure> {
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let options =
        StepsOptions { kinds: flags.lock.0.clone(), every: flags.every, limit: flags.limit };
    let report = measured(&interrupt, |session| steps::measure(&options, session))?;
    output::warn_about(&report.machine);
    if flags.json {
        output::print_json(&report)?;
    } else {
        output::print(&render(&report))?;
    }
    if report.passed() {
        return Ok(());
    }
    let limit = table::time(report.limit_ms * 1e6);
    Err(Failure::Run(format!("somebody waited for longer than {limit}")))
}

fn render(report: &StepsReport) -> String {
    let mut table = TextTable::new(&[
        "lock",
        "operation",
        "instructions",
        "kills",
        "asleep",
        "told",
        "median wait",
        "longest",
        "at",
    ]);
    for operation in &report.operations {
        table.row([
            operation.lock.to_string(),
            operation.operation.to_string(),
            table::count(operation.instructions as f64),
            table::count(operation.kills as f64),
            table::count(operation.asleep as f64),
            table::count(operation.told as f64),
            table::time(operation.median_ms * 1e6),
            table::time(operation.longest_ms * 1e6),
            table::count(operation.longest_at as f64),
        ]);
    }
    format!(
        "{}\n  Wait: from the kill until both waiters had got what they slept for. Asleep: kills of a\n  \
         victim that slept in the operation. Told: waiters that were told of a death. At: after so\n  \
         many instructions was the kill with the longest wait.\n",
        table.render()
    )
}
