//! Workers that end by a call of `exec`, at any instruction and in any thread.
//!
//! The parent sends a signal that names a thread. Whoever handles it passes it on to that
//! thread, whose handler calls `exec`: in the middle of whatever it does. What it becomes is
//! the command itself with a job that ends at once, and with a status of its own.

use super::tally::StormThread;
use crate::Error;
use crate::shared::process::{END, MARKER, WorkerProcess};
use std::io;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicUsize, Ordering};

/// How a worker ends that has become another program.
pub(in crate::shared) const EXECUTED: u8 = 77;
/// The status of a worker that could not become another program.
const REFUSED: libc::c_int = 78;

/// The threads that the handlers are about.
static PARTIES: AtomicPtr<StormThread> = AtomicPtr::new(std::ptr::null_mut());
static COUNT: AtomicUsize = AtomicUsize::new(0);
static PROGRAM: AtomicI32 = AtomicI32::new(-1);
static ARGUMENTS: AtomicPtr<*const libc::c_char> = AtomicPtr::new(std::ptr::null_mut());

/// Has this process do as the parent says: what it becomes is the file `program`, and its
/// threads are those of `parties`, which live as long as the process.
pub(super) fn obey(program: OwnedFd, parties: &'static [StormThread]) -> Result<(), Error> {
    let arguments = [c"lockstead".as_ptr(), MARKER.as_ptr(), END.as_ptr(), std::ptr::null()];
    // Until the process becomes another one.
    ARGUMENTS.store(Box::leak(Box::new(arguments)).as_mut_ptr(), Ordering::Relaxed);
    PARTIES.store(parties.as_ptr().cast_mut(), Ordering::Relaxed);
    COUNT.store(parties.len(), Ordering::Relaxed);
    PROGRAM.store(program.into_raw_fd(), Ordering::Relaxed);
    handle(libc::SIGUSR1, pass_on as *const () as usize)?;
    handle(libc::SIGUSR2, become_another as *const () as usize)
}

/// Has a worker end so; by its thread of this number, or if it has none, by whichever the
/// kernel chooses.
pub(super) fn command(worker: &WorkerProcess, thread: usize) {
    worker.signal_with(libc::SIGUSR1, thread);
}

/// Tells whether who ended with this status had become another program, having been commanded. That
/// ends as it should, or by the command's being repeated, which it does not handle any more.
pub(super) fn has_ended_another(status: libc::c_int) -> bool {
    let by_itself = libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == i32::from(EXECUTED);
    by_itself || libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGUSR1
}

fn handle(signal: libc::c_int, handler: usize) -> Result<(), Error> {
    // SAFETY: the structure is plain bits; the handlers are of the type that the flag says.
    let code = unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut())
    };
    if code == 0 {
        return Ok(());
    }
    let what = "a worker cannot handle signals";
    Err(Error::Process { what, source: io::Error::last_os_error() })
}

extern "C" fn pass_on(signal: libc::c_int, about: *mut libc::siginfo_t, more: *mut libc::c_void) {
    // SAFETY: the kernel passes the structure of a signal that came with a value.
    let thread = unsafe { (*about).si_value().sival_ptr } as usize;
    if thread < COUNT.load(Ordering::Relaxed) {
        // SAFETY: the index is below `COUNT`: it is one of the parties that `obey` was told of,
        // which live as long as the process.
        let party = unsafe { &*PARTIES.load(Ordering::Relaxed).add(thread) };
        let number = party.thread.load(Ordering::Relaxed) as libc::pid_t;
        // SAFETY: by CALL-NUMBERS the call takes numbers and touches no memory of ours.
        let passed = unsafe {
            number != libc::gettid() && libc::tgkill(libc::getpid(), number, libc::SIGUSR2) == 0
        };
        if passed {
            return;
        }
    }
    become_another(signal, about, more);
}

extern "C" fn become_another(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    unsafe extern "C" {
        static environ: *const *const libc::c_char;
    }
    // SAFETY: an open file, and lists that end as they should; system calls only.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            PROGRAM.load(Ordering::Relaxed),
            c"".as_ptr(),
            ARGUMENTS.load(Ordering::Relaxed),
            environ,
            libc::AT_EMPTY_PATH,
        );
        libc::_exit(REFUSED);
    }
}
