//! Lets a signal handler end a wait that the kernel would resume after the handler.
//!
//! # Role
//! A thread whose wait a handler may end holds signals off while it waits, for a slice of
//! time at once, and looks between two slices which have come. It misses none: a signal
//! stays pending until then. The wait ends late by a slice at most, and the handler runs
//! as late.
//!
//! # Limits
//! A signal of the whole process may be handled by another thread between the look and
//! its delivery; then the wait ends for a handler that has run elsewhere.

use core::mem::MaybeUninit;
use core::ptr::null_mut;
use libc::{c_int, sigset_t};

/// The signals that the thread's own instructions bring about: held off, they would end the
/// process.
const OF_INSTRUCTIONS: [c_int; 5] =
    [libc::SIGBUS, libc::SIGSEGV, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];

/// The signals that do nothing where the process has not set a handler.
const NOT_MINDED: [c_int; 4] = [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH];

/// A span in which signals are held off; when it is dropped, those that came are delivered.
pub(super) struct HeldOff {
    before: sigset_t,
    held: sigset_t,
}

impl HeldOff {
    pub(super) fn new() -> HeldOff {
        // SAFETY: a signal set is plain bits, for which zeros are a value; all calls write to
        // the two sets on this stack, and cannot fail with these arguments.
        unsafe {
            let mut held: sigset_t = core::mem::zeroed();
            let mut before: sigset_t = core::mem::zeroed();
            libc::sigfillset(&mut held);
            for signal in OF_INSTRUCTIONS {
                libc::sigdelset(&mut held, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &held, &mut before);
            HeldOff { before, held }
        }
    }

    /// Tells whether a handler is due. A signal that ends or stops the process does so in this
    /// call.
    pub(super) fn handler_is_due(&self) -> bool {
        let mut pending = MaybeUninit::<sigset_t>::zeroed();
        // SAFETY: the call writes to the set on this stack, of which zeros are a value.
        let pending = unsafe {
            libc::sigpending(pending.as_mut_ptr());
            pending.assume_init()
        };
        let mut fatal = false;
        for signal in 1..=libc::SIGRTMAX() {
            // SAFETY: both sets are initialised, by `sigpending` and by `new`; any number may be
            // asked for.
            let came = unsafe {
                libc::sigismember(&pending, signal) == 1
                    && libc::sigismember(&self.before, signal) == 0
            };
            match came.then(|| handler(signal)) {
                None | Some(libc::SIG_IGN) => {}
                Some(libc::SIG_DFL) => fatal |= !NOT_MINDED.contains(&signal),
                Some(_) => return true,
            }
        }
        if fatal {
            // SAFETY: `new` has initialised both sets; the mask is the calling thread's own.
            unsafe {
                libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, null_mut());
                libc::pthread_sigmask(libc::SIG_BLOCK, &self.held, null_mut());
            }
        }
        false
    }
}

impl Drop for HeldOff {
    fn drop(&mut self) {
        // SAFETY: `new` has initialised the set; the mask is the calling thread's own.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, null_mut()) };
    }
}

/// Returns the handler of a signal. Of its own signals the libc tells none: `SIG_IGN`.
fn handler(signal: c_int) -> usize {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the call writes to a place on this stack, of which zeros are a value, and
    // changes no action.
    unsafe {
        if libc::sigaction(signal, core::ptr::null(), action.as_mut_ptr()) != 0 {
            return libc::SIG_IGN;
        }
        action.assume_init().sa_sigaction
    }
}
