//! The flags of `run` that are about checking, and what they come to.

use crate::failure::Failure;
use crate::report::{ReportFlags, can_write};
use clap::Args;
use lockstead_inspect::check::suppress::Suppressions;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

/// What to look for, what to leave out, and where to write it.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Checking")]
pub(crate) struct CheckFlags {
    /// Check the order in which locks are taken, and the rules of their use; exit status 3 if
    /// anything was found
    #[arg(long)]
    pub(crate) check: bool,
    /// Show what cannot hurt as it was seen too, and count it as found: locks in both orders by
    /// one thread, or under a common lock
    #[arg(long)]
    pub(crate) strict: bool,
    /// Report calls that may block (sleep, poll, fsync, connect, ...) made under a lock
    #[arg(long)]
    pub(crate) sleepy: bool,
    /// Leave out the findings that this file lists; may be given again (`lockstead check
    /// --suggest` writes one)
    #[arg(long, value_name = "FILE")]
    pub(crate) suppressions: Vec<PathBuf>,
    /// Write what is reported while the program runs to a file as well, as text
    #[arg(long, value_name = "FILE")]
    pub(crate) report_file: Option<PathBuf>,
    /// Write the findings to a file in SARIF 2.1.0, for code hosts and editors
    #[arg(long, value_name = "FILE")]
    pub(crate) sarif: Option<PathBuf>,
}

impl CheckFlags {
    /// Says before the program runs what cannot be done.
    ///
    /// # Errors
    /// [`Failure::Usage`], with the option.
    pub(crate) fn check(&self, report: &ReportFlags) -> Result<(), Failure> {
        let needing = [
            ("--strict", self.strict),
            ("--sleepy", self.sleepy),
            ("--suppressions", !self.suppressions.is_empty()),
            ("--sarif", self.sarif.is_some()),
        ];
        if let Some((option, _)) = needing.iter().find(|(_, given)| *given && !self.check) {
            return Err(Failure::Usage(format!(
                "'{option}' is about what --check finds; add --check"
            )));
        }
        for (option, file) in [("--report-file", &self.report_file), ("--sarif", &self.sarif)] {
            let Some(file) = file else { continue };
            if file.as_os_str() == OsStr::new("-") {
                let why = "standard output belongs to the program; name a file";
                return Err(Failure::option(option, "-", why));
            }
            can_write(file).map_err(|why| Failure::option(option, file.display(), why))?;
        }
        let all = [
            ("--json", &report.json),
            ("--html", &report.html),
            ("--report-file", &self.report_file),
            ("--sarif", &self.sarif),
        ];
        for (at, (option, file)) in all.iter().enumerate() {
            let same = all[..at].iter().find(|(_, other)| file.is_some() && other == file);
            if let (Some((other, _)), Some(file)) = (same, file) {
                let why = format!("{other} writes this file");
                return Err(Failure::option(option, file.display(), why));
            }
        }
        Ok(())
    }

    /// Empties the report file, to be written to from the beginning.
    ///
    /// # Errors
    /// [`Failure::Usage`], with the option.
    pub(crate) fn open_report_file(&self) -> Result<Option<File>, Failure> {
        let Some(file) = &self.report_file else { return Ok(None) };
        let opened = File::create(file);
        opened.map(Some).map_err(|e| Failure::option("--report-file", file.display(), e))
    }

    /// Adds to the report file at the end.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn append(&self, text: &str) -> Result<(), Failure> {
        let Some(file) = &self.report_file else { return Ok(()) };
        let opened = OpenOptions::new().append(true).open(file);
        opened.and_then(|mut open| open.write_all(text.as_bytes())).map_err(|error| {
            Failure::Run(format!("cannot write the report to {}: {error}", file.display()))
        })
    }

    /// Reads the suppressions.
    ///
    /// # Errors
    /// [`Failure::Usage`], with file and line.
    pub(crate) fn suppressed(&self) -> Result<Suppressions, Failure> {
        read_suppressions(&self.suppressions)
    }
}

/// Reads files of suppressions.
///
/// # Errors
/// [`Failure::Usage`], with file and line.
pub(crate) fn read_suppressions(files: &[PathBuf]) -> Result<Suppressions, Failure> {
    let mut all = Suppressions::default();
    for file in files {
        let text = fs::read_to_string(file)
            .map_err(|error| Failure::option("--suppressions", file.display(), error))?;
        all.add(&file.display().to_string(), &text).map_err(Failure::Usage)?;
    }
    Ok(all)
}
