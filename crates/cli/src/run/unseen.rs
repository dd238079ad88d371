//! Which locks of a program the checks did not see, though it has them.
//!
//! # Role
//! Rust's locks are inlined and call nothing. That a program has them stands in its file: the places
//! at which the standard library panics, or a crate, are texts that no stripping takes away. And a
//! standard library whose locks are seen says so, by a text of its own.
//!
//! A program that had one thread has no order that could go wrong, and the tools that build a program
//! are not what was to be checked.

use super::processes::Observed;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Tools that are written in Rust, and started by who builds.
const TOOLS: [&str; 6] = ["cargo", "rustc", "rustdoc", "rustup", "clippy-driver", "cargo-nextest"];

/// What a file has of a family of locks, what shows that they are seen, and what to call them.
const FAMILIES: [(&str, Option<&str>, &str); 3] = [
    ("/library/std/src/", Some(SEEN), "Rust's std"),
    ("parking_lot_core-", Some(LOTS_SEEN), "parking_lot"),
    ("/src/sync/batch_semaphore.rs", None, "tokio"),
];

/// What `crates/std` leaves in each program that has it.
const SEEN: &str = "lockstead-std: these locks are seen";

/// What `crates/parking_lot` leaves in each program that has it.
const LOTS_SEEN: &str = "lockstead-parking-lot: these locks are seen";

/// The files that were looked at, with the families whose locks are not seen.
#[derive(Debug, Default)]
pub(super) struct UnseenLocks {
    files: HashMap<PathBuf, Vec<&'static str>>,
}

impl UnseenLocks {
    /// Returns the families of locks of a process that has ended, or is about to, whose order was
    /// not seen.
    pub(super) fn of(&mut self, process: &Observed) -> Vec<&'static str> {
        let name = process.name();
        if TOOLS.contains(&name.as_str()) || process.ledger.view().threads().count() < 2 {
            return Vec::new();
        }
        let known = self.files.entry(process.program.clone());
        known.or_insert_with_key(|file| in_file(file)).clone()
    }
}

fn in_file(file: &Path) -> Vec<&'static str> {
    // Of one that is gone, or cannot be read, nothing is known, and nothing is said.
    let bytes = fs::read(file).unwrap_or_default();
    let has = |text: &str| contains(&bytes, text.as_bytes());
    let unseen = |(sign, seen, _): &&(&str, Option<&str>, _)| has(sign) && !seen.is_some_and(has);
    FAMILIES.iter().filter(unseen).map(|(.., name)| *name).collect()
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    // SAFETY: both slices are as long as is said, and live until the call returns.
    let found = unsafe {
        libc::memmem(bytes.as_ptr().cast(), bytes.len(), wanted.as_ptr().cast(), wanted.len())
    };
    !found.is_null()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_very_program_has_locks_that_are_not_seen() {
        let me = std::env::current_exe().expect("a test has a file");
        let families = in_file(&me);
        // It has the text that says so in it as well, for it looks for that.
        assert!(!families.contains(&"Rust's std"), "{families:?}");
        assert!(contains(b"abcabd", b"abd") && !contains(b"abcabd", b"abe"));
        assert!(in_file(Path::new("/nonexistent")).is_empty());
    }

    #[test]
    fn the_text_is_the_one_that_the_crate_leaves() {
        assert!(include_str!("../../embedded/std/src/sync/telling.rs").contains(SEEN));
        assert!(include_str!("../../embedded/parking_lot/src/telling.rs").contains(LOTS_SEEN));
    }
}
