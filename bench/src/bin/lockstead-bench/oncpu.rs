//! `lockstead oncpu check`: the sources against the table, and what they cost.

use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::measured;
use crate::table::TextTable;
use crate::values;
use clap::Args;
use lockstead_bench::oncpu::{self, OncpuOptions, OncpuReport};
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sudo lockstead oncpu check
  sudo lockstead oncpu check --threads 64 --section 1 --json")]
pub(crate) struct OncpuCheck {
    /// Threads that fight for one mutex, 2 to 1024
    #[arg(long, default_value = "8", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(2..=1024))]
    pub(crate) threads: u16,
    /// Microseconds that they hold it, and do without, 1 to 100000
    #[arg(long, default_value = "20", value_name = "US")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) section: u64,
    /// Seconds for each source
    #[arg(long, default_value = "2", value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) seconds: Duration,
    /// Write JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// Measures what the flags ask for, and prints the report.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn run(flags: &OncpuCheck) -> Result<(), Failure> {
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let options = OncpuOptions {
        threads: flags.threads.into(),
        section: Duration::from_micros(flags.section),
        time: flags.seconds,
    };
    let report = measured(&interrupt, |session| oncpu::measure(&options, session));
    let report = report.map_err(|why| match why {
        oncpu::OncpuFailure::Table(why) => {
            Failure::Run(format!("there is no table to compare with: {why}"))
        }
        oncpu::OncpuFailure::Stopped => {
            Failure::Run("the table was stopped while the sources were held against it".into())
        }
        oncpu::OncpuFailure::Other(error) => error.into(),
    })?;
    output::warn_about(&report.machine);
    if flags.json {
        return output::print_json(&report);
    }
    output::print(&render(&report))
}

fn render(report: &OncpuReport) -> String {
    let mut table = TextTable::new(&[
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
