//! The words that a thread has of its own.
//!
//! One block in the initial TLS image, reached without a call and without an
//! allocation: `__tls_get_addr` may do both, which is why this is not
//! `#[thread_local]`. A library that is loaded at start always finds room.

use core::arch::{asm, global_asm};
use core::sync::atomic::{AtomicPtr, AtomicUsize};

/// What a thread keeps outside of the ledger: zero at its start, and its
/// inheritance in a forked child.
#[repr(C)]
#[derive(Debug)]
pub struct Words {
    /// The thread's record in the ledger. Null: it has none yet. Meaningful
    /// only while the process has a ledger: a forked child has its parent's
    /// pointer and not its memory.
    pub record: AtomicPtr<u8>,
    /// See [`Stage`].
    pub stage: AtomicUsize,
    /// What a forked child takes over of its parent's held locks: the address
    /// of the copy, zero outside of `fork`.
    pub inheritance: AtomicUsize,
    /// What other threads hold, for a forked child to know: the address of the
    /// copy, zero outside of `fork`.
    #[cfg(feature = "check")]
    pub left: AtomicUsize,
    /// Lowest address of the thread's stack; zero while the stack is not known.
    pub stack_low: AtomicUsize,
    /// End of the thread's stack.
    pub stack_high: AtomicUsize,
    /// How often the destructor of our key has run.
    pub rounds: AtomicUsize,
    /// Where on the stack the thread became busy: of a call that blocks the stack
    /// pointer, else a place in a frame of ours.
    pub busy_at: AtomicUsize,
    /// Not zero if the thread has several stacks within its own, so that calls from
    /// above a frame do not say that it was left.
    #[cfg(feature = "check")]
    pub stacks_within: AtomicUsize,
    /// The real functions are being looked up by this thread.
    #[cfg(feature = "check")]
    pub resolving: AtomicUsize,
}

/// In which part of its life a thread is, as far as recording goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Stage {
    /// Not seen yet.
    New = 0,
    /// Has a record.
    Recorded = 1,
    /// Is not recorded (any more): it has ended, or there was no record left.
    Silent = 2,
}

global_asm!(
    ".section .tbss,\"awT\",@nobits",
    ".balign 64",
    ".globl lockstead_words",
    ".hidden lockstead_words",
    ".type lockstead_words,@object",
    ".size lockstead_words,{size}",
    "lockstead_words:",
    ".zero {size}",
    ".text",
    size = const size_of::<Words>(),
);

/// The calling thread's words.
#[inline(always)]
#[must_use]
pub fn words() -> &'static Words {
    let address: *const Words;
    // SAFETY: the symbol is in the initial TLS image, so its offset from the
    // thread pointer is in the global offset table; the word at fs:0 is the
    // thread pointer itself. Zeroed memory is valid `Words`. `'static` is
    // longer than the thread, but a reference cannot leave it: `Words` is used
    // within one call of an interposed function only.
    unsafe {
        asm!(
            "mov {address}, qword ptr [rip + lockstead_words@GOTTPOFF]",
            "add {address}, qword ptr fs:[0]",
            address = out(reg) address,
            options(pure, readonly, nostack),
        );
        &*address
    }
}

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
