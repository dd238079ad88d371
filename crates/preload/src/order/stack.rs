//! The stack that the calling thread was started with.

use crate::tls;
use core::sync::atomic::Ordering::Relaxed;

/// Returns the lowest address of the thread's own stack, and its end.
#[must_use]
pub fn own() -> (u64, u64) {
    let words = tls::words();
    (words.stack_low.load(Relaxed) as u64, words.stack_high.load(Relaxed) as u64)
}

/// Notes that the thread is about to go from one stack pointer to another one.
pub fn swaps(from: u64, to: u64) {
    if let Some(words) = tls::own()
        && is_own(from)
        && is_own(to)
    {
        words.stacks_within.store(1, Relaxed);
    }
}

/// Tells whether an address lies on the thread's own stack.
pub fn is_own(address: u64) -> bool {
    let (low, high) = own();
    (low..high).contains(&address)
}
