//! Keeps two thread-local words at hand: that of a lock which this thread holds, and that
//! of a free lock. They contain the thread's number and the process's generation.
//!
//! # Invariants
//! - **PI-FREE-SET-LAST** The word of a free lock is set last and, before, is one that no lock has:
//!   the fast path of a thread that has not joined fails without a test of its own.
//! - **PI-FORK-RENEWS** `fork` renews both words in the thread that goes on in the child, before
//!   `fork` returns there, and begins a new generation for all that start later.

use super::word::{GENERATION, OWNER};
use crate::sys;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A word that no lock has: a thread number of all ones does not exist.
const NEVER: u64 = u64::MAX;

// Atomics, because signal handlers of the same thread read and write them too.
thread_local! {
    /// The word of a lock that this thread holds; 0: it has not joined.
    static MINE: AtomicU64 = const { AtomicU64::new(0) };
    /// The word of a free lock.
    static FREE: AtomicU64 = const { AtomicU64::new(NEVER) };
    /// The former `MINE`, before the latest fork.
    static FORMER: AtomicU64 = const { AtomicU64::new(0) };
}

/// The current generation, in its place of the word.
static CURRENT: AtomicU64 = AtomicU64::new(0);

/// Returns the words of a free lock and of one that this thread holds. If the thread has not
/// joined, no lock has the former (PI-FREE-SET-LAST).
#[inline(always)]
pub(super) fn fast() -> (u64, u64) {
    (FREE.with(|free| free.load(Relaxed)), MINE.with(|mine| mine.load(Relaxed)))
}

/// Returns the word of a lock that this thread holds; 0 if it has not joined.
pub(super) fn mine() -> u64 {
    MINE.with(|mine| mine.load(Relaxed))
}

/// Tells whether this word names the calling thread, by its current number or by that from
/// before the latest fork.
pub(super) fn is_mine(word: u64) -> bool {
    let named = word & (OWNER | GENERATION);
    named & OWNER != 0
        && (named == MINE.with(|mine| mine.load(Relaxed))
            || named == FORMER.with(|former| former.load(Relaxed)))
}

/// Writes both words anew, for the current thread number and generation.
pub(super) fn renew() -> u64 {
    let generation = CURRENT.load(Relaxed);
    let mine = u64::from(sys::gettid()) | generation;
    MINE.with(|word| word.store(mine, Relaxed));
    FREE.with(|word| word.store(generation, Relaxed));
    mine
}

/// Begins a new generation, in the child of a `fork` (PI-FORK-RENEWS).
pub(crate) fn after_fork_in_child() {
    const ONE: u64 = 1 << 32;
    CURRENT.store(CURRENT.load(Relaxed).wrapping_add(ONE) & GENERATION, Relaxed);
    let former = MINE.with(|mine| mine.load(Relaxed));
    if former != 0 {
        FORMER.with(|word| word.store(former, Relaxed));
        renew();
    }
}
