//! Which instruction releases a shared mutex, by the processor's maker.
//!
//! Lock and unlock with nothing between them, by the pair of `lock cmpxchg` and `xchg` on
//! the same machine: on an AMD EPYC 1.05 with a second `lock cmpxchg`, 0.94 with a look
//! and `lock sub`. On an Intel processor 1.06, and a look right behind a locked
//! instruction waits for that: with `xchg` behind it 1.39.

use core::sync::atomic::{AtomicBool, Ordering};

static SUBTRACTS: AtomicBool = AtomicBool::new(false);

/// Looks who made the processor. Before the first release; may be called again.
pub(super) fn choose() {
    SUBTRACTS.store(looks_are_cheap(), Ordering::Relaxed);
}

/// Tells whether to subtract.
#[inline(always)]
pub(super) fn subtracts() -> bool {
    // Relaxed: either way of releasing is right at any time.
    SUBTRACTS.load(Ordering::Relaxed)
}

#[cfg(target_arch = "x86_64")]
// A safe function from Rust 1.94 on.
#[allow(unused_unsafe)]
fn looks_are_cheap() -> bool {
    // SAFETY: every processor for x86-64 has the instruction.
    let leaf = unsafe { core::arch::x86_64::__cpuid(0) };
    let maker = [leaf.ebx, leaf.edx, leaf.ecx].map(u32::to_le_bytes);
    matches!(maker.as_flattened(), b"AuthenticAMD" | b"HygonGenuine")
}

#[cfg(not(target_arch = "x86_64"))]
fn looks_are_cheap() -> bool {
    false
}

#[cfg(test)]
mod tests {
    /// Compares `cpuid` with what the kernel says.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_maker_is_the_one_that_the_kernel_names() {
        let Ok(told) = std::fs::read_to_string("/proc/cpuinfo") else {
            return println!("skipped: no /proc/cpuinfo here");
        };
        let maker =
            told.lines().find_map(|line| line.strip_prefix("vendor_id")?.split(": ").nth(1));
        let Some(maker) = maker else { return println!("skipped: no vendor_id in /proc/cpuinfo") };
        let expected = ["AuthenticAMD", "HygonGenuine"].contains(&maker);
        super::choose();
        assert_eq!(super::subtracts(), expected, "{maker}");
    }
}
