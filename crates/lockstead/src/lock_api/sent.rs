//! Locks that the core refuses and that are waited for all the same.
//!
//! A lock's word names the thread that acquired it, and the core refuses that thread a second
//! acquisition, which could only hang. It need not where the wait has a limit of time: then it ends by
//! that, as with other crates behind these traits. And by the feature `send_guard` a guard may have gone to
//! another thread, so that nobody is refused. Such a thread cannot wait as others do: it looks again
//! from time to time.

use lockstead_core::{LockError, Nanos, Platform};
use lockstead_linux::Linux;
use std::time::Duration;

/// Tells whether a thread waits for a lock that the core refuses for this reason, until `deadline`.
pub(crate) fn waits_all_the_same(error: LockError, deadline: Option<Nanos>) -> bool {
    matches!(error, LockError::Recursive | LockError::OwnerLost)
        && (deadline.is_some() || cfg!(feature = "send_guard"))
}

/// Tries again and again until `take` has the lock. Returns false if the deadline passed.
#[cold]
pub(crate) fn take_in_time(deadline: Option<Nanos>, take: impl Fn() -> bool) -> bool {
    let mut pause = Duration::from_micros(20);
    while !take() {
        if deadline.is_some_and(|deadline| Linux::now() >= deadline) {
            return false;
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(Duration::from_millis(1));
    }
    true
}
