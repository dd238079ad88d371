//! Tests that hang fail.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Ends the program with a message if the test is not over in time: a lock
/// that hangs fails instead of blocking the run.
pub(crate) struct Watchdog {
    _over: mpsc::Sender<()>,
}

impl Watchdog {
    /// Watches until it is dropped. The limit is generous: it is for hangs.
    pub(crate) fn new(test: &'static str) -> Self {
        const LIMIT: Duration = Duration::from_secs(90);
        let (over, ended) = mpsc::channel::<()>();
        std::thread::spawn(move || {
            if ended.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{test}: hangs (no end within {LIMIT:?})");
                std::process::abort();
            }
        });
        Watchdog { _over: over }
    }
}
