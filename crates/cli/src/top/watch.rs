//! One process that is looked at again and again.

use super::flags::Top;
use super::lines::{self, TonedLine};
use super::lookup::FileNames;
use super::screen::{Room, Screen, ScreenChoices};
use super::target::TopTarget;
use crate::clock::now;
use lockstead_inspect::report::live::{Live, LiveSample};
use lockstead_ledger::Ledger;
use lockstead_render::failure::Failure;
use lockstead_render::interrupt::Interrupt;
use lockstead_render::output;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

/// The rows of each table where the height is not limited.
pub(super) const BATCH: Room = Room { locks: 20, waiters: 20, holders: 20 };
/// The columns where nobody says how many there are.
const WIDTH: usize = 120;
/// The time within which signals and the end of the process are noticed.
pub(super) const STEP: Duration = Duration::from_millis(100);

/// One process that is looked at.
pub(super) struct TopWatch<'t> {
    pub(super) target: &'t TopTarget,
    pub(super) ledger: Ledger<'t>,
    pub(super) names: FileNames<'t>,
    pub(super) choices: ScreenChoices,
    pub(super) before: LiveSample,
}

impl TopWatch<'_> {
    /// Returns what happened since the last look.
    pub(super) fn look(&mut self) -> Live {
        self.names.refresh();
        let sample = LiveSample::take(&self.ledger, now());
        let live = sample.since(&self.before, &self.ledger);
        self.before = sample;
        live
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ledger.header().ended.load(Relaxed) != 0 || !self.target.is_there()
    }

    pub(super) fn batch(&mut self, flags: &Top, interrupt: &Interrupt) -> Result<(), Failure> {
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

    pub(super) fn say_ended(&self) {
        output::note(format_args!("lockstead: {} has ended", self.target.name()));
    }
}

/// Returns the lines for a file, with an empty one after them.
pub(super) fn plain(lines: &[TonedLine]) -> String {
    lines.iter().map(|(_, text)| format!("{}\n", text.trim_end())).collect::<String>() + "\n"
}
