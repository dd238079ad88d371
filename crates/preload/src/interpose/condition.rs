//! Stands before `pthread_cond_*`, in the generation that `GLIBC_2.3.2` began.
//!
//! The functions that wake are here for what they tell of the condition
//! ([`handing`]), and so that an old program, which asks for the
//! generation before, gets all functions of one generation: its waits go through here to
//! the new ones.

use super::until::GivenDeadline;
use crate::call::{CallOutcome, LockCall};
use crate::events;
use crate::handing;
use crate::me::enter;
use crate::real::{self, LockPointer, REAL, call};
use crate::record;
use crate::rules;
use crate::site::CallSite;
use crate::thunk::Passage;
use core::ffi::{c_int, c_void};
use lockstead_ledger::lock::{ObjectKind, attribute};
use lockstead_ledger::publish::WaitKind;

crate::thunk! {
    pthread_cond_init(2) => init;
    pthread_cond_destroy(1) => destroy;
}

crate::passing! {
    pthread_cond_signal(1) => signal;
    pthread_cond_broadcast(1) => broadcast;
}

crate::cancellable! {
    pthread_cond_wait => wait, waited;
    pthread_cond_timedwait => timed_wait, timed_waited;
    pthread_cond_clockwait => clock_wait, clock_waited;
}

unsafe extern "C" {
    fn pthread_condattr_getpshared(attributes: *const c_void, shared: *mut c_int) -> c_int;
    fn pthread_condattr_getclock(attributes: *const c_void, clock: *mut c_int) -> c_int;
}

/// Describes a wait for a wake-up, during which the mutex is given back.
pub(super) fn waiting(
    condition: usize,
    mutex: usize,
    until: GivenDeadline,
    site: &CallSite,
) -> LockCall<'_, (ObjectKind, u16)> {
    let call = until.call(condition as u64, (ObjectKind::Condition, 0), WaitKind::CONDITION, site);
    LockCall { companion: mutex as u64, ..call }
}

/// Records that the condition variable was initialised, with these attributes.
pub(super) fn initialised(condition: LockPointer, attributes: u16, site: &CallSite) {
    if let Some(me) = enter() {
        me.initialised(
            condition as u64,
            site,
            (ObjectKind::Condition, attribute::KNOWN | attributes),
        );
    }
}

/// Returns what the attributes say, as bits of [`attribute`].
///
/// # Safety
/// `attributes` is null or was accepted by `pthread_cond_init`.
unsafe fn attributes_of(attributes: *const c_void) -> u16 {
    let (mut shared, mut clock) = (libc::PTHREAD_PROCESS_PRIVATE, libc::CLOCK_REALTIME);
    if !attributes.is_null() {
        // SAFETY: the caller promises attributes that were accepted; these functions only read
        // them.
        unsafe {
            pthread_condattr_getpshared(attributes, &raw mut shared);
            pthread_condattr_getclock(attributes, &raw mut clock);
        }
    }
    let shared = if shared == libc::PTHREAD_PROCESS_SHARED { attribute::SHARED } else { 0 };
    let clock = if clock == libc::CLOCK_MONOTONIC { attribute::MONOTONIC } else { 0 };
    shared | clock
}

unsafe extern "C" fn init(
    condition: LockPointer,
    attributes: *const c_void,
    site: &CallSite,
) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_cond_init()(condition, attributes) };
    if answer == 0 {
        // SAFETY: the real function has accepted the attributes.
        initialised(condition, unsafe { attributes_of(attributes) }, site);
    }
    answer
}

unsafe extern "C" fn destroy(condition: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_cond_destroy()(condition) };
    if answer == 0
        && let Some(me) = enter()
    {
        me.destroyed(condition as u64, ObjectKind::Condition, site);
    }
    answer
}

unsafe extern "C" fn signal(condition: LockPointer, site: &CallSite) -> usize {
    real::resolve();
    rules::signals(condition as u64, site);
    handing::signals(condition as u64);
    events::wakes(condition as u64, site);
    REAL.pthread_cond_signal.address()
}

unsafe extern "C" fn broadcast(condition: LockPointer, site: &CallSite) -> usize {
    real::resolve();
    rules::signals(condition as u64, site);
    handing::signals(condition as u64);
    events::wakes(condition as u64, site);
    REAL.pthread_cond_broadcast.address()
}

/// Ends the wait with `answer`.
pub(super) fn ended(call: &LockCall<'_, (ObjectKind, u16)>, answer: c_int) {
    record::wait_ends(call, CallOutcome::of_posix(answer));
    if answer == libc::ENOTRECOVERABLE {
        // The only end of a wait after which the mutex is not the caller's.
        record::lost(call.companion);
    }
}

unsafe extern "C" fn wait(passage: &mut Passage, site: &CallSite) -> usize {
    real::resolve();
    let [condition, mutex, ..] = passage.arguments;
    record::wait_begins(&waiting(condition, mutex, GivenDeadline::NEVER, site));
    REAL.pthread_cond_wait.address()
}

unsafe extern "C" fn waited(passage: &mut Passage, site: &CallSite) {
    let [condition, mutex, ..] = passage.arguments;
    ended(&waiting(condition, mutex, GivenDeadline::NEVER, site), passage.result as c_int);
}

/// Returns the clock by which a wait without one of its own goes.
fn own_clock(condition: usize) -> c_int {
    let monotonic = enter().is_some_and(|me| {
        me.ledger
            .find_lock(condition as u64)
            .and_then(|index| me.ledger.lock(index))
            .is_some_and(|lock| lock.shape().2 & attribute::MONOTONIC != 0)
    });
    if monotonic { libc::CLOCK_MONOTONIC } else { libc::CLOCK_REALTIME }
}

unsafe extern "C" fn timed_wait(passage: &mut Passage, site: &CallSite) -> usize {
    real::resolve();
    let [condition, mutex, time, _] = passage.arguments;
    let clock = own_clock(condition);
    passage.notes[0] = clock as usize;
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the time is null or the program's.
    if let Some(until) = unsafe { GivenDeadline::new(clock, time as *const libc::timespec) } {
        record::wait_begins(&waiting(condition, mutex, until, site));
    }
    REAL.pthread_cond_timedwait.address()
}

unsafe extern "C" fn timed_waited(passage: &mut Passage, site: &CallSite) {
    let [condition, mutex, ..] = passage.arguments;
    ended(&waiting(condition, mutex, GivenDeadline::NEVER, site), passage.result as c_int);
}

unsafe extern "C" fn clock_wait(passage: &mut Passage, site: &CallSite) -> usize {
    real::resolve();
    let [condition, mutex, clock, time] = passage.arguments;
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the time is null or the program's.
    let until = unsafe { GivenDeadline::new(clock as c_int, time as *const libc::timespec) };
    if let Some(until) = until {
        record::wait_begins(&waiting(condition, mutex, until, site));
    }
    REAL.pthread_cond_clockwait.address()
}

unsafe extern "C" fn clock_waited(passage: &mut Passage, site: &CallSite) {
    let [condition, mutex, ..] = passage.arguments;
    ended(&waiting(condition, mutex, GivenDeadline::NEVER, site), passage.result as c_int);
}
