//! Who runs on which processor, as the scheduler itself says: a table that an eBPF
//! program keeps at every switch, for all threads of the machine.
//!
//! # Role
//! The quickest answer to "does the owner run?" (`owner`): two loads and no system
//! call. Whoever may load eBPF programs starts it once ([`start`]); from then on the
//! table is a file that every program may map for reading, and no program needs a
//! privilege. Locks look for it when the first thread of a process joins, once.
//!
//! # Layout
//! One array map with one element, in the byte order of the machine:
//!
//! | at | what |
//! |---|---|
//! | 0 | `Header`, a cache line |
//! | `CPUS` | for each processor a line, whose first 32 bits are the thread that runs on it |
//! | after them | for each of `threads` numbers 32 bits: the thread that runs, if it does |
//!
//! Threads are named by the kernel's number in the first PID namespace; 0 is nobody. A
//! thread has the entry `spread` says, and shares it with those whose number is the
//! same modulo `threads`. So the table may deny that a thread runs, if another one with
//! its entry was switched in or out meanwhile; it never says so of one that does not,
//! but in the nanoseconds of a switch.
//!
//! # Invariants
//! - **ON1** The map is frozen: after the header nobody writes to it but the program.
//! - **ON2** `live` is not 0 ⇒ the program has not been stopped by [`stop`].
//!
//! # Limits
//! Where the file is removed by hand, programs that have it believe in a table that
//! nobody keeps. They notice when they find themselves denied by it (`Table::runs`).

mod assembler;
mod bpf;
mod btf;
mod loader;
mod program;
mod reader;

pub use loader::{Refusal, Running, start, status, stop};
pub(crate) use reader::{Table, find, introduce};

use core::ffi::CStr;

/// Where the table lies: a file system of its own, that of eBPF, mounted here.
pub const FOLDER: &CStr = c"/run/lockstead/oncpu";
/// The map.
const TABLE: &CStr = c"/run/lockstead/oncpu/table";
/// What keeps the program at the tracepoint.
const LINK: &CStr = c"/run/lockstead/oncpu/link";

/// First line of the table.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Header {
    magic: [u8; 8],
    version: u32,
    /// Entries for processors.
    processors: u32,
    /// Entries for threads, a power of two.
    threads: u32,
    /// Offset of [`LIVE`].
    live: u32,
    /// Seconds since 1970 when it was started.
    started: u64,
}

const MAGIC: [u8; 8] = *b"lksoncpu";
const VERSION: u32 = 1;
/// Offset of `live` in the header.
const LIVE: usize = core::mem::offset_of!(Header, live);
/// Offset of the processors' lines.
const CPUS: usize = LINE;
const LINE: usize = 64;
/// The most processors that Linux can be built for, and the most entries for threads:
/// a megabyte.
const MOST_CPUS: u32 = 8192;
const MOST_THREADS: u32 = 1 << 18;

/// Threads are numbered in the order in which they come: neighbours work for the same
/// program, and get entries in different lines. Odd, so that all entries are used.
const SPREAD: u32 = 17;

/// The entry of a thread among `threads`, a power of two.
const fn spread(thread: u32, threads: u32) -> u32 {
    thread.wrapping_mul(SPREAD) & (threads - 1)
}

/// Bytes of a table.
const fn size(processors: u32, threads: u32) -> usize {
    CPUS + processors as usize * LINE + threads as usize * size_of::<u32>()
}

/// Whether this header is of a table that can be read here.
fn acceptable(header: &Header) -> bool {
    header.magic == MAGIC
        && header.version == VERSION
        && (1..=MOST_CPUS).contains(&header.processors)
        && header.threads.is_power_of_two()
        && header.threads <= MOST_THREADS
}

const _: () = assert!(size_of::<Header>() <= LINE);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entry_is_somebodys_and_neighbours_share_no_line() {
        let threads = 1 << 12;
        let mut used = vec![false; threads as usize];
        for thread in 0..threads {
            let entry = spread(thread, threads) as usize;
            assert!(!core::mem::replace(&mut used[entry], true), "{entry} twice");
        }
        for thread in 1..threads {
            let (a, b) = (spread(thread - 1, threads), spread(thread, threads));
            assert!(a.abs_diff(b) as usize * size_of::<u32>() >= LINE || b < SPREAD);
        }
    }
}
