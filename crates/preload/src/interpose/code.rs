//! Stands before `dlclose`: what lies at an address of code may change its meaning.

use crate::chain;
use crate::real::{self, call};
use crate::site::CallSite;
use crate::state;
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::Relaxed;

crate::thunk! {
    dlclose(1) => close;
}

unsafe extern "C" fn close(handle: *mut c_void, _: &CallSite) -> c_int {
    real::resolve();
    // Raised before the call as well as after it: as soon as the file has gone, another thread may load one
    // at its place, and would find the old one's note. What is noted in between is noted anew afterwards.
    if let Some(ledger) = state::ledger() {
        ledger.header().unloads.fetch_add(1, Relaxed);
    }
    // SAFETY: INTERPOSE-ARGUMENTS, kept by the thunk: the arguments are the program's.
    let answer = unsafe { call::dlclose()(handle) };
    if answer == 0
        && let Some(ledger) = state::ledger()
    {
        ledger.header().unloads.fetch_add(1, Relaxed);
        chain::forget_rules();
    }
    answer
}
