//! What checked locks tell `lockstead run --check`, if the program runs under it.
//!
//! # Role
//! The command looks at the order of all locks of the program, those of glibc among them, prints what
//! it finds and sets the exit status. So where it listens, the validator in here rests: each hook
//! tells instead, and says so by returning true. The waits tell of themselves, as without the feature
//! `check`.

use super::lock::CheckedLock;
use lockstead_core::{Access, LockId};
use lockstead_linux::told::{Listener, ToldLock, flag, kind, listener, way};
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

thread_local! {
    /// The number of acquisitions between their announcement and their end. One that was not
    /// announced is a trial.
    static ASKED: Cell<u32> = const { Cell::new(0) };
}

fn checker() -> Option<&'static Listener> {
    listener().filter(|listener| listener.checks())
}

/// Tells whether somebody outside looks at orders and rules.
pub(super) fn takes_over() -> bool {
    checker().is_some()
}

/// Notes that the thread asks for a lock.
pub(super) fn will_acquire() -> bool {
    let takes_over = takes_over();
    if takes_over {
        ASKED.with(|asked| asked.set(asked.get() + 1));
    }
    takes_over
}

/// Returns whether the acquisition that ends here was announced.
fn was_asked() -> bool {
    ASKED.with(|asked| {
        let before = asked.get();
        asked.set(before.saturating_sub(1));
        before != 0
    })
}

/// Notes that the thread has not got the lock.
pub(super) fn abandoned() -> bool {
    takes_over() && {
        was_asked();
        true
    }
}

/// Tells that the thread has the lock.
pub(super) fn acquired(lock: &CheckedLock, id: LockId, access: Access) -> bool {
    let Some(listener) = checker() else { return false };
    let tried = if was_asked() { 0 } else { way::TRIED };
    let read = match access {
        Access::Alone => 0,
        Access::Shared => way::READ,
        // Another thread may give the unit back.
        Access::Unit => return true,
    };
    if read != 0 {
        lock.reads.store(true, Relaxed);
    }
    listener.acquired(&told(lock, id), read | tried);
    true
}

/// Tells that the thread is about to give the lock back.
pub(super) fn releasing(lock: &CheckedLock, id: LockId) -> bool {
    let Some(listener) = checker() else { return false };
    listener.releases(&told(lock, id));
    true
}

fn told(lock: &CheckedLock, id: LockId) -> ToldLock {
    let (kind, more) = if lock.reads.load(Relaxed) {
        (kind::RWLOCK, flag::WRITERS_FIRST)
    } else {
        (kind::MUTEX, 0)
    };
    ToldLock::new(id.0, kind, flag::SLOT | flag::FOLLOWED | more).named(lock.name())
}
