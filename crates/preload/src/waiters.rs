//! Counts the threads that wait for each lock, in a run that is recorded.
//!
//! # Role
//! By the number, which lies beside the lock's statistics, a thread that gives the lock back knows
//! whether somebody waits. It may be too high, by threads that were killed in their waits.

use crate::state::{self, STATE};
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::lock::Extension;
use lockstead_ledger::thread::ThreadRecord;

/// Tells whether threads leave events.
#[inline(always)]
pub(crate) fn is_recorded() -> bool {
    STATE.recorded.load(Relaxed) != 0
}

/// Lowers the number of those that wait. It is too low already if the lock's statistics have moved
/// to another record meanwhile.
pub(crate) fn one_waiter_less(statistics: &Extension) {
    let _ = statistics.waiters.fetch_update(Relaxed, Relaxed, |waiters| waiters.checked_sub(1));
}

/// Notes that a thread has left a wait without coming back from it.
#[cold]
pub(crate) fn wait_left(record: &ThreadRecord) {
    if is_recorded()
        && let Some(ledger) = state::ledger()
        && let Some((_, waiting)) = record.wait.read()
        && let Some(lock) = ledger.lock_of(&waiting).and_then(|index| ledger.lock(index))
        && let Some(statistics) = ledger.existing_extension(lock)
    {
        one_waiter_less(statistics);
    }
}
