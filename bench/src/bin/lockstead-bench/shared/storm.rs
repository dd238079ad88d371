//! `lockstead bench storm`: processes that are killed all the time.

use super::flags::StormFlags;
use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::measured;
use crate::table::{self, TextTable};
use lockstead_bench::shared::SharedLock;
use lockstead_bench::shared::storm::{
    self, Length, Mix, STALL, StormCounts, StormReport, StormRound,
};

/// Lets it storm, and prints.
///
/// # Errors
/// As [`Failure`]; locks that do not hold are one.
pub(crate) fn run(flags: &StormFlags) -> Result<(), Failure> {
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let length = match (flags.kills, flags.seconds) {
        (None, None) => Length::default(),
        (kills, time) => Length { kills, time },
    };
    let mix = mix(flags);
    let report = measured(&interrupt, |session| match &mix {
        Some(mix) => storm::measure(mix, &length, session),
        None => storm::measure_all(&length, session),
    })?;
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

/// Returns the one combination that is wanted; `None`: all of them.
fn mix(flags: &StormFlags) -> Option<Mix> {
    let usual = (flags.kills.is_some() && !flags.all).then(Mix::default);
    flags.combination.mix().or(usual)
}

fn failed(report: &StormReport) -> String {
    let total = &report.total;
    let mut text = format!(
        "the locks did not hold: {} torn without a word, {} stalls",
        total.torn, total.stalls
    );
    if total.unfounded != 0 {
        text += &format!(", {} deaths told of that there were not", total.unfounded);
    }
    if total.lost != 0 {
        text += &format!(", {} slots lost", total.lost);
    }
    if let Some(robust) = &total.robust {
        text += &format!("; of the C library's {} torn, {} stuck", robust.torn, robust.stuck);
    }
    for round in &report.rounds {
        if let Some(why) = &round.broken {
            text += &format!("; {} ended early: {why}", round.name);
        }
    }
    text
}

fn count(number: u64) -> String {
    table::count(number as f64)
}

fn milliseconds(time: f64) -> String {
    table::time(time * 1e6)
}

fn render(report: &StormReport) -> String {
    let total = &report.total;
    let mut text = format!(
        "{} kills in {:.1} s ({} a second), {} quiet phases, {} critical sections\n\
         \x20 memory taken before {}\n\
         \x20 ended by exec       {}\n\
         \x20 stopped             {}\n\
         \x20 told of a death     {}\n\
         \x20 torn without a word {}\n\
         \x20 waits beyond {} s    {}\n\
         \x20 longest wait        {}\n\
         \x20 slots lost          {}\n",
        count(total.kills),
        total.seconds,
        table::count(total.kills_per_s.round()),
        count(total.quiet_phases),
        count(total.operations),
        count(total.reaped),
        count(total.execs),
        count(total.stops),
        count(total.owner_died),
        count(total.torn),
        STALL.as_secs(),
        count(total.stalls),
        milliseconds(total.longest_wait_ms),
        count(total.lost),
    );
    text += &format!("\n{}\n", rounds(&report.rounds));
    if total.kinds.len() > 1 || total.robust.is_some() {
        text += &format!("\n{}\n", kinds(total));
    }
    for skipped in &report.skipped {
        text += &format!("\nskipped: {}: {}\n", skipped.name, skipped.why);
    }
    text
}

fn rounds(rounds: &[StormRound]) -> String {
    let mut table = TextTable::new(&[
        "workers",
        "locks",
        "kills",
        "kills/s",
        "told",
        "torn",
        "unfounded",
        "stalls",
        "lost",
        "longest wait",
    ]);
    for round in rounds {
        let counts = &round.counts;
        table.row([
            format!("{} of {}", round.mix.processes, round.name),
            round.mix.locks.to_string(),
            count(counts.kills),
            table::count(counts.kills_per_s.round()),
            count(counts.owner_died),
            count(counts.torn),
            count(counts.unfounded),
            count(counts.stalls),
            count(counts.lost),
            milliseconds(counts.longest_wait_ms)
                + if round.broken.is_some() { ", broken" } else { "" },
        ]);
    }
    table.render()
}

fn kinds(total: &StormCounts) -> String {
    let mut table = TextTable::new(&["lock", "sections", "told", "torn", "stalls", "longest wait"]);
    for kind in &total.kinds {
        table.row([
            kind.lock.to_string(),
            count(kind.operations),
            count(kind.owner_died),
            count(kind.torn),
            count(kind.stalls),
            milliseconds(kind.longest_wait_ms),
        ]);
    }
    if let Some(robust) = &total.robust {
        table.row([
            SharedLock::GlibcRobust.to_string(),
            count(robust.operations),
            count(robust.owner_died),
            count(robust.torn),
            count(robust.stuck),
            "not judged".into(),
        ]);
    }
    table.render()
}
