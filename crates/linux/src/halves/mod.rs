//! Changes the low half of the mutex's word in the processor's fewest cycles.
//!
//! # Role
//! [`Halves`](lockstead_core::Halves) of [`U64`](crate::U64), by the instructions of each processor in a file of
//! its own, and [`Platform::restart_releases`](lockstead_core::Platform::restart_releases).
//!
//! # The acquisition
//! One atomic exchange of 32 bits on comparison.
//!
//! # The release
//! A comparison and a plain store in a restartable section (`rseq`): if a signal, a
//! preemption or a `membarrier` comes between the two, the kernel sends the thread to
//! the section's exit, and it releases by an atomic exchange instead. On x86-64 half the time
//! of the pair is saved; whoever sets a flag in the low half pays, by a `membarrier`
//! before it sleeps.
//!
//! A thread releases so if the libc registered it for `rseq`, and the process could be
//! registered for the `membarrier`; else by the exchange. Which of the two it is, is
//! settled when the thread joins; both may be used beside each other.
//!
//! # Invariants
//! - **HALVES-SECTIONS** `SECTIONS` is null, or the address of the word of the calling thread's
//!   registered area in which the kernel looks for a section; it stays registered until
//!   the thread ends.
//! - **HALVES-REGISTERED** A thread has `SECTIONS` ⇒ the process was registered for the
//!   `membarrier`.
//!
//! - **HALVES-REFUSED** A thread to which the `membarrier` is refused sleeps by a timer, if any
//!   release may miss it. It sets a flag in the word by an exchange, then, behind a full fence, reads
//!   [`USED`]. A thread that gets `SECTIONS` sets `USED`, and passes a full fence before its first
//!   release, at the end of its joining. So the one sees `USED`, or the other's release sees the flag.
//!
//! # Limits
//! The child of `vfork` shares the memory of its parent, but not the registration: what
//! it releases is not restarted, and a waiter in the parent may sleep for ever. (Such a
//! child may do nothing but start a program.) A debugger that steps through a section
//! ends it at each step; the release goes the other way then.
//!
//! # Source
//! Restartable sequences: Bershad, Redell, Ellis, "Fast mutual exclusion for
//! uniprocessors" (1992); the asymmetric fence in the place of the waker's is
//! Desnoyers' `membarrier`. The use for a mutex's release is ours.

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod section;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as processor;
#[cfg(target_arch = "x86_64")]
use x86_64 as processor;

use crate::membarrier::membarrier;
use core::sync::atomic::{AtomicBool, Ordering, Ordering::Relaxed, fence};
use section::SECTIONS;

/// Whether a thread has ever had `SECTIONS`, so that releases need to be restarted.
static USED: AtomicBool = AtomicBool::new(false);
/// Whether a `membarrier` was refused to a thread although threads release in sections.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// Returns the word of the calling thread's area that the fast paths of other languages store
/// their section's descriptor in; null: they release by an exchange.
#[must_use]
pub fn sections() -> *mut u64 {
    SECTIONS.get()
}

/// Settles how the calling thread, which joins, takes and releases.
pub(crate) fn join() {
    crate::membarrier::register_at_start();
    processor::join();
    if let Some(word) = crate::rseq::sections()
        && !REFUSED.load(Relaxed)
        && membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ)
    {
        USED.store(true, Relaxed);
        SECTIONS.set(word.as_ptr());
    }
}

/// Restarts the releases that other threads are in the middle of: see
/// [`Platform::restart_releases`](lockstead_core::Platform::restart_releases).
pub(crate) fn restart() {
    // A child is registered as its parent was; but nothing promises that.
    let done = membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ)
        || membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ)
            && membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ);
    if !done {
        // ord: HALF-2 fence, pairs with JOIN-1: HALVES-REFUSED.
        fence(Ordering::SeqCst);
    }
    // Not only if the caller has sections: a filter may refuse the call to this thread alone.
    if !done && USED.load(Relaxed) {
        REFUSED.store(true, Relaxed);
    }
}

/// Tells whether threads may release in ways that cannot be restarted by all, since the process or
/// one of its threads has forbidden itself the call: then no sleeper may rely on being woken.
pub(crate) fn unreliable() -> bool {
    REFUSED.load(Relaxed)
}
