//! Holds what the command knows of a processor and of what kernel and C library do on it: the registers of
//! a held thread, the number of `futex`, the C library's record of a thread.
//!
//! One file a processor, all with the same names. What unwind tables know of it is in
//! [`lockstead_unwind::arch`], and its instructions of calls are in `unwind/calls/`.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

pub use lockstead_unwind::arch::ADDRESS_BITS;

#[cfg(target_arch = "aarch64")]
pub use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;

#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
compile_error!(
    "the command lockstead knows no registers and no system calls of this processor: write \
     crates/inspect/src/arch/PROCESSOR.rs with the names that x86_64.rs has (the locks themselves need \
     nothing of it)"
);
