//! Semaphores that serve as mutexes.
//!
//! # Protocol
//! A semaphore that begins with one token is taken for a mutex: who waited for it
//! holds it until it posts, and its order counts. A post by a thread that does not
//! hold it shows that it is a signal: from then on it is none, and its order until
//! then means nothing (`LockRecord::handed_on`).
//!
//! No other rule asks who holds a semaphore: its next post may come from anybody.

use super::tokens;
use crate::chain::{Nature, Place};
use crate::me::{Me, enter};
use crate::order::chains;
use crate::real::{self, Lock, REAL};
use crate::record::Call;
use crate::site::Site;
use crate::state;
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::header::tick_of;
use lockstead_ledger::lock::{Kind, Life, LockRecord, attribute};
use lockstead_ledger::order::Edge;
use lockstead_ledger::publish::{Flags, Holding, How};

fn is_mutex(lock: &LockRecord) -> bool {
    let (kind, life, attributes) = lock.shape();
    kind == Kind::Semaphore
        && matches!(life, Life::Live)
        && attributes & (attribute::BINARY | attribute::SHARED) == attribute::BINARY
        && lock.handed_on.load(Relaxed) == 0
}

/// See [`super::waits`].
pub fn waits<N: Nature>(me: &Me, call: &Call<'_, N>, place: Place) {
    if call.how.kind() == How::SEMAPHORE && me.ledger.lock(place.lock).is_some_and(is_mutex) {
        me.asks(call.target, place, Flags::NONE, call.how.is_timed());
    }
}

/// See [`super::semaphore_taken`].
pub fn taken<N: Nature>(call: &Call<'_, N>, how: Flags) {
    let Some(me) = enter() else { return };
    let place = me.place(call.target, call.site, || call.nature.nature());
    if !me.ledger.lock(place.lock).is_some_and(is_mutex) {
        return;
    }
    if !how.has(Flags::TRIED) {
        me.asks(call.target, place, Flags::NONE, call.how.is_timed());
    }
    let clock = me.ledger.header().clock.0.load(Relaxed);
    me.push(&Holding {
        address: call.target,
        lock: place.lock,
        stack: place.stack,
        tick: tick_of(clock),
        flags: how,
        started: 0,
    });
}

crate::passing! {
    sem_post(1) => post;
}

unsafe extern "C" fn post(semaphore: Lock, site: &Site) -> usize {
    real::resolve();
    tokens::given(semaphore as u64, site);
    posts(semaphore as u64);
    REAL.sem_post.address()
}

fn posts(semaphore: u64) {
    let Some(ledger) = state::ledger() else { return };
    let Some(index) = ledger.find_lock(semaphore) else { return };
    let Some(lock) = ledger.lock(index).filter(|lock| is_mutex(lock)) else { return };
    let me = enter();
    if me.as_ref().is_some_and(|me| me.pop(semaphore).is_some()) {
        return;
    }
    // A signal, as it turns out; or a handler's, which may be anybody's.
    lock.handed_on.fetch_add(1, Relaxed);
    for thread in ledger.threads() {
        while thread.stack().revoke(semaphore).is_some() {}
    }
    if lock.ordered.swap(0, Relaxed) != 0 {
        ledger.add_edge(&Edge::end_of(index, lock.generation.load(Relaxed)));
    }
    chains::life_ended(semaphore);
}

/// The thread ends: what it has not posted somebody else will.
pub fn thread_ends(me: &Me) {
    let stack = me.thread.stack();
    for index in (0..stack.depth()).rev() {
        if let Some(holding) = stack.entry(index).read()
            && me.ledger.lock(holding.lock).is_some_and(|lock| lock.shape().0 == Kind::Semaphore)
        {
            let _ = stack.revoke(holding.address);
        }
    }
}
