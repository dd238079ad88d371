//! The threads of a session, of a host's mutex, and of each wait.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a thread that takes no signals: those of the process are for the threads of the program, one of
/// which may wait to be interrupted.
///
/// # Errors
/// As [`Builder::spawn`].
pub(crate) fn start(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both are this function's own, for the calls to write; the mask is this thread's own. A new
    // thread begins with its maker's mask, so that no signal comes in between.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
    }
    let thread = Builder::new().name(name.into()).spawn(run);
    // SAFETY: as above; `before` was written by the first call, which cannot fail with these arguments.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    thread
}
