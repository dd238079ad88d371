//! Maps the table for reading, if there is one, and answers who runs.
//!
//! # Protocol
//! [`find`] looks once in the life of the process: does the file exist? Only then is
//! it opened by a call that a system call filter might not expect. A thread that joins
//! asks the table for its own name there ([`introduce`]): the kernel's number in the
//! first PID namespace, which in another one it has no other way to learn. In the first
//! one it knows its number, and so notices a table that is not kept.
//!
//! # Invariants
//! - **ONCPU-MAPPED** [`ENTRIES`] is not 0 ⇒ the mapping at [`BASE`] has as many bytes as
//!   [`size`] says, for good: the one thread that found it never unmaps it.
//!
//! The numbers in the table are hints, read without order.

use super::layout::{CPUS, LINE, LIVE, OncpuHeader, TABLE, size, spread};
use crate::{rseq, sys};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering::Relaxed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

static LOOKED: AtomicBool = AtomicBool::new(false);
static BASE: AtomicPtr<u8> = AtomicPtr::new(null_mut());
static PROCESSORS: AtomicU32 = AtomicU32::new(0);
static ENTRIES: AtomicU32 = AtomicU32::new(0);
/// Whether the process lives in another PID namespace than the first.
static NESTED: AtomicBool = AtomicBool::new(false);

/// Maps the table unless that has been tried. At most one call is refused.
pub(crate) fn find() {
    if LOOKED.swap(true, Relaxed) {
        return;
    }
    let _errno = sys::KeepErrno::new();
    if exists()
        && let Some(table) = MappedTable::open()
    {
        table.use_it();
    }
}

/// Tells whether there is a file in the table's place that the process may read.
pub(super) fn exists() -> bool {
    let path = TABLE.as_ptr();
    // SAFETY: the path is a static C string, and the kernel only reads it.
    unsafe { libc::syscall(libc::SYS_faccessat, libc::AT_FDCWD, path, libc::R_OK) == 0 }
}

/// Opens the map behind the table's name.
fn open() -> Option<OwnedFd> {
    #[repr(C)]
    struct GetObject {
        path: *const libc::c_char,
        file: u32,
        flags: u32,
    }
    const OBJ_GET: libc::c_int = 7;
    let argument = GetObject { path: TABLE.as_ptr(), file: 0, flags: 0 };
    let size = size_of::<GetObject>();
    // SAFETY: the kernel reads a live structure of this size, and in it the path, a static
    // C string.
    let map = unsafe { libc::syscall(libc::SYS_bpf, OBJ_GET, &raw const argument, size) };
    // SAFETY: the kernel has just made the descriptor for this call alone.
    (map >= 0).then(|| unsafe { OwnedFd::from_raw_fd(map as libc::c_int) })
}

/// A mapped table, unmapped when dropped.
pub(super) struct MappedTable {
    base: *mut u8,
    pub(super) header: OncpuHeader,
}

impl MappedTable {
    /// Maps the table of this machine. Returns `None` if there is none, or none that can be read.
    pub(super) fn open() -> Option<Self> {
        let map = open()?;
        let look = |bytes| {
            // SAFETY: a new mapping at an address of the kernel's choice; the size of a map
            // never changes, so the kernel keeps all of it readable.
            let base = unsafe {
                libc::mmap(null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, map.as_raw_fd(), 0)
            };
            if base == libc::MAP_FAILED { None } else { Some(base.cast::<u8>()) }
        };
        let first = look(size_of::<OncpuHeader>())?;
        // SAFETY: `look` has mapped a page at least; any bytes are a header, and nobody
        // but this function knows the mapping.
        let header = unsafe {
            let header = first.cast::<OncpuHeader>().read_volatile();
            libc::munmap(first.cast(), size_of::<OncpuHeader>());
            header
        };
        if !header.is_acceptable() {
            return None;
        }
        let base = look(size(header.processors, header.threads))?;
        Some(MappedTable { base, header })
    }

    /// Hands the mapping over to the locks of the process.
    fn use_it(self) {
        BASE.store(self.base, Relaxed);
        NESTED.store(is_nested(), Relaxed);
        PROCESSORS.store(self.header.processors, Relaxed);
        // Read without order: a thread that sees this store before the others sees zeros
        // in those, and takes it for no table.
        ENTRIES.store(self.header.threads, Relaxed);
        core::mem::forget(self);
    }

    /// Returns the table, which is valid as long as the mapping.
    pub(super) fn table(&self) -> OncpuTable {
        let OncpuHeader { processors, threads, .. } = self.header;
        OncpuTable { base: self.base, processors, entries: threads }
    }
}

impl Drop for MappedTable {
    fn drop(&mut self) {
        let bytes = size(self.header.processors, self.header.threads);
        // SAFETY: `open` has mapped this size, and `table` says that no table outlives it.
        unsafe { libc::munmap(self.base.cast(), bytes) };
    }
}

/// A table in memory. Valid as long as its mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OncpuTable {
    base: *const u8,
    processors: u32,
    entries: u32,
}

impl OncpuTable {
    /// Returns the table of the process, if it has found one that is kept.
    #[inline]
    pub(crate) fn here() -> Option<Self> {
        let table = OncpuTable {
            base: BASE.load(Relaxed),
            processors: PROCESSORS.load(Relaxed),
            entries: ENTRIES.load(Relaxed),
        };
        let there = !table.base.is_null() && table.processors != 0 && table.entries != 0;
        (there && table.is_live()).then_some(table)
    }

    /// Returns the word at a byte of the table.
    fn word(&self, at: usize) -> u32 {
        // SAFETY: the callers stay below `size`, which ONCPU-MAPPED, kept by `find`, says is
        // mapped. The kernel writes to the memory, so the access is atomic; a load of
        // 32 bits never writes, also where only reading is allowed.
        unsafe { AtomicU32::from_ptr(self.base.add(at).cast_mut().cast()).load(Relaxed) }
    }

    /// Tells whether the loader has not stopped the program (ONCPU-LIVE).
    pub(super) fn is_live(&self) -> bool {
        self.word(LIVE) != 0
    }

    /// Returns the thread on a processor; 0: none, or there is no such processor.
    fn on(&self, processor: u32) -> u32 {
        if processor >= self.processors {
            return 0;
        }
        self.word(CPUS + processor as usize * LINE)
    }

    /// Tells whether the entry of a thread says that it runs.
    fn has(&self, thread: u32) -> bool {
        let entry = spread(thread, self.entries) as usize;
        let at = CPUS + self.processors as usize * LINE + entry * size_of::<u32>();
        self.word(at) == thread
    }

    /// Tells whether `thread` runs, asked by `me`; both are names of the table. `None` if
    /// the table denies that `me` runs: nobody keeps it, or `me` was moved just now.
    pub(crate) fn runs(&self, thread: u32, me: u32) -> Option<bool> {
        let kept = thread != 0 && me != 0 && self.on(rseq::current_cpu()?) == me;
        kept.then(|| self.has(thread))
    }

    /// Returns the calling thread's name in the table; 0: the table cannot tell. `number`
    /// is what the kernel calls the thread here, if that is its name.
    pub(crate) fn my_name(&self, number: Option<u32>) -> u32 {
        // If the thread was moved between the two looks, it has read another's name.
        let look = || {
            let before = rseq::current_cpu()?;
            let name = self.on(before);
            (rseq::current_cpu() == Some(before) && self.has(name)).then_some(name)
        };
        let mut last = 0;
        for _ in 0..ATTEMPTS {
            match look() {
                Some(name) if number == Some(name) => return name,
                Some(name) if number.is_none() && name == last => return name,
                Some(name) => last = name,
                None => last = 0,
            }
        }
        0
    }
}

/// How often a thread asks for its name until two answers in a row agree.
const ATTEMPTS: u32 = 8;

/// Returns the calling thread's name in the table of the process; 0: there is none.
pub(crate) fn introduce() -> u32 {
    let number = || if NESTED.load(Relaxed) { None } else { Some(sys::gettid()) };
    OncpuTable::here().map_or(0, |table| table.my_name(number()))
}

/// Tells whether the calling process lives in another PID namespace than the first, whose
/// number is part of the kernel's ABI.
pub(super) fn is_nested() -> bool {
    const FIRST: &[u8] = b"pid:[4026531836]";
    let path = c"/proc/self/ns/pid".as_ptr();
    let mut target = [0_u8; 32];
    // SAFETY: the path is a static C string; the kernel writes at most `target.len()` bytes
    // to `target`, which lives as long as the call.
    let length = unsafe {
        libc::syscall(libc::SYS_readlinkat, libc::AT_FDCWD, path, target.as_mut_ptr(), target.len())
    };
    usize::try_from(length).is_ok_and(|length| &target[..length] != FIRST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives `f` memory that looks like a table.
    fn with_table(f: impl FnOnce(&mut [u32], OncpuTable)) {
        let (processors, threads) = (4, 64);
        let mut memory = vec![0_u32; size(processors, threads) / 4];
        memory[LIVE / 4] = 1;
        let base = memory.as_mut_ptr();
        f(&mut memory, OncpuTable { base: base.cast(), processors, entries: threads });
    }

    fn cpu_word(cpu: u32) -> usize {
        (CPUS + cpu as usize * LINE) / 4
    }

    fn thread_word(thread: u32) -> usize {
        (CPUS + 4 * LINE) / 4 + spread(thread, 64) as usize
    }

    #[test]
    fn a_table_says_who_runs_only_to_those_whom_it_knows() {
        with_table(|memory, table| {
            let Some(here) = rseq::current_cpu().filter(|&cpu| cpu < 4) else {
                println!("skipped: this table is for four processors");
                return;
            };
            // All processors are ours, whatever the scheduler does with this test.
            assert!(here < 4);
            for cpu in 0..4 {
                memory[cpu_word(cpu)] = 7;
            }
            memory[thread_word(7)] = 7;
            memory[thread_word(9)] = 9;
            assert_eq!(table.runs(9, 7), Some(true));
            assert_eq!(table.runs(8, 7), Some(false));
            assert_eq!(table.runs(9 + 64, 7), Some(false), "the entry is another's");
            assert_eq!(table.runs(9, 8), None, "the table denies that I run");
            assert_eq!(table.runs(0, 7), None, "nobody");
            assert_eq!(table.runs(9, 0), None, "I do not know my name");
            assert_eq!(table.my_name(None), 7);
            assert_eq!(table.my_name(Some(7)), 7);
            assert_eq!(table.my_name(Some(6)), 0, "it says that somebody else runs here");
            memory[thread_word(7)] = 0;
            assert_eq!(table.my_name(None), 0, "a name that the table contradicts");
        });
    }

    #[test]
    fn processors_beyond_the_table_have_nobody() {
        with_table(|_, table| {
            assert_eq!(table.on(4), 0);
            assert_eq!(table.on(u32::MAX), 0);
            assert!(!table.has(u32::MAX));
            assert!(table.is_live());
        });
    }
}
