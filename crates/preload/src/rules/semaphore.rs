//! The order of semaphores that serve as mutexes.
//!
//! # Protocol
//! Whether one does, and who holds it, [`taken`](crate::taken) knows; as long as it
//! does, its order counts. When it turns out to be a signal, its order until then
//! means nothing.

use crate::call::{CallPlace, LockCall, Nature};
use crate::me::Me;
use crate::order::chains;
use crate::state;
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::lock::LockRecord;
use lockstead_ledger::order::SeenEdge;
use lockstead_ledger::publish::{Flags, WaitKind};

/// Does this file's part of [`super::waits`].
pub fn waits<N: Nature>(me: &Me, call: &LockCall<'_, N>, place: CallPlace) {
    if call.how.kind() == WaitKind::SEMAPHORE
        && me.ledger.lock(place.lock).is_some_and(LockRecord::serves_as_mutex)
    {
        asked(me, call, place);
    }
}

/// Does this file's part of [`super::semaphore_asked`].
pub fn asked<N: Nature>(me: &Me, call: &LockCall<'_, N>, place: CallPlace) {
    me.asks(call.target, place, Flags::NONE, call.how.is_timed());
}

/// Does this file's part of [`super::semaphore_signals`].
pub fn signals(semaphore: u64, index: u32, lock: &LockRecord) {
    let Some(ledger) = state::ledger() else { return };
    if lock.ordered.swap(0, Relaxed) != 0 {
        ledger.add_edge(&SeenEdge::end_of(index, lock.generation.load(Relaxed)));
    }
    chains::life_ended(semaphore);
}
