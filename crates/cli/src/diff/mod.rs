//! `lockstead diff`: what got better and worse between runs.
//!
//! ```text
//! reports before ─▶ recorded ─▶ side: waits of each lock, a value a run ─┐
//! reports after ──▶ recorded ─▶ side ────────────────────────────────────┴▶ compare ─▶ text, JSON, page
//!                                                              verdict: is it more than noise?
//! ```

mod compare;
mod model;
mod page;
mod recorded;
mod side;
mod strip;
mod text;
mod verdict;

#[cfg(test)]
pub(crate) use model::DiffReport;

use clap::Args;
use lockstead_render::failure::Failure;
use lockstead_render::{files, output};
use side::Side;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = concat!(verdict::rule!(), "

Examples:
  lockstead run --json before.json -- ./server
  lockstead run --json after.json -- ./server.new
  lockstead diff before.json after.json
  lockstead diff before/*.json -- after/*.json           several runs of each
  lockstead diff --fail-on +10% before/*.json -- after/*.json
  lockstead diff --html change.html before/*.json -- after/*.json

Exit status:
  0    compared
  1    something got worse by more than --fail-on allows, or a report cannot be read
  2    wrong usage"))]
pub(crate) struct DiffFlags {
    /// Reports of `lockstead run --json FILE` from before, and, if no -- follows, one from after
    #[arg(value_name = "BEFORE.json", required = true)]
    pub(crate) before: Vec<PathBuf>,
    /// Reports of runs from after the change, behind --
    #[arg(value_name = "AFTER.json", last = true)]
    pub(crate) after: Vec<PathBuf>,
    /// Exit with status 1 when something got worse by more than this, as +10%: the run time, the
    /// processor time, or waiting of 1 % of a program's time, for all its locks or for one
    #[arg(long, value_name = "+PERCENT", value_parser = percent, allow_hyphen_values = true)]
    pub(crate) fail_on: Option<f64>,
    /// Show what is not told from noise, too
    #[arg(long)]
    pub(crate) all: bool,
    /// Write JSON to standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the comparison as one HTML page, with each run, as well
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// Reads `+10%`, `10%` or `10`.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_prefix('+').unwrap_or(text);
    let number = number.strip_suffix('%').unwrap_or(number);
    let percent: Option<f64> = number.trim().parse().ok();
    let more = percent.filter(|percent| percent.is_finite() && *percent >= 0.0);
    more.ok_or_else(|| "write how much more is allowed, as +10%".into())
}

/// Compares the two sides and prints what has changed.
///
/// # Errors
/// As [`Failure`]; that something got worse is one, if `--fail-on` asks for it.
pub(crate) fn run(flags: &DiffFlags) -> Result<(), Failure> {
    let (before, after) = match (&flags.before[..], &flags.after[..]) {
        ([before, after], []) => (std::slice::from_ref(before), std::slice::from_ref(after)),
        (_, []) => {
            return Err(Failure::Usage(
                "two reports are compared, or several: `lockstead diff BEFORE... -- AFTER...`"
                    .into(),
            ));
        }
        sides => sides,
    };
    if let Some(file) = &flags.html {
        can_write_page(file, before.iter().chain(after))?;
    }
    let report = compare::compare(&Side::read(before)?, &Side::read(after)?, flags.fail_on);
    if let Some(file) = &flags.html {
        let page = page::render(&report).map_err(io::Error::other);
        page.and_then(|page| files::write(file, &page)).map_err(|error| {
            Failure::Run(format!("cannot write the page to {}: {error}", file.display()))
        })?;
    }
    if flags.json {
        output::print_json(&report)?;
    } else {
        output::print(&text::render(&report, flags.all))?;
    }
    if report.failed { Err(Failure::Program(1)) } else { Ok(()) }
}

/// Says before the work that the page could not be written, or would replace a report.
fn can_write_page<'a>(
    page: &Path,
    mut reports: impl Iterator<Item = &'a PathBuf>,
) -> Result<(), Failure> {
    let refused = |why: &str| Err(Failure::option("--html", page.display(), why));
    if page.as_os_str() == OsStr::new("-") {
        return refused("standard output has the comparison as text; name a file");
    }
    if reports.any(|report| files::is_same(page, report)) {
        return refused("this is one of the reports, which would be lost; name another file");
    }
    files::can_write(page).or_else(|why| refused(&why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_share_that_is_more() {
        assert_eq!(["+10%", "10%", "7.5", "+0 %"].map(percent), [10.0, 10.0, 7.5, 0.0].map(Ok));
        for wrong in ["", "-10%", "ten", "inf", "10%%"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }
}
