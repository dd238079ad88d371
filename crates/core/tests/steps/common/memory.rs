//! The memory of the machine with one thread: before each access a test's action may run.

use super::{EXCHANGES32, access, look, play, step};
use lockstead_core::{Atomic32, Atomic64, Halves, Ordering, Plain};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// A real atomic of this size.
pub(crate) struct U32(AtomicU32);

impl U32 {
    /// Reads the word, which is no step of the lock's.
    pub(crate) fn silently(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Writes the word, which is no step of the lock's.
    pub(crate) fn write(&self, value: u32) {
        self.0.store(value, Ordering::Relaxed);
    }
}

impl Atomic32 for U32 {
    const ZERO: Self = U32(AtomicU32::new(0));
    fn load(&self, order: Ordering) -> u32 {
        look();
        access(self);
        self.0.load(order)
    }
    fn store(&self, value: u32, order: Ordering) {
        access(self);
        self.0.store(value, order);
    }
    fn swap(&self, value: u32, order: Ordering) -> u32 {
        access(self);
        self.0.swap(value, order)
    }
    fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
        access(self);
        self.0.fetch_add(value, order)
    }
    fn fetch_sub(&self, value: u32, order: Ordering) -> u32 {
        access(self);
        self.0.fetch_sub(value, order)
    }
    fn fetch_or(&self, value: u32, order: Ordering) -> u32 {
        access(self);
        self.0.fetch_or(value, order)
    }
    fn fetch_and(&self, value: u32, order: Ordering) -> u32 {
        access(self);
        self.0.fetch_and(value, order)
    }
    fn compare_exchange(
        &self,
        current: u32,
        new: u32,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u32, u32> {
        look();
        play(&EXCHANGES32);
        access(self);
        self.0.compare_exchange(current, new, success, failure)
    }
}

/// A real atomic of this size.
pub(crate) struct U64(AtomicU64);

impl U64 {
    /// Reads the word, which is no step of the lock's.
    pub(crate) fn silently(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Writes the word, which is no step of the lock's.
    pub(crate) fn write(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Reads the low half, which is no step of the lock's.
    pub(super) fn low(&self) -> u32 {
        self.0.load(Ordering::Relaxed) as u32
    }
}

impl Atomic64 for U64 {
    const ZERO: Self = U64(AtomicU64::new(0));
    fn load(&self, order: Ordering) -> u64 {
        look();
        access(self);
        self.0.load(order)
    }
    fn store(&self, value: u64, order: Ordering) {
        access(self);
        self.0.store(value, order);
    }
    fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        step(|| self.0.fetch_add(value, order))
    }
    fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
        step(|| self.0.fetch_sub(value, order))
    }
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        access(self);
        step(|| self.0.compare_exchange(current, new, success, failure))
    }
}

impl Halves for U64 {}

/// A plain field without checks.
pub(crate) struct Field<T>(UnsafeCell<T>);

impl<T> Plain<T> for Field<T> {
    fn new(value: T) -> Self {
        Field(UnsafeCell::new(value))
    }
    fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }
    fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}
