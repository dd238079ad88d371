//! The words of a thread, beside its descriptor: see [`tls`](mod@crate::tls).

use crate::tls::ThreadWords;
use core::arch::{asm, global_asm};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

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
