//! Guards that may leave their thread, by the feature `send_guard`.
//!
//! A lock's word names the thread that acquired it. Where its guard may have gone to another one, the
//! thread that asks again for what it acquired itself need not wait in vain, and a thread that
//! `fork` left behind need not have the lock any more. So nobody is refused for that. Such a thread cannot
//! wait as others do, for the core refuses: it looks again from time to time.

use lockstead_core::{LockError, Nanos, Platform};
use lockstead_linux::Linux;
use std::time::Duration;

/// Tells whether a lock that the core refuses for this reason may be released all the same.
pub(crate) fn may_be_elsewhere(error: LockError) -> bool {
    cfg!(feature = "send_guard") && matches!(error, LockError::Recursive | LockError::OwnerLost)
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
