//! The threads of a session, of a host's mutex, and of each wait.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a thread that takes no signals: those of the process are for the threads of the program, one of
/// which may wait to be interrupted.
///
/// # Errors
/// The system lets this process have no other thread.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Tells whether the calling thread blocks SIGUSR1.
    fn is_blocked() -> bool {
        let mut mask = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: without a new mask the call writes the present one to this function's own.
        unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), mask.as_mut_ptr());
            libc::sigismember(mask.as_ptr(), libc::SIGUSR1) == 1
        }
    }

    #[test]
    fn a_thread_takes_no_signals_and_its_maker_takes_what_it_took() {
        let before = is_blocked();
        let (send, receive) = std::sync::mpsc::channel();
        let thread = start("test", move || send.send(is_blocked()).expect("heard"));
        assert!(!before && !is_blocked());
        assert!(receive.recv().expect("said"));
        thread.expect("started").join().expect("ended");
    }
}
