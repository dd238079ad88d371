//! The table as locks read it.
//!
//! # Role
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
//! - **RD1** [`ENTRIES`] is not 0 ⇒ the mapping at [`BASE`] has as many bytes as
//!   [`super::size`] says, for good.
//!
//! The numbers in the table are hints, read without order.

use super::{CPUS, Header, LINE, LIVE, TABLE, acceptable, bpf, size, spread};
use crate::{rseq, sys};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering::Relaxed};
use std::os::fd::AsRawFd;

static LOOKED: AtomicBool = AtomicBool::new(false);
static BASE: AtomicPtr<u8> = AtomicPtr::new(null_mut());
static PROCESSORS: AtomicU32 = AtomicU32::new(0);
static ENTRIES: AtomicU32 = AtomicU32::new(0);
/// The process lives in another PID namespace than the first.
static NESTED: AtomicBool = AtomicBool::new(false);

/// Maps the table unless that has been tried. At most one call is refused.
pub(crate) fn find() {
    if LOOKED.swap(true, Relaxed) {
        return;
    }
    let _errno = sys::KeepErrno::new();
    // SAFETY: the path is a live C string.
    let exists =
        unsafe { libc::syscall(libc::SYS_faccessat, libc::AT_FDCWD, TABLE.as_ptr(), libc::R_OK) };
    if exists == 0
        && let Some(table) = Mapping::open()
    {
        table.use_it();
    }
}

/// A mapped table.
pub(super) struct Mapping {
    base: *mut u8,
    pub(super) header: Header,
}

impl Mapping {
    /// The table of this machine; `None` if there is none, or none that can be read.
    pub(super) fn open() -> Option<Self> {
        let map = bpf::open(TABLE).ok()?;
        let look = |bytes| {
            // SAFETY: a new mapping, of a map, whose size never changes.
            let base = unsafe {
                libc::mmap(null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, map.as_raw_fd(), 0)
            };
            if base == libc::MAP_FAILED { None } else { Some(base.cast::<u8>()) }
        };
        let first = look(size_of::<Header>())?;
        // SAFETY: a page at least; any bytes are a header, and nobody but us is told
        // of the mapping.
        let header = unsafe {
            let header = first.cast::<Header>().read_volatile();
            libc::munmap(first.cast(), size_of::<Header>());
            header
        };
        if !acceptable(&header) {
            return None;
        }
        let base = look(size(header.processors, header.threads))?;
        Some(Mapping { base, header })
    }

    /// Hands the mapping over to the locks of the process.
    fn use_it(self) {
        BASE.store(self.base, Relaxed);
        NESTED.store(nested(), Relaxed);
        PROCESSORS.store(self.header.processors, Relaxed);
        // Read without order: who sees it before the others sees zeros, and no table.
        ENTRIES.store(self.header.threads, Relaxed);
        core::mem::forget(self);
    }

    /// The table behind it.
    pub(super) fn table(&self) -> Table {
        let Header { processors, threads, .. } = self.header;
        Table { base: self.base, processors, entries: threads }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `open` with this size.
        unsafe {
            libc::munmap(self.base.cast(), size(self.header.processors, self.header.threads))
        };
    }
}

/// A table in memory. Valid as long as its mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    base: *const u8,
    processors: u32,
    entries: u32,
}

impl Table {
    /// That of the process, if it has found one that is kept.
    #[inline]
    pub(crate) fn here() -> Option<Self> {
        let table = Table {
            base: BASE.load(Relaxed),
            processors: PROCESSORS.load(Relaxed),
            entries: ENTRIES.load(Relaxed),
        };
        let there = !table.base.is_null() && table.processors != 0 && table.entries != 0;
        (there && table.live()).then_some(table)
    }

    /// The word at a byte of the table.
    fn word(&self, at: usize) -> u32 {
        // SAFETY: RD1, and the callers stay below `size`. The memory is written to by
        // the kernel, so the access is atomic; a load of 32 bits never writes, also
        // where only reading is allowed.
        unsafe { AtomicU32::from_ptr(self.base.add(at).cast_mut().cast()).load(Relaxed) }
    }

    /// ON2.
    pub(super) fn live(&self) -> bool {
        self.word(LIVE) != 0
    }

    /// The thread on a processor; 0: none, or there is no such processor.
    fn on(&self, processor: u32) -> u32 {
        if processor >= self.processors {
            return 0;
        }
        self.word(CPUS + processor as usize * LINE)
    }

    /// Whether the entry of a thread says that it runs.
    fn has(&self, thread: u32) -> bool {
        let entry = spread(thread, self.entries) as usize;
        let at = CPUS + self.processors as usize * LINE + entry * size_of::<u32>();
        self.word(at) == thread
    }

    /// Whether `thread` runs, asked by `me`; both are names of the table. `None` if the
    /// table denies that `me` runs: it is not kept, or I was just now moved.
    pub(crate) fn runs(&self, thread: u32, me: u32) -> Option<bool> {
        let kept = thread != 0 && me != 0 && self.on(rseq::current_cpu()?) == me;
        kept.then(|| self.has(thread))
    }

    /// The calling thread's name in the table; 0: it cannot tell. `number` is what the
    /// kernel calls it here, if that is its name.
    pub(crate) fn my_name(&self, number: Option<u32>) -> u32 {
        // Where I was moved between the two looks, somebody else's name was read.
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

/// The calling thread's name in the table of the process; 0: there is none.
pub(crate) fn introduce() -> u32 {
    let number = || if NESTED.load(Relaxed) { None } else { Some(sys::gettid()) };
    Table::here().map_or(0, |table| table.my_name(number()))
}

/// Whether the calling process lives in another PID namespace than the first, whose
/// number is part of the kernel's ABI.
pub(super) fn nested() -> bool {
    const FIRST: &[u8] = b"pid:[4026531836]";
    let path = c"/proc/self/ns/pid".as_ptr();
    let mut target = [0_u8; 32];
    // SAFETY: the path is a live C string; the kernel writes at most as much as fits.
    let length = unsafe {
        libc::syscall(libc::SYS_readlinkat, libc::AT_FDCWD, path, target.as_mut_ptr(), target.len())
    };
    usize::try_from(length).is_ok_and(|length| &target[..length] != FIRST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oncpu::{MAGIC, VERSION};

    /// Memory that looks like a table, for `f`.
    fn with_table(f: impl FnOnce(&mut [u32], Table)) {
        let (processors, threads) = (4, 64);
        let mut memory = vec![0_u32; size(processors, threads) / 4];
        memory[LIVE / 4] = 1;
        let base = memory.as_mut_ptr();
        f(&mut memory, Table { base: base.cast(), processors, entries: threads });
    }

    fn cpu_word(cpu: u32) -> usize {
        (CPUS + cpu as usize * LINE) / 4
    }

    fn thread_word(thread: u32) -> usize {
        (CPUS + 4 * LINE) / 4 + spread(thread, 64) as usize
    }

    #[test]
    fn headers_of_another_kind_or_with_wild_numbers_are_refused() {
        let good = Header {
            magic: MAGIC,
            version: VERSION,
            processors: 2,
            threads: 1024,
            live: 1,
            started: 0,
        };
        assert!(acceptable(&good));
        for bad in [
            Header { magic: [0; 8], ..good },
            Header { version: VERSION + 1, ..good },
            Header { processors: 0, ..good },
            Header { processors: u32::MAX, ..good },
            Header { threads: 0, ..good },
            Header { threads: 1000, ..good },
            Header { threads: 1 << 31, ..good },
        ] {
            assert!(!acceptable(&bad), "{bad:?}");
        }
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
            assert!(table.live());
        });
    }
}
