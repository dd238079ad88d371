//! What the detection asks of a living process beside its waits: by its ledger
//! and by `/proc`.

use super::detect::DetectionContext;
use super::observe::LastingWaiter;
use super::verify;
use lockstead_ledger::Ledger;
use lockstead_ledger::lock::attribute;
use lockstead_ledger::thread::state;
use std::sync::atomic::Ordering::Relaxed;

/// What is known of one process.
#[derive(Clone, Copy, Debug)]
pub struct WaitSurroundings<'a> {
    /// The ledger of the process.
    pub ledger: Ledger<'a>,
    /// Its number where the command runs.
    pub pid: u32,
    /// Whether the thread numbers in its ledger are those of `/proc` here.
    pub visible: bool,
}

impl DetectionContext for WaitSurroundings<'_> {
    fn joined(&self, waiter: &LastingWaiter) -> Option<u32> {
        joined(&self.ledger, waiter.waiting.target, waiter.waiting.since)
    }

    fn writers_first(&self, lock: u64) -> bool {
        let record = self.ledger.find_lock(lock).and_then(|index| self.ledger.lock(index));
        record.is_some_and(|record| record.shape().2 & attribute::WRITERS_FIRST != 0)
    }

    fn is_taking_back(&self, waiter: &LastingWaiter) -> bool {
        self.visible && verify::is_taking_back(self.pid, waiter)
    }
}

/// Returns the thread that a join which began at `since` means by this `pthread_t`, by the index of
/// its record.
#[must_use]
pub fn joined(ledger: &Ledger<'_>, handle: u64, since: u64) -> Option<u32> {
    let position = ledger.threads().position(|thread| {
        let record = thread.record;
        // A handle is used again, for a thread that the waiter does not mean.
        record.handle.load(Relaxed) == handle
            && record.began.load(Relaxed) < since
            && record.state.load(Relaxed) == state::LIVE
            && record.handle_released.load(Relaxed) == 0
    });
    position.and_then(|index| u32::try_from(index).ok())
}
