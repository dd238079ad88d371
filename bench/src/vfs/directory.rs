//! The directory in memory that the lock under test guards.
//!
//! # Invariants
//! - **DIRECTORY-GUARDED** The contents are read and written by a thread that holds the lock
//!   under test, or when there is one thread alone.

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::sync::Arc;

/// Names to inode numbers, and a count of changes that shows whether the lock
/// excludes.
#[derive(Default)]
pub(super) struct Directory(UnsafeCell<Contents>);

#[derive(Default)]
struct Contents {
    entries: HashMap<Arc<str>, u64>,
    changes: u64,
}

// SAFETY: every access is through an unsafe function whose caller holds the
// directory's lock.
unsafe impl Sync for Directory {}

impl Directory {
    /// Adds an entry that is not there.
    ///
    /// # Safety
    /// The caller holds the directory's lock.
    pub(super) unsafe fn enter(&self, name: &Arc<str>, inode: u64) {
        // SAFETY: by DIRECTORY-GUARDED the caller holds the lock, so that this is the only
        // reference.
        let contents = unsafe { &mut *self.0.get() };
        if contents.entries.insert(name.clone(), inode).is_none() {
            contents.changes += 1;
        }
    }

    /// Removes an entry that is there.
    ///
    /// # Safety
    /// The caller holds the directory's lock.
    pub(super) unsafe fn strike(&self, name: &str) {
        // SAFETY: by DIRECTORY-GUARDED the caller holds the lock, so that this is the only
        // reference.
        let contents = unsafe { &mut *self.0.get() };
        if contents.entries.remove(name).is_some() {
            contents.changes += 1;
        }
    }

    /// Returns how many entries were added and removed.
    ///
    /// # Safety
    /// Nobody changes the directory meanwhile.
    pub(super) unsafe fn changes(&self) -> u64 {
        // SAFETY: by DIRECTORY-GUARDED: the caller says that all tasks have ended, so that nobody
        // writes.
        unsafe { (*self.0.get()).changes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_real_changes_count() {
        let directory = Directory::default();
        let name: Arc<str> = "task-1".into();
        // SAFETY: by DIRECTORY-GUARDED: the test has one thread.
        unsafe {
            directory.enter(&name, 1);
            directory.enter(&name, 1);
            directory.strike(&name);
            directory.strike(&name);
            assert_eq!(directory.changes(), 2);
        }
    }
}
