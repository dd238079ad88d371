//! Holds what `lockstead attach` knows of a processor: registers, the frame of a signal's handler,
//! instructions of the C library, and how a thread is led through a call and back.
//!
//! One folder a processor, all with the same names. What the rest of the command knows of it is in
//! [`lockstead_inspect::arch`].

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

mod saved;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::*;

#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
compile_error!(
    "`lockstead attach` cannot lead a thread of this processor: write \
     crates/cli/src/attach/arch/PROCESSOR/ with the names that x86_64/ has"
);

pub(crate) use lockstead_inspect::arch::{HeldRegisters, stack_pointer};

/// A thread as it was before it was borrowed.
pub(crate) type SavedThread = saved::Saved<Standing, Extended>;
