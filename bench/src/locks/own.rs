//! lockstead's own locks, as the crate `lockstead` uses them.

use super::BenchLock;
use core::panic::Location;
use lockstead_core::{ClassicSemaphore, LockError, PermitOverflow, RawMutex, TunedSemaphore};
use lockstead_linux::Linux;

/// The mutex.
pub struct Lockstead(RawMutex<Linux>);

impl BenchLock for Lockstead {
    fn new() -> Self {
        Self(RawMutex::new())
    }

    #[inline(always)]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        self.0.lock(Location::caller()).unwrap_or_else(refused);
        let result = section();
        // SAFETY: locked above by this thread.
        unsafe { self.0.unlock() };
        result
    }
}

#[cold]
fn refused(error: LockError) {
    unreachable!("a measuring loop takes a lock that it does not hold: {error:?}")
}

/// The semaphore of 2005, with one permit.
pub struct SemaphoreClassic(ClassicSemaphore<Linux>);

impl BenchLock for SemaphoreClassic {
    fn new() -> Self {
        Self(ClassicSemaphore::new(1).expect("one permit is possible"))
    }

    #[inline(always)]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        self.0.down(Location::caller());
        let result = section();
        self.0.up().unwrap_or_else(overflowed);
        result
    }
}

/// The semaphore with the mutex's tricks, with one permit.
pub struct SemaphoreTuned(TunedSemaphore<Linux>);

impl BenchLock for SemaphoreTuned {
    fn new() -> Self {
        Self(TunedSemaphore::new(1).expect("one permit is possible"))
    }

    #[inline(always)]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        self.0.down(Location::caller());
        let result = section();
        self.0.up().unwrap_or_else(overflowed);
        result
    }
}

#[cold]
fn overflowed(error: PermitOverflow) {
    unreachable!("a measuring loop gives back the one permit it took: {error:?}")
}
