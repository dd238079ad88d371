//! The limit: two locked instructions and nothing else.

use crate::locks::BenchLock;
use std::sync::atomic::AtomicU64;

/// Looks like a lock and excludes nobody: a compare-exchange whose outcome is
/// ignored, and an exchange. Every lock whose waiters sleep pays at least
/// these two, for the release must learn of waiters in the step in which it
/// releases.
pub(crate) struct LimitLock(AtomicU64);

impl BenchLock for LimitLock {
    fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    #[inline(always)]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        take(&self.0);
        let result = section();
        give(&self.0);
        result
    }
}

// In assembly, because a compiler may turn an exchange whose result nobody
// looks at into a plain store.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn take(word: &AtomicU64) {
    // SAFETY: an atomic access to a live atomic; the default options say that
    // memory and flags change.
    unsafe {
        std::arch::asm!(
            "lock cmpxchg qword ptr [{word}], {taken}",
            word = in(reg) word.as_ptr(),
            taken = in(reg) 1_u64,
            inout("rax") 0_u64 => _,
            options(nostack),
        );
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn give(word: &AtomicU64) {
    // SAFETY: as in `take`; an exchange with memory is always locked.
    unsafe {
        std::arch::asm!(
            "xchg qword ptr [{word}], {free}",
            word = in(reg) word.as_ptr(),
            free = inout(reg) 0_u64 => _,
            options(nostack),
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn take(word: &AtomicU64) {
    use std::sync::atomic::Ordering::{Acquire, Relaxed};
    let _ = std::hint::black_box(word.compare_exchange(0, 1, Acquire, Relaxed));
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn give(word: &AtomicU64) {
    std::hint::black_box(word.swap(0, std::sync::atomic::Ordering::Release));
}
