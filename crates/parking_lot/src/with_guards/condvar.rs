//! The condition variable, for guards of our [`Mutex`](super::Mutex).

use super::mutex::RawMutex;
use crate::telling;
use lockstead_told::home::Home;
use real::lock_api;
use std::time::{Duration, Instant};

type Guard = <RawMutex as lock_api::RawMutex>::Guard;

/// The raw condition variable, which tells of its waits.
#[repr(C)]
pub struct RawCondvar(Home, real::RawCondvar);

// SAFETY: LOT-INSIDE: the real condition variable keeps what the trait asks for, with the real mutex.
unsafe impl lock_api::RawCondvar for RawCondvar {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = RawCondvar(Home::new(), real::RawCondvar::INIT);

    type RawMutex = RawMutex;

    unsafe fn wait(&self, mutex: &RawMutex, guard: &mut Guard) {
        telling::waits_on(&self.0, mutex.told(), None, || {
            // SAFETY: LOT-INSIDE: the caller holds the real mutex.
            unsafe { self.1.wait(mutex.real(), guard) };
            false
        });
    }

    #[inline]
    fn notify_one(&self) -> bool {
        self.1.notify_one()
    }

    #[inline]
    fn notify_all(&self) -> usize {
        self.1.notify_all()
    }
}

// SAFETY: LOT-INSIDE: the real lock keeps what the trait asks for.
unsafe impl lock_api::RawCondvarTimed for RawCondvar {
    fn checked_duration_to_instant(timeout: &Duration) -> Option<Instant> {
        real::RawCondvar::checked_duration_to_instant(timeout)
    }

    unsafe fn wait_for(&self, mutex: &RawMutex, guard: &mut Guard, timeout: &Duration) -> bool {
        telling::waits_on(&self.0, mutex.told(), telling::after(*timeout), || {
            // SAFETY: LOT-INSIDE: the caller holds the real mutex.
            unsafe { self.1.wait_for(mutex.real(), guard, timeout) }
        })
    }

    unsafe fn wait_until(&self, mutex: &RawMutex, guard: &mut Guard, timeout: &Instant) -> bool {
        telling::waits_on(&self.0, mutex.told(), Some(*timeout), || {
            // SAFETY: LOT-INSIDE: the caller holds the real mutex.
            unsafe { self.1.wait_until(mutex.real(), guard, timeout) }
        })
    }
}

/// A condition variable that tells of its waits.
pub type Condvar = lock_api::Condvar<RawCondvar>;
