//! Waits that a signal handler ends, where the kernel resumes each wait after a handler.
//!
//! # Role
//! A thread that is to know of handlers holds signals off while it waits, for a slice of
//! time at once, and looks between two slices what has come. Nothing that comes is
//! missed: it stays pending until it is looked at. It is late by a slice at most, its
//! handler too.
//!
//! # Limits
//! A signal of the whole process may be handled by another thread between the look and
//! its delivery; then the wait ends for a handler that has run elsewhere.

use core::mem::MaybeUninit;
use core::ptr::null_mut;
use libc::{c_int, sigset_t};

/// Those that the thread's own instructions bring about: held off, they end the process.
const OF_INSTRUCTIONS: [c_int; 5] =
    [libc::SIGBUS, libc::SIGSEGV, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];

/// Ignored, where nobody says otherwise.
const NOT_MINDED: [c_int; 4] = [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH];

/// Signals are held off until this is dropped; then what has come is delivered.
pub(super) struct HeldOff {
    before: sigset_t,
    held: sigset_t,
}

impl HeldOff {
    pub(super) fn new() -> HeldOff {
        // SAFETY: a signal set is plain bits, and both calls write to sets of ours; they
        // cannot fail with these arguments.
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

    /// Whether a handler is due. What ends or stops the process does so in here.
    pub(super) fn handler_is_due(&self) -> bool {
        let mut pending = MaybeUninit::<sigset_t>::zeroed();
        // SAFETY: writes to a set of ours, of which zeroes are a value.
        let pending = unsafe {
            libc::sigpending(pending.as_mut_ptr());
            pending.assume_init()
        };
        let mut fatal = false;
        for signal in 1..=libc::SIGRTMAX() {
            // SAFETY: two sets of ours, and a number that they may have or not.
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
            // SAFETY: restores the set read in `new`, and then holds off the same again.
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
        // SAFETY: restores the set read in `new`.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, null_mut()) };
    }
}

/// What is called for a signal; that of the libc's own ones, which it does not tell, is
/// taken for none.
fn handler(signal: c_int) -> usize {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks, into a place for the answer, of which zeroes are a value.
    unsafe {
        if libc::sigaction(signal, core::ptr::null(), action.as_mut_ptr()) != 0 {
            return libc::SIG_IGN;
        }
        action.assume_init().sa_sigaction
    }
}
