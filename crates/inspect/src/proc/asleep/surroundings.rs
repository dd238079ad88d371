//! What other processes have, looked up once for all threads of a look.
//!
//! # Role
//! Who has the other end of a pipe, or the open file of a lock, is found by reading the
//! descriptors of all processes, tens of thousands on a large machine. A thousand threads
//! that wait for pipes must not have them read a thousand times.

use super::file_locks::{self, FileLock};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The link that all event counters are.
pub(super) const EVENT: &str = "anon_inode:[eventfd]";

/// What was found so far. It is true for a moment: have a new one for each look.
#[derive(Debug, Default)]
pub struct SleepSurroundings {
    opened: OnceCell<Opened>,
    locks: OnceCell<Vec<FileLock>>,
    holders: OnceCell<Vec<(u32, FileLock)>>,
}

/// The descriptors of all processes.
#[derive(Debug, Default)]
pub(super) struct Opened {
    /// Processes and numbers, by what they lead to; see [`key`].
    by_key: HashMap<OsString, Vec<(u32, String)>>,
    /// Whether all processes were seen.
    pub(super) complete: bool,
}

impl Opened {
    /// Returns the descriptors that lead there.
    pub(super) fn leading_to(&self, key: &OsString) -> &[(u32, String)] {
        self.by_key.get(key).map_or(&[], Vec::as_slice)
    }
}

impl SleepSurroundings {
    pub(super) fn opened(&self) -> &Opened {
        self.opened.get_or_init(opened)
    }

    /// Builds surroundings in which no process was seen.
    #[cfg(test)]
    pub(super) fn with_nobody(complete: bool) -> Self {
        let opened = Opened { complete, ..Opened::default() };
        SleepSurroundings { opened: opened.into(), ..SleepSurroundings::default() }
    }

    /// Returns the kernel's list of locks and who waits for them.
    pub(super) fn locks(&self) -> &[FileLock] {
        self.locks.get_or_init(|| {
            file_locks::entries(&fs::read_to_string("/proc/locks").unwrap_or_default()).collect()
        })
    }

    /// Returns the locks of open files, each with a process that has the file.
    pub(super) fn holders(&self) -> &[(u32, FileLock)] {
        self.holders.get_or_init(|| {
            let all = processes().into_iter().flatten();
            all.flat_map(|pid| held(pid).into_iter().map(move |entry| (pid, entry))).collect()
        })
    }
}

/// Returns what tells one object from another: where a descriptor leads to, and the number of an
/// event counter, for they all lead to the same name.
pub(super) fn key(link: OsString, pid: u32, number: &str) -> OsString {
    if link.as_bytes() != EVENT.as_bytes() {
        return link;
    }
    let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).unwrap_or_default();
    format!("{EVENT} {}", field(&info, "eventfd-id").unwrap_or_default()).into()
}

/// Returns the value of a field in what the kernel tells of a descriptor.
pub(super) fn field(info: &str, name: &str) -> Option<String> {
    let mut lines = info.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(known, _)| *known == name).map(|(_, value)| value.trim().to_owned())
}

/// Returns all processes that can be seen; `None` where none can.
pub(crate) fn processes() -> Option<impl Iterator<Item = u32>> {
    let entries = std::fs::read_dir("/proc").ok()?;
    Some(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()))
}

fn opened() -> Opened {
    let mut opened = Opened { complete: true, ..Opened::default() };
    let mut first = false;
    for pid in processes().into_iter().flatten() {
        first |= pid == 1;
        let entries = match fs::read_dir(format!("/proc/{pid}/fd")) {
            Ok(entries) => entries,
            Err(error) => {
                // One that has ended has none.
                opened.complete &= error.kind() != std::io::ErrorKind::PermissionDenied;
                continue;
            }
        };
        for entry in entries.flatten() {
            let Ok(link) = fs::read_link(entry.path()).map(PathBuf::into_os_string) else {
                continue;
            };
            // Nobody asks for these, and there are many of them.
            if !link.as_bytes().starts_with(b"socket:") {
                let number = entry.file_name().to_string_lossy().into_owned();
                let key = key(link, pid, &number);
                opened.by_key.entry(key).or_default().push((pid, number));
            }
        }
    }
    // Where the processes of others are hidden, the first one is.
    opened.complete &= first;
    opened
}

fn held(pid: u32) -> Vec<FileLock> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fdinfo")) else { return Vec::new() };
    let texts = entries.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
    texts.flat_map(|text| file_locks::of_description(&text)).collect()
}
