//! What a thread waits for, told to an observer of the process.
//!
//! # Role
//! A slow path says once, by [`telling`], that it begins to wait and that it has ended: what lies
//! between, spinning, naps and several sleeps, is one wait. The platform passes that on to whoever
//! observes the process, or does nothing, which is what [`Platform::wait_begins`] does unless a
//! platform says otherwise. No fast path comes here.

use crate::platform::{Awaited, LockError, Platform, WaitOutcome};

/// Waits by `wait`, and tells the platform's observer when that begins and how it ends.
///
/// # Errors
/// Those of `wait`.
#[inline]
pub(crate) fn telling<P: Platform, T>(
    awaited: &Awaited,
    wait: impl FnOnce() -> Result<T, LockError>,
) -> Result<T, LockError> {
    let told = P::wait_begins(awaited);
    let ended = wait();
    if told {
        P::wait_ends(awaited, ended.as_ref().err().copied());
    }
    ended
}

/// Sleeps once by `sleep`, and tells the platform's observer when that begins and how it ends.
#[inline]
pub(crate) fn telling_outcome<P: Platform>(
    awaited: &Awaited,
    sleep: impl FnOnce() -> WaitOutcome,
) -> WaitOutcome {
    let told = P::wait_begins(awaited);
    let outcome = sleep();
    if told {
        let error = match outcome {
            WaitOutcome::Woken | WaitOutcome::Changed => None,
            WaitOutcome::TimedOut => Some(LockError::TimedOut),
            WaitOutcome::Interrupted => Some(LockError::Interrupted),
            WaitOutcome::Cancelled => Some(LockError::Cancelled),
        };
        P::wait_ends(awaited, error);
    }
    outcome
}
