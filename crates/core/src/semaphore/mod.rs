//! The counting semaphores: the one that the announcement of 2005 measured against, and
//! one with all that the mutex has.
//!
//! # Role
//! Both count permits, have the same operations and 8 bytes. [`ClassicSemaphore`]
//! is the baseline, [`TunedSemaphore`] is the one to use.

mod classic;
mod tuned;

pub use classic::ClassicSemaphore;
pub use tuned::TunedSemaphore;

/// The error of an `up` of a semaphore that already has the largest number of free permits that it
/// can count: `up` was called more often than `down`. The permits are unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PermitOverflow;

impl core::fmt::Display for PermitOverflow {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("semaphore released more often than acquired: it cannot count more permits")
    }
}

impl core::error::Error for PermitOverflow {}
