//! Stands before `pthread_barrier_*`.

use super::until::GivenDeadline;
use crate::call::CallOutcome;
use crate::me::enter;
use crate::real::{self, LockPointer, call};
use crate::record;
use crate::site::CallSite;
use core::ffi::{c_int, c_void};
use lockstead_ledger::lock::{ObjectKind, attribute};
use lockstead_ledger::publish::WaitKind;

crate::thunk! {
    pthread_barrier_init(3) => init;
    pthread_barrier_destroy(1) => destroy;
    pthread_barrier_wait(1) => wait;
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

unsafe extern "C" fn wait(barrier: LockPointer, site: &CallSite) -> c_int {
    real::resolve();
    let waiting = GivenDeadline::NEVER.call(
        barrier as u64,
        (ObjectKind::Barrier, 0),
        WaitKind::BARRIER,
        site,
    );
    record::wait_begins(&waiting);
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::pthread_barrier_wait()(barrier) };
    if answer == libc::PTHREAD_BARRIER_SERIAL_THREAD {
        // This thread came last: it has not waited.
        record::wait_ends(&waiting, CallOutcome::Failed);
        record::used(&waiting);
    } else {
        record::wait_ends(&waiting, CallOutcome::of_posix(answer));
    }
    answer
}
