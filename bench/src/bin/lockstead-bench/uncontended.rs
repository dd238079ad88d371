//! `lockstead bench uncontended`: the pair that nobody disputes.

use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::measured;
use crate::table::{self, TextTable};
use crate::values::LocksFlag;
use clap::Args;
use lockstead_bench::LockName;
use lockstead_bench::uncontended::{self, UncontendedOptions, UncontendedReport, UncontendedRow};
use std::fmt::Display;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead bench uncontended
  lockstead bench uncontended --locks lockstead,std --json > pair.json
  lockstead bench uncontended --one-thread --locks lockstead,pthread")]
pub(crate) struct UncontendedFlags {
    #[command(flatten)]
    pub(crate) locks: LocksFlag,
    /// Measure what the pair costs a process that never had a second thread
    #[arg(long)]
    pub(crate) one_thread: bool,
    /// Measure for a moment only
    #[arg(long)]
    pub(crate) quick: bool,
    /// Write the report as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// Measures what the flags ask for, and prints the report.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn run(flags: &UncontendedFlags) -> Result<(), Failure> {
    let interrupt = if flags.one_thread {
        Interrupt::install_alone()?
    } else {
        Interrupt::install(interrupt::BRIEF)?
    };
    let mut options = UncontendedOptions::default();
    if let Some(locks) = &flags.locks.locks {
        options.locks.clone_from(&locks.0);
    }
    if flags.quick {
        options.rounds = 5;
        options.slice = Duration::from_millis(1);
    }
    options.alone = flags.one_thread;
    let report = measure(&options, &interrupt)?;
    if flags.json {
        return output::print_json(&report);
    }
    output::print(&render(&report, LockName::Std.name()))
}

/// Measures with a progress bar.
pub(crate) fn measure(
    options: &UncontendedOptions,
    interrupt: &Interrupt,
) -> Result<UncontendedReport, Failure> {
    let report = measured(interrupt, |session| uncontended::measure(options, session))?;
    output::warn_about(&report.machine);
    Ok(report)
}

/// Returns the table, with the ratios to one of the locks.
pub(crate) fn render<N: Display>(report: &UncontendedReport<N>, peer: &str) -> String {
    let peer_row = report.results.iter().find(|row| row.lock.to_string() == peer);
    let to_peer = format!("to {peer}");
    let mut table = TextTable::new(&[
        "lock",
        "lock + unlock",
        "lowest to highest",
        "to the\nlimit",
        &to_peer,
        "instructions",
        "bytes",
    ]);
    table.row([
        "two bare atomics".into(),
        table::time(report.limit_ns),
        spread(report.limit_ns_min, report.limit_ns_max),
        "1.00x".into(),
        peer_row.as_ref().map_or("-".into(), |peer| table::ratio(report.limit_ns, peer.ns)),
        instructions(report.limit_instructions),
        "-".into(),
    ]);
    for row in &report.results {
        table.row([
            row.lock.to_string(),
            table::time(row.ns),
            spread(row.ns_min, row.ns_max),
            format!("{:.2}x", row.ratio_to_limit),
            peer_row.as_ref().map_or("-".into(), |peer| table::ratio(row.ns, peer.ns)),
            instructions(row.instructions),
            row.bytes.to_string(),
        ]);
    }
    let mut text = table.render();
    if let Some(why) = absent(&report.results) {
        text += &format!("\n  Instructions were not counted: {why}.\n");
    }
    text
}

fn absent<N>(rows: &[UncontendedRow<N>]) -> Option<&str> {
    rows.iter().find_map(|row| row.instructions_absent.as_deref())
}

fn spread(low: f64, high: f64) -> String {
    format!("{low:.2} to {high:.2}")
}

fn instructions(count: Option<f64>) -> String {
    count.map_or("-".into(), |count| format!("{count:.0}"))
}
