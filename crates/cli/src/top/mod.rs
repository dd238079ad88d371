//! `lockstead top`: what happens to the locks of a process under `lockstead
//! run`, now.
//!
//! # Role
//! Reads the ledger, which the process writes anyway: it is neither stopped nor
//! asked, and a look costs it nothing. What a look costs here is a pass over
//! the threads and over the locks that were ever contended.
//!
//! | file | what |
//! |---|---|
//! | `target` | from a number to a ledger |
//! | `watch` | looks, one after the other |
//! | `screen` | rows, ordered and named |
//! | `lines` | rows as text |
//! | `page`, `page_lines` | one lock, looked at more closely; as text |
//! | `draw`, `terminal`, `keys` | text on a terminal, and the keys |

mod draw;
mod flags;
mod keys;
mod lines;
mod lookup;
mod page;
mod page_lines;
mod screen;
mod target;
mod terminal;
mod watch;

#[cfg(test)]
mod tests;

pub(crate) use flags::Top;

use crate::clock::now;
use lockstead_inspect::modules::Modules;
use lockstead_inspect::report::live::LiveSample;
use lockstead_inspect::symbols::Symbolizer;
use lockstead_render::failure::Failure;
use lockstead_render::interrupt::{self, Interrupt};
use lookup::FileNames;
use screen::ScreenChoices;
use std::io::{self, IsTerminal};
use target::TopTarget;
use watch::TopWatch;

/// Shows the locks of a process until the user, the count or the process ends
/// it.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn run(flags: &Top) -> Result<(), Failure> {
    let target = TopTarget::find(flags.pid)?;
    let ledger = target.ledger.view();
    let modules = Modules::of(target.pid).map_err(|error| {
        Failure::Run(format!("cannot read the maps of process {}: {error}", target.pid))
    })?;
    let names = FileNames::new(target.pid, ledger, Symbolizer::new(modules));
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let filter = flags.filter.clone();
    let choices = ScreenChoices { sort: flags.sort, filter, ..ScreenChoices::default() };
    let mut watch =
        TopWatch { target: &target, ledger, names, choices, before: LiveSample::default() };
    watch.before = LiveSample::take(&ledger, now());
    if flags.batch || !io::stdout().is_terminal() {
        watch.batch(flags, &interrupt)
    } else {
        terminal::show(&mut watch, flags, &interrupt)
    }
}
