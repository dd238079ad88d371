//! Withdraws the published wait of a thread that is cancelled in a real function.

use crate::record;
use core::ffi::{c_int, c_void};

/// Ends the published wait, as the personality routine of the trampolines: the frame is being
/// left by a forced unwinding (cancellation, `pthread_exit` in a handler) or an exception.
///
/// # Safety
/// Called by the unwinder on the thread whose frame it is.
pub unsafe extern "C" fn leave_frame(
    _version: c_int,
    actions: c_int,
    _class: u64,
    _exception: *mut c_void,
    _context: *mut c_void,
) -> c_int {
    /// `_UA_CLEANUP_PHASE` and `_URC_CONTINUE_UNWIND` of the Itanium C++ ABI.
    const CLEANUP_PHASE: c_int = 2;
    const CONTINUE_UNWIND: c_int = 8;
    if actions & CLEANUP_PHASE != 0 {
        record::wait_abandoned();
    }
    CONTINUE_UNWIND
}

// The unwinder reaches the routine through a word of ours, relative to the
// unwind table: position-independent, and nothing to be looked up by name.
core::arch::global_asm!(
    ".pushsection .data.rel.ro.lockstead,\"aw\",@progbits",
    ".balign 8",
    ".globl lockstead_personality",
    ".hidden lockstead_personality",
    ".type lockstead_personality,@object",
    ".size lockstead_personality,8",
    "lockstead_personality:",
    ".quad {routine}",
    ".popsection",
    routine = sym leave_frame,
);
