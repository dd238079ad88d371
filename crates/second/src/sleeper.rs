//! A thread that sleeps, as the list of an execution has it.

use lockstead_core::WaitOutcome;

/// One that sleeps, or was woken and has not gone on yet.
pub(crate) struct Sleeper {
    pub(crate) thread: usize,
    pub(crate) address: usize,
    /// The address whose waking cancels the wait.
    pub(crate) cancel: Option<usize>,
    pub(crate) deadline: Option<u64>,
    /// How it was woken, if it was.
    pub(crate) woken: Option<WaitOutcome>,
    /// Whether it may go on: its bell was rung, too.
    pub(crate) called: bool,
}

impl Sleeper {
    /// Tells whether it is this thread, and nobody has woken it.
    pub(crate) fn sleeps(&self, thread: usize) -> bool {
        self.thread == thread && self.woken.is_none()
    }

    /// Wakes it because its time is over and nothing else can happen.
    pub(crate) fn time_out(&mut self) {
        self.woken = Some(WaitOutcome::TimedOut);
        self.called = true;
    }
}
