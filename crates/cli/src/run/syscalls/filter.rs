//! The filter that makes the kernel tell of futex calls, and what is said over it.
//!
//! # Protocol
//! Between fork and exec the child installs the filter and hands the listener to its parent by a
//! socket. The listener closes in the child at exec; the filter stays, in the program and in all
//! that it starts, until they end: nothing takes a filter off. So somebody has to answer as long
//! as they live, see [`heir`](super::heir).
//!
//! Layouts and numbers are the kernel's binary interface (`linux/seccomp.h`).

use super::desk::Listener;
use std::cell::Cell;
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

/// The architecture of which futex calls are told: the calls of 32-bit programs have other numbers.
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
/// The calls that wait for a futex, or wake: `futex`, `futex_waitv`, `futex_wake`, `futex_wait`,
/// `futex_requeue`.
const CALLS: [u32; 5] = [lockstead_inspect::arch::FUTEX as u32, 449, 454, 455, 456];

const FILTER_FLAG_NEW_LISTENER: libc::c_ulong = 1 << 3;
/// A call that is being told of is interrupted by a signal that kills, and by no other.
const FILTER_FLAG_WAIT_KILLABLE: libc::c_ulong = 1 << 5;
const SET_MODE_FILTER: libc::c_ulong = 1;
const RETURN_TELL: u32 = 0x7fc0_0000;
const RETURN_ALLOW: u32 = 0x7fff_0000;
/// The call goes on as if there were no filter.
const CONTINUE: u32 = 1;

const RECEIVE: libc::c_ulong = 0xc050_2100;
const SEND: libc::c_ulong = 0xc018_2101;
const SET_FLAGS: libc::c_ulong = 0x4008_2104;
/// The one who answers runs where the caller ran, which saves a wake-up of another processor.
const SYNCHRONOUS: libc::c_ulong = 1;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CallData {
    number: i32,
    architecture: u32,
    instruction: u64,
    arguments: [u64; 6],
}

/// What the kernel says of a call that a thread is about to make.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Notice {
    /// The number by which it is answered; 0 is none.
    pub(super) id: u64,
    /// The thread, in the PID namespace of this process; 0 of one that is in none below it.
    pub(super) thread: u32,
    flags: u32,
    data: CallData,
}

impl Notice {
    /// Returns the number of the call.
    pub(super) fn number(&self) -> i64 {
        self.data.number.into()
    }

    /// Returns the arguments of the call, as the thread gave them.
    pub(super) fn arguments(&self) -> [u64; 6] {
        self.data.arguments
    }
}

#[repr(C)]
struct Answer {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

const _: () = assert!(size_of::<Notice>() == 80 && size_of::<Answer>() == 24);

/// The way from the child to its parent, by which it hands the listener over.
pub(crate) struct TellingSockets {
    ours: OwnedFd,
    childs: OwnedFd,
}

impl TellingSockets {
    /// Makes them, before the fork.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub(crate) fn new() -> io::Result<TellingSockets> {
        let mut ends = [0; 2];
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        // SAFETY: the kernel writes two descriptors into an array of two, which lives in this frame.
        if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: both were just opened and belong to nobody else.
        let [ours, childs] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
        Ok(TellingSockets { ours, childs })
    }

    /// Installs the filter in the child, hands the listener over, and waits until somebody is there
    /// to answer. For a child between fork and exec: it allocates nothing.
    ///
    /// # Errors
    /// The kernel refuses, or is older than 5.5; or the parent has gone.
    pub(crate) fn tell(&self) -> io::Result<()> {
        // SAFETY: closes the child's copy, so that the end of the parent shows; nobody uses it here.
        unsafe { libc::close(self.ours.as_raw_fd()) };
        install(self.childs.as_raw_fd())?;
        let mut go = 0_u8;
        // SAFETY: the kernel writes one byte, which lives in this frame.
        let mut next =
            || unsafe { libc::recv(self.childs.as_raw_fd(), (&raw mut go).cast(), 1, 0) };
        // The kernel may tell of the end of a peer that sends and closes before it gives its message
        // (see `lockstead_inspect::ledger::passing`).
        if next() == 1 || next() == 1 {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(libc::ECHILD))
        }
    }

    /// Takes the listener in the parent, and returns the way to tell the child to go on, by
    /// [`go_on`]. Returns `None` if the child has no listener.
    pub(super) fn take_over(self) -> Option<(OwnedFd, OwnedFd)> {
        drop(self.childs);
        Some((take_over(&self.ours)?, self.ours))
    }
}

/// Lets the child go on that waits in [`TellingSockets::tell`].
pub(super) fn go_on(child: &OwnedFd) {
    // SAFETY: the kernel reads one byte of a static string. A child that has ended needs none.
    unsafe { libc::send(child.as_raw_fd(), c"!".as_ptr().cast(), 1, libc::MSG_NOSIGNAL) };
}

/// Installs the filter in this process, and hands the listener over.
fn install(socket: RawFd) -> io::Result<()> {
    const LOAD: u16 = 0x20;
    const EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let load = |offset: usize| step(LOAD, 0, 0, offset as u32);
    let is = |value, jt| step(EQUAL, jt, 0, value);
    let mut steps = [
        load(offset_of!(CallData, architecture)),
        step(EQUAL, 0, 6, ARCHITECTURE),
        load(offset_of!(CallData, number)),
        is(CALLS[0], 5),
        is(CALLS[1], 4),
        is(CALLS[2], 3),
        is(CALLS[3], 2),
        is(CALLS[4], 1),
        step(RETURN, 0, 0, RETURN_ALLOW),
        step(RETURN, 0, 0, RETURN_TELL),
    ];
    let program =
        libc::sock_fprog { len: steps.len() as libc::c_ushort, filter: steps.as_mut_ptr() };
    let set = |flags: libc::c_ulong| {
        // SAFETY: the kernel reads the steps, which live in this frame.
        let listener =
            unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, flags, &raw const program) };
        if listener < 0 { Err(io::Error::last_os_error()) } else { Ok(listener as RawFd) }
    };
    let any = || {
        set(FILTER_FLAG_NEW_LISTENER | FILTER_FLAG_WAIT_KILLABLE).or_else(|error| {
            // Linux before 5.19.
            if error.raw_os_error() == Some(libc::EINVAL) {
                set(FILTER_FLAG_NEW_LISTENER)
            } else {
                Err(error)
            }
        })
    };
    let listener = match any() {
        // Who may not install filters may, once it can gain no privileges any more.
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
            // SAFETY: the call takes numbers only and changes a flag of this process.
            unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
            any()?
        }
        other => other?,
    };
    hand_over(socket, listener)
}

/// The room for one descriptor in a message, aligned as the kernel wants it.
#[repr(C, align(8))]
struct Control([u8; 24]);

fn hand_over(socket: RawFd, descriptor: RawFd) -> io::Result<()> {
    let mut byte = 0_u8;
    let mut data = libc::iovec { iov_base: ptr::from_mut(&mut byte).cast(), iov_len: 1 };
    let mut control = Control([0; 24]);
    // SAFETY: all zeroes is a valid message of nothing; the parts that are set live in this frame,
    // and the room suffices for a header and one descriptor, which is what is written there.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut data;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as usize;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as usize;
        libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(descriptor);
        libc::sendmsg(socket, &raw const message, 0)
    };
    if sent == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Takes the listener that the child hands over. Returns `None` if it ended before.
fn take_over(socket: &OwnedFd) -> Option<OwnedFd> {
    let mut byte = 0_u8;
    let mut data = libc::iovec { iov_base: ptr::from_mut(&mut byte).cast(), iov_len: 1 };
    let mut control = Control([0; 24]);
    // SAFETY: all zeroes is a valid message of nothing; the kernel writes into the parts that are
    // set, which live in this frame. A header that it has written is read before its descriptor,
    // which nobody else owns.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut data;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = control.0.len();
        if libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) != 1 {
            return None;
        }
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if header.is_null() || (*header).cmsg_type != libc::SCM_RIGHTS {
            return None;
        }
        let descriptor = libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned();
        let listener = OwnedFd::from_raw_fd(descriptor);
        // Linux 6.6 and later; without it, it only takes longer.
        libc::ioctl(listener.as_raw_fd(), SET_FLAGS, SYNCHRONOUS);
        Some(listener)
    }
}

/// The listener's descriptor, which whoever uses this keeps open.
#[derive(Clone, Copy)]
pub(super) struct KernelListener(pub(super) RawFd);

impl Listener for KernelListener {
    fn receive(&self, notice: &Cell<Notice>) -> bool {
        // SAFETY: the cell has room for one notice, which is what the kernel writes; it is of this
        // thread alone meanwhile.
        unsafe { libc::ioctl(self.0, RECEIVE, notice.as_ptr()) != -1 }
    }

    fn let_go(&self, id: u64) {
        let mut answer = Answer { id, value: 0, error: 0, flags: CONTINUE };
        // SAFETY: the kernel reads one answer of this frame. A thread that has been killed
        // meanwhile needs none.
        unsafe { libc::ioctl(self.0, SEND, &raw mut answer) };
    }

    fn wait(&self, other: RawFd, limit: i32) -> Option<(bool, bool)> {
        let wanted = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut both = [wanted(self.0), wanted(other)];
        // SAFETY: the kernel reads and writes two entries, which this frame borrows exclusively.
        unsafe { libc::poll(both.as_mut_ptr(), 2, limit) };
        if both[0].revents & libc::POLLHUP != 0 {
            return None;
        }
        Some((both[0].revents & libc::POLLIN != 0, both[1].revents != 0))
    }
}
