//! Stands before `pthread_spin_*`.
//!
//! A spin lock is meant for waits that are shorter than it takes to write down
//! that one waits. So the wait is published when it has proved to be none of
//! these; before that it spins here, with the function that tries.

use super::until::GivenDeadline;
use crate::call::{CallOutcome, LockCall, Nature};
use crate::me::enter;
use crate::real::{self, LockPointer, call};
use crate::record;
use crate::rules;
use crate::site::CallSite;
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::lock::{ObjectKind, attribute};
use lockstead_ledger::publish::{Flags, WaitKind};

crate::thunk! {
    pthread_spin_init(2) => init;
    pthread_spin_destroy(1) => destroy;
    pthread_spin_trylock(1) => trylock;
}

crate::thunk_frame! {
    /// Acquires a lock that the fast path does not.
    lock(1) => lock_begins
}

crate::thunk_frame! {
    /// Acquires the lock, when the first try has given the second argument.
    lock_tried(2) => lock_goes_on
}

crate::fast_acquire! {
    pthread_spin_lock: pthread_spin_trylock, NONE => lock, lock_tried;
}

crate::fast_release! {
    pthread_spin_unlock: pthread_spin_unlock => unlock;
}

/// How often a waiter tries before it publishes that it waits: a few
/// microseconds.
const TRIES: u32 = 100;
/// The number of pauses between two tries, lest they disturb the holder.
const PAUSES: u32 = 4;

/// A spin lock tells nothing about itself but its kind.
const NATURE: (ObjectKind, u16) = (ObjectKind::Spin, 0);

fn waiting<N: Nature>(lock: LockPointer, nature: N, site: &CallSite) -> LockCall<'_, N> {
    GivenDeadline::NEVER.call(lock as u64, nature, WaitKind::SPIN, site)
}

unsafe extern "C" fn init(lock: LockPointer, shared: c_int, site: &CallSite) -> c_int {
    real::resolve();
    rules::initialises(lock as u64, ObjectKind::Spin, site);
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_spin_init()(lock, shared) };
    if answer == 0
        && let Some(me) = enter()
    {
        let shared = if shared == libc::PTHREAD_PROCESS_SHARED { attribute::SHARED } else { 0 };
        me.initialised(lock as u64, site, (ObjectKind::Spin, attribute::KNOWN | shared));
    }
    answer
}

unsafe extern "C" fn destroy(lock: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    rules::destroys(lock as u64, ObjectKind::Spin, site);
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_spin_destroy()(lock) };
    if answer == 0
        && let Some(me) = enter()
    {
        me.destroyed(lock as u64, ObjectKind::Spin, site);
    }
    answer
}

unsafe extern "C" fn lock_begins(lock: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_spin_trylock()(lock) };
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    unsafe { lock_goes_on(lock, answer, site) }
}

unsafe extern "C" fn lock_goes_on(lock: LockPointer, answer: c_int, site: &CallSite) -> c_int {
    let call = waiting(lock, NATURE, site);
    if answer == 0 {
        record::acquired(&call, Flags::NONE);
        return 0;
    }
    for _ in 0..TRIES {
        (0..PAUSES).for_each(|_| core::hint::spin_loop());
        // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
        if unsafe { call::pthread_spin_trylock()(lock) } == 0 {
            spun_a_little(&call);
            return 0;
        }
    }
    record::wait_begins(&call);
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_spin_lock()(lock) };
    record::wait_ends(&call, CallOutcome::of_posix(answer));
    answer
}

/// Records an acquisition after a wait that was too short to be timed: it counts as
/// contended, and its time as none.
#[cold]
fn spun_a_little<N: Nature + Copy>(call: &LockCall<'_, N>) {
    let Some(me) = enter() else { return };
    me.acquired(call, Flags::NONE);
    let own = &me.record().contended;
    own.store(own.load(Relaxed) + 1, Relaxed);
    let place = me.place(call.target, call.site, call.nature);
    if let Some(statistics) = me.ledger.extension(place.lock) {
        statistics.contended.fetch_add(1, Relaxed);
    }
}

unsafe extern "C" fn trylock(lock: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_spin_trylock()(lock) };
    record::tried(&waiting(lock, NATURE, site), CallOutcome::of_posix(answer));
    answer
}

/// Releases the lock: glibc does not know who holds a spin lock.
unsafe extern "C" fn unlock(lock: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    let release = record::release(lock as u64, &NATURE, site);
    if !release.was_held {
        record::release_of_others(lock as u64, site);
    }
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_spin_unlock()(lock) };
    release.done(site);
    answer
}
