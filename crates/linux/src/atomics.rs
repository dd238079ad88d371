//! The processor's own atomics, under the names the core knows them by.
//!
//! # Role
//! Newtypes, since both the traits and the types are foreign here. Every
//! function inlines to the one instruction it stands for.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, AtomicU64};
use lockstead_core::{Atomic32, Atomic64, Ordering, Plain};

/// A 32-bit atomic.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct U32(AtomicU32);

impl U32 {
    /// An atomic that holds `value`.
    #[must_use]
    pub const fn new(value: u32) -> Self {
        U32(AtomicU32::new(value))
    }

    /// The atomic as `core` names it.
    #[inline(always)]
    #[must_use]
    pub const fn get(&self) -> &AtomicU32 {
        &self.0
    }
}

/// A 64-bit atomic.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct U64(AtomicU64);

impl U64 {
    /// An atomic that holds `value`.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        U64(AtomicU64::new(value))
    }

    /// The atomic as `core` names it.
    #[inline(always)]
    #[must_use]
    pub const fn get(&self) -> &AtomicU64 {
        &self.0
    }

    /// The address of the half that holds the low 32 bits of the value.
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
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn take_low(&self, _order: Ordering) -> u32 {
        let mut low = 0u32;
        // SAFETY: the address is that of a live atomic. To the language this is
        // `fetch_and` of the high half, of which the low half is returned: one
        // atomic read-modify-write of all 64 bits that happens to leave the high
        // ones alone. The processor performs it on the low half only, which no
        // other access can tell: locked instructions are totally ordered on
        // x86-64 whatever their size. `xchg` is the cheapest of them (a release
        // by `cmpxchg` or `and` costs 3 to 5 % more for the pair), and is
        // sequentially consistent, whatever order was asked for.
        unsafe {
            core::arch::asm!(
                "xchg dword ptr [{word}], {low:e}",
                word = in(reg) self.0.as_ptr(),
                low = inout(reg) low,
                options(nostack, preserves_flags),
            );
        }
        low
    }
    #[cfg(not(target_arch = "x86_64"))]
    #[inline(always)]
    fn take_low(&self, order: Ordering) -> u32 {
        self.0.fetch_and(!0 << 32, order) as u32
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

/// A plain shared field.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Cell<T>(UnsafeCell<T>);

impl<T> Cell<T> {
    /// A cell that holds `value`; usable in constants.
    pub const fn new_const(value: T) -> Self {
        Cell(UnsafeCell::new(value))
    }
}

// SAFETY: a shared cell gives out raw pointers only; whoever reads or writes
// through them excludes the others by a lock, so that the value moves from
// thread to thread.
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

    #[test]
    fn the_low_half_is_the_one_that_changes_with_the_low_bits() {
        let word = U64::new(0x1111_1111_2222_2222);
        // SAFETY: the pointer leads into `word`, which nobody writes.
        assert_eq!(unsafe { word.low_half().read() }, 0x2222_2222);
    }

    #[test]
    fn taking_the_low_half_leaves_the_high_one() {
        let word = U64::new(0x1111_1111_2222_2222);
        assert_eq!(word.take_low(Ordering::Release), 0x2222_2222);
        assert_eq!(word.load(Ordering::Relaxed), 0x1111_1111_0000_0000);
        assert_eq!(word.take_low(Ordering::Release), 0);
    }
}
