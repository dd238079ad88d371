//! The words of a ledger: natively plain atomics, in the model checker words
//! whose every access is a point of exploration.
//!
//! # Role
//! What is published by one thread and judged by another process ([`publish`]),
//! and what several threads insert into at once ([`table`]), is written once over
//! [`Cells`], so that the model checker runs the very code that ships. All else
//! in a ledger is native.
//!
//! [`publish`]: crate::publish
//! [`table`]: crate::table

use core::sync::atomic::{AtomicU64, Ordering};
use lockstead_core::{Atomic64, Platform};

/// The place where the words of a publication live.
pub trait Cells {
    /// A 64-bit atomic word.
    type Word: Atomic64;
}

impl<P: Platform> Cells for P {
    type Word = P::U64;
}

/// The words of a real ledger.
#[derive(Clone, Copy, Debug)]
pub enum Native {}

impl Cells for Native {
    type Word = NativeWord;
}

/// A 64-bit word in memory that two processes share.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct NativeWord(AtomicU64);

impl NativeWord {
    /// Returns the same word, as generic code takes it.
    #[inline(always)]
    #[must_use]
    pub fn of(word: &AtomicU64) -> &NativeWord {
        // SAFETY: `NativeWord` is transparent: it has the layout of its only field, and
        // makes the same accesses.
        unsafe { &*core::ptr::from_ref(word).cast() }
    }
}

impl Atomic64 for NativeWord {
    const ZERO: Self = NativeWord(AtomicU64::new(0));

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
