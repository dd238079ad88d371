//! The parts of the fast path that the library that checks has in addition.
//!
//! # Protocol
//! After the real function has given the lock, and before anything is written, the
//! key of what is held with it is computed. If something is held, the step there
//! is looked up; a step that is not known goes to Rust, as an acquisition that was
//! had and is not recorded. The key stays in a register until the entry has been
//! claimed (`top`), so that a signal handler in between, which puts its own keys in
//! the same place, does not matter. A release in order does nothing.

/// Goes to `2f` if something of ours is in progress on the thread, if it is in a
/// signal handler, or if it has left the frame of a lock on its stack.
#[doc(hidden)]
#[macro_export]
macro_rules! is_busy {
    () => {
        "cmp qword ptr [r8 + {busy}], 0\n jne 2f\n cmp rsp, qword ptr [r8 + {lowest_lock}]\n ja 2f"
    };
}

/// Computes the key of what is held and the lock at rdi, as the
/// [`order`](crate::order) does: to rsi, that without the lock to r10. r11: the
/// place of the latter. Uses eax, ecx.
#[doc(hidden)]
#[macro_export]
macro_rules! key_of_chain {
    (@with $address:literal) => {
        concat!(
            "mov rcx, qword ptr [r8 + {top}]",
            "\n mov r11, qword ptr [rip + {state} + {keys}]",
            "\n lea r11, [r11 + rcx * 8]",
            "\n add r11, r8",
            "\n mov r10, qword ptr [r11]",
            "\n mov rsi, r10\n rol rsi, 5\n",
            $address,
            "\n movabs rax, {multiplier}\n imul rsi, rax",
            "\n mov eax, edi\n shr eax, 6\n movzx eax, ax",
            "\n lea rcx, [rip + {lives}]\n mov eax, dword ptr [rcx + rax * 4]",
            "\n shl rax, {lives_shift}\n add rsi, rax",
        )
    };
    (READ) => {
        $crate::key_of_chain!(@with "lea rax, [rdi + 1]\n xor rsi, rax")
    };
    ($flags:tt) => {
        $crate::key_of_chain!(@with "xor rsi, rdi")
    };
}

/// Goes to `21f` unless nothing is held or the step to the key in rsi from that in
/// r10 is known to the thread. Uses rax, rcx, r10.
#[doc(hidden)]
#[macro_export]
macro_rules! is_chain_known {
    (TRIED) => {
        "# {slot_shift} {slots_mask} {known_chains} {fact_shift} {index}"
    };
    ($flags:tt) => {
        concat!(
            "cmp qword ptr [r8 + {top}], 0\n je 22f",
            "\n shr r10, {slot_shift}",
            "\n mov eax, edi\n shr eax, 5\n add r10d, eax",
            "\n shr eax, 7\n lea eax, [rax + rax * 4]\n add r10d, eax",
            "\n and r10d, {slots_mask}",
            "\n lea rcx, [rip + {known_chains}]\n mov r10, qword ptr [rcx + r10 * 8]",
            "\n mov rax, rsi\n shr rax, {fact_shift}\n cmp r10d, eax\n jne 21f",
            "\n shr r10, 32\n mov ecx, dword ptr [r8 + {index}]\n bt r10d, ecx\n jnc 21f",
            "\n 22:",
        )
    };
}
