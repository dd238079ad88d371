//! Tells `lockstead run`, if the program runs under it, what a thread waits for.
//!
//! # Role
//! The platform's two calls at the ends of a slow path. Who holds the lock need not be told: its
//! word names the owner by a slot, and `slots.rs` describes the table for a reader outside.

use lockstead_core::robust::RobustError;
use lockstead_core::{Awaited, AwaitedUse, LockError, Nanos};
use lockstead_told::{Listener, ToldLock, ending, flag, kind, listener, way};

/// Tells that the calling thread is about to wait; returns whether somebody has taken note.
#[inline]
pub(crate) fn wait_begins(awaited: &Awaited) -> bool {
    listener().is_some_and(|listener| begins(listener, awaited))
}

#[cold]
#[inline(never)]
fn begins(listener: &Listener, awaited: &Awaited) -> bool {
    let (lock, way) = told(awaited);
    let deadline = awaited.deadline.map_or(0, |deadline| deadline.0);
    // Whoever waits has described that in its own frame.
    let frame = core::ptr::from_ref(awaited).addr();
    listener.wait_begins(&lock, way, (deadline, 0), frame)
}

/// Tells that the wait has ended of which somebody has taken note.
#[cold]
#[inline(never)]
pub(crate) fn wait_ends(awaited: &Awaited, error: Option<LockError>) {
    let (lock, way) = told(awaited);
    let ending = match error {
        None => ending::GRANTED,
        Some(LockError::TimedOut) => ending::TIMED_OUT,
        Some(LockError::Interrupted | LockError::Cancelled) => ending::INTERRUPTED,
        Some(LockError::Recursive | LockError::OwnerLost | LockError::TooManyReaders) => {
            ending::REFUSED
        }
    };
    if let Some(listener) = listener() {
        listener.wait_ends(&lock, way, ending);
    }
}

/// A wait for a lock between processes.
#[derive(Clone, Copy, Debug)]
pub struct SharedWait {
    /// The address of the lock in the calling process.
    pub address: usize,
    /// Whether it is a condition variable; else a mutex.
    pub is_condition: bool,
    /// The mutex that a wait on a condition gives back, else 0.
    pub companion: usize,
    /// The time at which the wait ends in any case.
    pub deadline: Option<Nanos>,
}

/// Waits by `wait` for a lock between processes, and tells `lockstead run` of it, if the program
/// runs under it. `error` says why a wait was given up. Who has the lock is not told: its word
/// names a participant of the segment, and no thread of one process.
#[inline]
pub fn telling_shared<T>(
    what: SharedWait,
    wait: impl FnOnce() -> T,
    error: impl Fn(&T) -> Option<RobustError>,
) -> T {
    let told = listener().map(|listener| {
        let kind = if what.is_condition { kind::CONDITION } else { kind::MUTEX };
        let lock = ToldLock::new(what.address, kind, 0);
        let ends = (what.deadline.map_or(0, |deadline| deadline.0), what.companion);
        let frame = core::ptr::from_ref(&what).addr();
        (listener, listener.wait_begins(&lock, way::ALONE, ends, frame), lock)
    });
    let ended = wait();
    if let Some((listener, true, lock)) = told {
        listener.wait_ends(
            &lock,
            way::ALONE,
            match error(&ended) {
                None => ending::GRANTED,
                Some(RobustError::TimedOut) => ending::TIMED_OUT,
                Some(RobustError::Interrupted | RobustError::Cancelled) => ending::INTERRUPTED,
                Some(_) => ending::REFUSED,
            },
        );
    }
    ended
}

fn told(awaited: &Awaited) -> (ToldLock, u32) {
    let (kind, flags, way) = match awaited.wants {
        AwaitedUse::Mutex => (kind::MUTEX, flag::SLOT, way::ALONE),
        AwaitedUse::InheritingMutex => (kind::MUTEX, flag::INHERIT, way::ALONE),
        AwaitedUse::Read => (kind::RWLOCK, flag::SLOT | flag::WRITERS_FIRST, way::READ),
        AwaitedUse::Write => (kind::RWLOCK, flag::SLOT | flag::WRITERS_FIRST, way::ALONE),
        AwaitedUse::Unit => (kind::SEMAPHORE, 0, way::ALONE),
        AwaitedUse::Notification => (kind::CONDITION, 0, way::ALONE),
        AwaitedUse::Turn => (kind::ONCE, flag::SLOT, way::ALONE),
    };
    (ToldLock::new(awaited.address, kind, flags).named(awaited.name), way)
}
