//! What the detection asks of a living process beside its waits: by its ledger
//! and by `/proc`.

use super::detect::DetectionContext;
use super::observe::LastingWaiter;
use super::verify;
use lockstead_ledger::Ledger;
use lockstead_ledger::lock::{ObjectKind, attribute};
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

    fn right_of(&self, held: u64) -> Option<u64> {
        right_of(&self.ledger, held)
    }

    fn is_read_upgradably(&self, lock: u64) -> bool {
        let right = lock.wrapping_add(RIGHT);
        self.ledger.threads().any(|thread| thread.stack().find(right).is_some())
    }

    fn is_taking_back(&self, waiter: &LastingWaiter) -> bool {
        self.visible && verify::is_taking_back(self.pid, waiter)
    }
}

/// How far behind a reader-writer lock the right to become its writer is told to lie, as
/// `lockstead-told` has it.
const RIGHT: u64 = 7;

/// Returns the reader-writer lock that who holds this reads upgradably, if it is that right.
#[must_use]
pub fn right_of(ledger: &Ledger<'_>, held: u64) -> Option<u64> {
    let lock = held.checked_sub(RIGHT).filter(|lock| lock.is_multiple_of(8))?;
    let record = ledger.find_lock(held).and_then(|index| ledger.lock(index))?;
    (record.shape().0 == ObjectKind::ToldRwLock).then_some(lock)
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
            && !record.is_handle_released()
    });
    position.and_then(|index| u32::try_from(index).ok())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_right_lies_where_it_is_told_to_lie() {
        let told = include_str!("../../../told/src/lib.rs");
        assert!(told.contains(&format!("pub const RIGHT: usize = {};", super::RIGHT)));
    }
}
