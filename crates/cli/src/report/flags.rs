//! The flags of the exit report, for every subcommand that ends with one.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, RangedU64ValueParser, TypedValueParser};
use lockstead_inspect::report::{ReportOptions, Sort};
use lockstead_render::failure::Failure;
use lockstead_render::files::can_write;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Returns the parser of `--sort`.
fn sort() -> impl TypedValueParser<Value = Sort> {
    let values = Sort::ALL.map(|sort| PossibleValue::new(sort.name()).help(sort.help()));
    PossibleValuesParser::new(values).map(|name| Sort::named(&name).unwrap_or_default())
}

/// What to report at the end, and where to.
#[derive(Debug, Args)]
#[command(next_help_heading = "The exit report")]
pub(crate) struct ReportFlags {
    /// List the N worst locks of each process
    #[arg(long, default_value = "10", value_name = "N")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(1..=100_000))]
    pub(crate) top: usize,
    /// What makes a lock bad
    #[arg(long, value_name = "BY", default_value = "wait", value_parser = sort())]
    pub(crate) sort: Sort,
    /// One row for all locks that were initialised at the same place
    #[arg(long)]
    pub(crate) by_class: bool,
    /// A row for each lock, also of those of one array or from one place
    #[arg(long, conflicts_with = "by_class")]
    pub(crate) each_lock: bool,
    /// Say of no lock what to do about it
    #[arg(long)]
    pub(crate) no_verdicts: bool,
    /// Write the report as JSON to a file as well
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the report as one HTML page with charts as well
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Print no report at the end; --json and --html are written all the same
    #[arg(long)]
    pub(crate) no_report: bool,
}

impl ReportFlags {
    /// Returns whether anybody will see the report.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.no_report || self.json.is_some() || self.html.is_some()
    }

    /// Returns what to collect.
    pub(crate) fn options(&self) -> ReportOptions {
        ReportOptions {
            top: self.top,
            sort: self.sort,
            by_class: self.by_class,
            each_lock: self.each_lock,
            verdicts: !self.no_verdicts,
        }
    }

    /// Says before the program runs that its report could not be written.
    ///
    /// # Errors
    /// [`Failure::Usage`], with the option.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        for (option, file) in [("--json", &self.json), ("--html", &self.html)] {
            let Some(file) = file else { continue };
            if file.as_os_str() == OsStr::new("-") {
                let why = "standard output belongs to the program; name a file";
                return Err(Failure::option(option, "-", why));
            }
            can_write(file).map_err(|why| Failure::option(option, file.display(), why))?;
        }
        if self.json.is_some() && self.json == self.html {
            let file = self.html.as_deref().unwrap_or(Path::new("")).display();
            return Err(Failure::option("--html", file, "--json writes this file"));
        }
        Ok(())
    }
}
