//! The command's signals, and what it does for the program with them.
//!
//! # Role
//! The program stands in the command's process group, so the terminal's
//! signals reach it by themselves and the command only has to survive them.
//! What is sent to the command alone is passed on.
//!
//! # Decisions
//! - All signals that can be are blocked and read from a descriptor: nothing
//!   of the command's runs in a handler, and the program gets the mask of
//!   before.
//! - A signal of the kernel's (the terminal's, a limit's) is not passed on; one
//!   that a process sent is, unless that process belongs to the run: programs
//!   signal their whole group, and have had theirs. A signal that somebody else
//!   sends to the whole group arrives twice; the two become one while the first
//!   is pending.
//! - When the program stops by job control, the command stops too, so that the
//!   shell takes the terminal back; only where there is a terminal whose
//!   foreground the command stands in, for nobody else would continue it.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

/// The signals that are about a thread's own doing, or cannot be blocked.
const OWN: [libc::c_int; 9] = [
    libc::SIGKILL,
    libc::SIGSTOP,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGABRT,
];

/// The signals of this process, blocked and readable.
pub(super) struct CommandSignals {
    descriptor: OwnedFd,
    before: libc::sigset_t,
}

impl Drop for CommandSignals {
    /// Passes on what is still pending, for it was for the program; what comes later is for the
    /// command.
    fn drop(&mut self) {
        while self.next().is_some() {}
        // SAFETY: `before` is the set that the kernel gave, and nobody has changed it.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, ptr::null_mut()) };
    }
}

/// A signal that came in.
pub(super) struct Signal {
    /// The number that the kernel has for it.
    pub(super) number: libc::c_int,
    /// The process that sent it, if it was a process and not the kernel.
    pub(super) sender: Option<libc::pid_t>,
    value: u64,
    queued: bool,
}

impl CommandSignals {
    /// Blocks all signals but those of [`OWN`].
    ///
    /// # Errors
    /// No descriptor can be had.
    pub(super) fn block() -> io::Result<Self> {
        // SAFETY: all zeroes is storage for a set, which sigfillset fills and
        // sigdelset changes; pthread_sigmask gets two valid sets.
        let (set, before) = unsafe {
            let (mut set, mut before): (libc::sigset_t, libc::sigset_t) = (zeroed(), zeroed());
            libc::sigfillset(&mut set);
            for number in OWN {
                libc::sigdelset(&mut set, number);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut before);
            (set, before)
        };
        // SAFETY: the kernel reads `set`, which was filled above; -1 asks for a new descriptor.
        let descriptor =
            unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if descriptor == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: this function has just opened the descriptor, so nobody else owns it.
        Ok(CommandSignals { descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) }, before })
    }

    /// Becomes readable when a signal is there.
    pub(super) fn descriptor(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// Returns the mask that the program shall have.
    pub(super) fn before(&self) -> &libc::sigset_t {
        &self.before
    }

    /// Returns the next signal that is there.
    pub(super) fn next(&self) -> Option<Signal> {
        // SAFETY: the structure has numbers only, of which all zeroes are a valid value.
        let mut info: libc::signalfd_siginfo = unsafe { zeroed() };
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the call reads at most the size of the structure into it.
        let read = unsafe { libc::read(self.descriptor(), ptr::from_mut(&mut info).cast(), size) };
        if usize::try_from(read) != Ok(size) {
            return None;
        }
        let sent = matches!(info.ssi_code, libc::SI_USER | libc::SI_QUEUE | libc::SI_TKILL);
        Some(Signal {
            number: libc::c_int::try_from(info.ssi_signo).ok()?,
            sender: sent.then_some(libc::pid_t::try_from(info.ssi_pid).ok()?),
            value: info.ssi_ptr,
            queued: info.ssi_code == libc::SI_QUEUE,
        })
    }
}

impl Signal {
    /// Sends the same to `process`.
    pub(super) fn pass_on(&self, process: libc::pid_t) {
        // SAFETY: system calls on numbers; the process is a child that has not
        // been waited for, so the number is its own.
        unsafe {
            if self.queued {
                let value =
                    libc::sigval { sival_ptr: ptr::without_provenance_mut(self.value as usize) };
                libc::sigqueue(process, self.number, value);
            } else {
                libc::kill(process, self.number);
            }
        }
    }
}

/// Stops this process after the program stopped by `signal`, if that is job
/// control at work. Returns when continued.
pub(super) fn stop_along(signal: libc::c_int) {
    if !matches!(signal, libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU) || !in_foreground() {
        return;
    }
    // SAFETY: the calls take numbers only and touch no memory of ours.
    unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
}

/// Returns whether this process stands in the foreground of a terminal, or its group was there
/// until the program took the foreground for itself.
fn in_foreground() -> bool {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else { return false };
    // SAFETY: the call asks about a descriptor that `terminal` keeps open.
    unsafe { libc::tcgetpgrp(terminal.as_raw_fd()) != -1 }
}

/// Ends this process by the signal that ended the program, so that whoever
/// waits for it sees the same. Without a core of its own.
pub(super) fn end_by(signal: libc::c_int) {
    // SAFETY: changes this process's own limit, disposition and mask; the set
    // is filled before it is used.
    unsafe {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::signal(signal, libc::SIG_DFL);
        let mut set: libc::sigset_t = zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::kill(libc::getpid(), signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, ptr::null_mut());
    }
}

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgramEnd {
    /// It ended by itself, with this status.
    Exited(i32),
    /// This signal ended it.
    Killed(i32),
    /// It was not started by this command, which leaves it.
    Left,
}

impl ProgramEnd {
    /// Returns the end in words, for a report.
    pub(super) fn words(self) -> String {
        match self {
            ProgramEnd::Exited(status) => format!("exit status {status}"),
            ProgramEnd::Killed(signal) => format!("killed by signal {signal}"),
            ProgramEnd::Left => "left".into(),
        }
    }
}

/// Returns whether it is one by which people and service managers ask a program to end.
pub(super) fn asks_to_end(signal: libc::c_int) -> bool {
    matches!(signal, libc::SIGINT | libc::SIGTERM | libc::SIGHUP | libc::SIGQUIT)
}
