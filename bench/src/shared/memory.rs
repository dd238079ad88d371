//! Memory that processes share: an anonymous file, mapped by each of them.
//!
//! # Invariants
//! - **PLAIN-BITS** A [`Plain`] type is made of atomics, or of a lock that is meant for several
//!   processes: any bits are valid, and other processes may write at any time.

use crate::Error;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

/// A type that can lie in such memory.
///
/// # Safety
/// Zeroes are a value of it; all that changes is changed through atomics or by
/// code that the C library means for several processes; it holds no pointer
/// that one process makes and another follows.
pub(crate) unsafe trait Plain: Sync + 'static {}

// SAFETY: by PLAIN-BITS it is made of atomics: any bits are valid, and others may write at any
// time.
unsafe impl Plain for std::sync::atomic::AtomicU64 {}

/// One value in shared memory, zeroes at first.
pub(crate) struct SharedMemory<T: Plain> {
    file: OwnedFd,
    start: NonNull<T>,
    owns: PhantomData<T>,
}

// SAFETY: it is a reference to a `Plain` value, which is `Sync` by PLAIN-BITS.
unsafe impl<T: Plain> Send for SharedMemory<T> {}
// SAFETY: as for `Send`: by PLAIN-BITS the value is `Sync`.
unsafe impl<T: Plain> Sync for SharedMemory<T> {}

impl<T: Plain> SharedMemory<T> {
    /// Creates memory that is all zeros.
    pub(crate) fn create() -> Result<Self, Error> {
        // SAFETY: the name is a string; a fresh descriptor is nobody else's.
        let file = unsafe {
            let file = libc::memfd_create(c"lockstead-bench".as_ptr(), libc::MFD_CLOEXEC);
            if file < 0 {
                return Err(failed("cannot make shared memory"));
            }
            OwnedFd::from_raw_fd(file)
        };
        let file = File::from(file);
        file.set_len(size_of::<T>() as u64)
            .map_err(|source| Error::Process { what: "cannot make shared memory", source })?;
        Self::map(file.into())
    }

    /// Returns the memory that another process has made.
    pub(crate) fn open(file: OwnedFd) -> Result<Self, Error> {
        let what = "cannot use the shared memory of the parent";
        let file = File::from(file);
        let length = file.metadata().map_err(|source| Error::Process { what, source })?.len();
        if length != size_of::<T>() as u64 {
            let source = io::Error::from(io::ErrorKind::InvalidData);
            return Err(Error::Process { what, source });
        }
        Self::map(file.into())
    }

    fn map(file: OwnedFd) -> Result<Self, Error> {
        use std::os::fd::AsRawFd;
        const {
            assert!(align_of::<T>() <= 4096, "a mapping begins at a page");
        }
        // SAFETY: the call makes a new mapping at a place of the kernel's choice, as long as the
        // file.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<T>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(failed("cannot map shared memory"));
        }
        let start = NonNull::new(start.cast()).expect("nothing is mapped at zero");
        Ok(SharedMemory { file, start, owns: PhantomData })
    }
}

impl<T: Plain> std::ops::Deref for SharedMemory<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: mapped until the drop; any content that a process may leave
        // is a value (`Plain`).
        unsafe { self.start.as_ref() }
    }
}

impl<T: Plain> AsFd for SharedMemory<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl<T: Plain> Drop for SharedMemory<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map`, to which no reference is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), size_of::<T>()) };
    }
}

fn failed(what: &'static str) -> Error {
    Error::Process { what, source: io::Error::last_os_error() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn two_mappings_show_the_same() {
        let one = SharedMemory::<AtomicU64>::create().expect("memory");
        let file = one.as_fd().try_clone_to_owned().expect("a descriptor");
        let two = SharedMemory::<AtomicU64>::open(file).expect("the same memory");
        one.store(7, Ordering::Relaxed);
        assert_eq!(two.load(Ordering::Relaxed), 7);
    }

    #[test]
    fn memory_of_another_size_is_refused() {
        let file = File::open("/dev/null").expect("a file");
        assert!(SharedMemory::<AtomicU64>::open(file.into()).is_err());
    }
}
