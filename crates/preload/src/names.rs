//! What threads are called: the kernel gives each the name of its creator, so that only another one than
//! the first thread's says that somebody has named it.

use crate::sys;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use lockstead_ledger::thread::ThreadRecord;

/// What the kernel called the first thread when the library came.
static INHERITED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Notes what threads are called that nobody names.
pub fn note_first() {
    note_of_first(now());
}

/// Notes what threads are called that nobody names: the kernel's name of the first one.
pub fn note_of_first(name: [u64; 2]) {
    for (word, half) in INHERITED.iter().zip(name) {
        word.store(half, Relaxed);
    }
}

/// Notes the name of a thread that is seen for the first time, if somebody has named it.
pub fn note_if_own(record: &ThreadRecord) {
    let name = now();
    if name.iter().zip(&INHERITED).any(|(new, old)| *new != old.load(Relaxed)) {
        for (word, half) in record.name.iter().zip(name) {
            word.store(half, Relaxed);
        }
    }
}

/// Returns what the kernel calls this thread: 15 bytes and a zero.
#[must_use]
pub fn now() -> [u64; 2] {
    let mut name = [0; 2];
    let place = name.as_mut_ptr() as usize;
    // SAFETY: the kernel writes at most 16 bytes, zero-terminated, to as many on this stack.
    let asked =
        unsafe { sys::call(libc::SYS_prctl, [libc::PR_GET_NAME as usize, place, 0, 0, 0, 0]) };
    if asked.is_ok() { name } else { INHERITED.each_ref().map(|word| word.load(Relaxed)) }
}
