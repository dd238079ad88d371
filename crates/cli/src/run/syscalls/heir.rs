//! Who answers when the command has gone.
//!
//! # Role
//! The filter stays in the program and in all that it has started. Without an answer the kernel
//! refuses their futex calls, and they break. The command may be killed, and may end before what
//! the program leaves behind; so another process waits for that, and then lets all calls go until
//! nobody has the filter any more. It has no memory, no terminal and no descriptors but two; the call
//! that was being answered it finds on the [`Desk`].

use super::desk::Desk;
use super::filter::KernelListener;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// The life of the command for the heir, which goes to work when this is dropped.
pub(super) struct Heir {
    _alive: OwnedFd,
}

/// Starts the heir. The caller is the only thread of its process.
///
/// # Errors
/// No process or no pipe can be had.
pub(super) fn start(listener: &OwnedFd, desk: &Desk) -> io::Result<Heir> {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two descriptors into an array of two, which lives in this frame.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both were just opened and belong to nobody else.
    let (ours, teller) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
    // SAFETY: the child makes system calls only, and ends in `_exit`; the caller promises that no
    // other thread holds a lock that the child would want.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => inherit(listener.as_raw_fd(), ours.as_raw_fd(), desk),
        _ => Ok(Heir { _alive: teller }),
    }
}

fn inherit(listener: RawFd, alive: RawFd, desk: &Desk) -> ! {
    // SAFETY: the calls take numbers, a terminated string and one byte of this frame; the
    // descriptors that are closed are this process's copies, which nobody uses here.
    unsafe {
        libc::setsid();
        libc::chdir(c"/".as_ptr());
        let (low, high) = (listener.min(alive).unsigned_abs(), listener.max(alive).unsigned_abs());
        for (first, last) in [(0, low.wrapping_sub(1)), (low + 1, high - 1), (high + 1, u32::MAX)] {
            if first <= last {
                libc::syscall(libc::SYS_close_range, first, last, 0);
            }
        }
        let mut byte = 0_u8;
        while libc::read(alive, (&raw mut byte).cast(), 1) == -1 {}
        desk.inherit(&KernelListener(listener));
        libc::_exit(0)
    }
}
