//! Makes system calls without libc: nothing here touches `errno`, allocates, or can
//! be interposed.

use crate::arch;

/// What a system call returned: a number that is not negative, or an error.
pub type SysAnswer = Result<usize, Errno>;

/// An error of the kernel's, positive as in `errno.h`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(pub i32);

/// Makes the system call `number`.
///
/// # Safety
/// As of the call that is made: pointers it reads or writes must be good for
/// it, and what it does to the process must be sound.
#[inline(always)]
pub unsafe fn call(number: libc::c_long, args: [usize; 6]) -> SysAnswer {
    // SAFETY: the caller promises that the memory in the arguments may be used so.
    let answer = unsafe { arch::system_call(number, args) };
    if (-4095..0).contains(&answer) { Err(Errno(-answer as i32)) } else { Ok(answer as usize) }
}

/// Tells whether the eight bytes at `address` can be read: the kernel reads them, as a mask of
/// signals for a call that it then refuses.
#[must_use]
pub fn is_readable(address: u64) -> bool {
    const NO_SUCH_WAY: usize = i32::MAX as usize;
    let arguments = [NO_SUCH_WAY, address as usize, 0, 8, 0, 0];
    // SAFETY: the kernel reads eight bytes, or says that it cannot; there is no such way of changing
    // the mask, so that it stays as it is.
    let answer = unsafe { call(libc::SYS_rt_sigprocmask, arguments) };
    answer == Err(Errno(libc::EINVAL))
}

/// Closes a descriptor that is ours.
pub fn close(fd: usize) {
    // SAFETY: the call takes a number; the callers own the descriptor.
    let _ = unsafe { call(libc::SYS_close, [fd, 0, 0, 0, 0, 0]) };
}

/// Returns the calling thread's id.
#[must_use]
pub fn gettid() -> u32 {
    // SAFETY: the call takes no argument and cannot fail.
    unsafe { call(libc::SYS_gettid, [0; 6]) }.unwrap_or(0) as u32
}

/// Returns the calling process's id; the kernel's answer, also right after a `clone`
/// that libc knows nothing of.
#[must_use]
pub fn getpid() -> u32 {
    // SAFETY: the call takes no argument and cannot fail.
    unsafe { call(libc::SYS_getpid, [0; 6]) }.unwrap_or(0) as u32
}

/// Returns the parent process's id.
#[must_use]
pub fn getppid() -> u32 {
    // SAFETY: the call takes no argument and cannot fail.
    unsafe { call(libc::SYS_getppid, [0; 6]) }.unwrap_or(0) as u32
}

/// Returns the nanoseconds of `CLOCK_MONOTONIC`, by the vDSO.
#[must_use]
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the function writes to a timespec on this stack. glibc's function is a jump to the
    // kernel's page; it fails, and would set errno, only for clocks that do not
    // exist.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the bytes of a page of this kernel. On x86-64 that is a constant; elsewhere the C library
/// reads it from what the kernel gave the program, without a lock or memory.
#[must_use]
pub fn page() -> usize {
    const LEAST: usize = 4096;
    if cfg!(target_arch = "x86_64") {
        return LEAST;
    }
    // SAFETY: the call takes and returns a number.
    let told = unsafe { libc::getauxval(libc::AT_PAGESZ) } as usize;
    // An emulator may leave it out, and then the answer is 0.
    told.max(LEAST)
}

/// Maps new memory of the process's own, zeroed; whole pages.
pub fn map_private(bytes: usize) -> Result<*mut u8, Errno> {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
    // SAFETY: the kernel chooses an address where nothing is mapped.
    unsafe { call(libc::SYS_mmap, [0, bytes, protection, flags, usize::MAX, 0]) }
        .map(|address| address as *mut u8)
}

/// Gives memory of [`map_private`] back to the kernel.
///
/// # Safety
/// `[address, address + bytes)` is a mapping that nobody uses any more.
pub unsafe fn unmap(address: *mut u8, bytes: usize) {
    // SAFETY: the caller promises that the mapping is its own, and that nobody uses it.
    let _ = unsafe { call(libc::SYS_munmap, [address as usize, bytes, 0, 0, 0, 0]) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_from_answers() {
        assert_eq!(getpid(), std::process::id());
        // SAFETY: no descriptor has this number, so that nobody loses one.
        let closed = unsafe { call(libc::SYS_close, [usize::MAX >> 1, 0, 0, 0, 0, 0]) };
        assert_eq!(closed, Err(Errno(libc::EBADF)));
    }

    #[test]
    fn what_cannot_be_read_is_told_without_a_fault() {
        let here = 7_u64;
        assert!(is_readable(&raw const here as u64));
        assert!(!is_readable(0) && !is_readable(8) && !is_readable(1 << 60));
    }

    #[test]
    fn memory_comes_zeroed() {
        let memory = map_private(8192).expect("memory");
        // SAFETY: the memory was mapped above, and nothing uses it after `unmap`.
        unsafe {
            assert!((0..8192).all(|i| memory.add(i).read() == 0));
            unmap(memory, 8192);
        }
    }

    #[test]
    fn a_page_is_what_the_kernel_says() {
        // SAFETY: the call takes and returns numbers.
        let told = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        assert_eq!(page() as libc::c_long, told);
    }

    #[test]
    fn the_clock_goes_forward() {
        let first = now();
        assert!(now() >= first && first > 0);
    }
}
