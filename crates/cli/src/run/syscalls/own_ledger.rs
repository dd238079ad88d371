//! A ledger that this process writes for another one.

use lockstead_inspect::proc::status::StatusFile;
use lockstead_ledger::hello::Hello;
use lockstead_ledger::thread::state;
use lockstead_ledger::{Ledger, LedgerLayout, LedgerPart};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

/// Address space, of which only what is written becomes memory.
const SIZE: u64 = 1 << 32;

/// A ledger in a file without a name, mapped for writing.
pub(crate) struct OwnLedger {
    base: *mut u8,
    /// Nobody may use it for longer than this value lives.
    ledger: Ledger<'static>,
}

// SAFETY: the mapping is shared memory of atomics, at an address that stays until the value is
// dropped.
unsafe impl Send for OwnLedger {}

impl OwnLedger {
    /// Makes an empty ledger for a process, and the file to read it by.
    ///
    /// # Errors
    /// There is no address space or no descriptor left.
    pub(crate) fn new(pid: u32, now: u64) -> io::Result<(OwnLedger, OwnedFd)> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a terminated string.
        let file = unsafe { libc::memfd_create(c"lockstead".as_ptr(), flags) };
        if file == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: this function has just opened the descriptor, so nobody else owns it.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        let size = SIZE as usize;
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let shared = libc::MAP_SHARED | libc::MAP_NORESERVE;
        // SAFETY: the calls change a file of this function's alone, and make a new mapping, which
        // replaces nothing.
        let base = unsafe {
            if libc::ftruncate(file.as_raw_fd(), SIZE.cast_signed()) == -1
                || libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) == -1
            {
                return Err(io::Error::last_os_error());
            }
            libc::mmap(ptr::null_mut(), size, both, shared, file.as_raw_fd(), 0)
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base: *mut u8 = base.cast();
        // SAFETY: the mapping is fresh, of zeroes, of that size, and stays until the value is
        // dropped, which gives the ledger out for no longer than a borrow of it.
        let ledger = unsafe { Ledger::create(base, LedgerLayout::divide(SIZE), pid, now) };
        Ok((OwnLedger { base, ledger }, file))
    }

    /// Returns the ledger, to be written.
    pub(crate) fn view(&self) -> Ledger<'_> {
        self.ledger
    }

    /// Makes the record of a thread, with what it calls itself, as the library would. Returns its
    /// index; `None` where the ledger is full, which is counted.
    pub(crate) fn begin_thread(&self, pid: u32, tid: u32, now: u64) -> Option<usize> {
        let ledger = self.view();
        let Some(index) = ledger.claim(LedgerPart::Threads, 1) else {
            ledger.header().losses.threads.fetch_add(1, Relaxed);
            return None;
        };
        let record = ledger.thread(index)?.record;
        let status = StatusFile::read(&format!("/proc/{pid}/task/{tid}/status"));
        let own = status.ok().and_then(|status| status.own_number()).unwrap_or(tid);
        record.index.store(index as u32, Relaxed);
        record.tid.store(own, Relaxed);
        record.serial.store(index as u32 + 1, Relaxed);
        record.generation.store(1, Relaxed);
        record.began.store(now, Relaxed);
        let name = fs::read(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
        let mut bytes = [0; 16];
        let name = name.trim_ascii_end();
        let length = name.len().min(15);
        bytes[..length].copy_from_slice(&name[..length]);
        for (word, part) in record.name.iter().zip(bytes.chunks_exact(8)) {
            word.store(u64::from_ne_bytes(part.try_into().unwrap_or_default()), Relaxed);
        }
        record.state.store(state::LIVE, Relaxed);
        Some(index)
    }
}

impl Drop for OwnLedger {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped; all views borrow from `self`.
        unsafe { libc::munmap(self.base.cast(), SIZE as usize) };
    }
}

/// Returns what the library in a process would say of it.
pub(super) fn hello(pid: u32, parent: u32, now: u64) -> Hello {
    let mut hello = Hello { pid, parent, size: SIZE, began: now, ..Hello::EMPTY };
    let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let program = program.as_os_str().as_bytes();
    let length = program.len().min(hello.program.len());
    hello.program[..length].copy_from_slice(&program[..length]);
    hello.program_length = length as u32;
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let length = arguments.len().min(hello.arguments.len());
    hello.arguments[..length].copy_from_slice(&arguments[..length]);
    hello.arguments_length = length as u32;
    hello
}
