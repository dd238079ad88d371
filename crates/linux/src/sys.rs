//! Wraps what the rest needs of the libc and the kernel: errno, signals, memory, last words.
//!
//! # Role
//! Everything here may run inside a signal handler and inside the program's
//! allocator: it calls the kernel and nothing that locks or allocates.

use core::ffi::CStr;
use core::ptr::NonNull;
use libc::c_int;

/// Returns the value of `errno`.
pub(crate) fn errno() -> c_int {
    // SAFETY: the libc keeps the location valid for the life of the thread.
    unsafe { *libc::__errno_location() }
}

/// Puts `errno` back when dropped: a lock taken in a signal handler, or in an
/// allocator, must not change what the interrupted code is about to read.
pub(crate) struct KeepErrno(c_int);

impl KeepErrno {
    pub(crate) fn new() -> Self {
        KeepErrno(errno())
    }
}

impl Drop for KeepErrno {
    fn drop(&mut self) {
        // SAFETY: the libc keeps the location valid for the life of the thread, and only this
        // thread writes it.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

/// Holds off the thread's signal handlers until dropped; but for that of `SIGBUS`: the file
/// of a segment may be cut at any time, and a fault while its signal is held off ends the
/// process, whatever handler there is.
pub(crate) struct NoSignals(libc::sigset_t);

impl NoSignals {
    pub(crate) fn new() -> Self {
        // SAFETY: a signal set is plain bits, for which zeros are a value; the calls write to
        // the two sets on this stack, and cannot fail with these arguments.
        unsafe {
            let mut all: libc::sigset_t = core::mem::zeroed();
            let mut before: libc::sigset_t = core::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::sigdelset(&mut all, libc::SIGBUS);
            libc::pthread_sigmask(libc::SIG_BLOCK, &all, &mut before);
            NoSignals(before)
        }
    }
}

impl Drop for NoSignals {
    fn drop(&mut self) {
        // SAFETY: `new` has filled the set; the mask is the calling thread's own.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, core::ptr::null_mut()) };
    }
}

/// Maps fresh zeroed pages straight from the kernel. Returns `None` when it has none.
pub(crate) fn map_zeroed(bytes: usize) -> Option<NonNull<u8>> {
    // SAFETY: an anonymous mapping at an address of the kernel's choice
    // touches nothing that exists.
    let address = unsafe {
        libc::mmap(
            core::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if address == libc::MAP_FAILED { None } else { NonNull::new(address.cast()) }
}

/// Gives pages of [`map_zeroed`] back.
///
/// # Safety
/// `pages` came from `map_zeroed(bytes)`, and nothing refers to them.
pub(crate) unsafe fn unmap(pages: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller promises that nothing refers to the pages, and that they are whole.
    unsafe { libc::munmap(pages.as_ptr().cast(), bytes) };
}

/// Pages for a short time, where a large buffer on the stack would not fit a
/// signal handler's.
pub(crate) struct Scratch(NonNull<u8>);

impl Scratch {
    pub(crate) const SIZE: usize = 1 << 14;

    /// Maps the pages. Returns `None` when the kernel has no memory.
    pub(crate) fn new() -> Option<Self> {
        map_zeroed(Self::SIZE).map(Scratch)
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `new` has mapped this size, the kernel has zeroed it, and `&mut self` says
        // that nobody else reads or writes it.
        unsafe { core::slice::from_raw_parts_mut(self.0.as_ptr(), Self::SIZE) }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: `new` has mapped this size, and no borrow by `bytes` outlives `self`.
        unsafe { unmap(self.0, Self::SIZE) };
    }
}

/// Reads the beginning of a file, as much as fits. Returns `None` when it cannot be read.
///
/// By system calls, not by the libc's functions, which are points of
/// cancellation: a thread must not be cancelled while it acquires a lock.
pub(crate) fn read_file<'a>(path: &CStr, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the path is a C string that the caller keeps alive.
    let file = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags) };
    if file < 0 {
        return None;
    }
    let mut length = 0;
    let complete = loop {
        let rest = &mut buffer[length..];
        // SAFETY: the kernel writes at most `rest.len()` bytes to `rest`, which is ours.
        let got = unsafe { libc::syscall(libc::SYS_read, file, rest.as_mut_ptr(), rest.len()) };
        match got {
            0 => break true,
            1.. => length += got as usize,
            _ if errno() == libc::EINTR => {}
            _ => break false,
        }
    };
    // SAFETY: the descriptor was opened above, and nobody else knows it.
    unsafe { libc::syscall(libc::SYS_close, file) };
    complete.then_some(&buffer[..length])
}

/// Returns the kernel's number of the calling thread.
pub(crate) fn gettid() -> u32 {
    // SAFETY: the call takes no argument and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Tells whether the kernel knows no thread of this process by this number any more.
/// All its memory accesses are over then.
pub(crate) fn thread_is_gone(tid: u32) -> bool {
    // SAFETY: signal 0 is sent to nobody: the kernel only looks the thread up.
    let result = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, 0) };
    result < 0 && errno() == libc::ESRCH
}

/// Says why on standard error and ends the process. For states in which any
/// answer to the caller would break mutual exclusion.
pub(crate) fn die(message: &str) -> ! {
    for part in ["lockstead: ", message, "\n"] {
        // SAFETY: the kernel reads a string that lives as long as the call.
        unsafe { libc::syscall(libc::SYS_write, 2, part.as_ptr(), part.len()) };
    }
    std::process::abort()
}
