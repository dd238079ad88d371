//! Files put where they are installed, or packed; and the numbers that their names have.

use std::fs;
use std::path::Path;

/// The library's version, which is the package's.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Programs know the shared library by this number, which changes when one that was
/// built before would not run any more.
pub const ABI: &str = "0";

pub(crate) fn copy_all(from: &Path, to: &Path) -> Result<(), String> {
    make_folder(to)?;
    let entries = fs::read_dir(from).map_err(|error| format!("{}: {error}", from.display()))?;
    for entry in entries {
        let from = entry.map_err(|error| error.to_string())?.path();
        let to = to.join(from.file_name().expect("an entry has a name"));
        if from.is_dir() {
            copy_all(&from, &to)?;
        } else {
            fs::copy(&from, &to).map_err(|error| format!("{}: {error}", to.display()))?;
        }
    }
    Ok(())
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    make_folder(path.parent().expect("a file lies in a folder"))?;
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

pub(crate) fn make_folder(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))
}
