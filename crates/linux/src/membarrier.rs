//! The call by which a thread has the others of its process pass a barrier, and the registration
//! that the kernel asks for before.
//!
//! # Role
//! `halves` restarts other threads' releases by it, and `fence.rs` has other threads execute a
//! fence for biased locks.
//!
//! # When the process is registered
//! The kernel registers a process with several threads only after each processor has passed through
//! it, which took the caller 8 to 20 ms in eleven processes on two busy processors. While
//! the process has one thread it takes a microsecond. So a constructor registers the process for both
//! before its second thread exists. Where there is none, as in a library that is loaded later, the
//! first thread that needs the call registers the process and waits.

use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Has the kernel do `command`. Returns whether it has.
pub(crate) fn membarrier(command: libc::c_int) -> bool {
    let _errno = crate::sys::KeepErrno::new();
    // SAFETY: the call takes numbers only, and no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Has the linker take the constructor along: for what relies on the call.
pub(crate) fn register_at_start() {
    core::hint::black_box(&CONSTRUCTOR);
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = register_alone;

/// Registers the process if the calling thread is its only one. What is refused here is refused to
/// the thread that needs it, too, and found out by that.
extern "C" fn register_alone() {
    let is_alone = crate::single::libc_says().is_some_and(|said| {
        // SAFETY: the libc's variable lives as long as the process. It is read as an atomic, since a library
        // may be loaded while other threads start and end.
        unsafe { AtomicU8::from_ptr(said.cast_mut()) }.load(Relaxed) != 0
    });
    if is_alone {
        membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ);
        membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
    }
}
