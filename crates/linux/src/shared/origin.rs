//! Where a participant has come from: which start of the system, which file, which process.
//!
//! # Role
//! What a record lock proves of a process, a reader's lock on the whole file can hide
//! ([`number`](super::number)). Slots therefore also note numbers that no two starts of the
//! system share, nor two files, nor two processes. Where they differ from what the asker sees,
//! the tenant has ended: it was of another start, of the file of which this one is a copy, or
//! of a process the number of which the kernel has given to another one since.
//!
//! # Why a difference proves that
//! Each number is 0 where it is not certain to be the same for all who live, and 0 proves
//! nothing. The number of the start is believed only where the kernel's own `/proc` tells it, for
//! container managers mount files of theirs over it. That of the file is believed on file systems
//! only that number a file once and for all. That of a process is the inode of its `pidfd`, which
//! Linux has given to one process only since 6.9; before, all have the same and it is not asked
//! for.

use crate::sys;
use core::ffi::{CStr, c_int};
use core::mem::MaybeUninit;

/// File systems on which a file has one device and one inode, whoever asks.
#[allow(clippy::unnecessary_cast, reason = "the types differ between libcs")]
const STEADY: [i64; 7] = [
    libc::TMPFS_MAGIC as i64,
    libc::EXT4_SUPER_MAGIC as i64,
    libc::XFS_SUPER_MAGIC as i64,
    libc::BTRFS_SUPER_MAGIC as i64,
    libc::F2FS_SUPER_MAGIC as i64,
    libc::HUGETLBFS_MAGIC as i64,
    // This is the number of ramfs, which libc does not name.
    0x8584_58f6,
];

/// The kind of file system on which the pidfds of Linux 6.9 and later are.
const PIDFS: i64 = 0x5049_4446;

/// Returns the device and the inode of a file; `None`: the error is in `errno`.
pub(super) fn identify(file: c_int) -> Option<(u64, u64)> {
    let mut about = core::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: SYSCALL-LIVE: the kernel fills in `about`, which lives until the call returns.
    if unsafe { libc::fstat(file, about.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: the call has said that it filled the structure in.
    let about = unsafe { about.assume_init() };
    Some((about.st_dev, about.st_ino))
}

/// Returns the kind of the file system on which a file is, if it is told.
#[allow(clippy::unnecessary_cast, reason = "the types differ between libcs")]
pub(super) fn file_system(file: c_int) -> Option<i64> {
    let mut about = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: SYSCALL-LIVE: the kernel fills in `about`, which lives until the call returns.
    let told = unsafe { libc::fstatfs(file, about.as_mut_ptr()) } == 0;
    // SAFETY: the call has said that it filled the structure in.
    told.then(|| unsafe { about.assume_init() }.f_type as i64)
}

/// Returns a number for this start of the system and this file together, as slots note it of their
/// tenants; 0: not certain, and nothing follows from a difference.
pub fn of_file(file: c_int) -> u64 {
    if !file_system(file).is_some_and(|kind| STEADY.contains(&kind)) {
        return 0;
    }
    let (Some(start), Some(about)) = (start(), examine(file)) else { return 0 };
    // The inode of a file that was removed is given to the next one; the moment it was made
    // tells these apart. Where it is not kept, all see none.
    let born = match about.stx_mask & libc::STATX_BTIME {
        0 => 0,
        _ => (about.stx_btime.tv_sec as u64) << 30 ^ u64::from(about.stx_btime.tv_nsec),
    };
    let device = u64::from(about.stx_dev_major) << 32 | u64::from(about.stx_dev_minor);
    let words = start.chunks_exact(8).map(|eight| eight.iter().fold(0, push)).chain([
        device,
        about.stx_ino,
        born,
    ]);
    words.fold(0, mix) | 1
}

fn push(word: u64, byte: &u8) -> u64 {
    word << 8 | u64::from(*byte)
}

/// Spreads each word over all bits, so that files of one device do not meet by their numbers
/// being close.
fn mix(hash: u64, word: u64) -> u64 {
    let mixed = (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

/// Returns what `statx` tells; a filter may not know that call.
fn examine(file: c_int) -> Option<libc::statx> {
    let mut about = MaybeUninit::<libc::statx>::zeroed();
    let (wanted, how) = (libc::STATX_INO | libc::STATX_BTIME, libc::AT_EMPTY_PATH);
    // SAFETY: SYSCALL-LIVE: a live string, and room for the answer. The libc's function may do
    // without the kernel's call, and then nobody's moment is known.
    let told = unsafe {
        libc::syscall(libc::SYS_statx, file, c"".as_ptr(), how, wanted, about.as_mut_ptr())
    };
    // SAFETY: the structure is zeroed, and the call has filled it in where it said so.
    (told == 0).then(|| unsafe { about.assume_init() })
}

/// Returns the kernel's number for this start of the system, as it is written: 32 digits and
/// dashes.
fn start() -> Option<[u8; 40]> {
    const WRITTEN: usize = 36;
    let mut text = [0; 40];
    let file = open(c"/proc/sys/kernel/random/boot_id")?;
    #[allow(clippy::unnecessary_cast, reason = "the types differ between libcs")]
    let is_kernels = file_system(file) == Some(libc::PROC_SUPER_MAGIC as i64);
    // SAFETY: SYSCALL-LIVE: `text` has room for so many bytes, and lives until the call returns.
    let read = unsafe { libc::syscall(libc::SYS_read, file, text.as_mut_ptr(), WRITTEN) };
    close(file);
    (is_kernels && read == WRITTEN as i64).then_some(text)
}

/// Returns a number for the process that this PID namespace gives this one now, which no other
/// process has had since the system was started; 0: not certain.
pub(super) fn of_process(process: u32) -> u64 {
    let _errno = sys::KeepErrno::new();
    // SAFETY: `pidfd_open` takes numbers only, and touches no memory of ours.
    let file = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
    let Some(file) = c_int::try_from(file).ok().filter(|&file| file >= 0) else { return 0 };
    let is_told = file_system(file) == Some(PIDFS);
    let told = identify(file).filter(|_| is_told);
    close(file);
    told.map_or(0, |(_, inode)| inode)
}

fn open(path: &CStr) -> Option<c_int> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: SYSCALL-LIVE: a live path. The bare call is no point of cancellation.
    let file = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags) };
    c_int::try_from(file).ok().filter(|&file| file >= 0)
}

fn close(file: c_int) {
    // SAFETY: DESCRIPTOR-OURS: the caller opened the descriptor, and uses it no more.
    unsafe { libc::syscall(libc::SYS_close, file) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn one_file_has_one_origin_and_a_copy_another() {
        let path = std::env::temp_dir().join(format!("lockstead-origin-{}", std::process::id()));
        let copy = path.with_extension("copy");
        std::fs::write(&path, "text").expect("written");
        std::fs::copy(&path, &copy).expect("copied");
        let of = |path| of_file(std::fs::File::open(path).expect("a file").as_raw_fd());
        let (one, again, other) = (of(&path), of(&path), of(&copy));
        std::fs::remove_file(&path).expect("it");
        std::fs::remove_file(&copy).expect("it");
        assert_eq!(one, again);
        if one == 0 {
            return println!("skipped: the files of this directory have no certain origin");
        }
        assert_ne!(one, other);
    }

    #[test]
    fn a_process_has_one_number_and_its_child_another() {
        let me = of_process(std::process::id());
        assert_eq!(me, of_process(std::process::id()));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a child");
        let other = of_process(child.id());
        child.kill().and_then(|()| child.wait()).expect("it ends");
        if me == 0 {
            return println!("skipped: this kernel has no numbers of processes that are unique");
        }
        assert_ne!(me, other);
        assert_ne!(other, 0);
        assert_eq!(of_process(child.id()), 0, "there is none any more");
    }
}
