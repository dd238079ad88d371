//! `lockstead bench rivals`: what people lock with between processes.

use super::flags::Rivals;
use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::measured;
use crate::table::{self, TextTable};
use lockstead_bench::shared::rivals::{self, AfterKill, RivalRow, RivalsOptions, RivalsReport};
use std::time::Duration;

/// Measures, tries, and prints.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn run(flags: &Rivals) -> Result<(), Failure> {
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let options = match flags.quick {
        true => RivalsOptions { rounds: 3, slice: Duration::from_millis(2) },
        false => RivalsOptions::default(),
    };
    let report = measured(&interrupt, |session| rivals::measure(&options, session))?;
    output::warn_about(&report.machine);
    if flags.json {
        return output::print_json(&report);
    }
    output::print(&render(&report))
}

fn render(report: &RivalsReport) -> String {
    let mut text = format!("{}\n{}\n", costs(report), behaviours(report));
    let place =
        if report.processor_each { "each on a processor of its own" } else { "on one processor" };
    text += &format!(
        "  Disputed: two processes, {place}, with sections of a microsecond\n  and as long \
         outside. Known after: from the kill until the waiter had the lock. Told: and knew\n  that \
         the holder had died. Threads: two of a process, each of which has opened the lock,\n  \
         exclude each other. Held after: the holder, which lives, still has the lock.\n"
    );
    if let Some(readers) = &report.lmdb_readers {
        text += &format!(
            "  LMDB: a killed reader leaves {} taken until mdb_reader_check is called; of two \
             readers,\n  each process 1 of a container, the second one {}.\n",
            match readers.left_by_killed {
                1 => "its place".into(),
                count => format!("{count} places"),
            },
            match readers.same_number_reads {
                Some(true) => "may read",
                Some(false) => "is refused",
                None => "was not tried",
            }
        );
    }
    for left in &report.left_out {
        text += &format!("  Left out: {}: {}\n", left.what, left.why);
    }
    text
}

fn costs(report: &RivalsReport) -> String {
    let mut table = TextTable::new(&[
        "lock",
        "lock +\nunlock",
        "",
        "shared",
        "disputed\nops/s",
        "ops per\nCPU-s",
        "longest\nwait",
    ]);
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".into());
    for row in &report.locks {
        table.row([
            name(row),
            table::time(row.pair_ns),
            table::ratio(row.ratio, 1.0),
            or_dash(row.share_pair_ns.map(table::time)),
            or_dash(row.disputed.map(|it| table::rate(it.ops_per_s))),
            or_dash(row.disputed.map(|it| table::rate(it.ops_per_cpu_s))),
            or_dash(row.disputed.map(|it| table::time(it.longest_wait_ms * 1e6))),
        ]);
    }
    table.render()
}

fn behaviours(report: &RivalsReport) -> String {
    let mut table = TextTable::new(&[
        "lock",
        "holder\nkilled",
        "known\nafter",
        "its child\nlives on",
        "reader\nkilled",
        "threads",
        "held after\na close",
        "held after a\nchild's unlock",
        "held after a waiter's\ndeath in a container",
    ]);
    for row in &report.locks {
        table.row([
            name(row),
            after(Some(row.after_kill)),
            row.known_ms.map_or_else(|| "-".into(), |ms| table::time(ms * 1e6)),
            after(row.after_kill_with_child),
            after(row.after_reader_kill),
            yes(row.excludes_threads),
            yes(row.survives_close),
            yes(row.survives_child),
            yes(row.survives_waiter),
        ]);
    }
    table.render()
}

fn name(row: &RivalRow) -> String {
    match &row.version {
        Some(version) => format!("{} ({version})", row.lock),
        None => row.lock.into(),
    }
}

fn after(kill: Option<AfterKill>) -> String {
    match kill {
        Some(AfterKill::Told) => "told",
        Some(AfterKill::Silent) => "silent",
        Some(AfterKill::Stuck) => "stuck",
        None => "-",
    }
    .into()
}

fn yes(answer: Option<bool>) -> String {
    match answer {
        Some(true) => "yes",
        Some(false) => "no",
        None => "-",
    }
    .into()
}
