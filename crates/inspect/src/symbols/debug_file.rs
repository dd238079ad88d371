//! The separate file with the symbols of a stripped one.
//!
//! # Role
//! Distributions ship symbols in files of their own, found by the build id
//! that both hold, or by a name in the stripped file. Only a file with the same
//! build id is taken.

use memmap2::Mmap;
use object::Object;
use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The place where distributions install them.
const FOLDERS: [&str; 2] = ["/usr/lib/debug", "/lib/debug"];

/// Returns the separate debug file of `stripped`, which lies at `path`.
pub(super) fn debug_file(stripped: &object::File<'_>, path: &Path) -> Option<Mmap> {
    let id = stripped.build_id().ok()??;
    candidates(stripped, path, id).into_iter().find_map(|candidate| {
        let file = File::open(candidate).ok()?;
        // SAFETY: read-only and private; the contents go through a parser that
        // checks every offset, and nothing relies on them staying the same.
        let map = unsafe { Mmap::map(&file) }.ok()?;
        let same = object::File::parse(&*map)
            .ok()
            .and_then(|found| found.build_id().ok().flatten().map(|found| found == id));
        (same == Some(true)).then_some(map)
    })
}

fn candidates(stripped: &object::File<'_>, path: &Path, id: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Some((first, rest)) = id.split_first() {
        let rest = rest.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        found.extend(FOLDERS.iter().map(|folder| {
            Path::new(folder).join(".build-id").join(format!("{first:02x}/{rest}.debug"))
        }));
    }
    // A file known by its descriptor alone lies at the end of that link.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if let Ok(Some((name, _))) = stripped.gnu_debuglink()
        && let Ok(name) = std::str::from_utf8(name)
        && let Some(folder) = path.parent()
    {
        found.push(folder.join(name));
        found.push(folder.join(".debug").join(name));
        let below = folder.strip_prefix("/").unwrap_or(folder);
        found.extend(FOLDERS.iter().map(|debug| Path::new(debug).join(below).join(name)));
    }
    // A pipe by that name would wait for a writer.
    found.retain(|path| path.is_file());
    found
}
