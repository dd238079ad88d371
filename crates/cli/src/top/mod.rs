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
//! | `screen` | rows, ordered and named |
//! | `lines` | rows as text |
//! | `draw`, `terminal` | text on a terminal, and the keys |

mod draw;
mod flags;
mod lines;
mod lookup;
mod screen;
mod target;
mod terminal;

#[cfg(test)]
mod tests;

pub(crate) use flags::Top;

use crate::failure::Failure;
use crate::interrupt::{self, Interrupt};
use crate::output;
use lines::Line;
use lockstead_inspect::modules::Modules;
use lockstead_inspect::report::live::{Live, Sample};
use lockstead_inspect::symbols::Symbolizer;
use lockstead_ledger::Ledger;
use lookup::Files;
use screen::{Choices, Room, Screen};
use std::io::{self, IsTerminal};
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};
use target::Target;

/// Rows of each table where the height is not limited.
const BATCH: Room = Room { locks: 20, waiters: 20, holders: 20 };
/// Columns where nobody says how many there are.
const WIDTH: usize = 120;
/// Signals and the end of the process are noticed this fast.
const STEP: Duration = Duration::from_millis(100);

/// Shows the locks of a process until the user, the count or the process ends
/// it.
///
/// # Errors
/// As [`Failure`].
pub(crate) fn run(flags: &Top) -> Result<(), Failure> {
    let target = Target::find(flags.pid)?;
    let ledger = target.ledger.view();
    let modules = Modules::of(target.pid).map_err(|error| {
        Failure::Run(format!("cannot read the maps of process {}: {error}", target.pid))
    })?;
    let names = Files::new(target.pid, ledger, Symbolizer::new(modules));
    let interrupt = Interrupt::install(interrupt::BRIEF)?;
    let choices = Choices { sort: flags.sort, ..Choices::default() };
    let mut watch = Watch { target: &target, ledger, names, choices, before: Sample::default() };
    watch.before = Sample::take(&ledger, now());
    if flags.batch || !io::stdout().is_terminal() {
        watch.batch(flags, &interrupt)
    } else {
        terminal::show(&mut watch, flags, &interrupt)
    }
}

/// One process that is looked at.
struct Watch<'t> {
    target: &'t Target,
    ledger: Ledger<'t>,
    names: Files<'t>,
    choices: Choices,
    before: Sample,
}

impl Watch<'_> {
    /// What happened since the last look.
    fn look(&mut self) -> Live {
        self.names.refresh();
        let sample = Sample::take(&self.ledger, now());
        let live = sample.since(&self.before, &self.ledger);
        self.before = sample;
        live
    }

    fn has_ended(&self) -> bool {
        self.ledger.header().ended.load(Relaxed) != 0 || !self.target.is_there()
    }

    fn batch(&mut self, flags: &Top, interrupt: &Interrupt) -> Result<(), Failure> {
        let width = terminal_size::terminal_size().map_or(WIDTH, |(width, _)| width.0.into());
        let mut looks = 0;
        while flags.count.is_none_or(|count| looks < count) {
            let wanted = Instant::now() + flags.delay;
            while Instant::now() < wanted && !self.has_ended() {
                if interrupt.flag().load(Relaxed) {
                    return Ok(());
                }
                thread::sleep(STEP.min(wanted.saturating_duration_since(Instant::now())));
            }
            let ended = self.has_ended();
            let live = self.look();
            let screen = Screen::make(&live, &mut self.names, &self.choices, BATCH);
            let lines = lines::of_batch(&self.target.name(), &screen, &self.choices, width);
            output::print(&plain(&lines))?;
            looks += 1;
            if ended {
                self.say_ended();
                break;
            }
        }
        Ok(())
    }

    fn say_ended(&self) {
        output::note(format_args!("lockstead: {} has ended", self.target.name()));
    }
}

/// Lines for a file, with an empty one after them.
fn plain(lines: &[Line]) -> String {
    lines.iter().map(|(_, text)| format!("{}\n", text.trim_end())).collect::<String>() + "\n"
}

/// `CLOCK_MONOTONIC` in nanoseconds, the clock of the ledger.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is valid for writing; this clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
