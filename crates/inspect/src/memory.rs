//! Reading the memory of another process.
//!
//! # Role
//! One trait, so that what interprets memory does not care where it comes
//! from: a living process by one of two system calls, or bytes that a test
//! laid out. Nothing here stops the process or writes to it: what is read may
//! be torn or gone a moment later, and readers check what they read.

use crate::proc::shown::shown_as;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Memory that can be read by address.
pub trait ReadableMemory {
    /// Fills `into` from `address` on, as far as there is memory, and says how
    /// many bytes that was: fewer than asked for where the memory ends.
    ///
    /// # Errors
    /// Not a byte could be read.
    fn read(&self, address: u64, into: &mut [u8]) -> io::Result<usize>;

    /// Returns the 8 bytes at `address` as a number.
    fn read_u64(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        (self.read(address, &mut bytes).ok()? == 8).then(|| u64::from_ne_bytes(bytes))
    }
}

impl<M: ReadableMemory + ?Sized> ReadableMemory for &M {
    fn read(&self, address: u64, into: &mut [u8]) -> io::Result<usize> {
        (**self).read(address, into)
    }
}

/// Returns the bytes of a page of this kernel.
///
/// # Panics
/// Never: each kernel knows it.
#[must_use]
pub fn page_size() -> u64 {
    // SAFETY: the call takes and returns numbers only, and touches no memory of ours.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).expect("the kernel knows the size of its pages")
}

/// A living process, by `process_vm_readv`: needs no descriptor.
#[derive(Clone, Copy, Debug)]
pub struct ProcessMemory {
    pid: libc::pid_t,
}

impl ProcessMemory {
    /// Refers to the memory of the process `pid`; whether it may be read shows at the first read.
    #[must_use]
    pub fn new(pid: u32) -> Self {
        // A number that is no process id reads nothing, like that of a process
        // that has ended.
        ProcessMemory { pid: libc::pid_t::try_from(pid).unwrap_or(-1) }
    }
}

impl ReadableMemory for ProcessMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> io::Result<usize> {
        let Ok(base) = usize::try_from(address) else {
            return Err(io::Error::from_raw_os_error(libc::EFAULT));
        };
        let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let remote =
            libc::iovec { iov_base: std::ptr::without_provenance_mut(base), iov_len: into.len() };
        let read = |pid| {
            // SAFETY: `local` covers `into`, which is borrowed exclusively; the
            // remote address is checked by the kernel in the other process.
            let n = unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) };
            usize::try_from(n).map_err(|_| io::Error::last_os_error())
        };
        match read(self.pid) {
            // Its first thread may have ended before the others.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
                let other = shown_as(self.pid.cast_unsigned()).cast_signed();
                if other == self.pid { Err(error) } else { read(other) }
            }
            read => read,
        }
    }
}

/// A living process, by `/proc/PID/mem`: where a filter forbids the other call.
/// The descriptor stays valid for the process it was opened for, also when its
/// number is given to another.
#[derive(Debug)]
pub struct ProcMem {
    file: File,
}

impl ProcMem {
    /// Opens the memory of the process `pid`.
    ///
    /// # Errors
    /// The process has ended, or may not be traced by this one.
    pub fn open(pid: u32) -> io::Result<Self> {
        Ok(ProcMem { file: File::open(format!("/proc/{}/mem", shown_as(pid)))? })
    }
}

impl ReadableMemory for ProcMem {
    fn read(&self, address: u64, into: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read_at(into, address)?;
        // The memory of a process that has ended reads as an empty file.
        if n == 0 && !into.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(n) }
    }
}

/// Bytes at an address: memory that was saved or made up.
#[derive(Clone, Debug)]
pub struct SavedMemory {
    start: u64,
    bytes: Vec<u8>,
}

impl SavedMemory {
    /// Makes a memory of `bytes`, the first of them at `start`.
    #[must_use]
    pub fn new(start: u64, bytes: Vec<u8>) -> Self {
        SavedMemory { start, bytes }
    }
}

impl ReadableMemory for SavedMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> io::Result<usize> {
        let from = address
            .checked_sub(self.start)
            .and_then(|offset| usize::try_from(offset).ok())
            .and_then(|offset| self.bytes.get(offset..))
            .filter(|rest| !rest.is_empty())
            .ok_or_else(|| io::Error::from_raw_os_error(libc::EFAULT))?;
        let n = from.len().min(into.len());
        into[..n].copy_from_slice(&from[..n]);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> usize {
        page_size() as usize
    }

    /// Maps two pages of addresses that stay taken, the second past the end of the
    /// file behind them and so unreadable for everybody.
    fn half_readable() -> (u64, usize) {
        let page = page();
        // SAFETY: a new file and a new mapping at an address the kernel
        // chooses; both are leaked, and only the page inside the file is
        // touched.
        unsafe {
            let file = libc::memfd_create(c"half".as_ptr(), libc::MFD_CLOEXEC);
            assert!(file >= 0);
            assert_eq!(libc::ftruncate(file, page as libc::off_t), 0);
            let both = libc::mmap(
                std::ptr::null_mut(),
                2 * page,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE,
                file,
                0,
            );
            assert_ne!(both, libc::MAP_FAILED);
            both.cast::<u8>().add(page - 1).write(7);
            (both as u64, page)
        }
    }

    fn reads_as_memory_does(memory: &dyn ReadableMemory) {
        let value = 0x0123_4567_89ab_cdef_u64;
        assert_eq!(memory.read_u64(&raw const value as u64), Some(value));
        let (start, page) = half_readable();
        let mut bytes = [9; 16];
        let n = memory.read(start + page as u64 - 4, &mut bytes).expect("four bytes are there");
        assert_eq!((n, &bytes[..4]), (4, &[0, 0, 0, 7][..]), "as far as there is memory");
        assert_eq!(memory.read_u64(start + page as u64 - 4), None);
        assert!(memory.read(start + page as u64, &mut bytes).is_err());
        assert!(memory.read(8, &mut bytes).is_err());
        assert!(memory.read(u64::MAX - 3, &mut bytes).is_err());
    }

    #[test]
    fn a_living_process_reads_by_system_call() {
        reads_as_memory_does(&ProcessMemory::new(std::process::id()));
    }

    #[test]
    fn a_living_process_reads_by_file() {
        reads_as_memory_does(&ProcMem::open(std::process::id()).expect("one's own"));
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        let mut bytes = [0; 8];
        let nobody = u32::MAX;
        assert!(ProcessMemory::new(nobody).read(4096, &mut bytes).is_err());
        assert!(ProcMem::open(nobody).is_err());
    }

    #[test]
    fn saved_bytes_read_at_their_address_only() {
        let memory = SavedMemory::new(0x1000, (0..20).collect());
        assert_eq!(
            memory.read_u64(0x1008),
            Some(u64::from_ne_bytes([8, 9, 10, 11, 12, 13, 14, 15]))
        );
        assert_eq!(memory.read_u64(0x100d), None, "one byte short");
        assert_eq!(memory.read_u64(0xfff), None);
        assert_eq!(memory.read_u64(0x1014), None);
        assert_eq!(memory.read_u64(u64::MAX), None);
    }
}
