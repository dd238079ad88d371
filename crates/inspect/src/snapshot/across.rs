//! Whom a lock means by the number that it has of its owner.
//!
//! # Role
//! glibc's locks name their owner by the number that the thread has for itself. Processes of different PID
//! namespaces that share a lock's memory have the same numbers for different threads, low ones in
//! containers above all: then the number alone does not say whose thread is meant.

use super::capture::Looking;
use crate::maps::{FileIdentity, Maps};
use std::fs;
use std::path::PathBuf;

impl Looking {
    /// Returns the thread of the process that is the owner of a lock, by its number for itself; `shared`:
    /// processes share the lock.
    pub(super) fn owner_here(&self, address: u64, own: u32, shared: bool) -> Option<u32> {
        let thread = self.numbers.get(&own).copied()?;
        (!shared || !self.is_shared_across(address)).then_some(thread)
    }

    /// Tells whether a process of another PID namespace, as far as they can be seen from here, has the memory
    /// at this address as well.
    fn is_shared_across(&self, address: u64) -> bool {
        let Some((unwinder, _)) = &self.code else { return false };
        let mapping = unwinder.modules().maps().find(address);
        let Some(mapping) = mapping.filter(|mapping| mapping.shared) else { return false };
        let file = (mapping.device, mapping.inode);
        let mut known = self.shared_across.borrow_mut();
        *known.entry(file).or_insert_with(|| is_mapped_across(self.pid, file))
    }
}

fn is_mapped_across(pid: u32, file: FileIdentity) -> bool {
    let Some(own) = namespace(pid) else { return false };
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut others = numbers.filter(|&other| namespace(other).is_some_and(|of| of != own));
    others.any(|other| {
        Maps::of(other).is_ok_and(|maps| {
            maps.iter().any(|mapping| mapping.shared && (mapping.device, mapping.inode) == file)
        })
    })
}

/// Returns what stands for the PID namespace of a process, where this one may know.
fn namespace(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/pid")).ok()
}
