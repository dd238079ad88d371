//! What the tests share.

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
        const LIMIT: Duration = Duration::from_secs(60);
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

/// Runs `body` and returns the message of its panic.
pub(crate) fn panic_of<R>(body: impl FnOnce() -> R) -> String {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
    let payload = caught.err().expect("this call must panic");
    payload.downcast_ref::<String>().cloned().expect("a formatted message")
}

/// Calls `probe` until it is true.
pub(crate) fn eventually(mut probe: impl FnMut() -> bool) {
    while !probe() {
        std::thread::yield_now();
    }
}
