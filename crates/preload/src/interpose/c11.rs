//! Stands before `mtx_*` and `cnd_*`. In glibc these are mutexes and condition variables of
//! the other kind, with answers of their own.

use super::condition;
use super::mutex::ProgramMutex;
use super::until::GivenDeadline;
use crate::call::{CallOutcome, LockCall, Nature};
use crate::events;
use crate::handing;
use crate::me::enter;
use crate::real::{self, LockPointer, REAL, call};
use crate::record;
use crate::rules;
use crate::site::CallSite;
use crate::thunk::Passage;
use core::ffi::c_int;
use lockstead_ledger::lock::{ObjectKind, attribute};
use lockstead_ledger::publish::WaitKind;

crate::thunk! {
    mtx_init(2) => init;
    mtx_destroy(1) => destroy;
    mtx_trylock(1) => trylock;
    mtx_unlock(1) => unlock;
    cnd_init(1) => condition_init;
    cnd_destroy(1) => condition_destroy;
}

crate::passing! {
    cnd_signal(1) => signal;
    cnd_broadcast(1) => broadcast;
}

crate::cancellable! {
    mtx_lock => lock, locked;
    mtx_timedlock => timedlock, locked;
    cnd_wait => wait, waited;
    cnd_timedwait => timed_wait, waited;
}

/// What C11's functions answer, as glibc numbers it.
pub(super) mod answer {
    use core::ffi::c_int;

    pub(crate) const SUCCESS: c_int = 0;
    pub(crate) const BUSY: c_int = 1;
    pub(crate) const ERROR: c_int = 2;
    pub(crate) const TIMED_OUT: c_int = 4;
}

fn outcome(answer: c_int) -> CallOutcome {
    match answer {
        answer::SUCCESS => CallOutcome::Acquired,
        answer::BUSY => CallOutcome::Refused,
        answer::TIMED_OUT => CallOutcome::TimedOut,
        _ => CallOutcome::Failed,
    }
}

#[derive(Clone, Copy)]
struct Mtx(LockPointer);

impl Nature for Mtx {
    fn nature(&self) -> (ObjectKind, u16) {
        let (kind, attributes) = ProgramMutex(self.0).nature();
        (kind, attributes | attribute::C11)
    }
}

fn waiting(mutex: LockPointer, until: GivenDeadline, site: &CallSite) -> LockCall<'_, Mtx> {
    until.call(mutex as u64, Mtx(mutex), WaitKind::MUTEX, site)
}

unsafe extern "C" fn init(mutex: LockPointer, kind: c_int, site: &CallSite) -> c_int {
    real::resolve();
    rules::initialises(mutex as u64, ObjectKind::Mutex, site);
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::mtx_init()(mutex, kind) };
    if answer == answer::SUCCESS
        && let Some(me) = enter()
    {
        me.initialised(mutex as u64, site, Mtx(mutex));
    }
    answer
}

unsafe extern "C" fn destroy(mutex: LockPointer, site: &CallSite) {
    real::resolve();
    rules::destroys(mutex as u64, ObjectKind::Mutex, site);
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    unsafe { call::mtx_destroy()(mutex) };
    if let Some(me) = enter() {
        me.destroyed(mutex as u64, ObjectKind::Mutex, site);
    }
}

/// Acquires the mutex, or publishes that the caller waits for it in `block`.
///
/// # Safety
/// The first argument is the program's.
unsafe fn begins(
    passage: &mut Passage,
    until: GivenDeadline,
    site: &CallSite,
    block: usize,
) -> usize {
    let mutex = passage.arguments[0] as LockPointer;
    // SAFETY: the caller promises that the mutex is the program's.
    let tried = unsafe { call::mtx_trylock()(mutex) };
    let call = waiting(mutex, until, site);
    record::acquisition_begins(passage, &call, (tried, outcome(tried)), block)
}

unsafe extern "C" fn lock(passage: &mut Passage, site: &CallSite) -> usize {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the frame: the mutex is the program's.
    unsafe { begins(passage, GivenDeadline::NEVER, site, REAL.mtx_lock.address()) }
}

unsafe extern "C" fn locked(passage: &mut Passage, site: &CallSite) {
    let call = waiting(passage.arguments[0] as LockPointer, GivenDeadline::NEVER, site);
    record::acquisition_ends(passage, call, outcome(passage.result as c_int));
}

unsafe extern "C" fn trylock(mutex: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::mtx_trylock()(mutex) };
    record::tried(&waiting(mutex, GivenDeadline::NEVER, site), outcome(answer));
    answer
}

unsafe extern "C" fn timedlock(passage: &mut Passage, site: &CallSite) -> usize {
    real::resolve();
    let time = passage.arguments[1] as *const libc::timespec;
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the frame: the time is null or the program's.
    let until = unsafe { GivenDeadline::new(libc::CLOCK_REALTIME, time) };
    // A time that is refused is not waited for.
    let until = until.unwrap_or(GivenDeadline::PAST);
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the frame: the mutex is the program's.
    unsafe { begins(passage, until, site, REAL.mtx_timedlock.address()) }
}

unsafe extern "C" fn unlock(mutex: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    let release = record::release(mutex as u64, &Mtx(mutex), site);
    if !release.was_held && !ProgramMutex(mutex).checks_owner() {
        record::release_of_others(mutex as u64, site);
    }
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::mtx_unlock()(mutex) };
    release.done(site);
    answer
}

unsafe extern "C" fn condition_init(condition: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::cnd_init()(condition) };
    if answer == answer::SUCCESS {
        condition::initialised(condition, attribute::C11, site);
    }
    answer
}

unsafe extern "C" fn condition_destroy(condition: LockPointer, site: &CallSite) {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    unsafe { call::cnd_destroy()(condition) };
    if let Some(me) = enter() {
        me.destroyed(condition as u64, ObjectKind::Condition, site);
    }
}

unsafe extern "C" fn signal(condition: LockPointer, site: &CallSite) -> usize {
    real::resolve();
    rules::signals(condition as u64, site);
    handing::signals(condition as u64);
    events::wakes(condition as u64, site);
    REAL.cnd_signal.address()
}

unsafe extern "C" fn broadcast(condition: LockPointer, site: &CallSite) -> usize {
    real::resolve();
    rules::signals(condition as u64, site);
    handing::signals(condition as u64);
    events::wakes(condition as u64, site);
    REAL.cnd_broadcast.address()
}

unsafe extern "C" fn wait(passage: &mut Passage, site: &CallSite) -> usize {
    real::resolve();
    let [condition, mutex, ..] = passage.arguments;
    record::wait_begins(&condition::waiting(condition, mutex, GivenDeadline::NEVER, site));
    REAL.cnd_wait.address()
}

unsafe extern "C" fn timed_wait(passage: &mut Passage, site: &CallSite) -> usize {
    real::resolve();
    let [condition, mutex, time, _] = passage.arguments;
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the time is null or the program's.
    let until = unsafe { GivenDeadline::new(libc::CLOCK_REALTIME, time as *const libc::timespec) };
    if let Some(until) = until {
        record::wait_begins(&condition::waiting(condition, mutex, until, site));
    }
    REAL.cnd_timedwait.address()
}

unsafe extern "C" fn waited(passage: &mut Passage, site: &CallSite) {
    let [condition, mutex, ..] = passage.arguments;
    let call = condition::waiting(condition, mutex, GivenDeadline::NEVER, site);
    record::wait_ends(&call, outcome(passage.result as c_int));
}
