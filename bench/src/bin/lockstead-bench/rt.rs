//! `lockstead bench rt`: a priority inversion, with and without inheritance.

use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::measured;
use crate::table::{self, TextTable};
use clap::Args;
use lockstead_bench::rt::{self, RtOptions, RtReport};
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sudo lockstead bench rt
  lockstead bench rt --rounds 200 --busy 5 --json > rt.json

Exit status:
  0    measured
  1    threads may not have real-time priorities here; or something failed on the way
  2    wrong usage")]
pub(crate) struct Rt {
    /// Rounds with each lock, 1 to 10000
    #[arg(long, default_value = "50", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=rt::MAX_ROUNDS.into()))]
    pub(crate) rounds: u32,
    /// Milliseconds of processor time that the middle thread wants in each round, 1 to 100
    #[arg(long, default_value = "20", value_name = "MS")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) busy: u64,
    /// Write the report as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// Measures what the flags ask for, and prints the report.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn run(flags: &Rt) -> Result<(), Failure> {
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let options = RtOptions { rounds: flags.rounds, busy: Duration::from_millis(flags.busy) };
    let report = measured(&interrupt, |session| rt::measure(&options, session))?;
    output::warn_about(&report.machine);
    if flags.json {
        return output::print_json(&report);
    }
    output::print(&render(&report))
}

fn render(report: &RtReport) -> String {
    let mut table = TextTable::new(&[
        "lock",
        "lends\npriority",
        "median wait\nof high",
        "longest wait\nof high",
    ]);
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
