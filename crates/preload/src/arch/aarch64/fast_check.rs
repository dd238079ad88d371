//! The parts of the fast path that the library that checks has in addition.
//!
//! # Protocol
//! After the real function has given the lock, and before anything is written, the
//! key of what is held with it is computed. If something is held, the step there
//! is looked up; a step that is not known goes to Rust, as an acquisition that was
//! had and is not recorded. The key stays in a register until the entry has been
//! claimed (`top`), so that a signal handler in between, which puts its own keys in
//! the same place, does not matter. A release in order does nothing.

/// Goes to `2f` if something of ours is in progress on the thread, or if it is in a
/// signal handler.
#[doc(hidden)]
#[macro_export]
macro_rules! is_busy {
    () => {
        "ldr x9, [x8, #{busy}]\n cbnz x9, 2f"
    };
}

/// Computes the key of what is held and the lock at x0, as the
/// [`order`](crate::order) does: to x15. To x9 the number of held locks, to w12 where
/// the lock lies, to x14 where the thread's key of what is held is, less `keys`. Goes to `3f` if so many are held
/// that their key is not kept. Uses x11, x13.
#[doc(hidden)]
#[macro_export]
macro_rules! key_of_chain {
    (@with $address:literal) => {
        concat!(
            "ldr x9, [x8, #{top}]\n cmp x9, #{keys_last}\n b.hs 3f\n",
            $address,
            "\n add x14, x8, x9, lsl #3\n ldr x11, [x14, #{keys}]\n eor x15, x15, x11\n",
            $crate::load!("x11", "{multiplier}"),
            "\n mul x15, x15, x11",
            "\n mov w12, #{near}\n mul w12, w12, w0\n lsr w12, w12, #{near_shift}\n and w13, w12, #0xffff",
            "\n adrp x11, {lives}\n add x11, x11, :lo12:{lives}",
            "\n ldr x11, [x11, x13, lsl #3]\n add x15, x15, x11",
        )
    };
    (READ) => {
        $crate::key_of_chain!(@with "add x15, x0, #1")
    };
    ($flags:tt) => {
        $crate::key_of_chain!(@with "mov x15, x0")
    };
}

/// Goes to `3f` unless nothing is held or the step
/// to the key in x15 is known to the thread. Uses x11 to x14, as [`key_of_chain`] has left them.
#[doc(hidden)]
#[macro_export]
macro_rules! is_chain_known {
    (TRIED) => {
        "// {slots_mask} {slots} {known_chains} {mark}"
    };
    ($flags:tt) => {
        concat!(
            "cbz w9, 22f",
            // The upper half of what is held.
            "\n ldr w11, [x14, #{keys} + 4]\n add w12, w12, w11\n and w12, w12, #{slots_mask}",
            "\n adrp x11, {known_chains} + {slots}\n add x11, x11, :lo12:{known_chains} + {slots}",
            "\n ldr x11, [x11, x12, lsl #3]",
            "\n ldr w13, [x8, #{mark}]\n tst w13, w11\n b.eq 3f",
            "\n eor x11, x11, x15\n lsr x11, x11, #32\n cbnz x11, 3f",
            "\n 22:",
        )
    };
}

/// Goes to `23f` unless the lock at x0 carries its own mark at this byte, and nothing else:
/// the library is to look at it. Uses x9, x11. [`may_lack_mark`] comes back to `13`.
#[doc(hidden)]
#[macro_export]
macro_rules! is_own_mark {
    ($mark:literal) => {
        concat!(
            $crate::load!("x9", "{secret}"),
            "\n eor x9, x9, x0\n ldr x11, [x0, #",
            $mark,
            "]\n cmp x9, x11\n b.ne 23f\n 13:",
        )
    };
}

/// Goes back if the lock is one that is never marked: what processes share, as
/// this byte says, and all if there is no secret. Uses x9.
#[doc(hidden)]
#[macro_export]
macro_rules! may_lack_mark {
    (@unless $byte:literal, $goes:literal) => {
        concat!(
            "23: ldrb w9, [x0, #",
            $byte,
            "]\n ",
            $goes,
            "\n",
            $crate::load!("x9", "{secret}"),
            "\n cbz x9, 13b",
        )
    };
    ($byte:literal, negative) => {
        $crate::may_lack_mark!(@unless $byte, "tbnz w9, #7, 13b")
    };
    ($byte:literal, nonzero) => {
        $crate::may_lack_mark!(@unless $byte, "cbnz w9, 13b")
    };
}

use crate::order::chains;

// How `and` gets the mask, and the product its factor.
const _: () = assert!(chains::SLOTS.is_power_of_two() && chains::NEAR < 1 << 16);
const _: () = assert!(chains::LIVES.len() == 1 << 16);
const _: () = assert!(lockstead_ledger::thread::KEYS - 1 < 1 << 12);
