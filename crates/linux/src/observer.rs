//! Tells `lockstead run`, if the program runs under it, what a thread waits for.
//!
//! # Role
//! The platform's two calls at the ends of a slow path, and those of locks between processes. Who
//! holds the lock need not be told: its word names the owner by a slot, and `slots.rs` describes the
//! table for a reader outside; of locks between processes the segment's file has it all.

use crate::shared;
use lockstead_core::robust::{RobustError, RobustUse, RobustWait};
use lockstead_core::{Awaited, AwaitedUse, LockError};
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

/// Tells that the calling thread is about to wait for a lock between processes; returns whether
/// somebody has taken note.
#[inline]
pub(crate) fn shared_wait_begins(wait: &RobustWait) -> bool {
    listener().is_some_and(|listener| shared_begins(listener, wait))
}

#[cold]
#[inline(never)]
fn shared_begins(listener: &Listener, wait: &RobustWait) -> bool {
    let (mut lock, way) = told_shared(wait);
    let name = shared::name_of(wait.address);
    if let Some(name) = name.as_ref().map(|name| name.as_str()) {
        (lock.name, lock.name_length) = (name.as_ptr(), name.len() as u64);
    }
    let companion = match wait.wants {
        RobustUse::Notification { mutex } => mutex,
        _ => 0,
    };
    let ends = (wait.deadline.map_or(0, |deadline| deadline.0), companion);
    // Whoever waits has described that in its own frame.
    listener.wait_begins(&lock, way, ends, core::ptr::from_ref(wait).addr())
}

/// Tells that the wait for a lock between processes has ended of which somebody has taken note.
#[cold]
#[inline(never)]
pub(crate) fn shared_wait_ends(wait: &RobustWait, error: Option<RobustError>) {
    let (lock, way) = told_shared(wait);
    let ending = match error {
        None => ending::GRANTED,
        Some(RobustError::TimedOut) => ending::TIMED_OUT,
        Some(RobustError::Interrupted | RobustError::Cancelled) => ending::INTERRUPTED,
        Some(_) => ending::REFUSED,
    };
    if let Some(listener) = listener() {
        listener.wait_ends(&lock, way, ending);
    }
}

/// Describes a lock between processes. Its word names a participant of the segment, and no thread
/// of this process.
fn told_shared(wait: &RobustWait) -> (ToldLock, u32) {
    let (kind, flags, way) = match wait.wants {
        RobustUse::Mutex => (kind::MUTEX, 0, way::ALONE),
        RobustUse::Read => (kind::RWLOCK, flag::WRITERS_FIRST, way::READ),
        RobustUse::Write => (kind::RWLOCK, flag::WRITERS_FIRST, way::ALONE),
        RobustUse::Units => (kind::SEMAPHORE, 0, way::ALONE),
        RobustUse::Notification { .. } => (kind::CONDITION, 0, way::ALONE),
    };
    (ToldLock::new(wait.address, kind, flags | flag::SHARED), way)
}

fn told(awaited: &Awaited) -> (ToldLock, u32) {
    let (kind, flags, way) = match awaited.wants {
        AwaitedUse::Mutex => (kind::MUTEX, flag::SLOT, way::ALONE),
        AwaitedUse::BiasedMutex => (kind::MUTEX, flag::SLOT | flag::BIASED, way::ALONE),
        AwaitedUse::InheritingMutex => (kind::MUTEX, flag::INHERIT, way::ALONE),
        AwaitedUse::Read => (kind::RWLOCK, flag::SLOT | flag::WRITERS_FIRST, way::READ),
        AwaitedUse::Write => (kind::RWLOCK, flag::SLOT | flag::WRITERS_FIRST, way::ALONE),
        AwaitedUse::Unit => (kind::SEMAPHORE, 0, way::ALONE),
        AwaitedUse::Notification => (kind::CONDITION, 0, way::ALONE),
        AwaitedUse::Turn => (kind::ONCE, flag::SLOT, way::ALONE),
    };
    (ToldLock::new(awaited.address, kind, flags).named(awaited.name), way)
}
