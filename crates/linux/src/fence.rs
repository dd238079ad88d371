//! Has all other threads execute a fence, for biased locks.
//!
//! # Role
//! [`Fences`] by `membarrier` (Linux 4.14 and later). The kernel interrupts the processors
//! that run other threads of the process, and a thread that does not run has passed a
//! fence when it left its processor. Unlike the command for restartable sections it needs
//! nothing of the libc, and reaches the child of `vfork`, for it goes by memory.
//!
//! # Invariants
//! - **FENCE-REGISTERED** [`can_fence`](Fences::can_fence) says yes only after the process was
//!   registered and one call has succeeded.
//!
//! # Limits
//! After `fork` the child is registered as its parent was, and registers again if it is not.

use crate::linux::Linux;
use crate::membarrier::membarrier;
use crate::sys;
use core::sync::atomic::{AtomicU8, Ordering, Ordering::Relaxed, fence as barrier};
use lockstead_core::biased::Fences;
use lockstead_core::{Platform, Slot};

const UNKNOWN: u8 = 0;
const YES: u8 = 1;
const NO: u8 = 2;

/// Whether the call works here, as found out by the first who asked.
static WORKS: AtomicU8 = AtomicU8::new(UNKNOWN);

impl Fences for Linux {
    fn can_fence() -> bool {
        match WORKS.load(Relaxed) {
            UNKNOWN => {
                let works = register() && fence();
                WORKS.store(if works { YES } else { NO }, Relaxed);
                works
            }
            answer => answer == YES,
        }
    }

    fn fence_others(owner: Slot) -> bool {
        if fence() || register() && fence() {
            return true;
        }
        // The process has forbidden itself the call. All stores of a thread that has ended
        // are done.
        // ord: GONE-1 fence, pairs with JOIN-1: a thread that has joined in this slot sees what the
        // caller has written, or is seen here.
        barrier(Ordering::SeqCst);
        let Some(tid) = Linux::participant(owner).tid() else {
            // ord: GONE-2 fence, pairs with GONE-3: the thread gave its slot up behind all that it did
            // under it.
            barrier(Ordering::Acquire);
            return true;
        };
        sys::thread_is_gone(tid)
    }
}

fn register() -> bool {
    membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
}

fn fence() -> bool {
    membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
}
