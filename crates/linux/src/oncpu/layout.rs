//! Lays down how the table lies in memory and in the file system: what its loader and its readers
//! must agree on, and the only place that says so.
//!
//! One array map with one element, in the byte order of the machine:
//!
//! | at | what |
//! |---|---|
//! | 0 | [`OncpuHeader`], a cache line |
//! | [`CPUS`] | for each processor a line, whose first 32 bits are the thread that runs on it |
//! | after them | for each of `threads` numbers 32 bits: the thread that runs, if it does |
//!
//! Threads are named by the kernel's number in the first PID namespace; 0 is nobody. A
//! thread has the entry that [`spread`] says, and shares it with those whose number is the
//! same modulo `threads`. So the table may deny that a thread runs, if another one with
//! its entry was switched in or out meanwhile; it never says so of one that does not,
//! but in the nanoseconds of a switch.

use core::ffi::CStr;

/// The folder in which the table lies: its loader mounts a file system of eBPF there.
pub const FOLDER: &CStr = c"/run/lockstead/oncpu";
/// The name of the map.
pub const TABLE: &CStr = c"/run/lockstead/oncpu/table";
/// The name of the link that keeps the program at the tracepoint.
pub const LINK: &CStr = c"/run/lockstead/oncpu/link";

/// The first line of the table.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OncpuHeader {
    /// [`MAGIC`], by which a reader knows the table.
    pub magic: [u8; 8],
    /// [`VERSION`] of the layout.
    pub version: u32,
    /// The number of processors that have a line.
    pub processors: u32,
    /// The number of entries for threads, a power of two.
    pub threads: u32,
    /// Is not 0 as long as the program keeps the table (ONCPU-LIVE).
    pub live: u32,
    /// The time at which the table was started, in seconds since 1970.
    pub started: u64,
}

/// The first bytes of a table.
pub const MAGIC: [u8; 8] = *b"lksoncpu";
/// The version of this layout.
pub const VERSION: u32 = 1;
/// The offset of [`OncpuHeader::live`] in bytes.
pub const LIVE: usize = core::mem::offset_of!(OncpuHeader, live);
/// The offset of the processors' lines in bytes.
pub const CPUS: usize = LINE;
/// The bytes of a cache line.
pub const LINE: usize = 64;
/// The most processors that Linux can be built for.
pub const MOST_CPUS: u32 = 8192;
/// The most entries for threads that a table has: a megabyte.
pub const MOST_THREADS: u32 = 1 << 18;

/// The distance between the entries of threads with neighbouring numbers. These work for
/// the same program, and so do not share a cache line. Odd, so that all entries are used.
pub const SPREAD: u32 = 17;

/// Returns the entry of a thread among `threads`, a power of two.
#[must_use]
pub const fn spread(thread: u32, threads: u32) -> u32 {
    thread.wrapping_mul(SPREAD) & (threads - 1)
}

/// Returns the size of a table in bytes.
#[must_use]
pub const fn size(processors: u32, threads: u32) -> usize {
    CPUS + processors as usize * LINE + threads as usize * size_of::<u32>()
}

impl OncpuHeader {
    /// Tells whether a table with this header can be read here.
    #[must_use]
    pub fn is_acceptable(&self) -> bool {
        self.magic == MAGIC
            && self.version == VERSION
            && (1..=MOST_CPUS).contains(&self.processors)
            && self.threads.is_power_of_two()
            && self.threads <= MOST_THREADS
    }
}

const _: () = assert!(size_of::<OncpuHeader>() <= LINE);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_another_kind_or_with_wild_numbers_are_refused() {
        let good = OncpuHeader {
            magic: MAGIC,
            version: VERSION,
            processors: 2,
            threads: 1024,
            live: 1,
            started: 0,
        };
        assert!(good.is_acceptable());
        for bad in [
            OncpuHeader { magic: [0; 8], ..good },
            OncpuHeader { version: VERSION + 1, ..good },
            OncpuHeader { processors: 0, ..good },
            OncpuHeader { processors: u32::MAX, ..good },
            OncpuHeader { threads: 0, ..good },
            OncpuHeader { threads: 1000, ..good },
            OncpuHeader { threads: 1 << 31, ..good },
        ] {
            assert!(!bad.is_acceptable(), "{bad:?}");
        }
    }

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
