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
        "cmp qword ptr [r8 + {busy}], 0\n jne 2f"
    };
}

/// Computes the key of what is held and the lock at rdi, as the
/// [`order`](crate::order) does: to r11. To rcx the number of held locks, to r9d where
/// the lock lies. Goes to `3f`, with the answer in eax as it was, if so many are held
/// that their key is not kept. Uses rsi, r10.
#[doc(hidden)]
#[macro_export]
macro_rules! key_of_chain {
    (@with $address:literal) => {
        concat!(
            "mov rcx, qword ptr [r8 + {top}]\n cmp rcx, {keys_last}\n jae 3f\n",
            $address,
            "\n xor r11, qword ptr [r8 + rcx * 8 + {keys}]",
            "\n imul r11, qword ptr [rip + {multiplier}]",
            "\n imul r9d, edi, {near}\n shr r9d, {near_shift}\n movzx esi, r9w",
            "\n lea r10, [rip + {lives}]\n add r11, qword ptr [r10 + rsi * 8]",
        )
    };
    (READ) => {
        $crate::key_of_chain!(@with "lea r11, [rdi + 1]")
    };
    ($flags:tt) => {
        $crate::key_of_chain!(@with "mov r11, rdi")
    };
}

/// Goes to `3f`, with the answer in eax as it was, unless nothing is held or the step
/// to the key in r11 is known to the thread. Uses r9, r10.
#[doc(hidden)]
#[macro_export]
macro_rules! is_chain_known {
    (TRIED) => {
        "# {slots_mask} {known_chains} {mark}"
    };
    ($flags:tt) => {
        concat!(
            "test ecx, ecx\n je 22f",
            // The upper half of what is held.
            "\n add r9d, dword ptr [r8 + rcx * 8 + {keys} + 4]\n and r9d, {slots_mask}",
            "\n lea r10, [rip + {known_chains}]\n mov r10, qword ptr [r10 + r9 * 8]",
            "\n test dword ptr [r8 + {mark}], r10d\n je 3f",
            "\n xor r10, r11\n shr r10, 32\n jne 3f",
            "\n 22:",
        )
    };
}

/// Goes to `12f` unless the lock at rdi carries its own mark at this byte, and nothing else:
/// the library is to look at it. Uses rcx. [`may_lack_mark`] comes back to `13`.
#[doc(hidden)]
#[macro_export]
macro_rules! is_own_mark {
    ($mark:literal) => {
        concat!(
            "mov rcx, qword ptr [rip + {secret}]\n xor rcx, rdi",
            "\n cmp qword ptr [rdi + ",
            $mark,
            "], rcx\n jne 12f\n 13:",
        )
    };
}

/// Goes back if the lock is one that is never marked: what processes share, as
/// this byte says, and all if there is no secret.
#[doc(hidden)]
#[macro_export]
macro_rules! may_lack_mark {
    (@unless $byte:literal, $goes:literal) => {
        concat!(
            "12: cmp byte ptr [rdi + ",
            $byte,
            "], 0\n ",
            $goes,
            " 13b\n cmp qword ptr [rip + {secret}], 0\n je 13b",
        )
    };
    ($byte:literal, negative) => {
        $crate::may_lack_mark!(@unless $byte, "js")
    };
    ($byte:literal, nonzero) => {
        $crate::may_lack_mark!(@unless $byte, "jne")
    };
}
