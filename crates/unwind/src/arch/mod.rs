//! Holds what unwinding knows of a processor: the numbers of its registers, and its convention of calls.
//!
//! One file a processor, all with the same names, so that who walks a stack says what it means and not
//! which processor it is on.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;

#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
compile_error!(
    "lockstead-unwind knows no registers of this processor: write crates/unwind/src/arch/PROCESSOR.rs \
     with the names that x86_64.rs has (the locks themselves need nothing of it)"
);
