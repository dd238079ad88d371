//! For tests in which one thread must sleep before another goes on.

use std::sync::atomic::{AtomicI32, Ordering};

/// A thread that another one watches.
#[derive(Default)]
pub(crate) struct Watched(AtomicI32);

impl Watched {
    /// Makes one that nobody has begun.
    #[allow(dead_code, reason = "not every test needs a constant")]
    pub(crate) const fn new() -> Self {
        Watched(AtomicI32::new(0))
    }

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
    #[allow(dead_code, reason = "not every test waits")]
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

    /// Tells whether the thread sleeps as the hand-off waiter of a mutex, for which it listens on
    /// a channel of its own: the last argument of the system call (`Channel` of `lockstead-linux`).
    #[allow(dead_code, reason = "not every test asks")]
    pub(crate) fn is_handoff_waiter(&self) -> bool {
        let path = format!("/proc/self/task/{}/syscall", self.0.load(Ordering::SeqCst));
        let call = std::fs::read_to_string(path).unwrap_or_default();
        let word = |at: usize| {
            let word = call.split_whitespace().nth(at)?.strip_prefix("0x")?;
            u64::from_str_radix(word, 16).ok()
        };
        // Whoever waits for a bit set (9) of the process's own (128), and hears these bits alone.
        word(2) == Some(128 + 9) && word(6).is_some_and(|bits| matches!(bits as u32, 1 | 3))
    }
}
