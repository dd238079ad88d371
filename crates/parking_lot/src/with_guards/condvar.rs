//! The condition variable, for guards of our [`Mutex`](super::Mutex).

use super::mutex::RawMutex;
use crate::telling;
use real::lock_api;
use std::time::{Duration, Instant};

type Guard = <RawMutex as lock_api::RawMutex>::Guard;

/// The raw condition variable, which tells of its waits.
pub struct RawCondvar(real::RawCondvar);

impl Drop for RawCondvar {
    #[inline]
    fn drop(&mut self) {
        telling::dies(self);
    }
}

// SAFETY: LOT-INSIDE: the real condition variable keeps what the trait asks for, with the real mutex.
unsafe impl lock_api::RawCondvar for RawCondvar {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = RawCondvar(real::RawCondvar::INIT);

    type RawMutex = RawMutex;

    unsafe fn wait(&self, mutex: &RawMutex, guard: &mut Guard) {
        telling::waits_on(self, mutex, None, || {
            // SAFETY: LOT-INSIDE: the caller holds the real mutex.
            unsafe { self.0.wait(mutex.real(), guard) };
            false
        });
    }

    #[inline]
    fn notify_one(&self) -> bool {
        self.0.notify_one()
    }

    #[inline]
    fn notify_all(&self) -> usize {
        self.0.notify_all()
    }
}

// SAFETY: LOT-INSIDE: the real lock keeps what the trait asks for.
unsafe impl lock_api::RawCondvarTimed for RawCondvar {
    fn checked_duration_to_instant(timeout: &Duration) -> Option<Instant> {
        real::RawCondvar::checked_duration_to_instant(timeout)
    }

    unsafe fn wait_for(&self, mutex: &RawMutex, guard: &mut Guard, timeout: &Duration) -> bool {
        telling::waits_on(self, mutex, telling::after(*timeout), || {
            // SAFETY: LOT-INSIDE: the caller holds the real mutex.
            unsafe { self.0.wait_for(mutex.real(), guard, timeout) }
        })
    }

    unsafe fn wait_until(&self, mutex: &RawMutex, guard: &mut Guard, timeout: &Instant) -> bool {
        telling::waits_on(self, mutex, Some(*timeout), || {
            // SAFETY: LOT-INSIDE: the caller holds the real mutex.
            unsafe { self.0.wait_until(mutex.real(), guard, timeout) }
        })
    }
}

/// A condition variable that tells of its waits.
pub type Condvar = lock_api::Condvar<RawCondvar>;
