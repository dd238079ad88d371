//! What this command was started with, before Rust's runtime and the command
//! itself changed it.
//!
//! # Role
//! The program shall find what it would have found without the command. The
//! runtime ignores SIGPIPE and opens `/dev/null` for standard descriptors that
//! were closed; both happen before `main`, so they are looked at earlier, by a
//! function that the dynamic linker calls. The command needs more descriptors
//! than a shell allows by default, two for each process that it watches.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

static PIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);
/// A bit for each of the three standard descriptors.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// The limit of open descriptors before it was raised.
static DESCRIPTORS: OnceLock<libc::rlimit> = OnceLock::new();

/// Lets the command have as many open descriptors as it may. [`restore`] undoes
/// it.
pub(super) fn raise_descriptors() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: reads a limit into a structure borrowed exclusively, and sets one
    // from a copy of it.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 && DESCRIPTORS.set(limit).is_ok() {
            let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
            // If it cannot be raised, processes beyond it are said to be lost.
            libc::setrlimit(libc::RLIMIT_NOFILE, &raised);
        }
    }
}

extern "C" fn look() {
    // SAFETY: all zeroes is a valid value of this plain structure.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the call only reads the disposition, into a structure borrowed exclusively.
    unsafe { libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut action) };
    PIPE_WAS_IGNORED.store(action.sa_sigaction == libc::SIG_IGN, Relaxed);
    let mut closed = 0;
    for descriptor in 0..3 {
        // SAFETY: asks for a flag; a closed descriptor is an error value.
        if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } == -1 {
            closed |= 1 << descriptor;
        }
    }
    CLOSED.store(closed, Relaxed);
}

// SAFETY: the linker's list of functions to call before `main`; `look` has the
// C calling convention, ignores the arguments it gets, and needs nothing of
// the runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Undoes in this process what the runtime and the command changed; for a child
/// that is about to become the program. Makes system calls only.
pub(super) fn restore() {
    let pipe = if PIPE_WAS_IGNORED.load(Relaxed) { libc::SIG_IGN } else { libc::SIG_DFL };
    // SAFETY: neither disposition runs code of this process.
    unsafe { libc::signal(libc::SIGPIPE, pipe) };
    if let Some(limit) = DESCRIPTORS.get() {
        // SAFETY: the kernel reads `limit`, which lives as long as the program.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, limit) };
    }
    let closed = CLOSED.load(Relaxed);
    for descriptor in 0..3 {
        if closed & 1 << descriptor != 0 {
            // SAFETY: what the runtime opened there is used by nobody after
            // this.
            unsafe { libc::close(descriptor) };
        }
    }
}
