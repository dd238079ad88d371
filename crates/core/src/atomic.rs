//! Shared memory as a platform gives it: atomics of two sizes, the two halves of a
//! 64-bit one, and plain fields.
//!
//! # Role
//! This is the bottom of the crate: it knows no lock and no thread. Every platform implements these
//! traits, natively by `core`'s atomics.

pub use core::sync::atomic::Ordering;

/// A 32-bit atomic of a platform. Same meaning as `core`'s `AtomicU32`.
pub trait Atomic32: Sized {
    /// An atomic that holds zero; usable in constants.
    const ZERO: Self;
    /// Reads and returns the value.
    fn load(&self, order: Ordering) -> u32;
    /// Writes `value`, whatever was there.
    fn store(&self, value: u32, order: Ordering);
    /// Writes the value and returns the one before.
    fn swap(&self, value: u32, order: Ordering) -> u32;
    /// Adds, wrapping, and returns the value before.
    fn fetch_add(&self, value: u32, order: Ordering) -> u32;
    /// Subtracts, wrapping, and returns the value before.
    fn fetch_sub(&self, value: u32, order: Ordering) -> u32;
    /// Sets the bits that `value` has, and returns the value before.
    fn fetch_or(&self, value: u32, order: Ordering) -> u32;
    /// Keeps the bits that `value` has, and returns the value before.
    fn fetch_and(&self, value: u32, order: Ordering) -> u32;
    /// Replaces `current` by `new`.
    ///
    /// # Errors
    /// The value found, when it was not `current`.
    fn compare_exchange(
        &self,
        current: u32,
        new: u32,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u32, u32>;
}

/// A 64-bit atomic of a platform. Same meaning as `core`'s `AtomicU64`.
pub trait Atomic64: Sized {
    /// An atomic that holds zero; usable in constants.
    const ZERO: Self;
    /// Reads and returns the value.
    fn load(&self, order: Ordering) -> u64;
    /// Writes `value`, whatever was there.
    fn store(&self, value: u64, order: Ordering);
    /// Adds, wrapping, and returns the value before.
    fn fetch_add(&self, value: u64, order: Ordering) -> u64;
    /// Subtracts, wrapping, and returns the value before.
    fn fetch_sub(&self, value: u64, order: Ordering) -> u64;
    /// Replaces `current` by `new`.
    ///
    /// # Errors
    /// The value found, when it was not `current`.
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64>;
}

/// The operations of a mutex on the low half of its word (`word.rs`). The functions that a
/// platform does not implement change all 64 bits.
pub trait Halves: Atomic64 {
    /// Replaces the low half by `new` if it is `current`, and returns whether it did. The high
    /// half stays, whatever it is. Only for words of one process: while that
    /// has one thread, a platform may leave out what orders it for other processors.
    #[inline(always)]
    fn compare_exchange_low(&self, current: u32, new: u32, order: Ordering) -> bool {
        let mut seen = self.load(Ordering::Relaxed);
        while seen as u32 == current {
            let new = seen & HIGH | u64::from(new);
            match self.compare_exchange(seen, new, order, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(found) => seen = found,
            }
        }
        false
    }

    /// Keeps the bits of the low half that `mask` has, and returns the low half before, in one
    /// read-modify-write.
    #[inline]
    fn fetch_and_low(&self, mask: u32, order: Ordering) -> u32 {
        let mut seen = self.load(Ordering::Relaxed);
        loop {
            let kept = seen & (HIGH | u64::from(mask));
            match self.compare_exchange(seen, kept, order, Ordering::Relaxed) {
                Ok(_) => return seen as u32,
                Err(found) => seen = found,
            }
        }
    }

    /// Erases the low half if it is no more than `most`, and returns whether it did. It
    /// may also do nothing for no reason. Only for a low half that holds the calling
    /// thread's slot, and what others add.
    ///
    /// It is not one step on all platforms: it may look, and then store zero whatever the low
    /// half has become meanwhile. So a change that another thread makes to the low half is lost
    /// if `erase_low` has looked before it. That thread calls `Platform::restart_releases`
    /// after the change: if it still finds the change there, it is not lost.
    #[inline(always)]
    fn erase_low(&self, most: u32, order: Ordering) -> bool {
        let seen = self.load(Ordering::Relaxed) as u32;
        seen <= most && self.compare_exchange_low(seen, 0, order)
    }
}

/// The bits of the high half.
const HIGH: u64 = !0 << 32;

/// A plain shared field. The model checker reports a data race on it, the
/// simulator charges for it, and natively it is an `UnsafeCell`.
pub trait Plain<T> {
    /// Makes a cell that holds `value`.
    fn new(value: T) -> Self;
    /// Reads through a shared pointer.
    fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R;
    /// Writes through an exclusive pointer.
    fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R;
}
