//! Stands before `pthread_spin_*`.
//!
//! A spin lock is meant for waits that are shorter than it takes to write down
//! that one waits. So the wait is published when it has proved to be none of
//! these; before that it spins here, with the function that tries.

use super::until::Until;
use crate::call::{Call, Nature, Outcome};
use crate::me::enter;
use crate::real::{self, Lock, call};
use crate::record;
use crate::rules;
use crate::site::Site;
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use lockstead_ledger::lock::{Kind, attribute};
use lockstead_ledger::publish::{Flags, How};

crate::thunk! {
    pthread_spin_init(2) => init;
    pthread_spin_destroy(1) => destroy;
    pthread_spin_trylock(1) => trylock;
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
const NATURE: (Kind, u16) = (Kind::Spin, 0);

fn waiting<N: Nature>(lock: Lock, nature: N, site: &Site) -> Call<'_, N> {
    Until::NEVER.call(lock as u64, nature, How::SPIN, site)
}

unsafe extern "C" fn init(lock: Lock, shared: c_int, site: &Site) -> c_int {
    real::resolve();
    rules::initialises(lock as u64, Kind::Spin, site);
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_spin_init()(lock, shared) };
    if answer == 0
        && let Some(me) = enter()
    {
        let shared = if shared == libc::PTHREAD_PROCESS_SHARED { attribute::SHARED } else { 0 };
        me.initialised(lock as u64, site, (Kind::Spin, attribute::KNOWN | shared));
    }
    answer
}

unsafe extern "C" fn destroy(lock: Lock, site: &Site) -> c_int {
    real::resolve();
    rules::destroys(lock as u64, Kind::Spin, site);
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_spin_destroy()(lock) };
    if answer == 0
        && let Some(me) = enter()
    {
        me.destroyed(lock as u64, Kind::Spin, site);
    }
    answer
}

unsafe extern "C" fn lock(lock: Lock, site: &Site) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_spin_trylock()(lock) };
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    unsafe { lock_tried(lock, site, answer) }
}

/// Acquires the lock, when the first try has given `answer`.
unsafe extern "C" fn lock_tried(lock: Lock, site: &Site, answer: c_int) -> c_int {
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
    record::wait_ends(&call, Outcome::of_posix(answer));
    answer
}

/// Records an acquisition after a wait that was too short to be timed: it counts as
/// contended, and its time as none.
#[cold]
fn spun_a_little<N: Nature + Copy>(call: &Call<'_, N>) {
    let Some(me) = enter() else { return };
    me.acquired(call, Flags::NONE);
    let own = &me.record().contended;
    own.store(own.load(Relaxed) + 1, Relaxed);
    let place = me.place(call.target, call.site, call.nature);
    if let Some(statistics) = me.ledger.extension(place.lock) {
        statistics.contended.fetch_add(1, Relaxed);
    }
}

unsafe extern "C" fn trylock(lock: Lock, site: &Site) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_spin_trylock()(lock) };
    record::tried(&waiting(lock, NATURE, site), Outcome::of_posix(answer));
    answer
}

/// Releases the lock: glibc does not know who holds a spin lock.
unsafe extern "C" fn unlock(lock: Lock, site: &Site) -> c_int {
    real::resolve();
    let release = record::release(lock as u64, &NATURE, site);
    if !release.was_held {
        record::release_of_others(lock as u64);
    }
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_spin_unlock()(lock) };
    release.done(site);
    answer
}
