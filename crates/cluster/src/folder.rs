//! A folder for what members keep, which the next one who starts members removes where its owner was killed.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

const PREFIX: &str = "lockstead-etcd-";
/// The file in it that its owner holds by `flock`, which the kernel ends with the owner.
const OWNER: &str = "owner";

/// A folder that ends with this value, or after it.
#[derive(Debug)]
pub(crate) struct Folder {
    folder: tempfile::TempDir,
    _owner: File,
}

/// Takes the lock of a file, if nobody has it.
fn lock(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open as long as `file` is borrowed.
    match unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Folder {
    /// Makes a folder where temporary files are, and removes those of owners that are gone.
    pub(crate) fn new() -> io::Result<Folder> {
        let temporary = std::env::temp_dir();
        remove_abandoned(&temporary);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(temporary)?;
        // Under its name only once it is held: before, others would take it for one whose owner is gone.
        let new = folder.path().join("owner.new");
        let owner = File::create(&new)?;
        lock(&owner)?;
        fs::rename(new, folder.path().join(OWNER))?;
        Ok(Folder { folder, _owner: owner })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders of this user whose owners are gone. One that cannot be read stays.
fn remove_abandoned(temporary: &Path) {
    // SAFETY: the call takes nothing, and returns a number alone.
    let user = unsafe { libc::geteuid() };
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.metadata().is_ok_and(|about| about.is_dir() && about.uid() == user);
        if !ours {
            continue;
        }
        let mut options = File::options();
        options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let Ok(owner) = options.open(entry.path().join(OWNER)) else { continue };
        if lock(&owner).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_whose_owner_is_gone_is_removed_and_no_other() {
        let temporary = tempfile::tempdir().expect("a folder");
        let make = |name: &str| {
            let folder = temporary.path().join(name);
            fs::create_dir(&folder).expect("a folder");
            folder
        };
        let gone = make("lockstead-etcd-gone");
        fs::write(gone.join(OWNER), "").expect("a file");
        fs::create_dir_all(gone.join("data0/member")).expect("a folder");
        let held = make("lockstead-etcd-held");
        fs::write(held.join(OWNER), "").expect("a file");
        let owner = File::open(held.join(OWNER)).expect("a file");
        lock(&owner).expect("nobody has it");
        let young = make("lockstead-etcd-young");
        let other = make("other");
        fs::write(other.join(OWNER), "").expect("a file");
        remove_abandoned(temporary.path());
        assert!(!gone.exists() && held.exists() && young.exists() && other.exists());
        drop(owner);
        remove_abandoned(temporary.path());
        assert!(!held.exists() && young.exists() && other.exists());
    }
}
