//! Keeps the words that a thread has of its own.
//!
//! One block in the initial TLS image, reached without a call and without an
//! allocation: `__tls_get_addr` may do both, which is why this is not
//! `#[thread_local]`. A library that is loaded at start always finds room.
//!
//! # Foreign thread pointers
//! Not every thread pointer is the C library's. A program may start a child by
//! `clone` that shares its memory and runs on one of the program's making: zeroes, as
//! sandboxes do it, or what another runtime needs. What lies where our words would be
//! is anything there, or nothing. So none of ours is touched before [`own`], or the
//! same look on the fast path, has found beside the thread pointer what only the C library's threads
//! have there. On x86-64 it is the number that the C library draws for each process and puts into all of
//! its threads' descriptors. On aarch64 no descriptor has such a number: it is a word in front of ours,
//! which each thread's block begins with.
//!
//! A *copy* of a descriptor has that too, and the address and the id of the
//! thread that it is a copy of. The C library takes whoever runs on it for that thread,
//! and the owners of locks and lists of robust ones say so: it is taken for that thread
//! here as well. So is a child that has no descriptor but its parent's. Words are found
//! by the address in the descriptor, so that a copy needs none beside it.

use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, AtomicUsize};

/// What a thread keeps outside of the ledger: zero at its start, and its
/// inheritance in a forked child.
#[repr(C)]
#[derive(Debug)]
pub struct ThreadWords {
    /// The thread's record in the ledger. Null: it has none yet. Meaningful
    /// only while the process has a ledger: a forked child has its parent's
    /// pointer and not its memory.
    pub record: AtomicPtr<u8>,
    /// The thread's [`ThreadStage`], as a number.
    pub stage: AtomicUsize,
    /// What a forked child takes over of its parent's held locks: the address
    /// of the copy, zero outside of `fork`.
    pub inheritance: AtomicUsize,
    /// What other threads hold, for a forked child to know: the address of the
    /// copy, zero outside of `fork`.
    #[cfg(feature = "check")]
    pub left: AtomicUsize,
    /// The lowest address of the thread's stack; zero while the stack is not known.
    pub stack_low: AtomicUsize,
    /// The end of the thread's stack.
    pub stack_high: AtomicUsize,
    /// The program's value of our key: see
    /// [`keys`](crate::interpose::keys).
    pub value: AtomicPtr<c_void>,
    /// The time at which `value` was set.
    pub value_of: AtomicUsize,
    /// How often the destructor of our key has run.
    pub rounds: AtomicUsize,
    /// The place where on the stack the thread became busy: of a call that blocks the stack
    /// pointer, else a place in a frame of ours.
    pub busy_at: AtomicUsize,
    /// Whether (not zero) the thread has several stacks within its own, so that calls from
    /// above a frame do not say that it was left.
    #[cfg(feature = "check")]
    pub stacks_within: AtomicUsize,
    /// The real functions are being looked up by this thread.
    #[cfg(feature = "check")]
    pub resolving: AtomicUsize,
}

/// The part of its life that a thread is in, as far as recording goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum ThreadStage {
    /// The thread was not seen yet.
    New = 0,
    /// The thread has a record.
    Recorded = 1,
    /// The thread is not recorded (any more): it has ended, or there was no record left.
    Silent = 2,
}

pub use crate::arch::tls::{learn, own, words};

#[cfg(test)]
mod tests {
    use super::words;
    use core::sync::atomic::Ordering::Relaxed;
    use std::thread;

    #[test]
    fn each_thread_has_its_own_zeroed_words() {
        words().stack_high.store(1, Relaxed);
        let other = thread::spawn(|| {
            let seen = words().stack_high.swap(2, Relaxed);
            (seen, words().stack_high.load(Relaxed))
        });
        assert_eq!(other.join().expect("it ends"), (0, 2));
        assert_eq!(words().stack_high.load(Relaxed), 1);
    }
}
