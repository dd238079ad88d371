//! x86-64.

mod families;
mod fast;
#[cfg(feature = "check")]
mod fast_check;
mod frames;
pub mod leaving;
pub mod tls;

use core::arch::asm;

/// The number of the system call `futex`.
pub const FUTEX: usize = 202;

/// Whether the C library has functions here that it keeps beside newer ones of the same name.
pub const HAS_OLD_FUNCTIONS: bool = true;

/// Makes the system call `number`, and returns what the kernel does.
///
/// # Safety
/// As of the call that is made.
#[inline(always)]
pub unsafe fn system_call(number: libc::c_long, args: [usize; 6]) -> isize {
    let answer: isize;
    // SAFETY: the kernel clobbers rcx, r11 and the answer's register only; the caller promises
    // that the memory in the arguments may be used so.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => answer,
            in("rdi") args[0],
            in("rsi") args[1],
            in("rdx") args[2],
            in("r10") args[3],
            in("r8") args[4],
            in("r9") args[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    answer
}

/// Returns the stack pointer in a context.
#[cfg(feature = "check")]
pub fn interrupted_stack_pointer(context: &libc::ucontext_t) -> u64 {
    context.uc_mcontext.gregs[libc::REG_RSP as usize] as u64
}
