//! Keeps the calling thread's slot in one thread-local word without a destructor: the fast
//! paths read it by one instruction. `membership` sets it.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

// An atomic, because signal handlers of the same thread read and write it too.
thread_local! {
    static ME: AtomicU32 = const { AtomicU32::new(0) };
}

/// Returns the calling thread's slot number, or 0 if it has not joined.
#[inline(always)]
pub(crate) fn me_or_zero() -> u32 {
    ME.with(|me| me.load(Relaxed))
}

/// Makes `slot` the calling thread's.
pub(crate) fn set(slot: u32) {
    ME.with(|me| me.store(slot, Relaxed));
}

/// Takes the slot number, or 0, from the calling thread.
pub(crate) fn forget() -> u32 {
    ME.with(|me| me.swap(0, Relaxed))
}
