//! Where the libc says whether the process has one thread.
//!
//! # Role
//! `__libc_single_threaded` of glibc 2.32 and later, which is not 0 as long as the process has one. A
//! weak symbol: musl has none.

/// Returns the place where the libc says it; `None` in a libc that does not.
pub(crate) fn libc_says() -> Option<*const u8> {
    let single: *const u8;
    // SAFETY: the instructions read an entry of the global offset table, which the linker has
    // made; it is null in a libc that has no such symbol.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!(
            ".weak __libc_single_threaded",
            "mov {}, qword ptr [rip + __libc_single_threaded@GOTPCREL]",
            out(reg) single,
            options(pure, readonly, nostack, preserves_flags),
        );
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!(
            ".weak __libc_single_threaded",
            "adrp {0}, :got:__libc_single_threaded",
            "ldr {0}, [{0}, :got_lo12:__libc_single_threaded]",
            out(reg) single,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    (!single.is_null()).then_some(single)
}
