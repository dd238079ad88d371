//! Names the processor that this command is built for, whose programs it looks at.

/// The processor that programs here run on.
#[cfg(target_arch = "aarch64")]
pub type Native = super::aarch64::Aarch64;
/// The processor that programs here run on.
#[cfg(target_arch = "x86_64")]
pub type Native = super::x86_64::X86;

#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
compile_error!(
    "the command lockstead cannot run code of this processor: write \
     crates/inspect/src/owners/PROCESSOR/ with what the trait Processor asks for (the locks \
     themselves need nothing of it)"
);
