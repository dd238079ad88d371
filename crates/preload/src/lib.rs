//! What `lockstead run` puts under a program: observes the program's pthread
//! locks from inside, and changes nothing about them.
//!
//! The crate is a part of other people's processes. It allocates nothing
//! through the program's allocator, takes no lock of the program's kind, prints
//! nothing, and needs glibc 2.34 or newer on x86-64.
//!
//! In the workspace it is an ordinary library, so that its parts are tested as
//! such; the shared object is made with
//! `cargo rustc -p lockstead-preload --crate-type cdylib --features shared-object --profile preload`.

#![no_std]

#[cfg(not(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")))]
compile_error!("lockstead-preload supports x86-64 Linux with glibc only");

pub mod unwind;

/// Nothing here may panic; what does ends the program at once rather than
/// unwind through frames that are not ours.
#[cfg(feature = "shared-object")]
#[panic_handler]
fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: abort has no precondition and is async-signal-safe.
    unsafe { libc::abort() }
}
