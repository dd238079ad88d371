//! The half-words on aarch64.
//!
//! # Role
//! [`Halves`] of [`U64`]. The acquisition is one `casa` of 32 bits where the processor has such
//! instructions (LSE, part of the architecture since 8.1), else a loop of `ldaxr` and `stxr`. Which of
//! them it has, the kernel says to the first thread that joins. A program that is compiled for
//! processors that have them (`-C target-feature=+lse`) does not ask. A process of one thread takes
//! the same way: `ldxr` and `stxr` are the cheapest that a signal handler of the thread
//! cannot come between.
//!
//! The section of the release ends with `stlr`, which is the release.
//!
//! # Two sizes
//! The fast paths use the word's low half, the slow ones all of it. Of the architecture this takes
//! that single-copy atomicity, coherence, the atomicity of a read-modify-write, acquire and release hold for
//! each byte, whatever the sizes of the two accesses that meet in it: a 64-bit exchange on which a
//! 32-bit store or exchange falls is before or after it in the bytes that both have, and a
//! store-exclusive fails after any other processor's store to its granule, which an aligned word lies
//! in as a whole. The formal model of the architecture has it so (Alglave, Deacon, Grisenthwaite,
//! Hacquard, Maranget: "Armed Cats", 2021, on mixed-size accesses); C++ and Rust say nothing, which is why
//! this is assembly.

use super::section::{SECTIONS, erase_locked, leave};
use crate::atomics::U64;
use core::arch::asm;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use lockstead_core::{Halves, Ordering};

/// Whether the processor has the atomic instructions of LSE. Both ways are right at any time.
static LSE: AtomicBool = AtomicBool::new(false);

/// Finds out how the calling thread, which joins, takes.
pub(super) fn join() {
    // SAFETY: the call takes and returns a number.
    let has = unsafe { libc::getauxval(libc::AT_HWCAP) };
    LSE.store(has & libc::HWCAP_ATOMICS != 0, Relaxed);
}

/// Replaces `$current` at `$word` by `$new` with an instruction of LSE, and returns what was there.
macro_rules! exchange {
    ($instruction:literal, $word:expr, $current:expr, $new:expr) => {{
        let seen: u32;
        // SAFETY: the address is that of the low half of a live atomic, as
        // `compare_exchange_low` says, which is where it comes from.
        unsafe {
            asm!(
                ".arch_extension lse",
                concat!($instruction, " {seen:w}, {new:w}, [{word}]"),
                seen = inout(reg) $current => seen,
                new = in(reg) $new,
                word = in(reg) $word,
                options(nostack, preserves_flags),
            );
        }
        seen
    }};
}

/// Does the same as [`exchange`], by a loop of two instructions.
macro_rules! exclusive {
    ($load:literal, $store:literal, $word:expr, $current:expr, $new:expr) => {{
        let seen: u32;
        // SAFETY: the address is that of the low half of a live atomic, as
        // `compare_exchange_low` says, which is where it comes from.
        unsafe {
            asm!(
                concat!("2: ", $load, " {seen:w}, [{word}]"),
                "cmp {seen:w}, {current:w}",
                "b.ne 3f",
                concat!($store, " {failed:w}, {new:w}, [{word}]"),
                "cbnz {failed:w}, 2b",
                "3:",
                seen = out(reg) seen,
                failed = out(reg) _,
                current = in(reg) $current,
                new = in(reg) $new,
                word = in(reg) $word,
                options(nostack),
            );
        }
        seen
    }};
}

#[cold]
#[inline(never)]
fn without_lse(word: *const u32, current: u32, new: u32, order: Ordering) -> u32 {
    match order {
        Ordering::Relaxed => exclusive!("ldxr", "stxr", word, current, new),
        Ordering::Acquire => exclusive!("ldaxr", "stxr", word, current, new),
        Ordering::Release => exclusive!("ldxr", "stlxr", word, current, new),
        _ => exclusive!("ldaxr", "stlxr", word, current, new),
    }
}

impl Halves for U64 {
    #[inline(always)]
    fn compare_exchange_low(&self, current: u32, new: u32, order: Ordering) -> bool {
        // The address is that of a live atomic, of which the instructions touch the low half. To the
        // language this is an atomic read-modify-write of all 64 bits that happens to leave the
        // high ones alone, as said at the head of this file.
        let word = self.low_half();
        let seen = if !cfg!(target_feature = "lse") && !LSE.load(Relaxed) {
            without_lse(word, current, new, order)
        } else {
            match order {
                Ordering::Relaxed => exchange!("cas", word, current, new),
                Ordering::Acquire => exchange!("casa", word, current, new),
                Ordering::Release => exchange!("casl", word, current, new),
                _ => exchange!("casal", word, current, new),
            }
        };
        seen == current
    }

    #[inline(always)]
    fn erase_low(&self, most: u32, _order: Ordering) -> bool {
        let sections = SECTIONS.get();
        if sections.is_null() {
            return erase_locked(self);
        }
        // SAFETY: `sections` is as HALVES-SECTIONS says, which `join` keeps. The comparison
        // and the store are of the low half of a live atomic (as in `compare_exchange_low`);
        // the store is a release. The section is as the kernel wants it: its descriptor is stored
        // last before it begins, the store to the lock is its last instruction, the exit lies
        // outside with the signature before it. The descriptor's address does not outlive this
        // code, which could be unloaded.
        unsafe {
            asm!(
                ".pushsection __rseq_cs, \"aw?\"",
                ".balign 32",
                "2: .long 0, 0",
                ".quad 3f, 4f - 3f, 5f",
                ".popsection",
                "adrp {scratch}, 2b",
                "add {scratch}, {scratch}, :lo12:2b",
                "str {scratch}, [{sections}]",
                "3:",
                "ldr {scratch:w}, [{word}]",
                "cmp {scratch:w}, {most:w}",
                "b.hi {other}",
                "stlr wzr, [{word}]",
                "4:",
                "str xzr, [{sections}]",
                ".pushsection .text.lks_restart, \"ax?\"",
                ".balign 4",
                // The signature that every libc registers its threads with, a `brk`.
                ".inst 0xd428bc00",
                "5: b {other}",
                ".popsection",
                sections = in(reg) sections,
                word = in(reg) self.low_half(),
                most = in(reg) most,
                scratch = out(reg) _,
                // By way of these the linker reaches what lies far from the function: "5: b {other}".
                out("x16") _,
                out("x17") _,
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
