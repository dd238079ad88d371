//! Checking: what `run --check` is asked for, how its findings read, and what is
//! made of those that a report keeps.

mod artifacts;
mod command;
mod flags;
mod judge;
pub(crate) mod recorded;
mod sarif;
mod tally;
mod text;

pub(crate) use command::run;
pub(crate) use flags::CheckFlags;
pub(crate) use judge::{Judge, Verdict};
pub(crate) use tally::{Checked, Lost, summary};
pub(crate) use text::{called, limit, text};

pub(crate) use crate::run::stack_lines as stack_text;

use crate::failure::Failure;
use lockstead_inspect::report::Finding;
use std::path::Path;

/// Writes findings to a file in SARIF.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write_sarif(file: &Path, findings: &[Finding]) -> Result<(), Failure> {
    let found: Vec<recorded::Found> = findings.iter().map(Into::into).collect();
    write_log(file, &found)
}

fn write_log(file: &Path, found: &[recorded::Found]) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(&sarif::log(found)).map_err(std::io::Error::from);
    text.and_then(|text| crate::report::write(file, &(text + "\n"))).map_err(|error| {
        Failure::Run(format!("cannot write the report to {}: {error}", file.display()))
    })
}
