//! The participant that the calling thread is in the segment that it used last, where inline fast
//! paths of other languages find it.
//!
//! # Role
//! `lks_here__` is a thread-local word that C reads by the initial-exec model, as
//! `lks_self__`: null, or the address of the thread's record of its membership, of which
//! `lks_member__` in `shared-mutex.h` has the first words. The record itself says which
//! addresses it is about; in a forked child, and after leaving, that is none.
//!
//! # Invariants
//! - **HERE-MAPPED** What `lks_here__` leads to is mapped: the thread erases the word when its
//!   records go.
//! - **HERE-UNKNOWN** An inline function that finds null, or another segment, calls into the
//!   library, which shows the right one.
//! - **HERE-WAITED** The word is null from a wait for a condition until the release of the mutex,
//!   which has more to do then than the inline one does.
//! - **HERE-ALIVE** The word itself is aligned and lives to the thread's end; no reference to it
//!   outlives the call that asked for it.

use core::arch::{asm, global_asm};
use core::ptr::{from_ref, null, null_mut};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use lockstead::shared::raw::releases_by_the_word;
use lockstead_linux::shared::{SegmentMember, at_forgetting, member};

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

/// Returns the calling thread's word.
fn here() -> &'static AtomicPtr<SegmentMember> {
    let at: *mut *mut SegmentMember;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the x86-64 TLS ABI: the thread pointer and a constant of the linker's add up to the
    // word's address, and the asm only reads them.
    unsafe {
        asm!(
            "mov {at}, qword ptr fs:[0]",
            "add {at}, qword ptr [rip + lks_here__@GOTTPOFF]",
            at = out(reg) at,
            options(nostack, pure, readonly),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above by the AArch64 TLS ABI: the asm only reads thread pointer and constant.
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
    // SAFETY: HERE-ALIVE, which the callers in this file keep.
    unsafe { AtomicPtr::from_ptr(at) }
}

/// Shows the inline functions the segment in which this lock lies.
pub(super) fn show<L>(lock: &L) {
    let address = from_ref(lock).addr();
    let member = if releases_by_the_word() { member(address) } else { None };
    let shown = member.map_or(null(), from_ref).cast_mut();
    if here().load(Relaxed) != shown {
        // Before there is anything to erase (HERE-MAPPED).
        at_forgetting(hide);
        here().store(shown, Relaxed);
    }
}

/// Has the inline functions call into the library.
pub(super) fn hide() {
    here().store(null_mut(), Relaxed);
}
