//! A file that refuses late owners: what each writer under a lock of several machines does with its token.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// The file has the text.
    Yes,
    /// An owner that came later has written already; its token.
    Refused(u64),
}

/// Writes `text` to the file, unless an owner with a greater token has.
///
/// The token is the file's first line. It is compared, and the file replaced, under `flock` of a file beside it,
/// which stays: the file itself is another one after each `rename`. Without the lock two writers may both
/// compare before either writes. Over NFS, `flock` excludes other hosts where server and mount support it.
///
/// # Errors
/// As the system says; the file is then as it was.
pub(crate) fn write(path: &Path, token: u64, text: &str) -> io::Result<Written> {
    let beside = |ending: &str| {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(ending);
        path.with_file_name(name)
    };
    let lock = File::options().create(true).truncate(false).write(true).open(beside(".lock"))?;
    lock.lock()?;
    if let Some(last) = token_of(path)?.filter(|last| *last > token) {
        return Ok(Written::Refused(last));
    }
    let new = beside(".new");
    let mut file = File::create(&new)?;
    write!(file, "{token}\n{text}")?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    // The name, too, is on the disk before anybody is told.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(Written::Yes)
}

/// Returns the token of the last owner that has written; `None`: none has.
///
/// # Errors
/// The first line is no token; as the system says.
pub(crate) fn token_of(path: &Path) -> io::Result<Option<u64>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let line = text.lines().next().unwrap_or_default();
    let token = line.parse().map_err(|_| {
        let text = format!("{}: its first line is no token", path.display());
        io::Error::new(io::ErrorKind::InvalidData, text)
    })?;
    Ok(Some(token))
}
