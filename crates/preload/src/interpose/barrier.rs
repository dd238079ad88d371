//! Stands before `pthread_barrier_*`.

use super::until::GivenDeadline;
use crate::call::{CallOutcome, LockCall};
use crate::me::enter;
use crate::real::{self, LockPointer, REAL, call};
use crate::record;
use crate::site::CallSite;
use crate::thunk::Passage;
use core::ffi::{c_int, c_void};
use lockstead_ledger::lock::{ObjectKind, attribute};
use lockstead_ledger::publish::WaitKind;

crate::thunk! {
    pthread_barrier_init(3) => init;
    pthread_barrier_destroy(1) => destroy;
}

crate::cancellable! {
    pthread_barrier_wait => wait, waited;
}

unsafe extern "C" {
    fn pthread_barrierattr_getpshared(attributes: *const c_void, shared: *mut c_int) -> c_int;
}

unsafe extern "C" fn init(
    barrier: LockPointer,
    attributes: *const c_void,
    count: u32,
    site: &CallSite,
) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_barrier_init()(barrier, attributes, count) };
    if answer == 0
        && let Some(me) = enter()
    {
        let mut shared = libc::PTHREAD_PROCESS_PRIVATE;
        if !attributes.is_null() {
            // SAFETY: INTERPOSE-ARGUMENTS: the real function has accepted the attributes.
            unsafe { pthread_barrierattr_getpshared(attributes, &raw mut shared) };
        }
        let shared = if shared == libc::PTHREAD_PROCESS_SHARED { attribute::SHARED } else { 0 };
        me.initialised(barrier as u64, site, (ObjectKind::Barrier, attribute::KNOWN | shared));
    }
    answer
}

unsafe extern "C" fn destroy(barrier: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_barrier_destroy()(barrier) };
    if answer == 0
        && let Some(me) = enter()
    {
        me.destroyed(barrier as u64, ObjectKind::Barrier, site);
    }
    answer
}

fn waiting(barrier: usize, site: &CallSite) -> LockCall<'_, (ObjectKind, u16)> {
    GivenDeadline::NEVER.call(barrier as u64, (ObjectKind::Barrier, 0), WaitKind::BARRIER, site)
}

unsafe extern "C" fn wait(passage: &mut Passage, site: &CallSite) -> usize {
    real::resolve();
    record::wait_begins(&waiting(passage.arguments[0], site));
    REAL.pthread_barrier_wait.address()
}

unsafe extern "C" fn waited(passage: &mut Passage, site: &CallSite) {
    let waiting = waiting(passage.arguments[0], site);
    let answer = passage.result as c_int;
    if answer == libc::PTHREAD_BARRIER_SERIAL_THREAD {
        // This thread came last: it has not waited.
        record::wait_ends(&waiting, CallOutcome::Failed);
        record::used(&waiting);
    } else {
        record::wait_ends(&waiting, CallOutcome::of_posix(answer));
    }
}
