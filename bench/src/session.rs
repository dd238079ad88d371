//! What a measurement needs from whoever asked for it.

use crate::Error;
use std::sync::atomic::{AtomicBool, Ordering};

/// A way to stop a measurement, and a way to hear how far it is.
///
/// ```
/// use lockstead_bench::Session;
/// use std::sync::atomic::AtomicBool;
///
/// let stop = AtomicBool::new(false);
/// let mut bar = |done: u64, total: u64, label: &str| eprintln!("{done}/{total} {label}");
/// let session = Session::new(&stop, &mut bar);
/// # drop(session);
/// ```
pub struct Session<'a> {
    stop: &'a AtomicBool,
    progress: &'a mut dyn FnMut(u64, u64, &str),
}

impl<'a> Session<'a> {
    /// Returns a session that ends early when `stop` becomes true (a signal handler may
    /// set it) and calls `progress` with steps done, steps in all and what is
    /// measured next. The number in all grows when a disturbed round is redone.
    pub fn new(stop: &'a AtomicBool, progress: &'a mut dyn FnMut(u64, u64, &str)) -> Self {
        Self { stop, progress }
    }

    /// Tells how far it is, where steps are not counted by [`StepsProgress`].
    pub(crate) fn tell(&mut self, done: u64, total: u64, label: &str) {
        (self.progress)(done, total, label);
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// How far a measurement is, in steps that take about the same time.
pub(crate) struct StepsProgress {
    done: u64,
    total: u64,
}

impl StepsProgress {
    pub(crate) fn new(total: usize) -> Self {
        Self { done: 0, total: total as u64 }
    }

    /// Notes that the next step begins.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if the session was stopped.
    pub(crate) fn step(&mut self, session: &mut Session<'_>, label: &str) -> Result<(), Error> {
        self.report(session, label)?;
        self.done += 1;
        Ok(())
    }

    /// Says that so many of the steps done must be done again.
    pub(crate) fn again(&mut self, steps: usize) {
        self.total += steps as u64;
    }

    /// Notes that the last step has ended.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if the session was stopped.
    pub(crate) fn end(&self, session: &mut Session<'_>) -> Result<(), Error> {
        self.report(session, "done")
    }

    fn report(&self, session: &mut Session<'_>, label: &str) -> Result<(), Error> {
        if session.stopped() {
            return Err(Error::Interrupted);
        }
        (session.progress)(self.done, self.total, label);
        Ok(())
    }
}
