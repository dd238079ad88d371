//! `lockstead oncpu check`: the sources against the table, and what they cost.

use super::flags::Check;
use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::measured;
use crate::table::Table;
use lockstead_bench::oncpu::{self, Options, Report};
use std::time::Duration;

/// Measures and prints.
///
/// # Errors
/// As [`Failure`].
pub(super) fn run(flags: &Check) -> Result<(), Failure> {
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let options = Options {
        threads: flags.threads.into(),
        section: Duration::from_micros(flags.section),
        time: flags.seconds,
    };
    let report = measured(&interrupt, |session| oncpu::measure(&options, session));
    let report = report.map_err(|why| match why {
        oncpu::Failure::Table(why) => {
            Failure::Run(format!("there is no table to compare with: {why}"))
        }
        oncpu::Failure::Stopped => {
            Failure::Run("the table was stopped while the sources were held against it".into())
        }
        oncpu::Failure::Other(error) => error.into(),
    })?;
    output::warn_about(&report.machine);
    if flags.json {
        return output::print_json(&report);
    }
    output::print(&render(&report))
}

fn render(report: &Report) -> String {
    let mut table = Table::new(&[
        "source",
        "questions",
        "owner off",
        "\"off\"\nis right",
        "\"off\"\nfound",
        "asks a runner\n[ns]",
        "asks a sleeper\n[ns]",
    ]);
    let percent = |share: Option<f64>| share.map_or("-".into(), |share| format!("{share:.1} %"));
    for source in &report.sources {
        // The table itself is not asked about, but for what it costs.
        let number = |number: u64| match source.questions {
            0 => "-".into(),
            _ => number.to_string(),
        };
        table.row([
            source.source.into(),
            number(source.questions),
            number(source.off),
            percent(source.right_percent),
            percent(source.found_percent),
            format!("{:.1}", source.running_ns),
            format!("{:.1}", source.sleeping_ns),
        ]);
    }
    let mut text = format!(
        "{}\n  {} threads, sections of {} \u{b5}s and as much between them; the table is the truth.\n",
        table.render(),
        report.threads,
        report.section_ns / 1000
    );
    if let (Some(start), Some(switch), Some(added)) =
        (report.start_ms, report.switch_ns, report.switch_added_ns)
    {
        text += &format!(
            "  Starting the table takes {start:.1} ms; it adds {added:.0} ns to a switch of \
             {switch:.0} ns (medians).\n"
        );
    }
    text
}
