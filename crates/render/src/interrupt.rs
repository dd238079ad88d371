//! SIGINT and SIGTERM end a measurement in order: its files are removed.
//!
//! The first signal sets a flag that the measurement polls. Where that is not
//! enough, because a thread is in the middle of a long section or the lock
//! under test hangs, the process ends when its grace is over, or at once with
//! a second signal.

use crate::failure::Failure;
use crate::output;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use std::io::{self, PipeReader, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

/// Enough for a measurement that has nothing to clean up.
pub const BRIEF: Duration = Duration::from_secs(2);
/// Enough for a measurement with files: longer than the library waits for a lock that hangs, so
/// that they are removed even then.
pub const WITH_FILES: Duration = Duration::from_secs(60);

/// The flag that the first SIGINT or SIGTERM sets.
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Makes signals end the process as described above, from now on.
    ///
    /// # Errors
    /// If the handlers cannot be installed.
    pub fn install(grace: Duration) -> Result<Self, Failure> {
        let flag = Arc::new(AtomicBool::new(false));
        install(&flag, Some(grace))
            .map_err(|error| Failure::Run(format!("cannot handle signals: {error}")))?;
        Ok(Interrupt(flag))
    }

    /// Does the same without a thread, for what is measured in a process that has one alone: the
    /// first signal sets the flag, a second one ends the process.
    ///
    /// # Errors
    /// If the handlers cannot be installed.
    pub fn install_alone() -> Result<Self, Failure> {
        let flag = Arc::new(AtomicBool::new(false));
        install(&flag, None)
            .map_err(|error| Failure::Run(format!("cannot handle signals: {error}")))?;
        Ok(Interrupt(flag))
    }

    /// Returns the flag, for those who poll it.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }
}

/// Has signals set the flag, or end the process if it is set already. With `grace` the process also
/// ends when that has passed since the first signal.
fn install(flag: &Arc<AtomicBool>, grace: Option<Duration>) -> io::Result<()> {
    let status = i32::from(Failure::Interrupted.status());
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag not set yet.
        flag::register_conditional_shutdown(signal, status, flag.clone())?;
        flag::register(signal, flag.clone())?;
    }
    let Some(grace) = grace else { return Ok(()) };
    let (reader, writer) = io::pipe()?;
    for signal in [SIGINT, SIGTERM] {
        low_level::pipe::register(signal, writer.try_clone()?)?;
    }
    thread::Builder::new()
        .name("interrupt".into())
        .spawn(move || end_after(reader, grace, status))
        .map(drop)
}

/// Ends the process when its grace after the first signal is over. Without
/// the C library's exit handlers: other threads still run.
fn end_after(mut reader: PipeReader, grace: Duration, status: i32) {
    if reader.read_exact(&mut [0]).is_ok() {
        thread::sleep(grace);
        output::error(&Failure::Interrupted);
        low_level::exit(status);
    }
}
