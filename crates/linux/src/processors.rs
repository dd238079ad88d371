//! How many processors the process may use.
//!
//! # Role
//! Tells spinners whether somebody else can run while they spin.

use core::sync::atomic::{AtomicU32, Ordering};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// The number of processors, from memory.
#[inline]
pub(crate) fn effective() -> u32 {
    match COUNT.load(Ordering::Relaxed) {
        0 => count(),
        known => known,
    }
}

/// Counts unless that has been done.
#[cold]
pub(crate) fn count() -> u32 {
    let known = COUNT.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let fresh = affinity();
    COUNT.store(fresh, Ordering::Relaxed);
    fresh
}

fn affinity() -> u32 {
    // SAFETY: a processor set is plain bits, written by the call.
    unsafe {
        let mut set: libc::cpu_set_t = core::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return 1;
        }
        u32::try_from(libc::CPU_COUNT(&set)).unwrap_or(1).max(1)
    }
}
