//! What a thread owes to those that sleep where it has slept for a condition.
//!
//! # Role
//! Who was notified, and has the mutex back, names the doorbell until it releases the
//! mutex: should it end before, the others look for themselves. What it had named before
//! the wait is kept here until then, so that guards are one pointer.
//!
//! Of more than [`MOST`] mutexes at once nothing is kept, and the doorbell stays named
//! until the thread names something else: then its end may wake somebody who has nothing
//! to do.

use core::cell::Cell;
use core::ptr::NonNull;
use lockstead_core::shared::Robust;
use lockstead_linux::{Linux, U32};

/// So many mutexes at once.
const MOST: usize = 8;

struct Owed {
    /// How many entries are in use.
    count: Cell<u32>,
    /// By the address of a mutex, which is not 0, what was named.
    entries: [Cell<(usize, Option<NonNull<U32>>)>; MOST],
}

// Without a destructor, so that locks work in those of other variables.
std::thread_local! {
    static OWED: Owed = const {
        Owed { count: Cell::new(0), entries: [const { Cell::new((0, None)) }; MOST] }
    };
}

/// The calling thread has waited with the mutex at this address, before which it had
/// named this.
#[cold]
pub(super) fn owe(mutex: usize, named: Option<NonNull<U32>>) {
    OWED.with(|owed| {
        let entries = || owed.entries.iter();
        if entries().any(|entry| entry.get().0 == mutex) {
            // What was named since is the doorbell.
            return;
        }
        if let Some(entry) = entries().find(|entry| entry.get().0 == 0) {
            entry.set((mutex, named));
            owed.count.set(owed.count.get() + 1);
        }
    });
}

/// The calling thread has released the mutex at this address.
#[inline(always)]
pub(super) fn settle(mutex: usize) {
    if OWED.with(|owed| owed.count.get()) != 0 {
        settle_slow(mutex);
    }
}

#[cold]
fn settle_slow(mutex: usize) {
    OWED.with(|owed| {
        if let Some(entry) = owed.entries.iter().find(|entry| entry.get().0 == mutex) {
            let (_, named) = entry.replace((0, None));
            owed.count.set(owed.count.get() - 1);
            Linux::at_death_wake(named);
        }
    });
}
