//! Adding to a word and waking its sleepers in one step.
//!
//! # Role
//! What a participant does that must not be half done when it ends: the kernel changes
//! the word and wakes in one system call (`FUTEX_WAKE_OP`), inside of which nobody is
//! killed.

use crate::futex::{self, Scope};
use crate::sys::KeepErrno;
use core::sync::atomic::{AtomicU32, Ordering};
use lockstead_core::robust::Addend;

/// `FUTEX_OP_ADD`, in the place of the operation.
const ADD: u32 = 1 << 28;
/// The operand is the number of a bit (`FUTEX_OP_OPARG_SHIFT`).
const BIT: u32 = 8 << 28;
/// The number that is compared for equality (`FUTEX_OP_CMP_EQ`, 0) with -2048, which no doorbell
/// ever holds: whoever sleeps at the second address, which is the first, is not woken for that as
/// well.
const NEVER: u32 = 0x800;

const fn operation(add: Addend) -> u32 {
    match add {
        Addend::One => ADD | 1 << 12 | NEVER,
        Addend::Doorbell => ADD | BIT | 30 << 12 | NEVER,
    }
}

const fn value(add: Addend) -> u32 {
    match add {
        Addend::One => 1,
        Addend::Doorbell => 1 << 30,
    }
}

/// Adds, and wakes up to `count` of those that sleep on the word, in all processes.
pub(super) fn add_and_wake(word: &AtomicU32, add: Addend, count: u32) {
    let _errno = KeepErrno::new();
    let count = libc::c_int::try_from(count).unwrap_or(libc::c_int::MAX);
    let address = word.as_ptr();
    // SAFETY: SYSCALL-LIVE: the kernel changes the word as an atomic, which the reference keeps
    // alive.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            address,
            libc::FUTEX_WAKE_OP,
            count,
            0usize,
            address,
            operation(add),
        )
    };
    if result < 0 {
        // Refused by a filter: in two steps, then.
        word.fetch_add(value(add), Ordering::Relaxed);
        futex::wake(address.addr(), count.unsigned_abs(), Scope::Shared);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_adds_what_was_asked_for() {
        let word = AtomicU32::new(7);
        add_and_wake(&word, Addend::One, 1);
        assert_eq!(word.load(Ordering::Relaxed), 8);
        let doorbell = AtomicU32::new(3 << 30);
        add_and_wake(&doorbell, Addend::Doorbell, u32::MAX);
        assert_eq!(doorbell.load(Ordering::Relaxed), 0);
        add_and_wake(&doorbell, Addend::Doorbell, u32::MAX);
        assert_eq!(doorbell.load(Ordering::Relaxed), 1 << 30);
    }
}
