//! Stands before `prctl`: a thread that may not read the clock any more, or gets a name.
//!
//! In the strict mode of seccomp a thread may make four system calls, and read
//! the processor's counter no more: the kernel's page, which does that to tell
//! the time, would kill it. So nothing is recorded of such a thread.

use super::threads;
use crate::me;
use crate::real::{self, call};
use crate::site::CallSite;
use core::ffi::c_int;

crate::thunk! {
    prctl(5) => control;
}

/// The value of `SECCOMP_MODE_STRICT`.
const STRICT: usize = 1;

unsafe extern "C" fn control(
    option: c_int,
    first: usize,
    second: usize,
    third: usize,
    fourth: usize,
    _: &CallSite,
) -> c_int {
    real::resolve();
    if matches!((option, first), (libc::PR_SET_SECCOMP, STRICT) | (libc::PR_SET_TSC, TSC_KILLS)) {
        me::fall_silent();
    }
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::prctl()(option, first, second, third, fourth) };
    if answer == 0 && option == libc::PR_SET_NAME {
        threads::note_own_name();
    }
    answer
}

/// The value of `PR_TSC_SIGSEGV`.
const TSC_KILLS: usize = libc::PR_TSC_SIGSEGV as usize;
