//! The items of a queue as this process has them mapped: a file that grows.
//!
//! # Invariants
//! - **ITEMS-MAPPED** Who has the queue's mutex may read and write the bytes of the mapping, and nobody
//!   else touches them or changes the mapping. The file never becomes shorter: whoever makes or opens it
//!   seals it against that, if it is a memory file.

use core::ptr::NonNull;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, FromRawFd};

/// A file, mapped from its beginning.
pub(crate) struct Items {
    file: File,
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: ITEMS-MAPPED: which thread uses the mapping does not matter, as long as one does at a time.
unsafe impl Send for Items {}

impl Items {
    /// Makes a file without a name of so many bytes.
    pub(crate) fn anonymous(len: u64) -> Result<Items> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: a name that ends in zero.
        let fd = unsafe { libc::memfd_create(c"lockstead-queue".as_ptr(), flags) };
        if fd < 0 {
            return Err(Error::last_os_error());
        }
        // SAFETY: just made, and nobody else knows it.
        let file = unsafe { File::from_raw_fd(fd) };
        reserve(&file, 0, len)?;
        Items::map(file)
    }

    /// Maps what a file has now.
    pub(crate) fn map(file: File) -> Result<Items> {
        // Refused of a file with a name, which nobody can protect against who may write it.
        // SAFETY: the call takes numbers only, and no memory of the program's.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) };
        let len = file.metadata()?.len();
        let len = usize::try_from(len).map_err(|_| ErrorKind::FileTooLarge)?;
        if len == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let at = core::ptr::null_mut();
        // SAFETY: a new mapping, wherever the kernel likes.
        let base = unsafe { libc::mmap(at, len, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        let base = NonNull::new(base.cast()).filter(|_| base != libc::MAP_FAILED);
        Ok(Items { file, base: base.ok_or_else(Error::last_os_error)?, len })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Maps what the file has become, if another process has made it longer.
    pub(crate) fn follow(&mut self) -> Result<()> {
        let len = self.file.metadata()?.len() as usize;
        if len > self.len {
            self.remap(len)?;
        }
        Ok(())
    }

    /// Makes the file longer by so many bytes, with memory for them, and maps them. Returns where they
    /// begin.
    pub(crate) fn grow(&mut self, by: u64) -> Result<u64> {
        // Whoever died after making it longer has left bytes that nobody uses, and nobody misses.
        let end = self.file.metadata()?.len();
        reserve(&self.file, end, by)?;
        self.remap(usize::try_from(end + by).map_err(|_| ErrorKind::FileTooLarge)?)?;
        Ok(end)
    }

    /// Gives the memory of a part of the file back. It reads as zeroes then.
    pub(crate) fn forget(&self, from: u64, len: u64) {
        let how = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // Where the file system cannot, the memory stays.
        // SAFETY: the call takes numbers only, and no memory of the program's.
        unsafe { libc::fallocate(self.file.as_raw_fd(), how, from as i64, len as i64) };
    }

    fn remap(&mut self, len: usize) -> Result<()> {
        // SAFETY: ITEMS-MAPPED: nobody else uses the mapping, which may move.
        let base =
            unsafe { libc::mremap(self.base.as_ptr().cast(), self.len, len, libc::MREMAP_MAYMOVE) };
        let new = NonNull::new(base.cast()).filter(|_| base != libc::MAP_FAILED);
        self.base = new.ok_or_else(Error::last_os_error)?;
        self.len = len;
        Ok(())
    }
}

impl Drop for Items {
    fn drop(&mut self) {
        // SAFETY: ITEMS-MAPPED: the mapping is this one's, and nobody refers to it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// Has the file system keep memory for a part of the file: what is not to be had is an error here, and no
/// signal at a store later.
fn reserve(file: &File, from: u64, len: u64) -> Result<()> {
    // SAFETY: the call takes numbers only, and no memory of the program's.
    let error = unsafe { libc::posix_fallocate(file.as_raw_fd(), from as i64, len as i64) };
    if error == 0 { Ok(()) } else { Err(Error::from_raw_os_error(error)) }
}
