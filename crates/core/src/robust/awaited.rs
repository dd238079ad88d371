//! What a participant waits for, told to an observer of its process.
//!
//! # Role
//! As [`awaited`](crate::awaited) for locks inside a process: a slow path says once that it begins to
//! wait and that it has ended. No fast path comes here. Who has the lock is not told: its words name
//! participants of the segment.

use crate::platform::{Nanos, Platform, WaitBounds};

/// How a participant wants a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RobustUse {
    /// It wants to own a mutex.
    Mutex,
    /// It wants to read.
    Read,
    /// It wants to write.
    Write,
    /// It wants units of a semaphore.
    Units,
    /// It waits for a condition, and has given this mutex back meanwhile.
    Notification {
        /// The address of the mutex.
        mutex: usize,
    },
}

/// What a participant waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RobustWait {
    /// The address of the lock in the calling process.
    pub address: usize,
    /// How the participant wants it.
    pub wants: RobustUse,
    /// The time at which the wait ends in any case.
    pub deadline: Option<Nanos>,
}

impl RobustWait {
    /// Describes a wait for this lock that ends as `how` says.
    pub(super) fn new<L, P: Platform>(lock: &L, wants: RobustUse, how: &WaitBounds<'_, P>) -> Self {
        RobustWait { address: core::ptr::from_ref(lock).addr(), wants, deadline: how.deadline }
    }
}
