//! The checking build: what stands behind `check.h`.
//!
//! # Role
//! Each call of a lock comes by here with its place in the program. The rules are
//! those of the kernel's debugging mutexes; the orders of locks go to the same graph
//! as those of the crate's feature `check`.
//!
//! # State
//! Beside the locks, by their addresses, since a lock has no room: what is known of
//! each, and what each thread holds. Behind one mutex of the standard library.
//!
//! # Invariants
//! - **C1** While `INSIDE` is set the thread is in here; a signal handler that
//!   interrupts it passes through unchecked, so that the mutex is not taken twice.
//! - **C2** The mutex is not held while a lock is waited for.

mod calls;
mod contexts;
mod cycles;
mod ending;
mod once;
mod report;
mod rt;
mod rules;
mod table;
mod ww;

pub(crate) use ending::leaving;

use core::cell::Cell;
use std::sync::{Mutex, PoisonError};
use table::Table;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

static TABLE: Mutex<Option<Table>> = Mutex::new(None);

/// Does something with what is known, unless the thread is at that already (C1).
fn with<R>(work: impl FnOnce(&mut Table) -> R) -> Option<R> {
    if INSIDE.with(|inside| inside.replace(true)) {
        return None;
    }
    let done = work(TABLE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default());
    INSIDE.with(|inside| inside.set(false));
    Some(done)
}
