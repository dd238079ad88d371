//! The words that a thread had named before its waits for conditions.
//!
//! # Role
//! A participant that was notified, and has the mutex back, names the doorbell until it releases
//! the mutex. Should it end before, the others look for themselves (DEATH-NAMED-WORD). This module
//! keeps what the thread had named before the wait until then, so that guards are one pointer.
//!
//! It keeps nothing of more than [`MOST`] mutexes at once. The doorbell stays named then until the
//! thread names something else, and its end may wake somebody who has nothing to do.
//!
//! A forked child inherits what its parent's thread has kept, and forgets it: the child has named
//! nothing.

use core::cell::Cell;
use core::ptr::NonNull;
use lockstead_core::robust::RobustMachine;
use lockstead_linux::shared::born;
use lockstead_linux::{Linux, U32};

/// The number of mutexes of which a thread keeps this at once.
const MOST: usize = 8;

/// The address of a mutex, and what was named before the wait.
type NamedEntry = Cell<(usize, Option<NonNull<U32>>)>;

struct Before {
    /// The number of entries in use, from the first one on.
    count: Cell<usize>,
    /// The participant that they are of, as [`born`] numbers it.
    of: Cell<u32>,
    /// The entries in the order of the waits.
    entries: [NamedEntry; MOST],
}

// Without a destructor, so that locks work in those of other variables.
std::thread_local! {
    static BEFORE: Before = const {
        Before { count: Cell::new(0), of: Cell::new(0), entries: [const { Cell::new((0, None)) }; MOST] }
    };
}

impl Before {
    /// Returns the calling thread's entries; those of the thread that it is a copy of are gone.
    fn used(&self) -> &[NamedEntry] {
        let me = born();
        if self.of.replace(me) != me {
            self.count.set(0);
        }
        &self.entries[..self.count.get()]
    }
}

/// Notes that the calling thread has waited with the mutex at this address, before which it had
/// named this word.
#[cold]
pub(super) fn remember(mutex: usize, named: Option<NonNull<U32>>) {
    BEFORE.with(|before| {
        if before.used().iter().any(|entry| entry.get().0 == mutex) {
            // What was named since is the doorbell.
            return;
        }
        if let Some(entry) = before.entries.get(before.count.get()) {
            entry.set((mutex, named));
            before.count.set(before.count.get() + 1);
        }
    });
}

/// Tells whether the calling thread has to name a word again, so that a release has more to do.
#[inline(always)]
pub(super) fn is_any() -> bool {
    BEFORE.with(|before| before.count.get()) != 0
}

/// Names again what the calling thread had named, after it has released the mutex at this address.
#[inline(always)]
pub(super) fn restore(mutex: usize) {
    if is_any() {
        restore_slow(mutex);
    }
}

#[cold]
fn restore_slow(mutex: usize) {
    BEFORE.with(|before| {
        let used = before.used();
        let Some(at) = used.iter().position(|entry| entry.get().0 == mutex) else { return };
        let (_, named) = used[at].get();
        match used.get(at + 1) {
            // A later wait named what is named now; its end restores it.
            Some(later) => later.set((later.get().0, named)),
            None => drop(Linux::at_death_wake(named)),
        }
        for (to, from) in used[at..].iter().zip(&used[at + 1..]) {
            to.set(from.get());
        }
        before.count.set(used.len() - 1);
    });
}
