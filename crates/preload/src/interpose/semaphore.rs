//! Stands before `sem_*`.
//!
//! A semaphore has no holder: what is recorded is who waits, and how often it
//! is taken; and of one that serves as a mutex who has [`taken`] it.

use super::SavedErrno;
use super::until::GivenDeadline;
use crate::call::{CallOutcome, LockCall};
use crate::events;
use crate::me::enter;
use crate::real::{self, LockPointer, REAL, call};
use crate::record;
use crate::rules;
use crate::site::CallSite;
use crate::sys;
use crate::taken;
use crate::thunk::Passage;
use core::ffi::{c_char, c_int};
use lockstead_ledger::lock::{ObjectKind, RecordLife, attribute};
use lockstead_ledger::publish::{Flags, WaitKind};
use lockstead_ledger::usage::Sharing;

crate::thunk! {
    sem_init(3) => init;
    sem_destroy(1) => destroy;
    sem_open(4) => open;
    sem_close(1) => close;
    sem_trywait(1) => trywait;
}

crate::passing! {
    sem_post(1) => post;
}

crate::cancellable! {
    sem_wait after act_on_cancellation => wait, waited;
    sem_timedwait after act_on_cancellation => timed_wait, waited;
    sem_clockwait after act_on_cancellation => clock_wait, waited;
}

crate::resolved_frame! {
    /// Lets a cancelled thread go: it does not take a token, though there be one:
    /// the waits begin with this look, as the real ones do. Before the functions are known nobody
    /// cancels.
    act_on_cancellation => pthread_testcancel
}

fn waiting(
    semaphore: usize,
    until: GivenDeadline,
    site: &CallSite,
) -> LockCall<'_, (ObjectKind, u16)> {
    until.call(semaphore as u64, (ObjectKind::Semaphore, 0), WaitKind::SEMAPHORE, site)
}

/// Returns the meaning of a semaphore function's answer: the function returns -1 and sets `errno`
/// if it fails.
fn outcome(answer: isize) -> CallOutcome {
    match answer {
        0 => CallOutcome::Acquired,
        _ => match SavedErrno::keep().value() {
            libc::ETIMEDOUT => CallOutcome::TimedOut,
            libc::EAGAIN => CallOutcome::Refused,
            libc::EINTR => CallOutcome::Interrupted,
            _ => CallOutcome::Failed,
        },
    }
}

unsafe extern "C" fn init(
    semaphore: LockPointer,
    shared: c_int,
    value: u32,
    site: &CallSite,
) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::sem_init()(semaphore, shared, value) };
    if answer == 0
        && let Some(me) = enter()
    {
        let shared = if shared == 0 { 0 } else { attribute::SHARED };
        let binary = if value == 1 { attribute::BINARY } else { 0 };
        let attributes = attribute::KNOWN | shared | binary;
        me.initialised(semaphore as u64, site, (ObjectKind::Semaphore, attributes));
        let sharing = if shared == 0 { Sharing::Private } else { Sharing::Memory };
        rules::semaphore_begins(&me, semaphore as u64, site, Some(value), sharing);
    }
    answer
}

unsafe extern "C" fn destroy(semaphore: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::sem_destroy()(semaphore) };
    if answer == 0
        && let Some(me) = enter()
    {
        rules::semaphore_ends(&me, semaphore as u64, site);
        me.destroyed(semaphore as u64, ObjectKind::Semaphore, site);
    }
    answer
}

/// Opens a named semaphore. Two of the arguments may be missing, and are then whatever lies in
/// their registers: nobody looks at them.
unsafe extern "C" fn open(
    name: *const c_char,
    flags: c_int,
    mode: u32,
    value: u32,
    site: &CallSite,
) -> LockPointer {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk. By the calling convention a variable argument
    // travels like a fixed one.
    let semaphore = unsafe { call::sem_open()(name, flags, mode, value) };
    if !semaphore.is_null()
        && let Some(me) = enter()
    {
        // A semaphore that is open already has but one address, and goes on.
        let known = me.ledger.find_lock(semaphore as u64).and_then(|index| me.ledger.lock(index));
        if !known.is_some_and(|lock| lock.shape().1 == RecordLife::Live) {
            let nature = (ObjectKind::Semaphore, attribute::KNOWN | attribute::SHARED);
            me.initialised(semaphore as u64, site, nature);
            // Whether it was made here, with the value given, nobody says.
            rules::semaphore_begins(&me, semaphore as u64, site, None, Sharing::Named);
        }
    }
    semaphore
}

unsafe extern "C" fn close(semaphore: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::sem_close()(semaphore) };
    // One that was opened more than once goes with the last.
    if answer == 0
        && !sys::is_readable(semaphore as u64)
        && let Some(me) = enter()
    {
        me.destroyed(semaphore as u64, ObjectKind::Semaphore, site);
    }
    answer
}

unsafe extern "C" fn post(semaphore: LockPointer, site: &CallSite) -> usize {
    real::resolve();
    rules::token_given(semaphore as u64, site);
    taken::posts(semaphore as u64);
    events::wakes(semaphore as u64, site);
    REAL.sem_post.address()
}

unsafe extern "C" fn trywait(semaphore: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS: the caller, which a thunk calls, passes the program's semaphore.
    let answer = unsafe { call::sem_trywait()(semaphore) };
    let call = waiting(semaphore as usize, GivenDeadline::NEVER, site);
    match outcome(answer as isize) {
        CallOutcome::Acquired => {
            taken::at_once(&call, Flags::TRIED);
            rules::token_taken(call.target, site, 0);
        }
        other => {
            record::tried(&call, other);
            rules::token_missed(call.target, site, other);
        }
    }
    answer
}

/// Takes a token if there is one; else publishes the wait, and returns `real`, which is to be
/// called.
fn begin(passage: &mut Passage, call: &LockCall<'_, (ObjectKind, u16)>, real: usize) -> usize {
    let errno = SavedErrno::keep();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    if unsafe { call::sem_trywait()(call.target as LockPointer) } == 0 {
        taken::at_once(call, Flags::NONE);
        rules::token_taken(call.target, call.site, 0);
        passage.result = 0;
        return 0;
    }
    drop(errno);
    record::wait_begins(call);
    #[cfg(feature = "check")]
    {
        passage.notes[0] = sys::now() as usize;
    }
    real
}

unsafe extern "C" fn wait(passage: &mut Passage, site: &CallSite) -> usize {
    real::resolve();
    let call = waiting(passage.arguments[0], GivenDeadline::NEVER, site);
    begin(passage, &call, REAL.sem_wait.address())
}

unsafe extern "C" fn timed_wait(passage: &mut Passage, site: &CallSite) -> usize {
    real::resolve();
    let [semaphore, time, ..] = passage.arguments;
    let real = REAL.sem_timedwait.address();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the time is null or the program's.
    let until = unsafe { GivenDeadline::new(libc::CLOCK_REALTIME, time as *const libc::timespec) };
    until.map_or(real, |until| begin(passage, &waiting(semaphore, until, site), real))
}

unsafe extern "C" fn clock_wait(passage: &mut Passage, site: &CallSite) -> usize {
    real::resolve();
    let [semaphore, clock, time, _] = passage.arguments;
    let real = REAL.sem_clockwait.address();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the time is null or the program's.
    let until = unsafe { GivenDeadline::new(clock as c_int, time as *const libc::timespec) };
    until.map_or(real, |until| begin(passage, &waiting(semaphore, until, site), real))
}

unsafe extern "C" fn waited(passage: &mut Passage, site: &CallSite) {
    let call = waiting(passage.arguments[0], GivenDeadline::NEVER, site);
    let outcome = outcome(passage.result);
    record::wait_ends(&call, outcome);
    if outcome == CallOutcome::Acquired {
        taken::waited(&call);
        rules::token_taken(call.target, site, passage.notes[0] as u64);
    } else {
        rules::token_missed(call.target, site, outcome);
    }
}
