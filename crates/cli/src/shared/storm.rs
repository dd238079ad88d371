//! `lockstead bench storm`: processes that are killed all the time.

use super::flags::Storm;
use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::Progress;
use crate::table;
use lockstead_bench::Session;
use lockstead_bench::shared::storm::{self, Options, Report, STALL};

/// Lets it storm, and prints.
///
/// # Errors
/// As [`Failure`]; locks that do not hold are one.
pub(crate) fn run(flags: &Storm) -> Result<(), Failure> {
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let options = Options {
        kills: flags.kills,
        processes: flags.processes,
        locks: flags.locks,
        threads: flags.threads,
        namespaces: flags.namespaces,
    };
    let mut progress = Progress::new();
    let mut step = |done: u64, total: u64, what: &str| progress.step(done, total, what);
    let report = storm::measure(&options, &mut Session::new(interrupt.flag(), &mut step))?;
    drop(progress);
    if flags.json {
        output::print_json(&report)?;
    } else {
        output::print(&render(&report))?;
    }
    if report.passed() {
        return Ok(());
    }
    Err(Failure::Run(format!(
        "the locks did not hold: {} torn without a word, {} stalls",
        report.torn, report.stalls
    )))
}

fn render(report: &Report) -> String {
    let count = |number: u64| table::count(number as f64);
    format!(
        "{} kills in {:.0} s: {} workers of {} thread{}{}, {} locks, {} critical sections\n\
         \x20 told of a death     {}\n\
         \x20 torn without a word {}\n\
         \x20 waits beyond {} s    {}\n\
         \x20 longest wait        {}\n",
        count(report.kills),
        report.seconds,
        report.processes,
        report.threads,
        if report.threads == 1 { "" } else { "s" },
        if report.namespaces { ", each process 1 of its namespace" } else { "" },
        report.locks,
        count(report.operations),
        count(report.owner_died),
        count(report.torn),
        STALL.as_secs(),
        count(report.stalls),
        table::time(report.longest_wait_ms * 1e6),
    )
}
