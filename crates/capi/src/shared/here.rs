//! Who the calling thread is in the segment that it used last, where inline fast paths of
//! other languages find it.
//!
//! # Role
//! `lks_here__` is a thread-local word that C reads by the initial-exec model, as
//! `lks_self__`: null, or the address of the thread's record of its membership, of which
//! `lks_member__` in `shared-mutex.h` has the first words. The record itself says which
//! addresses it is about; in a forked child, and after leaving, that is none.
//!
//! # Invariants
//! - **HERE-MAPPED** What `lks_here__` leads to is mapped: it is erased when the thread's records go.
//! - **HERE-UNKNOWN** Whoever finds null, or another segment, calls into the library, which shows.
//! - **HERE-OWES** It is null while the thread owes anything for a wait for a condition, since then
//!   a release has more to do than the inline one does.

use core::arch::{asm, global_asm};
use core::ptr::{from_ref, null, null_mut};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use lockstead::shared::raw::releases_by_the_word;
use lockstead_linux::shared::{Member, at_forgetting, member};

global_asm!(
    ".pushsection .tbss.lks_here__,\"awT\",@nobits",
    ".globl lks_here__",
    ".type lks_here__, @object",
    ".size lks_here__, 8",
    ".p2align 3",
    "lks_here__:",
    ".zero 8",
    ".popsection",
);

/// The calling thread's word.
fn here() -> &'static AtomicPtr<Member> {
    let at: *mut *mut Member;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads the thread pointer and a constant of the linker's; the sum is
    // the word's address, as the x86-64 TLS ABI has it.
    unsafe {
        asm!(
            "mov {at}, qword ptr fs:[0]",
            "add {at}, qword ptr [rip + lks_here__@GOTTPOFF]",
            at = out(reg) at,
            options(nostack, pure, readonly),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above, by the AArch64 TLS ABI.
    unsafe {
        asm!(
            "mrs {at}, tpidr_el0",
            "adrp {distance}, :gottprel:lks_here__",
            "ldr {distance}, [{distance}, :gottprel_lo12:lks_here__]",
            "add {at}, {at}, {distance}",
            at = out(reg) at,
            distance = out(reg) _,
            options(nostack, pure, readonly),
        );
    }
    // SAFETY: aligned, and there until the thread's end; those who hold the
    // reference do not outlive the call that asked for it.
    unsafe { AtomicPtr::from_ptr(at) }
}

/// The thread uses the segment of this address now.
pub(super) fn show(address: usize) {
    let member = if releases_by_the_word() { member(address) } else { None };
    let shown = member.map_or(null(), from_ref).cast_mut();
    if here().load(Relaxed) != shown {
        // Before there is anything to erase.
        at_forgetting(hide);
        here().store(shown, Relaxed);
    }
}

/// The thread has to call.
pub(super) fn hide() {
    here().store(null_mut(), Relaxed);
}
