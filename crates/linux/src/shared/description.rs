//! Record locks on a segment's file, and open file descriptions of a process's own.
//!
//! # Role
//! A record lock that belongs to an open file description (`F_OFD_SETLK`) goes when the
//! last reference to that description does, and at no other time: closing another
//! descriptor of the file does not release it, as it would release a lock of the process
//! (`F_SETLK`). So a process that wants to be known by such a lock needs a description that
//! nobody else refers to, which is a file opened anew: a duplicate, and what a forked child
//! inherits, refers to the same one.
//!
//! Whether somebody has a lock is asked with `F_OFD_GETLK`, by any descriptor of the file.
//! It takes nothing, and nobody who only reads the file can be in its way.
//!
//! # Who holds what
//! Who may write the file can lock for writing; who may only read it can lock for reading,
//! as many bytes as it likes. So a lock for writing is somebody's who may take part.

use super::registry::AttachedSegment;
use super::{origin, process};
use crate::sys::{self, NoSignals};
use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicU32, Ordering};
use lockstead_core::robust::life::LAST_PROCESS;

/// The first byte of a segment's file that stands for something by being locked: the one
/// after it for process number 1, and so on. No file is that long.
pub const LOCKS_FROM: i64 = 1 << 40;

/// The bit in the number of a process whose lock is shared with readers of the file.
pub const SHARED: u32 = (LAST_PROCESS >> 1) + 1;
/// The last number of a process, without [`SHARED`].
pub const LAST_NUMBER: u32 = LAST_PROCESS >> 1;

/// Tells whether a mapping of a file of this file system refers to the file's own description, and
/// so keeps its record locks, as far as is known of kinds of file systems. False if it is not told.
#[allow(clippy::unnecessary_cast, reason = "the types differ between libcs")]
pub(super) fn keeps_locks_of_mappings(file: c_int) -> bool {
    /// The kinds of file systems whose mappings are of another file system's files, always or at
    /// times.
    const OTHERS: [i64; 2] = [libc::OVERLAYFS_SUPER_MAGIC as i64, libc::FUSE_SUPER_MAGIC as i64];
    origin::file_system(file).is_some_and(|kind| !OTHERS.contains(&kind))
}

/// The lock on the byte of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Nobody has locked it.
    Free,
    /// Somebody has locked it who may only be able to read the file.
    Shared {
        /// This byte and no other.
        exactly: bool,
    },
    /// Somebody has locked it who may write the file.
    Alone {
        /// This byte and no other.
        exactly: bool,
    },
    /// The system does not tell; its error.
    Unknown(i32),
}

/// Asks how the byte of this number of a segment is locked, by others than the description that
/// `file` refers to.
#[must_use]
pub fn standing(file: c_int, number: u32) -> Standing {
    let mut range = byte(number, libc::F_WRLCK);
    // SAFETY: SYSCALL-LIVE, which this function keeps. The bare call is no point of cancellation.
    let told = unsafe { libc::syscall(libc::SYS_fcntl, file, libc::F_OFD_GETLK, &raw mut range) };
    if told != 0 {
        return Standing::Unknown(sys::errno());
    }
    let exactly = range.l_start == LOCKS_FROM + i64::from(number) && range.l_len == 1;
    match c_int::from(range.l_type) {
        libc::F_UNLCK => Standing::Free,
        libc::F_RDLCK => Standing::Shared { exactly },
        _ => Standing::Alone { exactly },
    }
}

fn byte(number: u32, kind: c_int) -> libc::flock {
    // SAFETY: the structure is plain bits, for which zero is valid.
    let mut range: libc::flock = unsafe { core::mem::zeroed() };
    range.l_type = kind as libc::c_short;
    range.l_whence = libc::SEEK_SET as libc::c_short;
    range.l_start = LOCKS_FROM + i64::from(number);
    range.l_len = 1;
    range
}

/// A description of the segment's file that nobody else has, while this lives: the libc's
/// `fork` waits for its end, so that no child inherits it.
///
/// A handler that `fork` calls before it forks, or a signal handler meanwhile, gets none: it
/// would wait for its own thread.
pub(super) struct SegmentDescription {
    file: c_int,
    _alone: ForkHeldOff,
}

impl SegmentDescription {
    /// Opens the file anew: by way of `/proc`, or by its path; the error is the system's.
    pub(super) fn open(attached: &AttachedSegment) -> Result<Self, i32> {
        let (file, identity, path) = attached.file();
        let alone = ForkHeldOff::new()?;
        let by_number = path_of(file).and_then(|path| {
            let path = CStr::from_bytes_until_nul(&path).ok()?;
            Some(reopen(path, identity))
        });
        let fresh = match (by_number, path) {
            (Some(Ok(fresh)), _) => fresh,
            (Some(Err(error)), None) => return Err(error),
            (None, None) => return Err(libc::EBADF),
            (first, Some(path)) => reopen(path, identity)
                .map_err(|error| first.and_then(Result::err).unwrap_or(error))?,
        };
        Ok(SegmentDescription { file: fresh, _alone: alone })
    }

    pub(super) fn file(&self) -> c_int {
        self.file
    }

    /// Locks the byte of a number for writing, or, if `shared`, for reading. `Ok(false)` if
    /// somebody's lock is in the way.
    pub(super) fn lock(&self, number: u32, shared: bool) -> Result<bool, i32> {
        let range = byte(number, if shared { libc::F_RDLCK } else { libc::F_WRLCK });
        // SAFETY: SYSCALL-LIVE: `range` lives on this stack until the call returns.
        let done = unsafe {
            libc::syscall(libc::SYS_fcntl, self.file, libc::F_OFD_SETLK, &raw const range)
        };
        match sys::errno() {
            _ if done == 0 => Ok(true),
            // A refusal for want of rights, or by a filter, is an error: it will not go away.
            libc::EAGAIN => Ok(false),
            error => Err(error),
        }
    }
}

impl Drop for SegmentDescription {
    fn drop(&mut self) {
        // SAFETY: DESCRIPTOR-OURS: `open` opened it. Its locks go with it, unless something maps
        // it.
        unsafe { libc::syscall(libc::SYS_close, self.file) };
    }
}

/// Builds the path `/proc/self/fd/` and the number.
fn path_of(file: c_int) -> Option<[u8; 26]> {
    let mut path = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0\0";
    let mut rest = u32::try_from(file).ok()?;
    let digits = rest.checked_ilog10().unwrap_or(0) as usize + 1;
    for at in (14..14 + digits).rev() {
        path[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    Some(path)
}

/// Opens the file at a path, if it is this one.
fn reopen(path: &CStr, identity: (u64, u64)) -> Result<c_int, i32> {
    let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOCTTY | libc::O_NONBLOCK;
    // SAFETY: SYSCALL-LIVE: a live path. The bare call is no point of cancellation.
    let fresh = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags) };
    let fresh = c_int::try_from(fresh).unwrap_or(-1);
    if fresh < 0 {
        return Err(sys::errno());
    }
    // The program may have closed our descriptor, or somebody the file's name, and given it
    // to something else.
    if origin::identify(fresh) == Some(identity) {
        return Ok(fresh);
    }
    // SAFETY: DESCRIPTOR-OURS: this function opened it above, and nobody else knows it.
    unsafe { libc::syscall(libc::SYS_close, fresh) };
    Err(libc::ESTALE)
}

/// Keeps the libc's `fork` waiting, and all others that want a description. Signals are held
/// off, so that no handler waits for the thread that it interrupts.
struct ForkHeldOff {
    _signals: NoSignals,
}

impl ForkHeldOff {
    /// Returns the error is that of a thread that is about to fork: a handler of its forks, or of a
    /// signal, has come here.
    fn new() -> Result<Self, i32> {
        let signals = NoSignals::new();
        match seize() {
            Seized::Now => Ok(ForkHeldOff { _signals: signals }),
            Seized::Before => Err(libc::EDEADLK),
        }
    }
}

impl Drop for ForkHeldOff {
    fn drop(&mut self) {
        release();
    }
}

enum Seized {
    /// A thread does so at this moment.
    Now,
    /// The calling thread had it already.
    Before,
}

fn seize() -> Seized {
    // Nobody describes anything where no segment is attached.
    let Some(by) = process::describes() else { return Seized::Now };
    let me = sys::gettid();
    loop {
        // ord: SHL-1 (acquire): nothing but the order of descriptions and forks.
        let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
        match by.compare_exchange(0, me, success, failure) {
            Ok(_) => return Seized::Now,
            Err(found) if found == me => return Seized::Before,
            // SAFETY: `sched_yield` takes no argument and touches no memory.
            Err(_) => unsafe { libc::sched_yield() },
        };
    }
}

/// Gives back what the calling thread has seized. Nothing happens if it has not: in a child of
/// `fork`, which finds the word zeroed; and where a segment was attached while it forked.
fn release() {
    if let Some(by) = process::describes() {
        // ord: SHL-1 (release): as above.
        let (success, failure) = (Ordering::Release, Ordering::Relaxed);
        let _ = by.compare_exchange(sys::gettid(), 0, success, failure);
    }
}

extern "C" fn before_fork() {
    seize();
}

extern "C" fn after_fork() {
    release();
}

/// Has the libc's `fork` wait for descriptions; once in a process. Children of the bare
/// system call may inherit one that is open in that moment: the lock then lives as long as
/// they do.
pub(super) fn watch_forks() {
    static WATCHED: AtomicU32 = AtomicU32::new(0);
    if WATCHED.swap(1, Ordering::Relaxed) == 0 {
        // SAFETY: the functions live as long as this library, and only store and load.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_have_paths() {
        for number in [0, 7, 10, 99, 100, 1_048_576, c_int::MAX] {
            let path = path_of(number).expect("a number");
            let path = CStr::from_bytes_until_nul(&path).expect("it ends");
            assert_eq!(path.to_str(), Ok(format!("/proc/self/fd/{number}").as_str()));
        }
        assert_eq!(path_of(-1), None);
    }
}
