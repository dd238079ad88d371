//! `lockstead bench ww`: several locks at a time.

use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::measured;
use crate::table::{self, TextTable};
use crate::values::{self, ValueList};
use clap::Args;
use lockstead_bench::ww::{self, WwCell, WwOptions, WwReport, WwScheme};
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstead bench ww --quick
  lockstead bench ww --threads 16 --take 4 --locks 16 --section 0
  lockstead bench ww --schemes wound-wait,wait-die --json > ww.json

Schemes:
  wound-wait  wait/wound mutexes; a context waits, and an older one that meets
              it has it back off when it next waits
  wait-die    wait/wound mutexes; a context backs off where it meets an older
  order       lockstead's mutexes, in the order of their addresses
  order-std   std::sync::Mutex, in the order of their addresses
  try-std     std::sync::Mutex: waits for one, tries the others, and where one
              is held releases all and waits for that")]
pub(crate) struct WwFlags {
    /// Numbers of threads, each 1 to 1024
    #[arg(long, default_value = "2,8,16", value_name = "LIST")]
    #[arg(value_parser = values::threads)]
    pub(crate) threads: ValueList<usize>,
    /// Numbers of locks that a turn takes, each 1 to 16 and no more than any of --locks
    #[arg(long, default_value = "2,4", value_name = "LIST")]
    #[arg(value_parser = values::take)]
    pub(crate) take: ValueList<usize>,
    /// Numbers of locks that there are, each 1 to 4096
    #[arg(long, default_value = "4,16", value_name = "LIST")]
    #[arg(value_parser = values::ww_locks)]
    pub(crate) locks: ValueList<usize>,
    /// Sections, with all locks of the turn held: 0 or a length with ns, us or ms, at most 100ms
    #[arg(long, default_value = "0,2us,20us", value_name = "LIST")]
    #[arg(value_parser = values::sections)]
    pub(crate) section: ValueList<Duration>,
    /// Only these schemes, in this order [default: all]
    #[arg(long, value_name = "LIST", value_parser = values::schemes)]
    pub(crate) schemes: Option<ValueList<WwScheme>>,
    /// Seconds of counting for each scheme in each cell, and half as much for the times of turns,
    /// in five rounds [default: 0.5]
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) seconds: Option<Duration>,
    /// Make each cell short
    #[arg(long, conflicts_with = "seconds")]
    pub(crate) quick: bool,
    /// Write the report as JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

impl WwFlags {
    fn options(&self) -> WwOptions {
        let mut options = WwOptions {
            threads: self.threads.0.clone(),
            take: self.take.0.clone(),
            locks: self.locks.0.clone(),
            sections: self.section.0.clone(),
            ..WwOptions::default()
        };
        if let Some(schemes) = &self.schemes {
            options.schemes.clone_from(&schemes.0);
        }
        if self.quick {
            options = options.quick();
        }
        if let Some(seconds) = self.seconds {
            options.slice = seconds / u32::try_from(options.rounds).unwrap_or(1);
        }
        options
    }
}

/// Measures what the flags ask for, and prints the report.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn run(flags: &WwFlags) -> Result<(), Failure> {
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let options = flags.options();
    let report = measured(&interrupt, |session| ww::measure(&options, session))?;
    output::warn_about(&report.machine);
    if flags.json {
        return output::print_json(&report);
    }
    output::print(&render(&report))
}

/// Returns the tables, one a cell.
fn render(report: &WwReport) -> String {
    let mut text = String::new();
    for cell in &report.cells {
        text += &format!("{}\n{}\n", title(cell), grid(cell));
    }
    text + "\
        The ratio behind a figure is to the order of addresses with lockstead's mutexes, of the same\n\
        interleaved run; without that to the first row. ± is half the distance of the slowest round\n\
        from the fastest. Overtaken: the most turns that others ended while one was under way.\n"
}

fn title(cell: &WwCell) -> String {
    let plural = if cell.threads == 1 { "" } else { "s" };
    format!(
        "{} thread{plural}, {} of {} locks, section {}{}",
        cell.threads,
        cell.take,
        cell.locks,
        table::section(cell.section_ns),
        table::disturbance(&cell.disturbance)
    )
}

fn grid(cell: &WwCell) -> String {
    let mut table = TextTable::new(&[
        "scheme",
        "turns/s",
        "±",
        "",
        "turns per\nCPU-s",
        "",
        "refusals\na turn",
        "retries\na turn",
        "sleeps\na turn",
        "preempted\na turn",
        "turn\np99.9",
        "turn\nlongest",
        "overtaken",
        "Jain",
    ]);
    let base = cell.row(WwScheme::Order).or(cell.results.first());
    let (speed, work) =
        base.map_or((f64::NAN, f64::NAN), |row| (row.turns_per_s, row.turns_per_cpu_s));
    for row in &cell.results {
        let spread = (row.turns_per_s_max - row.turns_per_s_min) / 2.0 / row.turns_per_s;
        table.row([
            row.scheme.to_string(),
            table::rate(row.turns_per_s),
            if spread.is_finite() { format!("{:.0}%", spread * 100.0) } else { "-".into() },
            table::ratio(row.turns_per_s, speed),
            table::rate(row.turns_per_cpu_s),
            table::ratio(row.turns_per_cpu_s, work),
            small(row.refusals_per_turn),
            small(row.retries_per_turn),
            small(row.voluntary_switches_per_turn),
            small(row.involuntary_switches_per_turn),
            table::time(row.turn_p999_ns as f64),
            table::time(row.turn_max_ns as f64),
            row.overtaken_max.to_string(),
            format!("{:.2}", row.jain),
        ]);
    }
    table.render()
}

/// Returns a number that may be a thousandth or ten.
fn small(number: f64) -> String {
    if number == 0.0 { "0".into() } else { format!("{number:.4}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_shows_what_is_rare() {
        assert_eq!([0.0, 0.00042, 1.5].map(small), ["0", "0.0004", "1.5000"]);
    }
}
