//! Waiting as Python waits: without the interpreter's lock, until a handler raises or time is over.
//!
//! # Protocol
//! Python runs the handlers of signals in the first thread only, between its instructions. So a wait of
//! that thread must end when a signal came. It waits for a moment first as all others do, since short
//! waits are most waits, and waiting that handlers end is dearer for those who use the lock in turns.
//! From then on a handler ends its sleep at once. A signal that comes between the look at signals and
//! the sleep is seen after a slice, of the length at which a sleeper looks again by itself anyway.

use crate::error::refused;
use crate::here;
use lockstead::shared::SharedError;
use lockstead_core::{Nanos, Platform, WaitBounds};
use lockstead_linux::Linux;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// The first slice of a wait that is to see signals, in nanoseconds.
const MOMENT: u64 = 20_000_000;

/// The later slices, in nanoseconds.
const SLICE: u64 = 1_000_000_000;

/// The time at which a wait is over; `None`: never.
pub(crate) type Limit = Option<Nanos>;

/// Returns when a wait that begins now is over, given the argument `timeout` of a method: `None`, or
/// seconds, of which less than nothing is nothing.
pub(crate) fn limit(timeout: Option<f64>) -> Limit {
    let seconds = timeout?;
    let nanos = seconds.max(0.0) * 1e9;
    // What is beyond the clock's range is never; so is infinity.
    (nanos < u64::MAX as f64 / 2.0).then(|| Linux::now().after(nanos as u64))
}

/// Reads the argument `timeout`: `None`, or a number of seconds.
pub(crate) fn seconds(timeout: Option<&Bound<'_, PyAny>>) -> PyResult<Option<f64>> {
    match timeout {
        None => Ok(None),
        Some(value) if value.is_none() => Ok(None),
        Some(value) => {
            let seconds: f64 = value.extract()?;
            if seconds.is_nan() {
                return Err(PyTypeError::new_err("timeout: None, or a number of seconds"));
            }
            Ok(Some(seconds))
        }
    }
}

/// The slices into which a wait of the calling thread is cut.
pub(crate) struct Slices {
    limit: Limit,
    sees_signals: bool,
    is_first: bool,
}

impl Slices {
    pub(crate) fn new(limit: Limit) -> Slices {
        Slices { limit, sees_signals: here::is_first_thread(), is_first: true }
    }

    /// Returns the bounds of the next slice.
    pub(crate) fn next(&mut self) -> WaitBounds<'static, Linux> {
        let mut how = WaitBounds { deadline: self.limit, ..WaitBounds::FOREVER };
        if self.sees_signals {
            let is_first = core::mem::take(&mut self.is_first);
            let end = Linux::now().after(if is_first { MOMENT } else { SLICE });
            how.deadline = Some(self.limit.map_or(end, |limit| limit.min(end)));
            how.interruptible = !is_first;
        }
        how
    }

    /// Tells whether the time is over.
    pub(crate) fn is_over(&self) -> bool {
        self.limit.is_some_and(|limit| Linux::now() >= limit)
    }
}

/// Makes `attempt` without the interpreter's lock, slice by slice, until it succeeds. Returns `None` if
/// the time was over.
///
/// # Errors
/// What a handler of a signal raised; the attempt's, as an exception.
pub(crate) fn until<T: Send>(
    py: Python<'_>,
    limit: Limit,
    attempt: impl Fn(&WaitBounds<'_, Linux>) -> Result<T, SharedError> + Sync,
) -> PyResult<Option<T>> {
    let mut slices = Slices::new(limit);
    loop {
        let how = slices.next();
        let attempt = &attempt;
        match py.detach(move || attempt(&how)) {
            Ok(got) => return Ok(Some(got)),
            Err(SharedError::TimedOut) if slices.is_over() => return Ok(None),
            Err(SharedError::TimedOut | SharedError::Interrupted) => py.check_signals()?,
            Err(error) => return Err(refused(error)),
        }
    }
}

/// Sleeps until the limit, letting other threads run. For who would wait for itself, for a while.
///
/// # Errors
/// What a handler of a signal raised.
pub(crate) fn doze(py: Python<'_>, limit: Nanos) -> PyResult<()> {
    loop {
        let now = Linux::now();
        if now >= limit {
            return Ok(());
        }
        let nanos = limit.since(now).min(SLICE);
        py.detach(move || {
            let time = libc::timespec {
                tv_sec: (nanos / 1_000_000_000) as libc::time_t,
                tv_nsec: (nanos % 1_000_000_000) as libc::c_long,
            };
            // Not `std::thread::sleep`, which goes on after a signal. SAFETY: a live timespec; the call
            // is asked for no remainder.
            unsafe { libc::nanosleep(&raw const time, core::ptr::null_mut()) };
        });
        py.check_signals()?;
    }
}
