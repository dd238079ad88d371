//! Holds all of the library that is written for one processor: assembler, and where the C library keeps
//! what is a thread's own.
//!
//! One folder a processor, with the same names in each:
//!
//! | file | what is in it |
//! |---|---|
//! | `mod.rs` | system calls, and what the kernel saves of an interrupted function |
//! | `tls.rs` | the thread pointer, and how it is known to be the C library's |
//! | `frames.rs` | the frames of exported functions, for [`thunk`](mod@crate::thunk) |
//! | `families.rs` | the functions that are exported otherwise |
//! | `fast.rs`, `fast_check.rs` | the [`fast`](mod@crate::fast) path |
//! | `leaving.rs` | how a frame is left, for [`unwind`](crate::unwind) |

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
    "lockstead-preload has no assembler for this processor: write \
     crates/preload/src/arch/PROCESSOR/ with the names that x86_64/ has (the locks themselves need \
     nothing of it)"
);
