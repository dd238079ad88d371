//! The exit report as people and programs read it: text on standard error, JSON
//! and HTML in files. Standard output belongs to the program that was run.

mod columns;
mod flags;
mod graph;
mod here;
mod html;
mod ring;
mod semaphores;
mod svg;
mod text;
mod words;

#[cfg(test)]
mod sample;

pub(crate) use flags::ReportFlags;
pub(crate) use here::Here;

use lockstead_inspect::report::RunReport;
use lockstead_render::failure::Failure;
use lockstead_render::files::write;
use lockstead_render::output;
use serde::Serialize;
use std::io::{self, IsTerminal};

/// What is written as JSON.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WrittenReport<'a> {
    #[serde(flatten)]
    report: &'a RunReport,
    #[serde(flatten)]
    here: &'a Here,
}

/// Prints the report on standard error and writes the files that were asked
/// for.
///
/// # Errors
/// If a file cannot be written. The others are, all the same.
pub(crate) fn finish(report: &RunReport, here: &Here, flags: &ReportFlags) -> Result<(), Failure> {
    if !flags.no_report {
        output::note(text::render(report, width()).trim_end());
    }
    // Asked for by name, so that `--no-report` does not mean it.
    if let Some(semaphores) = &report.semaphores {
        output::note(semaphores::render(semaphores, width()).trim_end());
    }
    let mut failures = Vec::new();
    if let Some(file) = &flags.json {
        let json =
            serde_json::to_string_pretty(&WrittenReport { report, here }).map_err(io::Error::from);
        failures.extend(json.and_then(|json| write(file, &(json + "\n"))).err().map(|e| (file, e)));
    }
    if let Some(file) = &flags.html {
        let page = html::render(report, here).map_err(io::Error::other);
        failures.extend(page.and_then(|page| write(file, &page)).err().map(|e| (file, e)));
    }
    match failures.first() {
        None => Ok(()),
        Some((file, error)) => {
            Err(Failure::Run(format!("cannot write the report to {}: {error}", file.display())))
        }
    }
}

/// Returns the number of columns of the terminal behind standard error; none if it is no terminal.
fn width() -> Option<usize> {
    let stderr = io::stderr();
    if !stderr.is_terminal() {
        return None;
    }
    let width = terminal_size::terminal_size_of(&stderr).map(|(width, _)| usize::from(width.0));
    // Terminals that do not know their size say 0.
    Some(width.filter(|&width| width >= 40).unwrap_or(80))
}
