//! For tests in which one thread must sleep before another goes on.

use std::sync::atomic::{AtomicI32, Ordering};

/// A thread that another one watches.
#[derive(Default)]
pub(crate) struct Watched(AtomicI32);

impl Watched {
    /// Called by the thread itself: what follows is the call in question.
    pub(crate) fn begins(&self) {
        // SAFETY: `gettid` takes no argument and cannot fail.
        self.0.store(unsafe { libc::gettid() }, Ordering::SeqCst);
    }

    /// Tells whether it has.
    #[allow(dead_code, reason = "not every test asks")]
    pub(crate) fn has_begun(&self) -> bool {
        self.0.load(Ordering::SeqCst) != 0
    }

    /// Waits until the thread sleeps in the call in question.
    pub(crate) fn sleeps(&self) {
        loop {
            let path = format!("/proc/self/task/{}/stat", self.0.load(Ordering::SeqCst));
            let stat = std::fs::read_to_string(path).unwrap_or_default();
            if stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" S")) {
                return;
            }
            std::thread::yield_now();
        }
    }
}
