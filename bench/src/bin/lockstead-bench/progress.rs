//! How far a measurement is: a bar on a terminal, else a line now and then.

use crate::interrupt::Interrupt;
use crate::output::note;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lockstead_bench::Session;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// The first line where standard error is no terminal comes after this time,
/// each further one after twice as long, up to the longest silence.
const FIRST: Duration = Duration::from_secs(2);
const SILENCE: Duration = Duration::from_secs(32);

/// Measures, until a signal asks for the end, and shows on the way how far it is.
///
/// # Errors
/// The errors of `measure`.
pub(crate) fn measured<R, E>(
    interrupt: &Interrupt,
    measure: impl FnOnce(&mut Session<'_>) -> Result<R, E>,
) -> Result<R, E> {
    let mut progress = Progress::new();
    let mut step = |done: u64, total: u64, what: &str| progress.step(done, total, what);
    measure(&mut Session::new(interrupt.flag(), &mut step))
}

/// Shows progress on standard error; clears up after itself when dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// The time at which the next line is due, and the time from there to the one after, where
    /// there is no bar.
    lines: Option<(Instant, Duration)>,
}

impl Progress {
    /// Starts at nothing done.
    pub(crate) fn new() -> Self {
        let terminal = std::io::stderr().is_terminal();
        let target =
            if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let style = ProgressStyle::with_template("{bar:32} {percent:>3}%  {eta:>4} left  {msg}")
            .expect("the template is well-formed");
        let bar = ProgressBar::with_draw_target(Some(1), target).with_style(style);
        Progress { bar, lines: (!terminal).then(|| (Instant::now() + FIRST, FIRST)) }
    }

    /// Shows that `done` of `total` steps are done, and that `what` is next.
    pub(crate) fn step(&mut self, done: u64, total: u64, what: &str) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        self.bar.set_message(what.to_owned());
        let now = Instant::now();
        if let Some((due, pause)) = &mut self.lines
            && done < total
            && now >= *due
        {
            note(format_args!("step {} of {total}: {what}", done + 1));
            *pause = SILENCE.min(2 * *pause);
            *due = now + *pause;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
