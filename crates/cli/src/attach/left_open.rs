//! Descriptors that a command has left open in a process, for it was killed while a thread of that
//! loaded the library.

use super::call::Borrowed;
use lockstead_inspect::proc::task;
use lockstead_ledger::header::MAGIC;
use lockstead_ledger::hello::LIBRARY;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// Returns the descriptors of a thread that a command has left open that was killed while it attached: of the
/// library's file, and of one that begins as a ledger. The program may have files of like names.
pub(super) fn find(tid: u32) -> Vec<u64> {
    let all = fs::read_dir(format!("/proc/{tid}/fd")).into_iter().flatten().flatten();
    let ours = all.filter(|file| {
        let name = fs::read_link(file.path()).unwrap_or_default();
        let name = name.to_string_lossy();
        let name = name.strip_prefix("/memfd:").and_then(|name| name.strip_suffix(" (deleted)"));
        name.is_some_and(|name| {
            name == LIBRARY || name.starts_with("lockstead-") && begins_as_ledger(&file.path())
        })
    });
    ours.filter_map(|file| file.file_name().to_str()?.parse().ok()).collect()
}

/// Tells whether a thread of the process has such a descriptor.
pub(super) fn is_any(pid: u32) -> bool {
    let tids = task::numbers(pid).unwrap_or_default();
    tids.into_iter().any(|tid| !find(tid).is_empty())
}

fn begins_as_ledger(file: &Path) -> bool {
    let mut magic = [0; 8];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && u64::from_ne_bytes(magic) == MAGIC
}

/// Has a thread of the process close them.
///
/// # Errors
/// What the system said.
pub(super) fn close(borrowed: &mut Borrowed<'_>) -> Result<(), String> {
    find(borrowed.tid()).into_iter().try_for_each(|file| {
        borrowed.system(libc::SYS_close, &[file]).map(drop).map_err(|error| error.to_string())
    })
}
