//! The files of `crates/core/mutants`, which say for everybody what is known of mutants: two for each
//! folder of the source.

use crate::{files, root, text};

/// The folder, below the workspace.
pub const FOLDER: &str = "crates/core/mutants";

/// Returns the name of the part that is about a file of the source, which begins with its folder;
/// `core` has those in none.
#[must_use]
pub fn of(short: &str) -> &str {
    let file = short.split('|').next().unwrap_or(short);
    file.split_once('/').map_or("core", |(folder, _)| folder)
}

/// Returns the name of the file of a part, below the workspace.
#[must_use]
pub fn file(part: &str, extension: &str) -> String {
    format!("{FOLDER}/{part}.{extension}")
}

/// Returns each part that has such a file, and the text of that.
#[must_use]
pub fn read(extension: &str) -> Vec<(String, String)> {
    let part = |path: &std::path::Path| {
        path.file_stem().expect("a file has a name").to_string_lossy().into_owned()
    };
    files(FOLDER, &[extension]).iter().map(|path| (part(path), text(path))).collect()
}

/// Writes the file of a part.
///
/// # Errors
/// Why it cannot be written.
pub fn write(part: &str, extension: &str, text: &str) -> Result<(), String> {
    let name = file(part, extension);
    std::fs::write(root().join(&name), text).map_err(|error| format!("{name}: {error}"))
}
