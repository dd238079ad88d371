//! Files that the command writes: whole or not at all, and known to be writable before the work.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Checks that a file can be written, and leaves no trace of the question.
///
/// # Errors
/// Why it cannot.
pub fn can_write(file: &Path) -> Result<(), String> {
    if file.exists() {
        let opened = OpenOptions::new().append(true).open(file);
        return opened.map(drop).map_err(|error| error.to_string());
    }
    let folder = folder_of(file);
    tempfile::Builder::new()
        .prefix(".lockstead")
        .tempfile_in(folder)
        .map(drop)
        .map_err(|error| format!("cannot write in {}: {error}", folder.display()))
}

/// Tells whether two names lead to one file that is there.
#[must_use]
pub fn is_same(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |file: &Path| file.metadata().ok().map(|found| (found.dev(), found.ino()));
    id(one).is_some_and(|found| Some(found) == id(other))
}

/// Gives the folder that a path leads to.
fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a file whole or not at all; a device or a pipe is written to.
///
/// # Errors
/// The reasons that the system gives.
pub fn write(file: &Path, text: &str) -> io::Result<()> {
    if file.exists() && !file.is_file() {
        return OpenOptions::new().write(true).open(file)?.write_all(text.as_bytes());
    }
    // The file that a link leads to is replaced, not the link.
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let mut temporary = tempfile::Builder::new()
        .prefix(".lockstead")
        .permissions(mode(&file))
        .tempfile_in(folder_of(&file))?;
    temporary.write_all(text.as_bytes())?;
    temporary.persist(&file).map(drop).map_err(io::Error::from)
}

/// Gives the mode of the file that is replaced, else what the umask leaves.
fn mode(file: &Path) -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(file).map_or(fs::Permissions::from_mode(0o666), |known| known.permissions())
}
