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
//! same look on the fast path, has found in the descriptor the number that the C
//! library draws for each process and puts into all of its threads' descriptors.
//!
//! A *copy* of a descriptor has that number too, and the address and the id of the
//! thread that it is a copy of. The C library takes whoever runs on it for that thread,
//! and the owners of locks and lists of robust ones say so: it is taken for that thread
//! here as well. So is a child that has no descriptor but its parent's. Words are found
//! by the address in the descriptor, so that a copy needs none beside it.

use core::arch::{asm, global_asm};
use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::Relaxed};

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
    size = const size_of::<ThreadWords>(),
);

/// glibc's `pointer_guard`, the same in all threads of a process; zero before
/// [`learn`].
pub static GUARD: AtomicU64 = AtomicU64::new(0);

/// The place where `pointer_guard` lies in a descriptor of glibc's on x86-64: libc and the loader
/// have agreed on that since 2.4.
#[doc(hidden)]
pub const GUARD_AT: usize = 0x30;

/// Reads the words of the calling thread's descriptor with these distances from the thread pointer.
macro_rules! descriptor {
    ($($at:expr),*) => {
        // SAFETY: a thread that calls a function of the C library has memory at its thread
        // pointer, of which these are the first words.
        ($(unsafe {
            let word: u64;
            asm!("mov {}, qword ptr fs:[{at}]", out(reg) word, at = const $at,
                options(pure, readonly, nostack, preserves_flags));
            word
        }),*)
    };
}

/// Learns by the calling thread, which is the C library's, how its threads are known. Returns false
/// where descriptors are not what they have always been: then none is.
#[must_use]
pub fn learn() -> bool {
    let (itself, header, guard) = descriptor!(0, 0x10, GUARD_AT);
    GUARD.store(guard, Relaxed);
    itself == header && guard != 0
}

/// Returns the calling thread's words; `None` if its thread pointer is not the C library's.
#[inline(always)]
#[must_use]
pub fn own() -> Option<&'static ThreadWords> {
    (descriptor!(GUARD_AT) == GUARD.load(Relaxed)).then(words)
}

/// Puts the address of the calling thread's words into a register, or goes to
/// `otherwise` if its thread pointer is not the C library's; uses another register. For
/// `asm!` with the operands `guard` and `guard_at`.
#[doc(hidden)]
#[macro_export]
macro_rules! own_words {
    ($words:literal, $other:literal, $otherwise:literal) => {
        concat!(
            "mov ",
            $other,
            ", qword ptr fs:[{guard_at}]",
            "\n cmp ",
            $other,
            ", qword ptr [rip + {guard}]\n jne ",
            $otherwise,
            "\n mov ",
            $words,
            ", qword ptr fs:[0]",
            "\n add ",
            $words,
            ", qword ptr [rip + lockstead_words@GOTTPOFF]",
        )
    };
}

/// Returns the words of the calling thread, which is known to be the C library's: it has gone
/// through [`own`], or there can be no other yet.
#[inline(always)]
#[must_use]
pub fn words() -> &'static ThreadWords {
    let address: *const ThreadWords;
    // SAFETY: the symbol is in the initial TLS image, so its offset from the
    // thread pointer is in the global offset table; the word at fs:0 is the
    // thread pointer itself. Zeroed memory is valid `ThreadWords`. `'static` is
    // longer than the thread, but a reference cannot leave it: `ThreadWords` is used
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
