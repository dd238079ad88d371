//! Reads the table of who runs on which processor: an eBPF program keeps it at every
//! switch, for all threads of the machine.
//!
//! ```text
//! lockstead oncpu start ──▶ crate oncpu ──▶ program at sched_switch
//!                                             │ writes
//!                                             ▼
//!            spinner ── two loads ──▶ FOLDER/table (layout) ◀── maps it once: table
//! ```
//!
//! # Role
//! The quickest answer to "does the owner run?" (`owner`): two loads and no system call.
//! Whoever may load eBPF programs starts the table once, by the crate `lockstead-oncpu`;
//! from then on it is a file that every program may map for reading, and no program needs
//! a privilege. Locks look for it when the first thread of a process joins, once.
//!
//! # Invariants
//! - **ONCPU-FROZEN** The map is frozen: once the header is written, nobody but the program
//!   writes to it. The loader freezes it before it gives the map a name.
//! - **ONCPU-LIVE** [`layout::OncpuHeader::live`] is not 0 ⇒ the loader has not stopped the
//!   program.
//!
//! # Limits
//! Where the file is removed by hand, programs that have it believe in a table that
//! nobody keeps. They notice when they find themselves denied by it (`OncpuTable::runs`).

pub mod layout;
mod table;

pub(crate) use table::{OncpuTable, find, introduce};

use core::fmt;
use table::{MappedTable, is_nested};

/// A table that was found in its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunningTable {
    /// The number of processors that it has lines for.
    pub processors: u32,
    /// The number of entries for threads, which go by the low bits of their numbers.
    pub threads: u32,
    /// The size of the table in bytes.
    pub bytes: usize,
    /// The time at which the table was started, in seconds since 1970.
    pub started: u64,
    /// Whether the table knows that the calling thread runs: the program is at work.
    pub kept: bool,
}

/// There is a file in the table's place that cannot be read as one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unreadable;

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = layout::TABLE;
        write!(f, "{path:?} is no table of this version; `lockstead oncpu stop` removes it")
    }
}

impl core::error::Error for Unreadable {}

/// Returns the table that lies in its place; `None` if there is none. May sleep for some
/// milliseconds.
///
/// # Errors
/// [`Unreadable`].
pub fn status() -> Result<Option<RunningTable>, Unreadable> {
    if !table::exists() {
        return Ok(None);
    }
    let mapping = MappedTable::open().ok_or(Unreadable)?;
    let layout::OncpuHeader { processors, threads, started, .. } = mapping.header;
    let table = mapping.table();
    Ok(Some(RunningTable {
        processors,
        threads,
        bytes: layout::size(processors, threads),
        started,
        kept: table.is_live() && knows_me(&table),
    }))
}

/// Tells whether the table has the calling thread. A thread that was not switched in since
/// the program is at work sleeps for a moment, to be.
fn knows_me(table: &OncpuTable) -> bool {
    /// More than two, for the kernel hangs programs in and out a little later than it says.
    /// Many more, for one kernel was seen to tell no tracer when a certain thread of the system
    /// leaves a processor: whoever comes after it is denied until it is switched again.
    const ATTEMPTS: u32 = 16;
    let number = if is_nested() { None } else { Some(crate::sys::gettid()) };
    (0..ATTEMPTS).any(|attempt| {
        if attempt > 0 {
            std::thread::sleep(core::time::Duration::from_millis(1));
        }
        table.my_name(number) != 0
    })
}
