//! Gives the core the processor's own atomics, under its names for them.
//!
//! # Role
//! Newtypes, since both the traits and the types are foreign here. Every
//! function inlines to the one instruction it stands for; what the mutex does to half
//! a word is in `halves`.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, AtomicU64};
use lockstead_core::{Atomic32, Atomic64, Ordering, Plain};

/// An atomic of 32 bits, which is the processor's own.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct U32(AtomicU32);

impl U32 {
    /// Makes an atomic that holds `value`.
    #[must_use]
    pub const fn new(value: u32) -> Self {
        U32(AtomicU32::new(value))
    }

    /// Returns the atomic as `core` names it.
    #[inline(always)]
    #[must_use]
    pub const fn get(&self) -> &AtomicU32 {
        &self.0
    }
}

/// An atomic of 64 bits, which is the processor's own.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct U64(AtomicU64);

impl U64 {
    /// Makes an atomic that holds `value`.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        U64(AtomicU64::new(value))
    }

    /// Returns the atomic as `core` names it.
    #[inline(always)]
    #[must_use]
    pub const fn get(&self) -> &AtomicU64 {
        &self.0
    }

    /// Returns the address of the half that holds the low 32 bits of the value.
    #[inline(always)]
    pub(crate) fn low_half(&self) -> *const u32 {
        let halves = self.0.as_ptr().cast_const().cast::<u32>();
        halves.wrapping_add(if cfg!(target_endian = "big") { 1 } else { 0 })
    }
}

impl Atomic32 for U32 {
    const ZERO: Self = U32::new(0);

    #[inline(always)]
    fn load(&self, order: Ordering) -> u32 {
        self.0.load(order)
    }
    #[inline(always)]
    fn store(&self, value: u32, order: Ordering) {
        self.0.store(value, order);
    }
    #[inline(always)]
    fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.0.swap(value, order)
    }
    #[inline(always)]
    fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_add(value, order)
    }
    #[inline(always)]
    fn fetch_sub(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_sub(value, order)
    }
    #[inline(always)]
    fn fetch_or(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_or(value, order)
    }
    #[inline(always)]
    fn fetch_and(&self, value: u32, order: Ordering) -> u32 {
        self.0.fetch_and(value, order)
    }
    #[inline(always)]
    fn compare_exchange(
        &self,
        current: u32,
        new: u32,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u32, u32> {
        self.0.compare_exchange(current, new, success, failure)
    }
}

impl Atomic64 for U64 {
    const ZERO: Self = U64::new(0);

    #[inline(always)]
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }
    #[inline(always)]
    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
    }
    #[inline(always)]
    fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_add(value, order)
    }
    #[inline(always)]
    fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
        self.0.fetch_sub(value, order)
    }
    #[inline(always)]
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.0.compare_exchange(current, new, success, failure)
    }
}

/// A plain field that threads share under a lock.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Cell<T>(UnsafeCell<T>);

impl<T> Cell<T> {
    /// Makes a cell that holds `value`; usable in constants.
    pub const fn new_const(value: T) -> Self {
        Cell(UnsafeCell::new(value))
    }
}

// SAFETY: a shared cell gives out raw pointers only; the lock that reads or writes through
// them excludes other threads, so that the value moves from thread to thread.
unsafe impl<T: Send> Sync for Cell<T> {}

impl<T> Plain<T> for Cell<T> {
    #[inline(always)]
    fn new(value: T) -> Self {
        Self::new_const(value)
    }
    #[inline(always)]
    fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }
    #[inline(always)]
    fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstead_core::{Halves, Platform};

    #[test]
    fn the_low_half_is_the_one_that_changes_with_the_low_bits() {
        let word = U64::new(0x1111_1111_2222_2222);
        // SAFETY: the pointer leads into `word`, which nobody writes.
        assert_eq!(unsafe { word.low_half().read() }, 0x2222_2222);
    }

    #[test]
    fn whatever_is_done_to_the_low_half_leaves_the_high_one() {
        let word = U64::new(0x1111_1111_2222_2222);
        let (high, order) = (0x1111_1111_0000_0000, Ordering::AcqRel);
        assert!(!word.compare_exchange_low(0, 5, order));
        assert!(!word.erase_low(0xfffff, order));
        assert_eq!(word.fetch_and_low(0xff, order), 0x2222_2222);
        assert_eq!(word.load(Ordering::Relaxed), high | 0x22);
        assert!(word.compare_exchange_low(0x22, 7, order));
        assert_eq!(word.load(Ordering::Relaxed), high | 7);
        let me = crate::Linux::me().get();
        assert!(word.compare_exchange_low(7, me, order));
        let erased = (0..1000).any(|_| word.erase_low(0xfffff, order));
        assert!(erased, "interrupted a thousand times");
        assert_eq!(word.load(Ordering::Relaxed), high);
        assert!(word.compare_exchange_low(0, 3, order));
        assert_eq!(word.load(Ordering::Relaxed), high | 3);
    }
}
