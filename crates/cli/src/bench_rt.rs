//! `lockstead bench rt`: a priority inversion, with and without inheritance.

use crate::args::Rt;
use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::measured;
use crate::table::{self, Table};
use lockstead_bench::rt::{self, Options, Report};
use std::time::Duration;

/// Measures and prints.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn run(flags: &Rt) -> Result<(), Failure> {
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let options = Options { rounds: flags.rounds, busy: Duration::from_millis(flags.busy) };
    let report = measured(&interrupt, |session| rt::measure(&options, session))?;
    output::warn_about(&report.machine);
    if flags.json {
        return output::print_json(&report);
    }
    output::print(&render(&report))
}

fn render(report: &Report) -> String {
    let mut table =
        Table::new(&["lock", "lends\npriority", "median wait\nof high", "longest wait\nof high"]);
    for row in &report.results {
        table.row([
            row.lock.to_string(),
            if row.inherits { "yes" } else { "no" }.into(),
            table::time(row.median_wait_ns as f64),
            table::time(row.longest_wait_ns as f64),
        ]);
    }
    let [low, middle, high] = report.priorities;
    format!(
        "{}\n  {} rounds with each lock, all on processor {}, SCHED_FIFO priorities {low}, {middle} and \
         {high}: low\n  holds the lock for {}, middle wants the processor for {}, high waits for the \
         lock.\n  Without inheritance it waits for middle too.\n",
        table.render(),
        report.rounds,
        report.processor,
        table::time(report.section_ns as f64),
        table::time(report.busy_ns as f64),
    )
}
