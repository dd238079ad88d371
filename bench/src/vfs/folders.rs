//! The real files: a folder for each task, below one that is removed with all
//! that is in it, whatever happens.

use crate::Error;
use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Every task's file, each in its own folder.
const FILE: &CStr = c"file";

/// A system call that failed.
#[derive(Debug)]
pub(super) struct FolderFailure {
    pub(super) what: &'static str,
    pub(super) source: io::Error,
}

impl FolderFailure {
    fn last(what: &'static str) -> Self {
        Self { what, source: io::Error::last_os_error() }
    }
}

/// The folders of all tasks.
pub(super) struct Folders {
    /// The folder, taken out to remove it; it is removed when dropped in any case.
    root: Mutex<Option<tempfile::TempDir>>,
    tasks: Vec<Folder>,
}

/// The folder of one task; without one, nothing is done.
pub(super) struct Folder(Option<File>);

impl Folders {
    /// Makes the folders in `dir`, and tries in each whether files can be made
    /// and removed. Without `dir`, folders that do nothing.
    pub(super) fn create(dir: Option<&Path>, tasks: usize) -> Result<Self, Error> {
        let Some(dir) = dir else {
            let tasks = (0..tasks).map(|_| Folder(None)).collect();
            return Ok(Self { root: Mutex::new(None), tasks });
        };
        let failed = |source| Error::Directory { path: PathBuf::from(dir), source };
        let root = tempfile::Builder::new()
            .prefix("lockstead-vfs-")
            .tempdir_in(dir)
            .map_err(|error| failed(system(error)))?;
        let tasks = (0..tasks)
            .map(|task| Folder::at(&root.path().join(format!("task-{task}"))))
            .collect::<io::Result<_>>()
            .map_err(failed)?;
        Ok(Self { root: Mutex::new(Some(root)), tasks })
    }

    pub(super) fn of(&self, task: usize) -> &Folder {
        &self.tasks[task]
    }

    /// Removes all files and folders.
    pub(super) fn remove(&self) -> Result<(), Error> {
        let Some(root) = self.root.lock().expect("nobody panics holding it").take() else {
            return Ok(());
        };
        let path = root.path().to_owned();
        root.close().map_err(|source| Error::Directory { path, source: system(source) })
    }
}

/// Returns the system's own words: the crate puts the path into the message, where
/// ours already stands.
fn system(error: io::Error) -> io::Error {
    error.raw_os_error().map_or(error, io::Error::from_raw_os_error)
}

impl Folder {
    fn at(path: &Path) -> io::Result<Self> {
        fs::create_dir(path)?;
        let folder = Folder(Some(File::open(path)?));
        let result = folder.create().and_then(|_file| folder.unlink());
        result.map_err(|failure| failure.source)?;
        Ok(folder)
    }

    /// Makes the file, which must not be there; closed when dropped.
    #[inline]
    pub(super) fn create(&self) -> Result<Option<OwnedFd>, FolderFailure> {
        let Some(folder) = &self.0 else { return Ok(None) };
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY | libc::O_CLOEXEC;
        // SAFETY: an open folder, a string that ends in zero.
        let file = unsafe { libc::openat(folder.as_raw_fd(), FILE.as_ptr(), flags, 0o600) };
        if file < 0 {
            return Err(FolderFailure::last("creat"));
        }
        // SAFETY: the descriptor was just opened, and nobody else owns it.
        Ok(Some(unsafe { OwnedFd::from_raw_fd(file) }))
    }

    /// Removes the file of this task.
    #[inline]
    pub(super) fn unlink(&self) -> Result<(), FolderFailure> {
        let Some(folder) = &self.0 else { return Ok(()) };
        // SAFETY: an open folder, a string that ends in zero.
        if unsafe { libc::unlinkat(folder.as_raw_fd(), FILE.as_ptr(), 0) } != 0 {
            return Err(FolderFailure::last("unlink"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_made_used_and_removed() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let folders = Folders::create(Some(dir.path()), 3).expect("writable");
        assert_eq!(fs::read_dir(dir.path()).expect("readable").count(), 1);
        let file = folders.of(2).create().expect("creates");
        assert!(file.is_some());
        assert!(folders.of(2).create().is_err(), "the file is there already");
        assert!(folders.of(1).create().is_ok(), "folders are apart");
        folders.remove().expect("removes");
        folders.remove().expect("nothing is left to remove");
        assert_eq!(fs::read_dir(dir.path()).expect("readable").count(), 0);
        assert!(folders.of(0).create().is_err(), "a late task finds its folder gone");
    }

    #[test]
    fn dropped_folders_are_removed() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        drop(Folders::create(Some(dir.path()), 2).expect("writable"));
        assert_eq!(fs::read_dir(dir.path()).expect("readable").count(), 0);
    }

    #[test]
    fn without_a_directory_nothing_is_done() {
        let folders = Folders::create(None, 1).expect("nothing to fail");
        assert!(folders.of(0).create().expect("nothing to fail").is_none());
        assert!(folders.of(0).unlink().is_ok());
    }
}
