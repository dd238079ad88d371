//! The half-words on x86-64.
//!
//! # Role
//! [`Halves`] of [`U64`]. The acquisition is one `lock cmpxchg` of 32 bits. While the process has one
//! thread, without the `lock`: an instruction is one step for the signal handlers of its own thread
//! in any case. Whether it has one is what the libc says (`__libc_single_threaded`), as for its own
//! locks; a thread made by the bare system call is not counted.
//!
//! The halves must be used in one size: a locked 64-bit instruction just behind a 32-bit store
//! waits for the store to arrive (a pair that mixes them takes 1.6 times as long on AMD's Zen).

use super::section::{SECTIONS, erase_locked, leave};
use crate::atomics::U64;
use core::arch::asm;
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering::Relaxed};
use lockstead_core::{Halves, Ordering};

/// Says "more than one thread", where the libc says nothing.
static MANY: AtomicU8 = AtomicU8::new(0);
/// The place where the libc says whether the process has one thread.
static SINGLE: AtomicPtr<u8> = AtomicPtr::new((&raw const MANY).cast_mut().cast());
/// Finds out how the calling thread, which joins, takes.
pub(super) fn join() {
    if let Some(single) = crate::single::libc_says() {
        SINGLE.store(single.cast_mut(), Relaxed);
    }
}

impl Halves for U64 {
    #[inline(always)]
    fn compare_exchange_low(&self, current: u32, new: u32, _order: Ordering) -> bool {
        // SAFETY: the address is that of a live atomic, of which the instruction
        // touches the low half. To the language this is an atomic read-modify-write of
        // all 64 bits that happens to leave the high ones alone; which no other access
        // can tell, for locked instructions are totally ordered on x86-64 whatever
        // their size. Without the prefix: no other thread exists. That is said by
        // `MANY`, or by the libc's variable, which lives as long as the process, and
        // which the libc writes before the second thread exists.
        unsafe {
            asm!(
                "cmp byte ptr [{single}], 0",
                "jne 3f",
                "lock cmpxchg dword ptr [{word}], {new:e}",
                "2: jne {other}",
                ".pushsection .text.lks_restart, \"ax?\"",
                "3: cmpxchg dword ptr [{word}], {new:e}",
                "jmp 2b",
                ".popsection",
                single = in(reg) SINGLE.load(Relaxed),
                word = in(reg) self.low_half(),
                new = in(reg) new,
                inout("eax") current => _,
                other = label { return false },
                options(nostack),
            );
        }
        true
    }

    #[inline(always)]
    fn erase_low(&self, most: u32, _order: Ordering) -> bool {
        let sections = SECTIONS.get();
        if sections.is_null() {
            return erase_locked(self);
        }
        // SAFETY: `sections` is as HALVES-SECTIONS says, which `join` keeps. The comparison
        // and the store are of the low half of a live atomic (as in `compare_exchange_low`);
        // a store is a release on x86-64. The section is as the
        // kernel wants it: its descriptor is stored last before it begins, the store to
        // the lock is its last instruction, the exit lies outside with the signature
        // before it. The descriptor's address does not outlive this code, which could
        // be unloaded.
        unsafe {
            asm!(
                ".pushsection __rseq_cs, \"aw?\"",
                ".balign 32",
                "2: .long 0, 0",
                ".quad 3f, 4f - 3f, 5f",
                ".popsection",
                "lea {scratch}, [rip + 2b]",
                "mov qword ptr [{sections}], {scratch}",
                "3:",
                "cmp dword ptr [{word}], {most:e}",
                "ja {other}",
                "mov dword ptr [{word}], 0",
                "4:",
                "mov qword ptr [{sections}], 0",
                ".pushsection .text.lks_restart, \"ax?\"",
                // The signature that every libc registers its threads with.
                ".long 0x53053053",
                "5: jmp {other}",
                ".popsection",
                sections = in(reg) sections,
                word = in(reg) self.low_half(),
                most = in(reg) most,
                scratch = out(reg) _,
                other = label {
                    leave();
                    return false;
                },
                options(nostack),
            );
        }
        true
    }
}
