//! The memory of the process, to be written as well: also where it may only be read there.

use lockstead_inspect::memory::ReadableMemory;
use lockstead_inspect::proc::shown::shown_as;
use lockstead_inspect::proc::status::StatusFile;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

/// The memory of one process.
#[derive(Debug)]
pub(super) struct TargetMemory {
    file: File,
}

impl TargetMemory {
    /// Opens the memory of the process `pid`.
    ///
    /// # Errors
    /// It has ended, or may not be traced.
    pub(super) fn open(pid: u32) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(format!("/proc/{}/mem", shown_as(pid)))?;
        Ok(TargetMemory { file })
    }

    /// Writes all of `bytes`. No thread of the process may run that uses them.
    ///
    /// # Errors
    /// There is no memory.
    pub(super) fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, address)
    }

    /// Writes a word of eight bytes at this address.
    ///
    /// # Errors
    /// There is no memory.
    pub(super) fn write_u64(&self, address: u64, word: u64) -> io::Result<()> {
        self.write(address, &word.to_ne_bytes())
    }

    /// Reads so many bytes.
    ///
    /// # Errors
    /// There are not so many.
    pub(super) fn bytes(&self, address: u64, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.file.read_exact_at(&mut bytes, address)?;
        Ok(bytes)
    }

    /// Reads these pages of `page` bytes each. What the kernel does not let be read so is zero: a guard below a
    /// thread's stack, which lies in the mapping of that since glibc 2.42, memory of devices, and what has gone.
    ///
    /// # Errors
    /// As [`Self::bytes`], for other reasons.
    pub(super) fn pages(&self, address: u64, size: usize, page: usize) -> io::Result<Vec<u8>> {
        let is_none = |error: &io::Error| error.raw_os_error() == Some(libc::EIO);
        match self.bytes(address, size) {
            Err(error) if is_none(&error) => {}
            read => return read,
        }
        let mut bytes = vec![0; size];
        for (at, into) in (address..).step_by(page).zip(bytes.chunks_mut(page)) {
            match self.bytes(at, into.len()) {
                Ok(read) => into.copy_from_slice(&read),
                Err(error) if is_none(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(bytes)
    }

    /// Reads a text that ends with a zero, at most `most` bytes of it.
    pub(super) fn text(&self, address: u64, most: usize) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        let mut at = address;
        while text.len() < most {
            // To the end of the page: what follows may not be there.
            let chunk = (4096 - (at % 4096) as usize).min(256);
            let bytes = self.bytes(at, chunk).ok()?;
            if let Some(end) = bytes.iter().position(|&byte| byte == 0) {
                text.extend_from_slice(&bytes[..end]);
                return Some(text);
            }
            text.extend_from_slice(&bytes);
            at += chunk as u64;
        }
        None
    }
}

impl ReadableMemory for TargetMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(into, address)
    }
}

/// Tells whether a process runs in the memory of its parent, as the child of `vfork` does until it has
/// ended or become another program. What is changed there is the parent's, whose threads go on.
///
/// Where the kernel has no `kcmp`, or does not permit it, no process is said to.
pub(super) fn is_of_parent(pid: u32) -> bool {
    let status = StatusFile::read(&format!("/proc/{pid}/status"));
    let parent = status.ok().and_then(|status| status.number("PPid"));
    parent.and_then(|parent| parent.try_into().ok()).is_some_and(|parent| is_shared(pid, parent))
}

/// Tells whether two processes surely have the same memory.
fn is_shared(one: u32, other: u32) -> bool {
    const VM: i32 = 1;
    // SAFETY: compares what two processes have by their numbers, and touches no memory.
    unsafe { libc::syscall(libc::SYS_kcmp, one, other, VM, 0, 0) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn pages_that_nobody_can_read_are_zero() {
        let page = lockstead_inspect::memory::page_size() as usize;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let how = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, of which this test alone knows: it is filled, and the second page is taken out
        // of it.
        let address = unsafe {
            let start = libc::mmap(std::ptr::null_mut(), 3 * page, access, how, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            start.cast::<u8>().write_bytes(7, 3 * page);
            let second = start.cast::<u8>().add(page).cast();
            // As a guard is, where the kernel has such; else it is gone.
            const GUARD: libc::c_int = 102;
            if libc::madvise(second, page, GUARD) != 0 {
                assert_eq!(libc::munmap(second, page), 0);
            }
            start as u64
        };
        let memory = TargetMemory::open(std::process::id()).expect("its own memory");
        let read = memory.pages(address, 3 * page, page).expect("two pages");
        let expected = [vec![7; page], vec![0; page], vec![7; page]].concat();
        assert!(read == expected, "another page than the second is zero");
        // SAFETY: nothing refers to the mapping any more.
        unsafe { libc::munmap(address as *mut libc::c_void, 3 * page) };
    }

    extern "C" fn pauses(_: *mut libc::c_void) -> libc::c_int {
        loop {
            // SAFETY: waits for nothing and touches no memory, for it returns only where it is signalled,
            // which ends the process. The C library's function would write beside the thread's stack.
            unsafe { libc::syscall(libc::SYS_ppoll, 0_usize, 0_usize, 0_usize, 0_usize, 0_usize) };
        }
    }

    #[test]
    fn a_child_in_the_memory_of_its_parent_is_told_from_one_with_its_own() {
        let own = std::process::id();
        if !is_shared(own, own) {
            return eprintln!("skipped: kcmp is not to be had");
        }
        let mut forked = Command::new("cat").stdin(Stdio::piped()).spawn().expect("it starts");
        assert!(!is_of_parent(forked.id()));
        drop(forked.stdin.take());
        forked.wait().expect("it ends");
        let mut stack = vec![0_u128; 4096];
        let top = stack.as_mut_ptr_range().end.cast();
        let how = libc::CLONE_VM | libc::SIGCHLD;
        // SAFETY: the child has a stack of its own, which lives until it is waited for below, and makes
        // one system call that uses no memory.
        let child = unsafe { libc::clone(pauses, top, how, std::ptr::null_mut()) };
        assert!(child > 0, "{}", io::Error::last_os_error());
        let shared = is_of_parent(child.cast_unsigned());
        // SAFETY: the child has not been waited for, and nothing is written of how it ended.
        let waited = unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0)
        };
        drop(stack);
        assert_eq!((waited, shared), (child, true));
    }
}
