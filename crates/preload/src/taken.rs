//! Notes which thread has taken a semaphore that serves as a mutex.
//!
//! # Protocol
//! A semaphore that begins with one token is taken for a mutex: who waited for it
//! holds it until it posts. A post by a thread that does not hold it shows that it is
//! a signal: from then on it is none, and nobody holds it
//! ([`LockRecord::handed_on`]). A post by the thread that does is noted
//! ([`attribute::GIVEN_BACK`]), for before the first one nothing speaks for a mutex
//! but the one token.
//!
//! No rule asks who holds a semaphore, but where all members of a cycle wait: its next
//! post may come from anybody.

use crate::call::{CallPlace, LockCall, Nature};
use crate::me::{Me, enter};
use crate::rules;
use crate::state;
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::header::tick_of;
use lockstead_ledger::lock::{LockRecord, ObjectKind, attribute};
use lockstead_ledger::publish::{Flags, Holding};

/// Records that the calling thread has got a token of a semaphore at once.
pub fn at_once<N: Nature + Copy>(call: &LockCall<'_, N>, how: Flags) {
    let Some(me) = enter() else { return };
    let known = me.known_lock(call.target, call.site, call.nature);
    me.counts(known);
    holds(&me, call, CallPlace::of(known), how);
}

/// Records that the calling thread has got a token of a semaphore after a wait, which was
/// recorded.
pub fn waited<N: Nature + Copy>(call: &LockCall<'_, N>) {
    let Some(me) = enter() else { return };
    let place = me.place(call.target, call.site, call.nature);
    holds(&me, call, place, Flags::NONE);
}

fn holds<N: Nature>(me: &Me, call: &LockCall<'_, N>, place: CallPlace, how: Flags) {
    if !me.ledger.lock(place.lock).is_some_and(LockRecord::serves_as_mutex) {
        return;
    }
    if !how.has(Flags::TRIED) {
        rules::semaphore_asked(me, call, place);
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

/// Records that the calling thread is about to give a token.
pub fn posts(semaphore: u64) {
    let Some(ledger) = state::ledger() else { return };
    // To the end: handlers that interrupt pass through.
    let me = enter();
    let index = ledger.find_lock(semaphore);
    if let Some(me) = &me
        && let Some(lock) = index.and_then(|index| ledger.lock(index))
        && let Some(statistics) = ledger.existing_extension(lock)
    {
        me.role(statistics).gives.fetch_add(1, Relaxed);
    }
    if let Some(me) = &me
        && let Some(holding) = me.takes_off(semaphore)
    {
        let given_back = u32::from(attribute::GIVEN_BACK) << 16;
        if let Some(lock) = ledger.lock(holding.lock)
            && lock.shape.load(Relaxed) & given_back == 0
        {
            lock.shape.fetch_or(given_back, Relaxed);
        }
        return;
    }
    let Some(index) = index else { return };
    let Some(lock) = ledger.lock(index).filter(|lock| lock.serves_as_mutex()) else { return };
    // A signal, as it turns out; or a handler's, which may be anybody's.
    lock.handed_on.fetch_add(1, Relaxed);
    for thread in ledger.threads() {
        while thread.stack().revoke(semaphore).is_some() {}
    }
    rules::semaphore_signals(semaphore, index, lock);
}

/// Takes the thread's semaphores off its held stack at its end: other threads will post them.
pub fn thread_ends(me: &Me) {
    let stack = me.thread.stack();
    for index in (0..stack.depth()).rev() {
        if let Some(holding) = stack.entry(index).read()
            && me
                .ledger
                .lock(holding.lock)
                .is_some_and(|lock| lock.shape().0 == ObjectKind::Semaphore)
        {
            let _ = stack.revoke(holding.address);
        }
    }
}
