//! The words of a thread, in its block of the initial ones: see [`tls`](mod@crate::tls).
//!
//! The thread pointer leads to two words, of which the first points at the thread's vector of blocks; the
//! blocks of the modules that were loaded at start lie above it. In front of our words in each such block is
//! a [`MARK`].

use crate::tls::ThreadWords;
use core::arch::{asm, global_asm};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What is in front of the words of each of the C library's threads: nothing that zeroes, addresses or
/// small numbers are.
const MARK: u64 = 0x9d3b_e1f7_5ca8_0c63;

global_asm!(
    ".section .tdata,\"awT\",@progbits",
    ".balign 64",
    ".zero 56",
    ".xword {mark}",
    ".globl lockstead_words",
    ".hidden lockstead_words",
    ".type lockstead_words,@object",
    ".size lockstead_words,{size}",
    "lockstead_words:",
    ".zero {size}",
    ".text",
    mark = const MARK,
    size = const size_of::<ThreadWords>(),
);

/// The mark by which threads are known; zero before [`learn`], which none has.
pub static LEARNED: AtomicU64 = AtomicU64::new(0);

/// Returns the thread pointer.
#[inline(always)]
fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: the instruction reads a register that every thread has.
    unsafe {
        asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    pointer
}

/// Returns how far above the thread pointer the words are, in every thread of the C library's.
#[inline(always)]
fn distance() -> usize {
    let distance: usize;
    // SAFETY: the symbol is in the initial TLS image, so its offset from the thread pointer is in the
    // global offset table.
    unsafe {
        asm!(
            "adrp {distance}, :gottprel:lockstead_words",
            "ldr {distance}, [{distance}, #:gottprel_lo12:lockstead_words]",
            distance = out(reg) distance,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    distance
}

/// Learns by the calling thread, which is the C library's, how its threads are known. Returns false
/// where blocks are not where they have always been: then none is.
#[must_use]
pub fn learn() -> bool {
    // SAFETY: the calling thread is the C library's, so that the mark of its block is there.
    let found = unsafe { mark_at(thread_pointer()) };
    if found == MARK {
        LEARNED.store(MARK, Relaxed);
    }
    found == MARK
}

/// Returns the word in front of the words of a thread with this pointer.
///
/// # Safety
/// The memory can be read.
#[inline(always)]
unsafe fn mark_at(pointer: usize) -> u64 {
    // SAFETY: the caller promises that it can be read. Nobody writes the word but the loader, before the
    // thread runs.
    unsafe { ((pointer + distance() - 8) as *const u64).read_volatile() }
}

/// Returns the calling thread's words; `None` if its thread pointer is not the C library's.
#[inline(always)]
#[must_use]
pub fn own() -> Option<&'static ThreadWords> {
    let pointer = thread_pointer();
    // SAFETY: a thread that calls a function of the C library has memory at its thread pointer, of which
    // these are the first words.
    let [vector, spare] = unsafe { (pointer as *const [u64; 2]).read_volatile() };
    // One of the program's making mostly has zeroes. The C library's has an address and leaves the second
    // word alone, and then our block is behind.
    if vector == 0 || !vector.is_multiple_of(8) || spare != 0 {
        return None;
    }
    // SAFETY: the look before says that the pointer is the C library's, which has made the blocks of all
    // modules that were loaded at start together.
    let mark = unsafe { mark_at(pointer) };
    (mark != 0 && mark == LEARNED.load(Relaxed)).then(words)
}

/// Puts the address of the calling thread's words into a register, or goes to
/// `otherwise` if its thread pointer is not the C library's, by the same look as [`own`]; uses two other
/// registers. For `asm!` with the operand `learned`.
#[doc(hidden)]
#[macro_export]
macro_rules! own_words {
    ($words:literal, $other:literal, $third:literal, $otherwise:literal) => {
        concat!(
            "mrs ",
            $words,
            ", tpidr_el0\n ldp ",
            $other,
            ", ",
            $third,
            ", [",
            $words,
            "]\n cbz ",
            $other,
            ", ",
            $otherwise,
            "\n tst ",
            $other,
            ", #7\n b.ne ",
            $otherwise,
            "\n cbnz ",
            $third,
            ", ",
            $otherwise,
            "\n adrp ",
            $other,
            ", :gottprel:lockstead_words\n ldr ",
            $other,
            ", [",
            $other,
            ", #:gottprel_lo12:lockstead_words]\n add ",
            $words,
            ", ",
            $words,
            ", ",
            $other,
            "\n ldur ",
            $other,
            ", [",
            $words,
            ", #-8]\n",
            $crate::load!($third, "{learned}"),
            "\n cmp ",
            $other,
            ", ",
            $third,
            "\n b.ne ",
            $otherwise,
            "\n cbz ",
            $third,
            ", ",
            $otherwise,
        )
    };
}

/// Returns the words of the calling thread, which is known to be the C library's: it has gone
/// through [`own`], or there can be no other yet.
#[inline(always)]
#[must_use]
pub fn words() -> &'static ThreadWords {
    // SAFETY: they lie in the thread's block, by `distance`. Zeroed memory is valid `ThreadWords`. `'static`
    // is longer than the thread, but a reference cannot leave it: `ThreadWords` is used within one call of
    // an interposed function only.
    unsafe { &*((thread_pointer() + distance()) as *const ThreadWords) }
}
