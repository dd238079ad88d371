//! Files of segments: making, reading, and mapping them.
//!
//! # Protocol
//! A file is made without a name, or where that is not known under one of its own, filled,
//! and only then linked to the name it is to have: nobody opens half a segment, and of
//! several that make the same one, one does. All its bytes are allocated when it is made, so
//! that a full disk is an error then and no signal later. A file with a name of its own is
//! locked (`flock`) until it has the other one: what a process leaves that dies meanwhile is
//! removed by the next one that makes a file in that folder.
//!
//! A memory file is sealed against changes of its size. A file with a name cannot be: who
//! may write it may cut it, and every process that then touches what is gone gets
//! `SIGBUS`. Peers of which that is to be feared get a memory file; or see `cut`.

use super::error::{SegmentError, io};
use super::header::{self, SegmentHeader};
use super::layout::RootLayout;
use super::shape;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A file whose header and directory are in order.
pub(super) struct CheckedFile {
    pub(super) file: File,
    pub(super) header: SegmentHeader,
    pub(super) layout: RootLayout,
}

/// Reads what describes a segment, and checks it. Does not map anything: what a peer
/// changes or cuts meanwhile is an error here.
pub(super) fn check(file: File) -> Result<CheckedFile, SegmentError> {
    let metadata = file.metadata().map_err(io("asking for the size of the segment"))?;
    if !metadata.is_file() {
        return Err(SegmentError::NotAFile);
    }
    let length = metadata.len();
    let mut first = [0; header::BYTES];
    read(&file, &mut first, 0, SegmentError::NotASegment)?;
    let header = SegmentHeader::decode(&first, length)?;
    let mut directory = vec![0; header.directory_bytes as usize];
    let cut = SegmentError::Truncated { should: header.total, is: length };
    read(&file, &mut directory, header.directory, cut)?;
    let sums = shape::hash(&directory) == header.hash;
    let layout = RootLayout::decode(&directory).filter(|layout| {
        sums && layout.size == header.root_bytes && layout.locks <= header.root_bytes / 8
    });
    match layout {
        Some(layout) => Ok(CheckedFile { file, header, layout }),
        None => Err(SegmentError::Damaged("its directory does not describe its root")),
    }
}

fn read(file: &File, bytes: &mut [u8], at: u64, short: SegmentError) -> Result<(), SegmentError> {
    file.read_exact_at(bytes, at).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => short,
        _ => io("reading the segment")(error),
    })
}

/// Opens a file that may be anything, without waiting for it.
pub(super) fn open(path: &Path, write: bool) -> Result<File, SegmentError> {
    let mut options = OpenOptions::new();
    options.read(true).write(write).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    options.open(path).map_err(io("opening the segment"))
}

/// Makes an empty file in memory.
pub(super) fn memory(name: &str) -> Result<File, SegmentError> {
    let name = CString::new(name).map_err(|_| SegmentError::Options("a name without zeroes"))?;
    // SAFETY: the name is a live string that ends in a zero.
    let fd =
        unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
    if fd < 0 {
        return Err(io("making a memory file")(Error::last_os_error()));
    }
    // SAFETY: the descriptor was just made, and nobody else has it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Has a memory file keep its size. An error of other files, which cannot be sealed, and where
/// who made it, or a filter of system calls, forbids that.
pub(super) fn seal(file: &File) -> Result<(), SegmentError> {
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
    // SAFETY: the call changes the file behind an open descriptor only.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } {
        0 => Ok(()),
        _ => Err(io("sealing the memory file against changes of its size")(Error::last_os_error())),
    }
}

/// Gives an empty file the size, memory, header and directory of a segment.
pub(super) fn fill(
    file: &File,
    header: &SegmentHeader,
    directory: &[u8],
) -> Result<(), SegmentError> {
    file.set_len(header.total).map_err(io("giving the segment its size"))?;
    let length = header.total as libc::off_t;
    // SAFETY: the call changes the file behind an open descriptor only.
    let refused = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) };
    match refused {
        0 => {}
        // Not by the file system, for which the libc has a way, but by a filter of calls.
        libc::EPERM | libc::ENOSYS | libc::EACCES => write_zeroes(file, header.total)?,
        _ => {
            return Err(io("allocating the segment's memory")(Error::from_raw_os_error(refused)));
        }
    }
    file.write_all_at(directory, header.directory).map_err(io("writing the segment"))?;
    file.write_all_at(&header.encode(), 0).map_err(io("writing the segment"))
}

/// Allocates a new file's bytes by writing them.
fn write_zeroes(file: &File, length: u64) -> Result<(), SegmentError> {
    let zeroes = vec![0; 1 << 16];
    let mut at = 0;
    while at < length {
        let bytes = (length - at).min(zeroes.len() as u64);
        file.write_all_at(&zeroes[..bytes as usize], at)
            .map_err(io("allocating the segment's memory"))?;
        at += bytes;
    }
    Ok(())
}

/// A name that a file has until it gets its own. Removed when dropped.
#[derive(Debug)]
pub(super) struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Makes a file in the folder of `path`, with these permissions: without a name, or where the file
/// system does not know that, under one of its own.
pub(super) fn draft(path: &Path, mode: u32) -> Result<(File, Option<Temporary>), SegmentError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE);
    let unnamed = options.open(folder);
    let unknown = |error: &Error| {
        matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL))
    };
    let (file, temporary) = match unnamed {
        Err(error) if unknown(&error) => named(folder)?,
        // It gets its name by way of this folder.
        Ok(_) if !Path::new("/proc/self/fd").exists() => named(folder)?,
        unnamed => (unnamed.map_err(io("making a file in the segment's folder"))?, None),
    };
    permit(&file, mode)?;
    Ok((file, temporary))
}

fn named(folder: &Path) -> Result<(File, Option<Temporary>), SegmentError> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    remove_left_behind(folder);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{DRAFT}{}-{number}", std::process::id()));
        match options.open(&path) {
            // Somebody may have taken it for left behind before it was locked.
            Ok(file) if lock(&file, &path) => return Ok((file, Some(Temporary(path)))),
            Ok(_) if number < u32::MAX => {}
            // One of a process of this number, here or in another namespace.
            Err(error) if error.kind() == ErrorKind::AlreadyExists && number < u32::MAX => {}
            Ok(_) => return Err(io("locking a new file")(ErrorKind::WouldBlock.into())),
            Err(error) => return Err(io("making a file in the segment's folder")(error)),
        }
    }
}

/// The beginning of the names of files that are not segments yet.
const DRAFT: &str = ".lockstead-draft-";

/// Locks the file of this name. Returns false if somebody else has, or it has the name no more.
fn lock(file: &File, path: &Path) -> bool {
    // SAFETY: the call locks the file of an open descriptor only.
    let locked = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0;
    let identity = |about: std::fs::Metadata| (about.dev(), about.ino());
    let named = std::fs::symlink_metadata(path).map(identity).ok();
    locked && named.is_some() && named == file.metadata().map(identity).ok()
}

/// Removes what processes have left in a folder that died before their files were segments.
/// What cannot be looked at, or removed, stays.
fn remove_left_behind(folder: &Path) {
    let Ok(entries) = folder.read_dir() else { return };
    for entry in entries.flatten() {
        if !entry.file_name().as_bytes().starts_with(DRAFT.as_bytes()) {
            continue;
        }
        let mut options = OpenOptions::new();
        let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_NOCTTY;
        let Ok(file) = options.read(true).write(true).custom_flags(flags).open(entry.path()) else {
            continue;
        };
        if file.metadata().is_ok_and(|about| about.is_file()) && lock(&file, &entry.path()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Gives a file these permissions.
pub(super) fn permit(file: &File, mode: u32) -> Result<(), SegmentError> {
    let permissions = std::fs::Permissions::from_mode(mode);
    file.set_permissions(permissions).map_err(io("giving the segment its permissions"))
}

/// Gives a file of [`draft`] its name, which nothing has yet.
pub(super) fn link(
    file: &File,
    temporary: Option<Temporary>,
    path: &Path,
) -> Result<(), SegmentError> {
    let doing = "giving the segment its name";
    if let Some(Temporary(from)) = &temporary {
        std::fs::hard_link(from, path).map_err(io(doing))?;
        drop(temporary);
        // SAFETY: the call unlocks the file of an open descriptor only.
        unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_UN) };
        return Ok(());
    }
    let from = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let to = CString::new(path.as_os_str().as_bytes());
    let (Ok(from), Ok(to)) = (from, to) else {
        return Err(io(doing)(ErrorKind::InvalidInput.into()));
    };
    // SAFETY: both names are live strings that end in a zero.
    let linked = unsafe {
        let here = libc::AT_FDCWD;
        libc::linkat(here, from.as_ptr(), here, to.as_ptr(), libc::AT_SYMLINK_FOLLOW)
    };
    if linked == 0 { Ok(()) } else { Err(io(doing)(Error::last_os_error())) }
}

/// Memory of this process that is a file's. Unmapped when dropped.
#[derive(Debug)]
pub(super) struct FileMap {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the type is an address and a length. Whoever uses the memory keeps SEGMENT-MAPPED.
unsafe impl Send for FileMap {}
// SAFETY: a shared `FileMap` only tells its address and length, which never change.
unsafe impl Sync for FileMap {}

impl FileMap {
    /// Returns the whole of a file.
    pub(super) fn new(file: &File, header: &SegmentHeader) -> Result<FileMap, SegmentError> {
        let doing = "mapping the segment";
        let Ok(bytes) = usize::try_from(header.total) else {
            return Err(io(doing)(ErrorKind::OutOfMemory.into()));
        };
        // SAFETY: a mapping at an address of the kernel's choice touches nothing that
        // exists.
        let base = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(base.cast::<u8>()) {
            Some(base) if base.as_ptr().cast() != libc::MAP_FAILED => {
                let map = FileMap { base, bytes };
                // It may have been cut since it was looked at.
                let is = file.metadata().map_err(io(doing))?.len();
                if is < header.total {
                    return Err(SegmentError::Truncated { should: header.total, is });
                }
                Ok(map)
            }
            _ => Err(io(doing)(Error::last_os_error())),
        }
    }

    /// Returns where it begins.
    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Returns its length in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for FileMap {
    fn drop(&mut self) {
        // SAFETY: SEGMENT-MAPPED: `new` has mapped this, and whoever drops it refers to it no more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_files_have_names_from_the_start_one_is_linked_once_as_well() {
        let folder = std::env::temp_dir().join(format!("lockstead-file-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a new folder");
        let path = folder.join("segment");
        let count = || folder.read_dir().expect("a folder").count();
        let (file, temporary) = named(&folder).expect("a file");
        assert_eq!(count(), 1);
        link(&file, temporary, &path).expect("a name");
        assert!(path.exists());
        let (file, temporary) = named(&folder).expect("another file");
        let refused = link(&file, temporary, &path).expect_err("it is there");
        let exists = ErrorKind::AlreadyExists;
        assert!(matches!(refused, SegmentError::Io { error, .. } if error.kind() == exists));
        assert_eq!(count(), 1, "the names for the time being are gone");
        // One that is being made stays, and one that a dead process has left goes.
        let (being_made, temporary) = named(&folder).expect("a third file");
        let left = folder.join(format!("{DRAFT}1-1"));
        std::fs::write(&left, "half a segment").expect("written");
        let other = named(&folder).expect("a fourth file");
        assert!(!left.exists(), "nobody makes it");
        assert_eq!(count(), 3, "two are being made");
        drop((other, temporary, being_made));
        assert_eq!(count(), 1);
        std::fs::remove_dir_all(&folder).expect("it");
    }
}
