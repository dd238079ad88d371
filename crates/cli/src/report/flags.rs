//! The flags of the exit report, for every subcommand that ends with one.

use crate::failure::Failure;
use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use lockstead_inspect::report::{Options, Sort};
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

/// `--sort`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortBy {
    /// Total time of waiting
    Wait,
    /// Longest single wait
    MaxWait,
    /// Total time of holding
    Hold,
    /// Number of acquisitions
    Acquisitions,
    /// Number of acquisitions that found the lock taken
    Contended,
    /// The worst by waiting, in the order of their names
    Name,
}

impl From<SortBy> for Sort {
    fn from(sort: SortBy) -> Sort {
        match sort {
            SortBy::Wait => Sort::Wait,
            SortBy::MaxWait => Sort::MaxWait,
            SortBy::Hold => Sort::Hold,
            SortBy::Acquisitions => Sort::Acquisitions,
            SortBy::Contended => Sort::Contended,
            SortBy::Name => Sort::Name,
        }
    }
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
    #[arg(long, value_name = "BY", default_value = "wait")]
    pub(crate) sort: SortBy,
    /// One row for all locks that were initialised at the same place
    #[arg(long)]
    pub(crate) by_class: bool,
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
    /// Whether anybody will see it.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.no_report || self.json.is_some() || self.html.is_some()
    }

    /// What to collect.
    pub(crate) fn options(&self) -> Options {
        Options { top: self.top, sort: self.sort.into(), by_class: self.by_class }
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

/// Whether a file can be written, without leaving a trace of the question.
pub(crate) fn can_write(file: &Path) -> Result<(), String> {
    if file.exists() {
        let opened = OpenOptions::new().append(true).open(file);
        return opened.map(drop).map_err(|error| error.to_string());
    }
    let folder = folder_of(file);
    tempfile::Builder::new()
        .prefix(".lockstead")
        .tempfile_in(folder)
        .map(drop)
        .map_err(|error| format!("cannot write in {}: {error}", folder.display()))
}

/// The folder that a path leads to.
pub(super) fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
