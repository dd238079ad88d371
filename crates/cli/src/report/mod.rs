//! The exit report as people and programs read it: text on standard error, JSON
//! and HTML in files. Standard output belongs to the program that was run.

mod flags;
mod graph;
mod html;
mod ring;
mod semaphores;
mod svg;
mod text;
mod words;

#[cfg(test)]
mod sample;

pub(crate) use flags::{ReportFlags, can_write};
pub(crate) use svg::{escape, open};
pub(crate) use words::{clean, fit, load, percent, plural};

use crate::failure::Failure;
use crate::output;
use lockstead_bench::machine::Machine;
use lockstead_inspect::report::Report;
use serde::Serialize;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// When and where a run was made.
#[derive(Debug, Serialize)]
pub(crate) struct Here {
    /// The name of the host.
    host: Option<String>,
    machine: Machine,
}

impl Here {
    /// This machine, now.
    pub(crate) fn now() -> Here {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").ok();
        Here { host: host.map(|name| name.trim().to_owned()), machine: Machine::here() }
    }
}

/// What is written as JSON.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    report: &'a Report,
    #[serde(flatten)]
    here: &'a Here,
}

/// Prints the report on standard error and writes the files that were asked
/// for.
///
/// # Errors
/// If a file cannot be written. The others are, all the same.
pub(crate) fn finish(report: &Report, here: &Here, flags: &ReportFlags) -> Result<(), Failure> {
    if !flags.no_report {
        output::note(text::render(report, width()).trim_end());
    }
    // Asked for by name, so that `--no-report` does not mean it.
    if let Some(semaphores) = &report.semaphores {
        output::note(semaphores::render(semaphores, width()).trim_end());
    }
    let mut failures = Vec::new();
    if let Some(file) = &flags.json {
        let json = serde_json::to_string_pretty(&Written { report, here }).map_err(io::Error::from);
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

/// Columns of the terminal behind standard error; none if it is no terminal.
fn width() -> Option<usize> {
    let stderr = io::stderr();
    if !stderr.is_terminal() {
        return None;
    }
    let width = terminal_size::terminal_size_of(&stderr).map(|(width, _)| usize::from(width.0));
    // Terminals that do not know their size say 0.
    Some(width.filter(|&width| width >= 40).unwrap_or(80))
}

/// Writes a file whole or not at all; what is no ordinary file is written to.
pub(crate) fn write(file: &Path, text: &str) -> io::Result<()> {
    if file.exists() && !file.is_file() {
        return fs::OpenOptions::new().write(true).open(file)?.write_all(text.as_bytes());
    }
    // The file that a link leads to is replaced, not the link.
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let mut temporary = tempfile::Builder::new()
        .prefix(".lockstead")
        .permissions(mode(&file))
        .tempfile_in(flags::folder_of(&file))?;
    temporary.write_all(text.as_bytes())?;
    temporary.persist(&file).map(drop).map_err(io::Error::from)
}

/// That of the file which is replaced, else what the umask leaves.
fn mode(file: &Path) -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(file).map_or(fs::Permissions::from_mode(0o666), |known| known.permissions())
}
