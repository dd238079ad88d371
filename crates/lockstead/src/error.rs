//! Why a bounded wait gave up. Each call can fail in one way only, so each
//! reason is a type of its own.

use core::fmt;

/// The deadline passed and the wait ended without what it waited for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TimedOut;

/// A signal handler ran on the waiting thread and the wait ended without what
/// it waited for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Interrupted;

/// The [`CancelToken`](crate::CancelToken) of the call was fired and the wait
/// ended without what it waited for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cancelled;

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the wait timed out: nothing was acquired; try again, allow more time, or find out who holds the lock (`owner`)")
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the wait was interrupted by a signal handler: nothing was acquired; act on the signal, then try again")
    }
}

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the wait was cancelled by its token: nothing was acquired; abandon the work that needed it")
    }
}

impl std::error::Error for TimedOut {}
impl std::error::Error for Interrupted {}
impl std::error::Error for Cancelled {}
