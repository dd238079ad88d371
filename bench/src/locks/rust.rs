//! Peers written in Rust.

use super::BenchLock;
use std::sync::PoisonError;

/// The mutex of the standard library, `std::sync::Mutex`.
pub struct Std(std::sync::Mutex<()>);

impl BenchLock for Std {
    fn new() -> Self {
        Self(std::sync::Mutex::new(()))
    }

    #[inline(always)]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        let _guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        section()
    }
}

/// The mutex of the crate parking_lot, `parking_lot::Mutex`.
pub struct ParkingLot(parking_lot::Mutex<()>);

impl BenchLock for ParkingLot {
    fn new() -> Self {
        Self(parking_lot::Mutex::new(()))
    }

    #[inline(always)]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        let _guard = self.0.lock();
        section()
    }
}

/// The mutex of the crate usync, `usync::Mutex`.
pub struct Usync(usync::Mutex<()>);

impl BenchLock for Usync {
    fn new() -> Self {
        Self(usync::Mutex::new(()))
    }

    #[inline(always)]
    fn with<R>(&self, section: impl FnOnce() -> R) -> R {
        let _guard = self.0.lock();
        section()
    }
}
