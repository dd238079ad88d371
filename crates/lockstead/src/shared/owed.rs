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
use lockstead_core::robust::Robust;
use lockstead_linux::{Linux, U32};

/// The number of mutexes that a thread can owe for at once.
const MOST: usize = 8;

/// The address of a mutex, and what was named before the wait.
type Entry = Cell<(usize, Option<NonNull<U32>>)>;

struct Owed {
    /// The number of entries in use, from the first one on.
    count: Cell<usize>,
    /// The entries in the order of the waits.
    entries: [Entry; MOST],
}

// Without a destructor, so that locks work in those of other variables.
std::thread_local! {
    static OWED: Owed = const {
        Owed { count: Cell::new(0), entries: [const { Cell::new((0, None)) }; MOST] }
    };
}

impl Owed {
    fn used(&self) -> &[Entry] {
        &self.entries[..self.count.get()]
    }
}

/// Notes that the calling thread has waited with the mutex at this address, before which it had
/// named this word.
#[cold]
pub(super) fn owe(mutex: usize, named: Option<NonNull<U32>>) {
    OWED.with(|owed| {
        if owed.used().iter().any(|entry| entry.get().0 == mutex) {
            // What was named since is the doorbell.
            return;
        }
        if let Some(entry) = owed.entries.get(owed.count.get()) {
            entry.set((mutex, named));
            owed.count.set(owed.count.get() + 1);
        }
    });
}

/// Tells whether the calling thread owes anything, so that a release has more to do.
#[inline(always)]
pub(super) fn is_owing() -> bool {
    OWED.with(|owed| owed.count.get()) != 0
}

/// Names again what the calling thread had named, after it has released the mutex at this address.
#[inline(always)]
pub(super) fn settle(mutex: usize) {
    if is_owing() {
        settle_slow(mutex);
    }
}

#[cold]
fn settle_slow(mutex: usize) {
    OWED.with(|owed| {
        let used = owed.used();
        let Some(at) = used.iter().position(|entry| entry.get().0 == mutex) else { return };
        let (_, named) = used[at].get();
        match used.get(at + 1) {
            // What is named now is owed for a later wait, whose end it is to be undone at.
            Some(later) => later.set((later.get().0, named)),
            None => drop(Linux::at_death_wake(named)),
        }
        for (to, from) in used[at..].iter().zip(&used[at + 1..]) {
            to.set(from.get());
        }
        owed.count.set(used.len() - 1);
    });
}
