//! The mark of a thread that is in the validator.
//!
//! # Invariants
//! - **CHECK-INSIDE** While the mark is set, the thread is in the validator; a signal handler that
//!   interrupts it passes through, so that no mutex of the validator is taken twice.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

thread_local! {
    /// Whether the thread is inside the validator. It has no destructor: it is there until the
    /// thread's very end.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Returns the guarded value: whoever panics leaves those of the validator whole.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does something in the validator, unless the thread is in there already.
pub(super) fn inside<R>(work: impl FnOnce() -> R) -> Option<R> {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            INSIDE.with(|inside| inside.set(false));
        }
    }
    if INSIDE.with(|inside| inside.replace(true)) {
        return None;
    }
    let _leave = Leave;
    Some(work())
}

/// Keeps the calling thread, which ends, out of the validator from now on.
pub(super) fn stay_inside() {
    INSIDE.with(|inside| inside.set(true));
}
