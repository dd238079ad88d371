//! A run in which nothing moves, from the first look to the status.

use super::super::signals::ProgramEnd;
use super::ending::Ending;
use super::watch::{Hang, HangWatch};
use super::{HangOptions, OnHang, family};
use std::iter;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// What to do about a hang.
pub(crate) struct HangTask {
    /// What was asked for.
    pub(crate) action: OnHang,
    /// Whether the picture has been printed.
    pub(crate) told: Arc<AtomicBool>,
    /// Whether all has been done about it.
    pub(crate) done: Arc<AtomicBool>,
}

/// What the supervisor knows of hanging.
pub(crate) struct Hanging {
    watch: HangWatch,
    program: u32,
    ending: Option<Ending>,
    /// Whether all has been done about the last hang; `None` when a look was made after that.
    report: Option<Arc<AtomicBool>>,
    /// Whether the program hung at the last look before its end; others of the run may go on.
    when_ended: Option<bool>,
    /// Whether the program hung when somebody first asked it to end.
    when_asked: Option<bool>,
}

impl Hanging {
    /// Prepares to watch the run of `program`.
    pub(crate) fn new(options: HangOptions, program: u32, now: Instant) -> Self {
        let watch = HangWatch::new(options, now);
        Hanging { watch, program, ending: None, report: None, when_ended: None, when_asked: None }
    }

    /// Returns when to come again.
    pub(crate) fn next(&self) -> Instant {
        let ending = self.ending.as_ref().and_then(Ending::next);
        ending.map_or(self.watch.next(), |due| due.min(self.watch.next()))
    }

    /// Does what is due; `live` are the processes that are watched. Returns a hang to be reported.
    pub(crate) fn step(
        &mut self,
        now: Instant,
        live: impl Iterator<Item = u32>,
    ) -> Option<(Hang, HangTask)> {
        if let Some(ending) = &mut self.ending {
            ending.step(now);
        }
        let (is_due, was_hung) = (now >= self.watch.next(), self.watch.is_hung());
        let is_over = self.report.as_ref().is_some_and(|done| done.load(Relaxed));
        self.watch.set_visited(self.report.is_some());
        let hang = self.watch.tick(now, iter::once(self.program).chain(live));
        if is_due && is_over {
            self.report = None;
        }
        // A program that ends moves, but not on. Asked after the look, which may have met its end.
        if is_due && family::ends(self.program) {
            self.when_ended.get_or_insert(was_hung);
        }
        let hang = hang?;
        if self.ending.is_some() {
            return None;
        }
        let action = self.watch.options().action.clone();
        let task = HangTask { action, told: Arc::default(), done: Arc::default() };
        self.report = Some(task.done.clone());
        if task.action == OnHang::Abort {
            self.ending = Some(Ending::new(&hang.pids, task.told.clone(), now));
        }
        Some((hang, task))
    }

    /// Notes that the program is asked to end. If another process did that, and not a person at the
    /// terminal, it counts whether the program hung then.
    pub(crate) fn asked_to_end(&mut self, is_sent: bool, live: impl Iterator<Item = u32>) {
        if self.when_asked.is_none() {
            if self.watch.is_hung() {
                self.watch.look(Instant::now(), iter::once(self.program).chain(live));
            }
            self.when_asked = Some(is_sent && self.watch.is_hung());
        }
    }

    /// Returns whether the program was ended while it hung, and did not end by itself.
    pub(crate) fn ended_program(&self, end: ProgramEnd) -> bool {
        let killed = matches!(end, ProgramEnd::Killed(_));
        self.ending.is_some()
            || self.when_asked.unwrap_or_else(|| {
                killed && self.when_ended.unwrap_or_else(|| self.watch.is_hung())
            })
    }
}
