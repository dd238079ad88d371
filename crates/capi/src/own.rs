//! The calling thread's number where inline fast paths of other languages find it.
//!
//! # Role
//! `lks_self__` is a thread-local word of the library that C reads by the
//! initial-exec model: one load at a known distance from the thread pointer. Rust
//! cannot export such a word, so assembly defines it.
//!
//! # Invariants
//! - **SELF-SLOT** `lks_self__` is 0 or the thread's slot. [`enter`] writes it after the thread has
//!   joined, and the thread erases it when it gives its slot up.
//! - **SELF-UNKNOWN** An inline function that finds 0 there calls into the library, which enters.
//! - **SELF-SECTIONS** `lks_sections__` is null, or what `lockstead_linux::sections` says, which
//!   stays so to the thread's end.
//! - **SELF-ALIVE** The words are aligned and live to the thread's end; no reference to them
//!   outlives the call that asked for it.

use core::arch::{asm, global_asm};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use lockstead_core::Platform;
use lockstead_linux::{Linux, at_leaving};

global_asm!(
    ".pushsection .tbss.lks_self__,\"awT\",@nobits",
    ".globl lks_self__",
    ".type lks_self__, @object",
    ".size lks_self__, 4",
    ".p2align 2",
    "lks_self__:",
    ".zero 4",
    ".popsection",
);

// Beside it, for the inline releases: the word in which the kernel looks for the
// restartable section that the thread is in (SELF-SECTIONS).
global_asm!(
    ".pushsection .tbss.lks_sections__,\"awT\",@nobits",
    ".globl lks_sections__",
    ".type lks_sections__, @object",
    ".size lks_sections__, 8",
    ".p2align 3",
    "lks_sections__:",
    ".zero 8",
    ".popsection",
);

/// Sets the calling thread's `lks_sections__`.
fn show_sections() {
    // SAFETY: SELF-ALIVE; the address is found as in `own`, and the store keeps SELF-SECTIONS.
    unsafe {
        #[cfg(target_arch = "aarch64")]
        asm!(
            "mrs {at}, tpidr_el0",
            "adrp {distance}, :gottprel:lks_sections__",
            "ldr {distance}, [{distance}, :gottprel_lo12:lks_sections__]",
            "str {sections}, [{at}, {distance}]",
            at = out(reg) _,
            distance = out(reg) _,
            sections = in(reg) lockstead_linux::sections(),
            options(nostack, preserves_flags),
        );
        #[cfg(target_arch = "x86_64")]
        asm!(
            "mov {at}, qword ptr fs:[0]",
            "add {at}, qword ptr [rip + lks_sections__@GOTTPOFF]",
            "mov qword ptr [{at}], {sections}",
            at = out(reg) _,
            sections = in(reg) lockstead_linux::sections(),
            options(nostack),
        );
    }
}

/// Returns the calling thread's word.
fn own() -> &'static AtomicU32 {
    let at: *mut u32;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the x86-64 TLS ABI: the thread pointer and a constant of the linker's add up to the
    // word's address, and the asm only reads them.
    unsafe {
        asm!(
            "mov {at}, qword ptr fs:[0]",
            "add {at}, qword ptr [rip + lks_self__@GOTTPOFF]",
            at = out(reg) at,
            options(nostack, pure, readonly),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above by the AArch64 TLS ABI: the asm only reads thread pointer and constant.
    unsafe {
        asm!(
            "mrs {at}, tpidr_el0",
            "adrp {distance}, :gottprel:lks_self__",
            "ldr {distance}, [{distance}, :gottprel_lo12:lks_self__]",
            "add {at}, {at}, {distance}",
            at = out(reg) at,
            distance = out(reg) _,
            options(nostack, pure, readonly),
        );
    }
    // SAFETY: SELF-ALIVE, which the callers in this file keep.
    unsafe { AtomicU32::from_ptr(at) }
}

/// Makes the calling thread a participant if it is not, and writes its slot (SELF-SLOT).
#[inline]
pub(crate) fn enter() {
    if own().load(Relaxed) == 0 {
        join();
    }
}

#[cold]
fn join() {
    at_leaving(leave);
    let me = Linux::me();
    show_sections();
    own().store(me.get(), Relaxed);
}

/// Erases the thread's number, when it gives its slot up.
fn leave() {
    #[cfg(feature = "check")]
    crate::check::leaving(own().load(Relaxed));
    own().store(0, Relaxed);
}
