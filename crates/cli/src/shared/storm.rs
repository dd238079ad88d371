//! `lockstead bench storm`: processes that are killed all the time.

use super::flags::Storm;
use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::measured;
use crate::table::{self, Table};
use lockstead_bench::shared::SharedLock;
use lockstead_bench::shared::storm::{self, Options, Report, STALL};

/// Lets it storm, and prints.
///
/// # Errors
/// As [`Failure`]; locks that do not hold are one.
pub(crate) fn run(flags: &Storm) -> Result<(), Failure> {
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let options = Options {
        kills: flags.kills,
        kinds: flags.lock.0.clone(),
        processes: flags.processes,
        locks: flags.locks,
        threads: flags.threads,
        namespaces: flags.namespaces,
        exclusive: flags.exclusive,
        beside_robust: flags.beside_robust,
    };
    let report = measured(&interrupt, |session| storm::measure(&options, session))?;
    if flags.json {
        output::print_json(&report)?;
    } else {
        output::print(&render(&report))?;
    }
    if report.passed() {
        return Ok(());
    }
    Err(Failure::Run(failed(&report)))
}

fn failed(report: &Report) -> String {
    let mut text = format!(
        "the locks did not hold: {} torn without a word, {} stalls",
        report.torn, report.stalls
    );
    if report.unfounded != 0 {
        text += &format!(", {} deaths told of that there were not", report.unfounded);
    }
    if let Some(robust) = &report.robust {
        text += &format!("; of the C library's {} torn, {} stuck", robust.torn, robust.stuck);
    }
    text
}

fn render(report: &Report) -> String {
    let count = |number: u64| table::count(number as f64);
    let mut text = format!(
        "{} kills in {:.1} s, {} calms: {} workers of {} thread{}{}{}, {} locks of each kind, \
         {} critical sections\n\
         \x20 told of a death     {}\n\
         \x20 torn without a word {}\n\
         \x20 waits beyond {} s    {}\n\
         \x20 longest wait        {}\n",
        count(report.kills),
        report.seconds,
        count(report.calms),
        report.processes,
        report.threads,
        if report.threads == 1 { "" } else { "s" },
        if report.namespaces { ", each process 1 of its namespace" } else { "" },
        if report.exclusive { ", exclusive lists" } else { "" },
        report.locks,
        count(report.operations),
        count(report.owner_died),
        count(report.torn),
        STALL.as_secs(),
        count(report.stalls),
        table::time(report.longest_wait_ms * 1e6),
    );
    let mut table = Table::new(&["lock", "sections", "told", "torn", "stalls", "longest wait"]);
    for kind in &report.kinds {
        table.row([
            kind.lock.to_string(),
            count(kind.operations),
            count(kind.owner_died),
            count(kind.torn),
            count(kind.stalls),
            table::time(kind.longest_wait_ms * 1e6),
        ]);
    }
    if let Some(robust) = &report.robust {
        table.row([
            SharedLock::GlibcRobust.to_string(),
            count(robust.operations),
            count(robust.owner_died),
            count(robust.torn),
            count(robust.stuck),
            "not judged".into(),
        ]);
    }
    if report.kinds.len() > 1 || report.robust.is_some() {
        text += &format!("\n{}\n", table.render());
    }
    text
}
