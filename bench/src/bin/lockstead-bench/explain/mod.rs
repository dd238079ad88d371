//! `lockstead explain`: where a mutex's advantages come from, one ingredient at a
//! time, and whether a semaphore can have them.

mod chart;
mod flags;
mod html;
mod text;

pub(crate) use flags::Explain;

use crate::failure::Failure;
use crate::files::{can_write, write};
use crate::interrupt::{self, Interrupt};
use crate::output;
use crate::progress::measured;
use lockstead_bench::explain::{self, ExplainOptions};

/// Measures, prints, and writes the page that was asked for.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn run(flags: &Explain) -> Result<(), Failure> {
    if let Some(file) = &flags.html {
        can_write(file).map_err(|why| Failure::option("--html <FILE>", file.display(), why))?;
    }
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let options = if flags.quick { ExplainOptions::quick() } else { ExplainOptions::default() };
    let report = measured(&interrupt, |session| explain::measure(&options, session))?;
    output::warn_about(&report.machine);
    if let Some(file) = &flags.html {
        let page = html::render(&report)
            .map_err(|error| Failure::Run(format!("cannot write the page: {error}")))?;
        write(file, &page).map_err(|error| {
            Failure::Run(format!("cannot write the report to {}: {error}", file.display()))
        })?;
    }
    if flags.json {
        return output::print_json(&report);
    }
    output::print(&text::render(&report))
}
