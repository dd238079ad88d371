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
    /// A session that ends early when `stop` becomes true (a signal handler may
    /// set it) and calls `progress` with steps done, steps in all and what is
    /// measured next. The number in all grows when a disturbed round is redone.
    pub fn new(stop: &'a AtomicBool, progress: &'a mut dyn FnMut(u64, u64, &str)) -> Self {
        Self { stop, progress }
    }

    pub(crate) fn step(&mut self, done: u64, total: u64, label: &str) -> Result<(), Error> {
        if self.stopped() {
            return Err(Error::Interrupted);
        }
        (self.progress)(done, total, label);
        Ok(())
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
