//! aarch64.
//!
//! No function here is changed by its callers' way of marking code: each begins with the mark for indirect
//! calls (`bti c`, which older processors pass over), and none signs its return address, since it leaves by
//! the one that it has saved for the library to read.

mod families;
mod fast;
#[cfg(feature = "check")]
mod fast_check;
mod frames;
pub mod leaving;
pub mod tls;

use core::arch::asm;

/// The number of the system call `futex`.
pub const FUTEX: usize = 98;

/// Whether the C library has functions here that it keeps beside newer ones of the same name.
pub const HAS_OLD_FUNCTIONS: bool = false;

/// Makes the system call `number`, and returns what the kernel does.
///
/// # Safety
/// As of the call that is made.
#[inline(always)]
pub unsafe fn system_call(number: libc::c_long, args: [usize; 6]) -> isize {
    let answer: isize;
    // SAFETY: the kernel clobbers the answer's register only; the caller promises that the memory in
    // the arguments may be used so.
    unsafe {
        asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") args[0] as isize => answer,
            in("x1") args[1],
            in("x2") args[2],
            in("x3") args[3],
            in("x4") args[4],
            in("x5") args[5],
            options(nostack),
        );
    }
    answer
}

/// Returns the stack pointer in a context.
#[cfg(feature = "check")]
pub fn interrupted_stack_pointer(context: &libc::ucontext_t) -> u64 {
    context.uc_mcontext.sp
}

/// Returns an address as a function saves it that returns to it, whose frame ends at `end`. Processors without
/// signatures pass the instruction over.
#[must_use]
pub fn signed(address: u64, end: u64) -> u64 {
    let word: u64;
    // SAFETY: `pacia1716` changes the one register that is named.
    unsafe {
        asm!("hint #8", inlateout("x17") address => word, in("x16") end,
            options(pure, nomem, nostack, preserves_flags));
    }
    word
}

/// Returns the address in a word that a function has saved of its return address, without the signature that
/// it may have put above it. Processors without signatures pass the instruction over.
#[inline(always)]
#[must_use]
pub fn without_signature(word: u64) -> u64 {
    let address: u64;
    // SAFETY: `xpaclri` changes the one register that is named.
    unsafe {
        asm!("hint #7", inlateout("x30") word => address, options(pure, nomem, nostack, preserves_flags));
    }
    address
}
