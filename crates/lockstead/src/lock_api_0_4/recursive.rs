//! Recursive reads.

use crate::lock_api::{RawRwLock, RawUpgradableRwLock};
use crate::time;
use std::time::{Duration, Instant};

/// Implements the traits of recursive reads by the part of the lock that readers use.
macro_rules! recursive {
    ($lock:ty, |$this:ident| $shared:expr) => {
        // SAFETY: the core lets such a reader in wherever the lock is being read.
        unsafe impl ::lock_api_0_4::RawRwLockRecursive for $lock {
            #[inline]
            #[track_caller]
            fn lock_shared_recursive(&self) {
                let $this = self;
                $shared.acquire_shared_again();
            }

            #[inline]
            #[track_caller]
            fn try_lock_shared_recursive(&self) -> bool {
                let $this = self;
                $shared.try_acquire_shared_again()
            }
        }

        // SAFETY: a wait of the core that timed out has acquired nothing.
        unsafe impl ::lock_api_0_4::RawRwLockRecursiveTimed for $lock {
            #[inline]
            #[track_caller]
            fn try_lock_shared_recursive_for(&self, timeout: Duration) -> bool {
                let $this = self;
                $shared.acquire_shared_again_by(|| time::within(timeout))
            }

            #[inline]
            #[track_caller]
            fn try_lock_shared_recursive_until(&self, deadline: Instant) -> bool {
                let $this = self;
                $shared.acquire_shared_again_by(|| time::until(deadline))
            }
        }
    };
}

recursive!(RawRwLock, |lock| lock);
recursive!(RawUpgradableRwLock, |lock| lock.shared());
