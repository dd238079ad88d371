//! A process that moves those who sleep at words of a file which it may only read.

use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// Moves all who sleep at these words of the file (offsets) to a third one, at offset 8, where
/// nobody wakes them, again and again; counts how often it has gone over all.
pub(crate) fn steal(file: &std::fs::File, words: &[usize], rounds: &AtomicU32) -> ! {
    let len = file.metadata().expect("a file").len() as usize;
    // SAFETY: this is a new mapping at an address of the kernel's choice, for reading only.
    let base = unsafe {
        let kind = libc::MAP_SHARED;
        libc::mmap(core::ptr::null_mut(), len, libc::PROT_READ, kind, file.as_raw_fd(), 0)
    };
    assert_ne!(base, libc::MAP_FAILED);
    loop {
        for from in words {
            // SAFETY: the addresses lie in the mapping; nobody is woken, and as many moved as there
            // are.
            unsafe {
                let (from, to) = (base.byte_add(*from), base.byte_add(8));
                libc::syscall(libc::SYS_futex, from, libc::FUTEX_REQUEUE, 0, i32::MAX as usize, to);
            }
        }
        rounds.fetch_add(1, Ordering::SeqCst);
        std::thread::yield_now();
    }
}
