//! Counts the threads that wait for each lock, in a run that is recorded.
//!
//! # Role
//! By the number, which lies beside the lock's statistics, a thread that gives the lock back knows
//! whether somebody waits. It is too high while a thread that has left a wait by `longjmp` has not
//! called anything since.

use crate::me::Me;
use crate::state::STATE;
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::Ledger;
use lockstead_ledger::lock::Extension;
use lockstead_ledger::thread::ThreadPart;

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

/// Notes that the calling thread has left a wait without coming back from it, as its next call
/// shows.
#[cold]
pub(crate) fn wait_left(ledger: &'static Ledger<'static>, thread: ThreadPart<'static>) {
    if is_recorded()
        && let Some((_, waiting)) = thread.record.wait.read()
    {
        Me::work(ledger, thread).has_abandoned(&waiting);
    }
}
