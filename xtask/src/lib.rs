//! The project's checks on itself: its crate boundaries, its ordering labels,
//! its documents. They live in `tests/` and run with `cargo test --workspace`. And
//! what builds and installs the library for C, what packs the command, alone and for
//! Python, what builds for another processor, and what mutates the locks.

pub mod cluster;
pub mod cross;
pub mod dist;
pub mod finders;
pub mod install;
pub mod library;
pub mod mutants;
pub mod staging;
pub mod wheel;

use std::path::{Path, PathBuf};

/// Returns the root of the workspace.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").into()
}

/// Returns all files below `folder` of the workspace, in a fixed order; build outputs, links and what
/// is hidden left out.
///
/// # Panics
/// If a folder cannot be read.
#[must_use]
pub fn all_files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a readable folder") {
            let entry = entry.expect("a readable entry");
            let path = entry.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let kind = entry.file_type().expect("an entry of a folder has a kind");
            if name == "target" || name.starts_with('.') || kind.is_symlink() {
                continue;
            }
            if kind.is_dir() { open.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// Returns those of [`all_files`] that have one of `extensions`.
///
/// # Panics
/// If a folder cannot be read.
#[must_use]
pub fn files(folder: &str, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = all_files(folder);
    found.retain(|path| {
        path.extension().is_some_and(|e| extensions.contains(&e.to_string_lossy().as_ref()))
    });
    found
}

/// Returns a file of the workspace as text.
///
/// # Panics
/// If it cannot be read.
#[must_use]
pub fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
