//! Under which number the kernel shows what all threads of a process have in common.
//!
//! # Role
//! Memory, program and file systems of a process are read in its folder of `/proc`, which is that of its first
//! thread. That thread may end before the others (`pthread_exit`), and the kernel then shows nothing there.

use std::fs::{self, File};
use std::io::Read;

/// Returns the number under which the kernel shows the memory of a process, its program and its file systems:
/// its own, or, where its first thread has ended before the others, that of one of these.
#[must_use]
pub fn shown_as(pid: u32) -> u32 {
    let has_memory = |number: u32| {
        let maps = File::open(format!("/proc/{number}/maps"));
        maps.and_then(|mut maps| maps.read(&mut [0])).is_ok_and(|bytes| bytes != 0)
    };
    if has_memory(pid) {
        return pid;
    }
    let others = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut others = others.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
    others.find(|&tid| tid != pid && has_memory(tid)).unwrap_or(pid)
}
